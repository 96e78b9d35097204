//! Computes: a run directory is read, and worked out into one document; two of them into a comparison. Knows nothing of how
//! it is printed (`say`): what is here in words is part of the document.

mod answer;
pub mod compare;
pub(crate) mod core_distance;
mod curves;
pub(crate) mod document;
mod effects;
pub(crate) mod evaluate;
pub(crate) mod flows;
pub(crate) mod gathered;
pub(crate) mod loads;
mod memory;
pub(crate) mod moves;
pub(crate) mod network_share;
pub(crate) mod outcomes;
mod published;
pub(crate) mod read;
mod rules;
pub(crate) mod run;
mod self_test;
pub(crate) mod share_of_round;
pub(crate) mod skipped;
mod steered;
pub(crate) mod thinned;
pub(crate) mod trust;
mod until;
pub(crate) mod values;
mod wakeups;
mod warnings;
