//! A tunnel endpoint in eBPF: guests' frames in VLAN, VXLAN or Geneve, on tc hooks, where the kernel has no driver
//! or to compare two headers on one code path.
//!
//! The programs are in `bpf/`, compiled by clang in build.rs, loaded here. Nothing is pinned: programs, maps and
//! links vanish with the [`Vtep`], at the latest with the process. What devices there are, and which offloads
//! they have, is the caller's business; docs/encapsulations.md says what works well.

mod config;
mod counters;
mod dry_run;
mod error;
mod layout;
mod link;
mod load;
mod segmenter;
mod template;
mod vtep;

pub use config::{Config, Format, Hook, Tunnel};
pub use counters::{Counter, Counters};
pub use dry_run::{DryRun, Verdict};
pub use error::Error;
pub use vtep::{Location, Vtep};
