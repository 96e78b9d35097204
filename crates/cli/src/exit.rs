//! Exit codes are part of the contract (docs/commands.md).

use std::process::ExitCode;

/// Exit code 0.
pub(crate) const FINE: ExitCode = ExitCode::SUCCESS;

/// Exit code 1: a finding.
pub(crate) fn finding() -> ExitCode {
    ExitCode::from(1)
}

/// Exit code 1: a regression.
pub(crate) fn regression() -> ExitCode {
    ExitCode::from(1)
}

/// Exit code 2: the command line, a plan or a record is wrong.
pub(crate) fn usage() -> ExitCode {
    ExitCode::from(2)
}

/// Exit code 3: the work could not be completed.
pub(crate) fn incomplete() -> ExitCode {
    ExitCode::from(3)
}

/// Start of the part of a help text that explains a command's exit codes.
pub(crate) const EXIT_CODES: &str = "Exit codes:";

/// Exit codes of commands that do not explain their own (docs/commands.md).
pub(crate) const EXIT_CODES_USUALLY: &str = "Exit codes: 0 fine, 2 the command line is wrong, \
    3 the work could not be completed.";

/// Splits a command's `after_help` into everything before its exit codes, and the exit codes.
pub(crate) fn split_exit_codes(after_help: &str) -> (&str, Option<&str>) {
    match after_help.find(EXIT_CODES) {
        Some(at) => (after_help[..at].trim_end(), Some(after_help[at..].trim())),
        None => (after_help.trim_end(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_found_at_the_end_of_other_words() {
        let (words, exit_codes) = split_exit_codes("More.\n  x  y\nExit codes: 0 a, 2 b.");
        assert_eq!(
            (words, exit_codes),
            ("More.\n  x  y", Some("Exit codes: 0 a, 2 b."))
        );
        assert_eq!(split_exit_codes("More.\n"), ("More.", None));
    }
}
