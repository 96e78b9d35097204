//! The one crate with `unsafe`: namespaces, processes, ethtool, sockets and other kernel interfaces.
//!
//! Everything here is a thin, safe wrapper that decodes the kernel's answers once, into typed values. No policy: which
//! device gets which feature, or when a namespace is entered, is the caller's decision.

pub mod block_file;
pub mod bpf;
pub mod capability;
pub mod control_group;
pub mod core_interrupt;
pub mod cores;
pub mod dirty_pages;
pub mod epoll;
pub mod ethtool;
pub mod extended_wait;
pub mod file_io;
pub mod io_uring;
pub mod kvm;
pub mod memory;
pub mod memory_file;
pub mod missing_pages;
pub mod namespace;
pub mod priority;
pub mod process;
pub mod ring;
pub mod scratch;
pub mod secret;
pub mod shared_memory;
pub mod socket;
pub mod stdio;
pub mod thread;
pub mod tun;
pub mod userfaultfd;
pub mod xdp_socket;
