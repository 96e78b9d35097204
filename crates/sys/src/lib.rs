//! The one room with `unsafe`: namespaces, processes, ethtool, sockets.
//!
//! Everything here is a thin, safe wrapper that decodes what the kernel says once, into typed values.
//! No policy: which device gets which feature, or when a namespace is entered, is the caller's.

pub mod epoll;
pub mod ethtool;
pub mod namespace;
pub mod process;
pub mod socket;
pub mod thread;
