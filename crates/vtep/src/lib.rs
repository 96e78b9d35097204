//! A tunnel endpoint in eBPF: guests' frames in VLAN, VXLAN or Geneve, on tc hooks, where the kernel has no driver
//! or to compare two headers on one code path.
//!
//! Beside it a program that tells each packet when it departs on an emulated line ([`Departures`]).
//!
//! The programs are in `bpf/`, compiled by clang in build.rs, loaded here. Programs, maps and links vanish with the
//! [`Vtep`], at the latest with the process, unless [`Vtep::pin`] leaves them to the kernel. What devices there are, and which offloads
//! they have, is the caller's business; docs/encapsulations.md says what works well.

mod config;
mod counters;
mod dry_run;
mod error;
mod layout;
mod line;
mod link;
mod load;
pub mod pinned;
mod segmenter;
mod template;
mod vtep;

pub use config::{Config, Format, Hook, Tunnel};
pub use counters::{Counter, Counters};
pub use dry_run::{DryRun, Verdict};
pub use error::Error;
pub use line::{Departures, LineRate};
pub use segmenter::sending_end;
pub use vtep::{StationLocation, Vtep};
