//! The protocol (versioned), the agent that executes it, and the links to hosts.
//!
//! An agent is a process on a host, spoken to over its standard input and output. It does what it
//! is asked, one request at a time, and ends itself, with all it made, when its input closes.
//! Not here: which cell is measured when (`run`), what follows from it (`stats`).

mod address;
mod datapath;
pub mod duty;
mod error;
mod execute;
mod existing;
pub mod existing_host;
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
mod own_underlay;
mod path;
pub mod protocol;
mod prove;
mod seen;
mod serve;
mod settings;
mod transfer;
pub mod tunnel;
mod way;

pub use error::AgentError;
pub use serve::serve;
