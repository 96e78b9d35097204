//! What an output format is. Each is a [`Format`] in a file of its own; the lists are in [`crate::say::formats`].

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

/// A format in which a `T` is printed: the result of a run ([`RunResult`](crate::RunResult)) or a comparison
/// ([`Comparison`](crate::result::compare::Comparison)).
pub trait Format<T>: fmt::Debug + Sync {
    /// The option of the command line that asks for it, without its dashes: `html`.
    fn option(&self) -> &'static str;

    /// The help text of that option.
    fn help(&self) -> &'static str;

    /// Writes the text, line ends included; what grows with the record is written piece by piece. Formats that are not for
    /// people ignore `terminal`.
    ///
    /// # Errors
    /// `to` does not take it; else a mistake in this program: no record makes a format fail.
    fn write(&self, of: &T, terminal: Terminal, to: &mut dyn Write) -> Result<(), FormatError>;

    /// The same text as a whole.
    ///
    /// # Errors
    /// As [`Format::write`].
    fn print(&self, of: &T, terminal: Terminal) -> Result<String, FormatError> {
        let mut text = Vec::new();
        self.write(of, terminal, &mut text)?;
        String::from_utf8(text).map_err(FormatError::of)
    }
}

/// What is printed in several formats.
pub trait Formatted: Sized + 'static {
    /// The format where no option asks for another: text for a terminal.
    const DEFAULT: &'static dyn Format<Self>;
    /// The others, in the order of the help text.
    const OTHERS: &'static [&'static dyn Format<Self>];
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

/// A result that could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It could not be brought into the format.
    #[error(transparent)]
    Made(Box<dyn Error + Send + Sync>),
    /// It could not be written.
    #[error(transparent)]
    Output(io::Error),
}

impl FormatError {
    pub(crate) fn of(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Made(Box::new(source))
    }
}

/// Writes a text that is made as a whole.
pub(crate) fn put(to: &mut dyn Write, text: &str) -> Result<(), FormatError> {
    to.write_all(text.as_bytes()).map_err(FormatError::Output)
}
