//! A run as it was read, and its result.

use std::path::Path;

use wirecost_model::record::{Run, RunHead};

use super::document::Document;
use super::evaluate::result;
use super::gathered::Gathered;
use super::read::{DEVICES, ReadError, RecordedRun, check_memory, read_into};
use super::thinned::ThinnedSamples;

/// A run as it was read, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The record; of a large run only the samples that are drawn.
    pub reading: RecordedRun,
    /// The result.
    pub document: Document,
}

impl RunResult {
    /// Reads a run directory and evaluates it. Of a large run only the samples that are drawn are kept.
    ///
    /// # Errors
    /// As `result::read`, and [`ReadError::TooLarge`] where the result will not fit into memory.
    pub fn read(directory: &Path) -> Result<Self, ReadError> {
        check_memory(directory)?;
        let begin = |head: &RunHead| {
            let cells = head.experiment.measured().count();
            (Gathered::new(head), ThinnedSamples::of_cells(cells))
        };
        let (mut reading, (gathered, thinned)) =
            read_into(directory, DEVICES, begin, |(gathered, thinned), sample| {
                gathered.add(&sample);
                thinned.add(sample);
            })?;
        reading.run.samples = thinned.into_samples();
        let Run { head, end, .. } = &reading.run;
        let warnings = reading.warnings.clone();
        let document = result(head, end.as_ref(), gathered, directory, warnings);
        Ok(Self { reading, document })
    }
}
