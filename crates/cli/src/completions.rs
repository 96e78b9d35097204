//! `wirecost completions`, and the answers that the scripts it prints ask for.
//!
//! A script holds no list of options: on each Tab it asks the installed program, with the command
//! line so far and [`ASKED`] set. So what it offers is always what this program takes, names of
//! built-in plans and run directories included.

use std::io;
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Shells, Zsh};

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
pub(crate) fn answer_shell(definition: fn() -> Command) {
    CompleteEnv::with_factory(definition)
        .var(ASKED)
        .bin(PROGRAM)
        .completer(PROGRAM)
        .shells(Shells(&[&Bash, &Zsh, &Fish]))
        .complete();
}
