//! The traffic engine: loads between two endpoints, without an allocation or a lock on the data path.
//!
//! A [`Client`] and a [`Server`] with the same [`Options`] run one [`Workload`]; they live in different network
//! namespaces and usually in different processes, and any number of them may run at once. Flows are connected first,
//! each by a handshake; [`Client::start`] starts all of them together and [`Client::stop`] ends them together. What
//! happened between two [`Snapshot`]s of one end is its [`window`].
//!
//! This crate knows no namespaces. A socket belongs to the namespace of the thread that makes it, so sockets are made
//! on the thread that calls [`Server::listen`] or [`Client::connect`], or on threads that it starts; an accepted
//! socket belongs to its listener's namespace. Threads inherit the caller's CPU affinity; nothing is pinned here.
//!
//! Inside: a workload is a table of functions (`workload/`, `ops.rs`) that says which tasks run at each end, how
//! flows are opened and closed, and how large buffers are. A task (`task/`) is one direction of a flow as a state
//! machine: polled, it does what it can and says what it waits for. A worker thread (`worker/`) runs a task on a
//! blocking socket, or many on non-blocking sockets with epoll or io_uring, or spinning.
//!
//! Not here: when a window begins and ends; what else the host did meanwhile (crate `meter`); what the figures mean.

mod buffers;
mod client;
mod closing;
mod counter;
mod datagram;
mod dispatch;
mod engine;
mod error;
mod flow;
mod generator;
mod handshake;
mod latency;
mod lost_segments;
mod migration;
mod opening;
mod ops;
mod options;
mod preflight;
mod rate_schedule;
mod read_offset;
mod sequence;
mod server;
mod shared;
mod snapshot;
mod socket;
mod steering;
mod storage;
mod task;
mod threads;
mod timeouts;
mod window;
mod worker;
mod workload;
mod write_size;

pub use client::Client;
pub use error::{Refusal, TrafficError};
pub use flow::{Finished, FinishedFlow};
#[doc(hidden)]
pub use handshake::{opening, opens_a_flow};
pub use migration::observer::Observer;
pub use options::{
    Limit, Load, Multiplexing, Options, Rate, Receiving, Segmentation, Sending, WaitMode, Workload,
};
pub use preflight::{Finding, check_resources, note_control_groups, preflight};
pub use server::Server;
pub use snapshot::{FlowSnapshot, ScheduleTotals, Snapshot, TcpState, ThreadSnapshot};
#[doc(hidden)]
pub use storage::plain::PlainTarget;
pub use window::{window, window_until_end};

#[cfg(test)]
mod tests;
