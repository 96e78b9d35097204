//! Reads run directories, and computes the document of a run and the comparison of two. Knows nothing of how these are
//! printed (`render`): texts that are made here are part of the document.

mod adaptive;
mod answer;
pub(crate) mod cell_figures;
pub mod compare;
pub(crate) mod core_distance;
mod curves;
pub(crate) mod document;
mod effects;
pub(crate) mod evaluate;
pub(crate) mod flows;
pub(crate) mod gathered;
pub(crate) mod load_counts;
pub(crate) mod loads;
mod memory;
pub(crate) mod moves;
pub(crate) mod network_share;
pub(crate) mod outcomes;
mod published;
pub(crate) mod read;
pub(crate) mod round_latencies;
mod rules;
pub(crate) mod run;
mod self_test;
pub(crate) mod skipped;
mod steered;
pub(crate) mod thinned;
pub(crate) mod trust;
pub(crate) mod values;
mod wakeups;
mod warnings;
