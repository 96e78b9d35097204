//! What the commands orchestrate: an experiment (`run`), a load by hand, a check of a path, tunnels, cleaning up.
//!
//! Drives agents over their protocol and knows nothing of how they do what they are asked: the lab's hosts and hosts
//! behind ssh are the same to it. Not here: verdicts (`stats`), output for people (`report`).
//!
//! The base - calls, randomness, hosts, lab, marks, placement, window - knows none of the commands.

mod calls;
pub mod clean;
pub mod experiment;
pub mod hosts;
mod lab;
pub mod load;
mod marks;
pub mod path;
mod placement;
mod random;
pub mod tunnel;
mod window;

pub use lab::{Lab, LabContext};
pub use placement::{Placement, place};
pub use window::{CountingWindow, results};
