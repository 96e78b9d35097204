//! The error of a command that has no result: text on standard error, and with `--json` also a document on standard
//! output.

use std::error::Error;
use std::process::ExitCode;

use serde::Serialize;

use crate::exit;

/// JSON Schema of an error's document.
pub(crate) const SCHEMA: &str = include_str!("failure/schema.json");

/// The result of a command: its exit code, or why it has no result.
pub(crate) type CommandResult = Result<ExitCode, Failure>;

/// Why a command has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Cause,
    /// Error messages, each with its place.
    messages: Vec<String>,
    /// What to do; `None` where a message ends with the advice ([`advice`]).
    fix: Option<String>,
    /// Text for standard error, where it is not made of the messages and the fix.
    page: Option<String>,
    /// Whether standard output could not be written.
    unprinted: bool,
}

/// The kind of an error; part of the contract (docs/commands.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// The command line is wrong.
    Usage,
    /// A plan is wrong.
    Plan,
    /// A record or another input file is wrong.
    Record,
    /// A host is not reached, or cannot do what is asked.
    Host,
    /// This machine cannot do what is asked.
    Machine,
    /// The result could not be written.
    Output,
}

impl Cause {
    fn exit_code(self) -> ExitCode {
        match self {
            Self::Usage | Self::Plan | Self::Record => exit::usage(),
            Self::Host | Self::Machine | Self::Output => exit::incomplete(),
        }
    }
}

/// The JSON document of an error.
#[derive(Debug, Serialize)]
struct Document<'a> {
    error: ErrorObject<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorObject<'a> {
    kind: Cause,
    message: String,
    fix: Option<&'a str>,
}

impl Failure {
    /// A failure with one message.
    pub(crate) fn new(kind: Cause, message: impl Into<String>) -> Self {
        Self::all(kind, vec![message.into()])
    }

    /// A failure with several messages.
    pub(crate) fn all(kind: Cause, messages: Vec<String>) -> Self {
        Self {
            kind,
            messages,
            fix: None,
            page: None,
            unprinted: false,
        }
    }

    /// A failure with the message of an error.
    pub(crate) fn of(kind: Cause, error: &dyn Error) -> Self {
        Self::new(kind, error.to_string())
    }

    /// A failure from clap's error text: its `error: ...` is the message, its tip or its reference to `--help` the fix.
    pub(crate) fn of_command_line(text: &str) -> Self {
        let (mut messages, mut fixes) = (Vec::new(), Vec::new());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once(':') {
                Some(("tip", tip)) => fixes.push(tip.trim()),
                Some(("Usage", _)) => {}
                _ if line.starts_with("For more information") => fixes.push(line),
                _ => messages.push(line.trim_start_matches("error: ")),
            }
        }
        Self::new(Cause::Usage, messages.join(" ")).fix(fixes.join("; "))
    }

    /// Sets what to do.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Sets the text for standard error, which says the same at more length.
    pub(crate) fn page(mut self, page: String) -> Self {
        self.page = Some(page);
        self
    }

    /// Marks that standard output cannot be written.
    pub(crate) const fn unprinted(mut self) -> Self {
        self.unprinted = true;
        self
    }

    /// Adds the messages of another failure.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.messages.extend(other.messages);
        self
    }

    /// The text for standard error.
    pub(crate) fn text(&self) -> String {
        if let Some(page) = &self.page {
            return page.trim_end().to_owned();
        }
        let lines = self.messages.iter().chain(&self.fix);
        let lines: Vec<String> = lines.map(|line| format!("wirecost: {line}")).collect();
        lines.join("\n")
    }

    /// Whether a document can be printed: not where standard output failed, perhaps within another document.
    pub(crate) const fn is_printable(&self) -> bool {
        !self.unprinted
    }

    /// The exit code of the command.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.kind.exit_code()
    }

    /// The JSON document of the failure.
    pub(crate) fn document(&self) -> impl Serialize {
        let own = self.fix.as_deref();
        let of_message = || self.messages.iter().find_map(|message| advice(message));
        Document {
            error: ErrorObject {
                kind: self.kind,
                message: self.messages.join("\n"),
                fix: own.or_else(of_message),
            },
        }
    }
}

