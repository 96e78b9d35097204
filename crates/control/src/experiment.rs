//! `wirecost run`: plan -> cells -> rounds -> samples -> run directory.
//!
//! Not here: verdicts (`stats`), output for people (`report`).

mod adaptive;
mod attempts;
mod core_distance;
mod datapath;
mod directory;
mod error;
mod existing;
mod forecast;
mod labs;
mod line;
mod machine;
mod max_rate;
mod preview;
mod progress;
mod rounds;
mod sample;
mod settings;
mod start;
mod tunnel;

pub use directory::DirectoryError;
pub use error::RunError;
pub use existing::{HostPath, InspectedHosts, PathDevice, inspect};
pub use forecast::{ASSUMED_SD, Forecast, forecast, rounds_until_known};
pub use max_rate::{SendLimit, Traffic};
pub use preview::{Preview, preview};
pub use progress::Progress;
pub use rounds::{Finished, Options, agent_role, run};
pub use start::SeedSource;
pub use tunnel::{PORTS, guest_addresses};
