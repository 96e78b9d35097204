//! What the commands orchestrate: an experiment (`run`), a load by hand, a check of a path, tunnels, cleaning up.
//!
//! Drives agents over their protocol and does not depend on how they execute requests: a lab's hosts and hosts behind
//! ssh are driven alike. Not here: verdicts (`stats`), output for people (`report`).
//!
//! The base modules - concurrent, hosts, lab, marks, placement, random, timeouts, window - import none of the commands'
//! modules.

pub mod clean;
mod concurrent;
pub mod experiment;
pub mod hosts;
mod lab;
pub mod load;
mod marks;
pub mod path;
mod placement;
mod random;
mod timeouts;
pub mod tunnel;
mod window;

pub use lab::{Lab, LabContext};
pub use placement::{Placement, place};
pub use window::{CountingWindow, results};
