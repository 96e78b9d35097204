//! What the programs of the bench share: the `wirecost` program as a child, signals, a scratch directory, and how
//! ratios are judged and written.
//!
//! Not here: what is compared with what, which is each program's own.

pub mod cpu;
pub mod figures;
pub mod interrupt;
pub mod program;
pub mod scratch;
pub mod window;
