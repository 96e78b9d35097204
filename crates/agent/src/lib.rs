//! The protocol (versioned), the agent that executes it, and the links to hosts.
//!
//! An agent is a process on a host, spoken to over its standard input and output. It does what it
//! is asked, one request at a time, and ends itself, with all it made, when its input closes.
//! Not here: which cell is measured when (`run`), what follows from it (`stats`).

mod address;
mod datapath;
mod execute;
mod fragments;
mod frame;
pub mod keeper;
mod keepers;
pub mod lab;
mod level;
mod line;
pub mod link;
mod load;
mod path;
pub mod place;
pub mod protocol;
mod prove;
mod seen;
mod serve;
mod settings;
pub mod stray;
mod transfer;
pub mod tunnel;

pub use serve::serve;
