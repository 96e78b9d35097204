//! A tunnel endpoint in eBPF on tc hooks: puts guests' frames into VLAN, VXLAN or Geneve where the
//! kernel has no driver, or to compare two headers on the same code path.
//!
//! A second program sets the departure times of packets on an emulated line ([`EdtProgram`]).
//!
//! The programs are in `bpf/`; clang compiles them in build.rs, and they are loaded here. Programs,
//! maps and links are removed with the [`Vtep`], at the latest with the process, unless
//! [`Vtep::pin`] leaves them to the kernel. Devices and their offloads are the caller's
//! responsibility; docs/encapsulations.md says which work well.

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
pub use line::{EdtProgram, LineRate};
pub use segmenter::sending_end;
pub use vtep::{FdbDestination, Vtep};
