//! Why a command has no result: for people on standard error, and with `--json` as a document on standard output.

use std::error::Error;
use std::process::ExitCode;

use serde::Serialize;

use crate::exit;

/// JSON Schema of the document of a failure.
pub(crate) const SCHEMA: &str = include_str!("failure/schema.json");

/// What a command comes to: its exit code, or why it has no result.
pub(crate) type Done = Result<ExitCode, Failure>;

/// A command without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Cause,
    /// What is wrong, each with its place.
    messages: Vec<String>,
    /// What to do; `None` where a message ends with it ([`advice`]).
    fix: Option<String>,
    /// As people read it, where that is not the messages and the fix.
    page: Option<String>,
    /// Whether standard output is what failed.
    unprinted: bool,
}

/// What kind of mistake it is; part of the contract (docs/commands.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// The command line.
    Usage,
    /// A plan.
    Plan,
    /// A record, or another file that is read.
    Record,
    /// A host that is not reached or cannot do what is asked.
    Host,
    /// This machine.
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

/// The document of `--json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    error: Told<'a>,
}

#[derive(Debug, Serialize)]
struct Told<'a> {
    kind: Cause,
    message: String,
    fix: Option<&'a str>,
}

impl Failure {
    /// One thing that is wrong.
    pub(crate) fn new(kind: Cause, message: impl Into<String>) -> Self {
        Self::all(kind, vec![message.into()])
    }

    /// Everything that is wrong, at once.
    pub(crate) fn all(kind: Cause, messages: Vec<String>) -> Self {
        Self {
            kind,
            messages,
            fix: None,
            page: None,
            unprinted: false,
        }
    }

    /// An error of a library.
    pub(crate) fn of(kind: Cause, error: &dyn Error) -> Self {
        Self::new(kind, error.to_string())
    }

    /// What clap says of a command line: its `error: ...`, and its tip or where help is.
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

    /// With what to do.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// With a page for people that says the same.
    pub(crate) fn page(mut self, page: String) -> Self {
        self.page = Some(page);
        self
    }

    /// It is standard output that cannot be written to.
    pub(crate) const fn unprinted(mut self) -> Self {
        self.unprinted = true;
        self
    }

    /// With what is wrong elsewhere, so that both are told.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.messages.extend(other.messages);
        self
    }

    /// As people read it.
    pub(crate) fn text(&self) -> String {
        if let Some(page) = &self.page {
            return page.trim_end().to_owned();
        }
        let lines = self.messages.iter().chain(&self.fix);
        let lines: Vec<String> = lines.map(|line| format!("wirecost: {line}")).collect();
        lines.join("\n")
    }

    /// Whether there is somewhere to print a document: half a document stays half a document.
    pub(crate) const fn is_printable(&self) -> bool {
        !self.unprinted
    }

    /// What the command ends with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        self.kind.exit_code()
    }

    /// As other programs read it.
    pub(crate) fn document(&self) -> impl Serialize {
        let own = self.fix.as_deref();
        let of_message = || self.messages.iter().find_map(|message| advice(message));
        Document {
            error: Told {
                kind: self.kind,
                message: self.messages.join("\n"),
                fix: own.or_else(of_message),
            },
        }
    }
}

/// Verbs that the advice of our messages begins with.
const VERBS: [&str; 39] = [
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
    "make",
    "measure",
    "move",
    "name",
    "print",
    "put",
    "raise",
    "remove",
    "repeat",
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

/// What a message says to do: our messages are written `what, where: what to do`, so it is what follows the first colon or
/// semicolon that a verb follows. `None` where there is none.
fn advice(message: &str) -> Option<&str> {
    let after = message
        .char_indices()
        .filter(|(_, sign)| matches!(sign, ':' | ';'))
        .map(|(at, _)| &message[at + 1..])
        .filter_map(|rest| rest.strip_prefix(' '));
    let mut advices = after.into_iter().filter(|rest| {
        let word = rest.split([' ', ',', ':', '?']).next().unwrap_or_default();
        // `load tcp-rr: ...` names a place.
        let is_place = rest
            .split(' ')
            .nth(1)
            .is_some_and(|word| word.ends_with(':'));
        VERBS.contains(&word) && !is_place
    });
    let advice = advices.next()?;
    // Of a remark in parentheses.
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
