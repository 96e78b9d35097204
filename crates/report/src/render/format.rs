//! The trait of output formats. Each format implements [`Format`] in a file of its own; [`crate::render::formats`]
//! lists them.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};

/// A format in which a `T` is printed: the result of a run ([`RunResult`](crate::RunResult)) or a comparison
/// ([`Comparison`](crate::result::compare::Comparison)).
pub trait Format<T>: fmt::Debug + Sync {
    /// The option of the command line that selects the format, without its dashes: `html`.
    fn option(&self) -> &'static str;

    /// The help text of that option.
    fn help(&self) -> &'static str;

    /// Writes the text, line ends included; a text that grows with the number of samples is written piece by piece.
    /// Formats for other programs ignore `terminal`.
    ///
    /// # Errors
    /// [`FormatError::Output`] where writing to `to` fails. Any other error is a bug in this program: no record makes a
    /// format fail.
    fn write(&self, of: &T, terminal: Terminal, to: &mut dyn Write) -> Result<(), FormatError>;

    /// Returns the text as a whole.
    ///
    /// # Errors
    /// As [`Format::write`].
    fn print(&self, of: &T, terminal: Terminal) -> Result<String, FormatError> {
        let mut text = Vec::new();
        self.write(of, terminal, &mut text)?;
        String::from_utf8(text).map_err(FormatError::of)
    }
}

/// A type that can be printed in several formats.
pub trait Formatted: Sized + 'static {
    /// The format where no option asks for another: text for a terminal.
    const DEFAULT: &'static dyn Format<Self>;
    /// The other formats, in the order of the help text.
    const OTHERS: &'static [&'static dyn Format<Self>];
}

/// Properties of the terminal that text is printed for. The caller decides on colour (`NO_COLOR`, a pipe).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terminal {
    /// Width in columns. Text for fewer than 40 columns is printed for 40.
    pub width: usize,
    /// Whether ANSI colours are used.
    pub colour: bool,
    /// Whether signs and rules are ASCII (`LANG=C`, `TERM=dumb`).
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
    /// Everything: intervals, second opinions, outliers, stopping rules of other tools, legends.
    Full,
}

/// The terminal that a pipe is treated as: 120 columns without colour.
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
    /// The text could not be produced.
    #[error(transparent)]
    Made(Box<dyn Error + Send + Sync>),
    /// The text could not be written.
    #[error(transparent)]
    Output(io::Error),
}

impl FormatError {
    pub(crate) fn of(source: impl Error + Send + Sync + 'static) -> Self {
        Self::Made(Box::new(source))
    }
}

/// Writes a text that was produced as a whole.
pub(crate) fn put(to: &mut dyn Write, text: &str) -> Result<(), FormatError> {
    to.write_all(text.as_bytes()).map_err(FormatError::Output)
}
