//! `wirecost doctor`: what this machine can and cannot do, and how to fix it.

use clap::{Args, ValueEnum};
use textwrap::{Options, WordSeparator, WordSplitter};
use wirecost_doctor::{Check, Examination, Group, Privilege, Status};
use wirecost_report::Terminal;

use crate::failure::{Cause, CommandResult, Failure};
use crate::{exit, screen};

/// Advice that follows an error about a lab that cannot be built.
pub(crate) const HINT: &str =
    "`wirecost doctor` says what this machine can do, and how to fix what it cannot";

#[derive(Debug, Args)]
#[command(
    after_help = "Every check tries the operation itself, as this user and as an unprivileged one, in namespaces that \
                  are removed afterwards; nothing is changed. The kernel may load modules for it, as it would for a \
                  run.\n\n\
    Exit codes: 0 the built-in plan can run here, 1 it cannot."
)]
pub(crate) struct Doctor {
    /// Print the answers as one JSON document
    #[arg(long)]
    json: bool,
    /// Run the checks in this process and print each result as a line
    #[arg(long, value_name = "WAY", hide = true)]
    probe: Option<Probe>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Probe {
    Own,
    Plain,
}

pub(crate) fn doctor(arguments: &Doctor) -> CommandResult {
    // Before anything else: a process must be single-threaded to enter a user namespace.
    if let Some(probe) = arguments.probe {
        let way = match probe {
            Probe::Own => Privilege::Own,
            Probe::Plain => Privilege::Plain,
        };
        wirecost_doctor::probe(way, &mut std::io::stdout().lock());
        return Ok(exit::FINE);
    }
    let program = std::env::current_exe();
    let program = program.map_err(|error| Failure::of(Cause::Machine, &error))?;
    let examination = wirecost_doctor::examine(&program);
    let printed = if arguments.json {
        screen::print_json(&examination)?
    } else {
        screen::print(page(&examination, screen::terminal()).trim_end())?
    };
    Ok(if examination.can_run_labs {
        printed
    } else {
        exit::finding()
    })
}

/// Indent of a check's text: a margin of two columns and [`STATUS_WIDTH`].
const INDENT: &str = "           ";
/// Columns for the status word and the space behind it.
const STATUS_WIDTH: usize = 9;
/// Smallest width of the page in columns, since narrower text is unreadable.
const MIN_WIDTH: usize = 40;

fn page(examination: &Examination, terminal: Terminal) -> String {
    let mut page = Page {
        text: String::new(),
        terminal,
    };
    page.paragraph("", "", &page.paint("1", &examination.summary));
    page.text.push('\n');
    page.paragraph("", "", &machine(examination));
    for group in Group::ALL {
        page.text.push('\n');
        page.paragraph("", "", &page.paint("1", group.title()));
        let checks = examination.checks.iter();
        for check in checks.filter(|check| check.group == group) {
            page.check(check);
        }
    }
    page.text
}

fn machine(examination: &Examination) -> String {
    let machine = &examination.machine;
    let virtual_machine = match machine.virtual_machine {
        Some(true) => " (virtual machine)",
        _ => "",
    };
    format!(
        "Linux {} on {}{virtual_machine}; checked in {:.1} s",
        machine.kernel,
        machine
            .cpu_model
            .as_deref()
            .unwrap_or("an unknown processor"),
        examination.seconds
    )
}

struct Page {
    text: String,
    terminal: Terminal,
}

impl Page {
    /// The text within an SGR sequence (ECMA-48, 8.3.117), where colour is wanted.
    fn paint(&self, sgr: &str, text: &str) -> String {
        if self.terminal.colour {
            format!("\x1b[{sgr}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn check(&mut self, check: &Check) {
        let word = check.status.word();
        let sgr = match check.status {
            Status::Yes => "32",
            Status::Limited => "33",
            Status::No => "1;31",
            Status::Unknown => "2",
        };
        let space = " ".repeat(STATUS_WIDTH.saturating_sub(word.len()));
        let first = format!("  {}{space}", self.paint(sgr, word));
        self.paragraph(&first, INDENT, &format!("{}: {}", check.title, check.seen));
        let Some(advice) = &check.advice else {
            return;
        };
        let needed_for = format!("needed for {}", check.needed_for);
        self.paragraph(INDENT, INDENT, &needed_for);
        let to_do = self.paint("1", "to do:");
        self.paragraph(INDENT, INDENT, &format!("{to_do} {advice}"));
    }

    /// Adds a paragraph, wrapped at spaces only, so that commands and paths can be copied.
    fn paragraph(&mut self, first: &str, indent: &str, text: &str) {
        let options = Options::new(self.terminal.width.max(MIN_WIDTH))
            .initial_indent(first)
            .subsequent_indent(indent)
            .break_words(false)
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation);
        self.text.push_str(&textwrap::fill(text, options));
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examination() -> Examination {
        let check = |status, title, seen: &str, advice: Option<&str>| Check {
            id: "x",
            title,
            group: Group::Essentials,
            essential: true,
            status,
            seen: seen.into(),
            needed_for: "plans with encapsulation vxlan, such as the built-in one",
            advice: advice.map(str::to_owned),
        };
        Examination {
            summary: "This machine cannot run the built-in plan, because it lacks VXLAN. What to do: `modprobe vxlan` as root."
                .into(),
            can_run_labs: false,
            as_root: Some(false),
            as_plain_user: false,
            machine: wirecost_doctor::MachineSummary {
                kernel: "6.1.0-18-amd64".into(),
                cpu_model: Some("AMD EPYC 7543 32-Core Processor".into()),
                virtual_machine: Some(true),
                online_cpus: vec![0, 1],
                allowed_cpus: vec![0, 1],
                kernel_config: None,
            },
            checks: vec![
                check(Status::Yes, "veth", "MTU 9000, the other end in another namespace; with and without root", None),
                check(Status::No, "VXLAN", "EOPNOTSUPP: Unknown device type", Some("`modprobe vxlan` as root; where that finds nothing, `apt install linux-modules-extra-6.1.0-18-amd64`")),
                check(Status::Unknown, "Rate limit (tbf)", "not tried, no veth to try it on", None),
            ],
            seconds: 0.74,
        }
    }

    #[test]
    fn a_page_of_60_columns() {
        let terminal = Terminal {
            width: 60,
            colour: false,
            ..Terminal::default()
        };
        insta::assert_snapshot!(page(&examination(), terminal));
    }

    #[test]
    fn a_page_of_120_columns_has_the_same_words_in_fewer_lines() {
        let print = |width, colour| {
            page(
                &examination(),
                Terminal {
                    width,
                    colour,
                    ..Terminal::default()
                },
            )
        };
        let words = |text: String| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let (narrow, wide) = (print(60, false), print(120, false));
        assert!(wide.lines().count() < narrow.lines().count());
        for (width, text) in [(60, &narrow), (120, &wide)] {
            let longest = text.lines().map(str::len).max();
            assert!(longest <= Some(width), "{longest:?} > {width}");
        }
        assert_eq!(words(narrow), words(wide));
    }

    #[test]
    fn colour_changes_no_line() {
        let print = |colour| {
            page(
                &examination(),
                Terminal {
                    width: 60,
                    colour,
                    ..Terminal::default()
                },
            )
        };
        let coloured = print(true);
        assert!(coloured.contains("\x1b[1;31mno\x1b[0m"));
        let mut plain = coloured;
        for sgr in [
            "\x1b[0m",
            "\x1b[1m",
            "\x1b[2m",
            "\x1b[32m",
            "\x1b[33m",
            "\x1b[1;31m",
        ] {
            plain = plain.replace(sgr, "");
        }
        assert_eq!(plain, print(false));
    }
}
