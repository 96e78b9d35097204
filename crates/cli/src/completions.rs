//! `wirecost completions`, and the answers that the scripts it prints ask for.
//!
//! A script holds no list of options: on each Tab it asks the installed program, with the command
//! line so far and [`ASKED`] set. So what it offers is always what this program takes, names of
//! built-in plans and run directories included.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, EnvCompleter, Fish, Shells, Zsh};
use wirecost_model::record::file;

use crate::definition::definition;
use crate::{complain, exit, screen};

/// The environment variable by which a script asks; its value is the shell.
const ASKED: &str = "WIRECOST_COMPLETE";
const PROGRAM: &str = "wirecost";

/// Lets zsh use the script as a function of its `fpath`, where the first Tab runs the script itself.
const ZSH_FIRST_TAB: &str = "\
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _clap_dynamic_completer_wirecost \"$@\"
fi";

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell that will read the script
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        }
    }
}

pub(crate) fn completions(arguments: &Completions) -> ExitCode {
    match script(arguments.shell) {
        Ok(script) => screen::print(&script),
        Err(error) => {
            complain(&error);
            exit::incomplete()
        }
    }
}

/// The script, without a path in it: it asks the program that the user's `PATH` finds.
fn script(shell: Shell) -> io::Result<String> {
    let mut script = Vec::new();
    shell
        .completer()
        .write_registration(ASKED, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    let script = String::from_utf8(script).map_err(io::Error::other)?;
    let script = script.trim();
    Ok(match shell {
        Shell::Zsh => format!("{script}\n{ZSH_FIRST_TAB}"),
        Shell::Bash | Shell::Fish => script.to_owned(),
    })
}

/// Where a script asks, prints what may stand at the cursor, and ends.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(definition)
        .var(ASKED)
        .bin(PROGRAM)
        .completer(PROGRAM)
        .shells(Shells(&[&Bash, &Zsh, &Fish]))
        .complete();
}

/// What may stand for a plan: a built-in one, or a YAML file.
pub(crate) fn plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_yaml = |path: &Path| {
        path.extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    };
    let files = PathCompleter::file().filter(is_yaml).complete(typed);
    builtin_plans(typed).into_iter().chain(files).collect()
}

/// The built-in plans that begin as typed.
pub(crate) fn builtin_plans(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let names = wirecost_plan::BUILTIN.iter().map(|(name, _)| *name);
    names
        .filter(|name| name.starts_with(&*typed))
        .map(|name| CompletionCandidate::new(name).help(Some("built-in plan".into())))
        .collect()
}

/// Hosts: this machine, its named namespaces, and how the others begin.
pub(crate) fn hosts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let near = [("local".to_owned(), "this machine")].into_iter();
    let named = wirecost_sys::namespace::names().into_iter();
    let named = named.map(|name| (format!("netns:{name}"), "network namespace"));
    let far = [
        ("ssh:", "[USER@]HOST[:PORT]"),
        ("exec:", "COMMAND, such as docker exec -i NAME"),
    ];
    let far = far.map(|(begin, rest)| (begin.to_owned(), rest));
    near.chain(named)
        .chain(far)
        .filter(|(host, _)| host.starts_with(&*typed))
        .map(|(host, what)| CompletionCandidate::new(host).help(Some(what.into())))
        .collect()
}

/// Run directories, and directories on the way to them.
pub(crate) fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_run = |path: &Path| path.join(file::RUN).is_file();
    PathCompleter::dir().filter(is_run).complete(typed)
}
