//! What an output format is. Each is a [`Format`] in a file of its own; the lists are in [`crate::formats`].

use std::error::Error;
use std::fmt;
use std::path::Path;

use wirecost_model::record::{Run, RunHead};

use crate::document::Document;
use crate::evaluate::result;
use crate::gathered::Gathered;
use crate::read::{DEVICES, ReadError, Reading, check_memory, read_into};
use crate::thinned::Thinned;

/// A format in which a `T` is printed: the result of a run ([`RunResult`]) or a comparison
/// ([`Comparison`](crate::compare::Comparison)).
pub trait Format<T>: fmt::Debug + Sync {
    /// The option of the command line that asks for it, without its dashes: `html`.
    fn option(&self) -> &'static str;

    /// The help text of that option.
    fn help(&self) -> &'static str;

    /// The text, line ends included. Formats that are not for people ignore `terminal`.
    ///
    /// # Errors
    /// A mistake in this program: no record makes a format fail.
    fn print(&self, of: &T, terminal: Terminal) -> Result<String, FormatError>;
}

/// What is printed in several formats.
pub trait Formatted: Sized + 'static {
    /// The format where no option asks for another: text for a terminal.
    const DEFAULT: &'static dyn Format<Self>;
    /// The others, in the order of the help text.
    const OTHERS: &'static [&'static dyn Format<Self>];
}

/// A run as it was read, and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The record, but for samples of a large run that are not drawn.
    pub reading: Reading,
    /// The result.
    pub document: Document,
}

impl RunResult {
    /// Reads a run directory and evaluates it. Of a large run the samples are not kept but for those that are drawn.
    ///
    /// # Errors
    /// As [`crate::read()`].
    pub fn read(directory: &Path) -> Result<Self, ReadError> {
        check_memory(directory)?;
        let begin = |head: &RunHead| {
            let cells = head.experiment.measured().count();
            (Gathered::new(head), Thinned::of_cells(cells))
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

/// What text is printed for. Whether colour is wanted (`NO_COLOR`, a pipe) the caller decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Columns. Below 40 it is printed for 40.
    pub width: usize,
    /// Whether ANSI colours are used.
    pub colour: bool,
    /// Whether signs and rules are of ASCII alone (`LANG=C`, `TERM=dumb`).
    pub ascii: bool,
    /// How much is printed.
    pub detail: Detail,
}

/// How much of a result is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// The answer alone.
    Answer,
    /// The answer, the cells, and the verdicts as a matrix.
    #[default]
    Usual,
    /// Everything: intervals, second opinions, outliers, rules of others, legends.
    Full,
}

/// What a pipe gets: 120 columns without colour.
impl Default for Terminal {
    fn default() -> Self {
        Self {
            width: 120,
            colour: false,
            ascii: false,
            detail: Detail::default(),
        }
    }
}

/// A result that could not be brought into a format.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct FormatError(Box<dyn Error + Send + Sync>);

impl FormatError {
    pub(crate) fn of(source: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(source))
    }
}
