//! Wirecost's terms as types: the effective plan, the cells it expands to, the sample record and what is derived from
//! it, and units.
//!
//! Not here: reading a plan's text (crate `plan`), I/O of any kind, statistics.

pub mod cell;
pub mod comparison_cells;
pub mod cores;
pub mod counts;
pub mod curve;
pub mod datapath;
pub mod effect;
pub mod encapsulation;
pub mod end_window;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod host;
pub mod ip;
pub mod latency;
pub mod levels;
pub mod line;
pub mod load;
pub mod logical;
pub mod machine_move;
pub mod metric;
pub mod offload;
mod older;
pub mod path_access;
pub mod plan;
pub mod published;
pub mod record;
pub mod sample;
pub mod steering;
pub mod switch;
pub mod transit;
pub mod units;
pub mod usage;
pub mod vary;
