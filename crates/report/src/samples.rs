//! The samples of a run as its parts need them.

use std::collections::BTreeMap;

use wirecost_model::record::Run;
use wirecost_model::sample::Sample;
use wirecost_model::switch::OpenVswitch;

/// The samples of each cell, in the order in which they were taken.
pub(crate) type ByCell<'a> = BTreeMap<u32, Vec<&'a Sample>>;

pub(crate) fn by_cell(samples: &[Sample]) -> ByCell<'_> {
    let mut cells = ByCell::new();
    for sample in samples {
        cells.entry(sample.cell).or_default().push(sample);
    }
    cells
}

/// The hosts' Open vSwitch: all labs of a run have the same.
pub(crate) fn open_vswitch(run: &Run) -> Option<OpenVswitch> {
    let mut samples = run.samples.iter();
    samples.find_map(|sample| sample.open_vswitch.clone())
}
