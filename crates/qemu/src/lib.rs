//! A virtual machine in QEMU: its guest ([`guest`]), its process ([`Machine`]), its monitor (QMP), and whether this
//! host can run one ([`host_qemu`]).
//!
//! Nothing outlives the process that starts a machine: QEMU is killed with it (`PR_SET_PDEATHSIG`), the monitor is its
//! standard input and output, memory and firmware are memfd_create(2) files without a name.
//!
//! Not here: what a move is and how its two ends agree (crate `traffic`).

mod error;
mod find;
pub mod guest;
mod machine;
mod monitor;
mod version;

pub use error::QemuError;
pub use find::{HostQemu, host_qemu};
pub use machine::{Machine, Spec};
pub use monitor::{Line, TimedLine};
pub use version::Version;