/// Words that advice in our messages begins with.
const VERBS: [&str; 42] = [
    "add",
    "allow",
    "ask",
    "check",
    "choose",
    "copy",
    "end",
    "exclude",
    "free",
    "give",
    "install",
    "leave",
    "load",
    "log",
    "look",
    "make",
    "measure",
    "move",
    "name",
    "print",
    "put",
    "raise",
    "remove",
    "repeat",
    "replace",
    "run",
    "save",
    "say",
    "see",
    "set",
    "shorten",
    "start",
    "stop",
    "take",
    "try",
    "use",
    "wait",
    "widen",
    "write",
    "did",
    "or",
    "`wirecost",
];

/// The advice in a message. Messages have the form `what, where: what to do`: the advice is the text after the first
/// colon or semicolon that is followed by one of [`VERBS`]. `None` without advice.
fn advice(message: &str) -> Option<&str> {
    let after = message
        .char_indices()
        .filter(|(_, sign)| matches!(sign, ':' | ';'))
        .map(|(at, _)| &message[at + 1..])
        .filter_map(|rest| rest.strip_prefix(' '));
    let mut advices = after.into_iter().filter(|rest| {
        let word = rest.split([' ', ',', ':', '?']).next().unwrap_or_default();
        // `load tcp-rr: ...` is a place, not advice.
        let is_place = rest
            .split(' ')
            .nth(1)
            .is_some_and(|word| word.ends_with(':'));
        VERBS.contains(&word) && !is_place
    });
    let advice = advices.next()?;
    // Remove the closing parenthesis of advice that ends a remark in parentheses.
    let closed = advice.strip_suffix(')').filter(|rest| !rest.contains('('));
    Some(closed.unwrap_or(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_what_a_message_ends_with() {
        for (message, fix) in [
            (
                "there is no directory gone: give the run directory that `wirecost run` named",
                Some("give the run directory that `wirecost run` named"),
            ),
            (
                "host netns:a: load tcp-rr: flow 5 reached 10.0.0.1:7, which did not answer: timed out",
                None,
            ),
            (
                "opening flow 0: Address already in use (os error 98) (something else has the port; take another)",
                Some("take another"),
            ),
            (
                "cannot write x: No space left on device (os error 28): make room, or name another place",
                Some("make room, or name another place"),
            ),
            (
                "host netns:a: the load needs 20 local ports and there are 10: widen sysctl x, or use fewer streams",
                Some("widen sysctl x, or use fewer streams"),
            ),
            (
                "no plan x: No such file; did you mean y? name a plan file",
                Some("did you mean y? name a plan file"),
            ),
            (
                "host a: this machine has no sysctl `x`: look for the name in `sysctl -a`, and whether its module is loaded",
                Some("look for the name in `sysctl -a`, and whether its module is loaded"),
            ),
            (
                "host a: guests need root (the login is joe): log in as root; `network: existing` needs no privilege",
                Some("log in as root; `network: existing` needs no privilege"),
            ),
            (
                "host a: the root qdisc `htb` cannot be restored exactly: replace it by commands (`before`, `after`)",
                Some("replace it by commands (`before`, `after`)"),
            ),
            ("interrupted", None),
            ("host a: 10.0.0.1::5 is odd", None),
        ] {
            assert_eq!(advice(message), fix, "{message}");
        }
    }

    #[test]
    fn several_mistakes_are_one_document() {
        let failure = Failure::all(Cause::Usage, vec!["--a: no".into(), "--b: use one".into()]);
        let document = serde_json::to_value(failure.document()).expect("JSON");
        assert_eq!(
            document,
            serde_json::json!({"error": {
                "kind": "usage", "message": "--a: no\n--b: use one", "fix": "use one"
            }})
        );
    }
}
