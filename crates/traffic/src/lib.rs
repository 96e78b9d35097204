//! The traffic engine: loads between two endpoints, without an allocation or a lock on the data path.
//!
//! A [`Client`] and a [`Server`], given the same [`Options`], run one of the six [`Workload`]s; they live in different
//! namespaces and usually in different processes, and any number of them may run beside each other. Flows are opened
//! first, each by a handshake that says whose it is; [`Client::start`] lets all of them begin together and
//! [`Client::stop`] ends them together. What happened between two [`Snapshot`]s of one end is a [`Window`].
//!
//! This room knows no namespaces: a socket stays in the one that its creating thread was in, so sockets are made on
//! the thread that calls [`Server::listen`] or [`Client::connect`], or on threads that it starts there (an accepted
//! socket belongs to its listener's namespace). Threads inherit the caller's processors; nothing is pinned here.
//!
//! Inside: each workload is a small table (`workload/`) of which machine runs at which end, how flows are opened and
//! closed, and how large buffers are. A machine is one half of a flow, which does what it can and says what it waits
//! for; a worker drives it on a blocking socket, among others on sockets that do not block, or spinning.
//!
//! Not here: when a window begins and ends, what else the host did meanwhile (room `meter`), what it means.

mod busy;
mod client;
mod closing;
mod datagram;
mod error;
mod flow;
mod handshake;
mod io;
mod latency;
mod load;
mod machine;
mod opening;
mod options;
mod preflight;
mod sequence;
mod server;
mod snapshot;
mod socket;
mod steering;
mod table;
mod timetable;
mod window;
mod worker;
mod workload;

pub use client::Client;
pub use error::{Refusal, TrafficError};
pub use flow::{Finished, FlowEnd};
pub use options::{
    Limit, MAX_DEPTH, MAX_MESSAGE, MAX_STREAMS, Options, Rate, Receiving, Segmentation, Sending,
    Several, Waiting, Workload,
};
pub use preflight::{Finding, note_control_groups, preflight, room_for};
pub use server::Server;
pub use snapshot::{Asked, FlowSnapshot, Snapshot, TcpState, ThreadSnapshot};
pub use window::{Window, flow_deltas};

#[cfg(test)]
mod tests;
