//! Plan -> cells -> rounds -> samples -> run directory.
//!
//! Drives agents over their protocol and knows nothing of how they do what they are asked: the
//! lab's hosts and, later, hosts behind ssh are the same to it. Not here: verdicts (`stats`),
//! output for people (`report`).

mod apart;
pub mod by_hand;
pub mod check;
mod datapath;
mod directory;
mod forecast;
pub mod hosts;
mod lab;
mod labs;
mod line;
mod load;
mod placement;
mod preview;
mod progress;
mod rounds;
mod sample;
mod settings;
mod until;

pub use directory::DirectoryError;
pub use forecast::{ASSUMED_SD, Forecast, forecast, rounds_until_known};
pub use lab::{Lab, LabContext};
pub use load::{Counting, results};
pub use placement::{Placement, place};
pub use preview::{Preview, SeedSource, preview};
pub use progress::Progress;
pub use rounds::{Finished, Options, RunError, run};
pub use sample::{FOREIGN_CORES_THRESHOLD, STEAL_THRESHOLD};
