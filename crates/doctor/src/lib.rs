//! Finds out what this machine can and cannot do, what needs each capability, and what to do about a missing one.
//!
//! Nothing is guessed from lists of modules: every capability is tried, in scratch namespaces of
//! processes that end right after, once with the caller's own privilege and once as a plain user
//! in a user namespace. What was seen (`evidence`) is kept apart from what follows from it
//! (`judge`, pure functions), so that advice is tested from recorded evidence.
//!
//! Nothing is left behind: devices go with their namespaces, and namespaces with their processes. The
//! kernel may load modules (`vxlan`, `sch_tbf`) when a probe asks for their device or qdisc, as it would
//! for a run; they stay loaded.
//!
//! Not here: printing (`cli`), and anything that a run does itself.

mod check;
mod child;
mod evidence;
mod examine;
mod gather;
mod judge;
mod kernel_config;
mod probe;

pub use check::{Check, Examination, Group, MachineSummary, Status};
pub use examine::examine;
pub use probe::{Privilege, probe};
