//! The protocol (versioned), the agent that executes it, and the links to hosts.
//!
//! An agent is a process on a host; the controller talks to it over its standard input and output. It executes one
//! request at a time, and ends when its input closes, with everything that it made. Not in this crate: the order of
//! cells (crate `control`), and what follows from the samples (crate `stats`).

mod address;
mod datapath;
mod error;
mod execute;
mod existing;
pub mod existing_host;
mod existing_underlay;
mod expected_datagram;
#[doc(hidden)]
pub mod frame;
pub mod guard;
mod guards;
pub mod lab;
mod level;
mod line;
pub mod link;
mod load;
pub mod orphan;
mod path;
mod path_devices;
pub mod protocol;
mod prove;
pub mod role;
mod serve;
mod settings;
mod transfer;
pub mod tunnel;
mod validate;

pub use error::AgentError;
pub use serve::serve;
pub use validate::RequestError;
