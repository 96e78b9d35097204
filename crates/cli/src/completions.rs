//! `wirecost completions`: prints the scripts, and answers the requests of these scripts.
//!
//! A script holds no list of options: on each Tab it runs the installed program with the command line so far and with
//! [`ASKED`] set. The candidates therefore always match the program, names of built-in plans and run directories
//! included.

use std::io;

use clap::{Args, Command, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Shells, Zsh};

use crate::failure::{Cause, CommandResult, Failure};
use crate::screen;

/// The environment variable that a script sets when it asks for candidates; its value is the shell.
const ASKED: &str = "WIRECOST_COMPLETE";
const PROGRAM: &str = "wirecost";

/// Lets zsh use the script as a function of its `fpath`, where the first Tab runs the script itself.
const ZSH_FIRST_TAB: &str = "\
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _clap_dynamic_completer_wirecost \"$@\"
fi";

/// Joins the words that bash split. Bash splits at COMP_WORDBREAKS, colon and equals sign included, and replaces only
/// what follows the last of these; but a host (`netns:NAME`) and an option with its value are one word here.
const BASH_WORDS: &str = r#"
_wirecost() {
    local line=${COMP_LINE:-${COMP_WORDS[*]}} joined=() current=0 index word before
    for index in "${!COMP_WORDS[@]}"; do
        word=${COMP_WORDS[index]}
        before=
        if [[ $index -gt 0 && $line != [[:blank:]]* ]]; then
            before=${joined[${#joined[@]} - 1]}
            joined[${#joined[@]} - 1]=$before$word
        else
            joined+=("$word")
        fi
        line=${line#"${line%%[![:blank:]]*}"}
        line=${line#"$word"}
        if [[ $index -eq $COMP_CWORD ]]; then
            current=$((${#joined[@]} - 1))
            # What is right of the cursor is not asked for.
            [[ $word == [:=]* ]] || joined[current]=$before$2
        fi
    done
    local COMP_WORDS=("${joined[@]}") COMP_CWORD=$current
    word=${joined[current]}
    _clap_complete_wirecost "$1" "$word" "${joined[current > 0 ? current - 1 : 0]}"
    local breaks=${COMP_WORDBREAKS//[!:=]/} kept=
    [[ $breaks ]] && kept=${word%"${word##*["$breaks"]}"}
    [[ $kept ]] && COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    return 0
}
complete -o nospace -o bashdefault -F _wirecost wirecost"#;

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

pub(crate) fn completions(arguments: &Completions) -> CommandResult {
    let script = script(arguments.shell);
    screen::print(&script.map_err(|error| Failure::of(Cause::Machine, &error))?)
}

/// The script. It names the program without a path, so that the user's `PATH` decides.
fn script(shell: Shell) -> io::Result<String> {
    let mut script = Vec::new();
    shell
        .completer()
        .write_registration(ASKED, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    let script = String::from_utf8(script).map_err(io::Error::other)?;
    let script = script.trim();
    Ok(match shell {
        Shell::Zsh => format!("{script}\n{ZSH_FIRST_TAB}"),
        Shell::Bash => format!("{script}{BASH_WORDS}"),
        Shell::Fish => script.to_owned(),
    })
}

/// Where a script asks for candidates ([`ASKED`] is set), prints them and exits.
pub(crate) fn answer_shell(definition: fn() -> Command) {
    CompleteEnv::with_factory(definition)
        .var(ASKED)
        .bin(PROGRAM)
        .completer(PROGRAM)
        .shells(Shells(&[&Bash, &Zsh, &Fish]))
        .complete();
}
