//! Turns a plan's text into an experiment, or into all of its errors, each with its place.
//!
//! A crate without I/O: text in, [`Experiment`] or [`PlanErrors`] out. It reads no files, looks at no
//! devices and does not know whether this machine can run what the plan asks for.
//!
//! The text becomes a tree of nodes with byte positions (module `yaml`, the only one that uses the
//! YAML parser), which a decoder driven by one table of [`keys()`] reads. The decoder is our own
//! because serde stops at the first error, and all errors of a plan are wanted at once, including
//! those that involve two keys (a guest MTU that does not fit its tunnel).
//!
//! ```
//! let experiment = wirecost_plan::load(
//!     "lan.yaml",
//!     "name: lan\nunderlay: { mtu: 9000 }\nguest_mtu: [1500, max]\nencapsulation: [none, vxlan]\n",
//! )?;
//! assert_eq!(experiment.cells.len(), 4);
//! assert_eq!(experiment.cells[3].guest_mtu, 8950);
//! # Ok::<(), wirecost_plan::PlanErrors>(())
//! ```

mod axis;
mod builtin;
mod decode;
mod encapsulation;
mod error;
mod expand;
mod factors;
mod fit;
mod hosts;
mod keys;
mod loads;
mod logical;
mod node;
mod pairs;
mod published;
mod read;
mod repeat;
mod schema;
mod select;
mod suggest;
mod transit;
mod values;
mod vary;
mod yaml;

use wirecost_model::cell::Experiment;

pub use builtin::{BUILTIN, STUDIES, builtin, nearest_builtin, on_hosts, quick};
pub use error::{PlanError, PlanErrors};
pub use expand::MAX_CELLS;
pub use keys::{Key, Kind, Presence, keys};
pub use schema::{BEYOND_SCHEMA, Schema, schema};

/// Reads a plan and expands it into cells.
///
/// `source_name` names the text in error messages: the file's name as the user gave it.
///
/// # Errors
///
/// All errors of the text, in the order of their places. A syntax error hides those after it.
pub fn load(source_name: &str, text: &str) -> Result<Experiment, PlanErrors> {
    let mut reader = read::Reader::default();
    let experiment =
        yaml::parse(text, &mut reader).and_then(|root| decode::root(&mut reader, &root));
    experiment.ok_or_else(|| PlanErrors::new(source_name, text, reader.faults))
}
