//! The settings that a run would change, and the commands that it would run: where and how often.

use std::fmt::Write as _;

use serde::Serialize;
use wirecost_answer::names;
use wirecost_control::experiment::agent_role;
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::plan::{HostPair, Hosts};
use wirecost_model::vary::{Scope, Setting, role_key};

use crate::screen::wrap;

/// A level that changes something.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    #[serde(flatten)]
    setting: &'a Setting,
    /// Cells that have the level.
    cells: u32,
    /// How often the level's command runs for one sample, in the cell with the most guests; the command that undoes it
    /// runs as often.
    commands_a_sample: u32,
    /// The same in the cell with the fewest guests, where their numbers differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    fewest_commands_a_sample: Option<u32>,
    /// Who runs the level's command.
    #[serde(skip)]
    user: &'static str,
}

pub(super) fn lines(experiment: &Experiment) -> Vec<Line<'_>> {
    let levels = experiment
        .plan
        .vary
        .iter()
        .flat_map(|factor| &factor.levels);
    levels
        .filter(|setting| !setting.is_empty())
        .map(|setting| line(experiment, setting))
        .collect()
}

fn line<'a>(experiment: &Experiment, setting: &'a Setting) -> Line<'a> {
    let has_it = |cell: &&Cell| cell.settings.contains(setting);
    let cells = || experiment.cells.iter().filter(has_it);
    let is_existing = experiment.plan.hosts.is_existing();
    let times = || {
        cells().map(|cell| {
            let guests = if is_existing { 0 } else { cell.network.guests };
            setting
                .command
                .as_ref()
                .map_or(0, |_| setting.on.times(guests))
        })
    };
    let most = times().max().unwrap_or_default();
    Line {
        setting,
        cells: cells().count() as u32,
        commands_a_sample: most,
        fewest_commands_a_sample: times().min().filter(|fewest| *fewest < most),
        user: user(experiment, setting),
    }
}

/// Who runs the command of a level: on other machines an agent does, which sudo starts where the plan needs root.
fn user(experiment: &Experiment, setting: &Setting) -> &'static str {
    let plan = &experiment.plan;
    let is_here = |hosts: &HostPair| hosts.a.place.is_here() && hosts.b.place.is_here();
    let near = match plan.host_pairs() {
        Some(pairs) => pairs.iter().all(|pair| is_here(&pair.hosts)),
        None => plan.hosts == Hosts::Lab,
    };
    if near || setting.on == Scope::Machine {
        "the user who runs wirecost"
    } else if agent_role(experiment).needs_root() {
        "root"
    } else {
        "the user of the login"
    }
}

/// Every level with everything that it changes, commands in full. `None` where the plan has no such level.
pub(super) fn text(lines: &[Line<'_>], width: usize) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let head = "Applied before each sample of a cell that has the level, undone after it:";
    let mut text = wrap(head, "", width);
    for line in lines {
        let Line { setting, cells, .. } = line;
        let (factor, label) = (visible(&setting.factor), visible(&setting.label));
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n  {factor}: {label} ({})",
            names::count(*cells as usize, "cell")
        );
        for (name, value) in &setting.sysctl {
            let _ = write!(
                text,
                "\n    sysctl {name} = {}, {}",
                visible(value),
                place(setting)
            );
        }
        let device = setting.device_name.as_deref().map(visible);
        for (role, features) in &setting.ethtool {
            for (feature, on) in features {
                let state = if *on { "on" } else { "off" };
                let host = setting.on.host().map(|host| format!(", on host {host}"));
                let host = host.unwrap_or_default();
                let _ = write!(
                    text,
                    "\n    ethtool {} {feature} {state}{host}",
                    device.as_deref().unwrap_or_else(|| role_key(*role))
                );
            }
        }
        for (what, value) in &setting.device {
            let _ = write!(
                text,
                "\n    {} of {} = {value}, {}",
                what.key(),
                device.as_deref().unwrap_or("the measured device"),
                place(setting)
            );
        }
        if let Some(command) = &setting.command {
            let user = line.user;
            let times = match (line.fewest_commands_a_sample, line.commands_a_sample) {
                (None, 1) => "once".to_owned(),
                (None, times) => format!("{times} times"),
                (Some(fewest), most) => format!("{fewest} to {most} times"),
            };
            let _ = write!(
                text,
                "\n    commands, `sh -c` as {user}, {times} a sample: {}",
                place(setting)
            );
            for (when, command) in [("before", &command.before), ("after", &command.after)] {
                for (number, line) in command.lines().enumerate() {
                    let when = if number == 0 { when } else { "" };
                    let _ = write!(text, "\n      {when:<6}  {}", visible(line));
                }
            }
        }
    }
    Some(text)
}

fn place(setting: &Setting) -> String {
    match setting.on {
        Scope::Machine => format!("on {}", Scope::Machine),
        place => format!("in {place}"),
    }
}

/// Escapes control characters and characters that change the writing direction: they could hide what a command does.
fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let hidden = (c.is_control() && c != '\t')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
            if hidden {
                c.escape_unicode().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

/// All settings that a run changes, as text; `None` where there are none.
pub(crate) fn changes(experiment: &Experiment, width: usize) -> Option<String> {
    text(&lines(experiment), width)
}

/// A notice at the start of a run whose plan runs commands or changes the machine.
pub(crate) fn notice(experiment: &Experiment) -> Option<String> {
    let lines = lines(experiment);
    let commands = lines.iter().filter(|line| line.setting.command.is_some());
    let machine = lines
        .iter()
        .filter(|line| line.setting.on == Scope::Machine);
    let (commands, machine) = (commands.count(), machine.count());
    let levels = |n| names::count(n, "level");
    let mut parts = Vec::new();
    if commands > 0 {
        parts.push(format!("runs commands ({})", levels(commands)));
    }
    if machine > 0 {
        parts.push(format!(
            "changes this machine outside of the lab ({})",
            levels(machine)
        ));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "this plan {}; --dry-run shows the details",
            parts.join(" and ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(vary: &str) -> Experiment {
        let text = format!("name: x\nguest_mtu: [1400, 1500]\nvary:\n{vary}");
        wirecost_plan::load("plan.yaml", &text).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    #[test]
    fn every_level_says_in_full_what_runs_where() {
        let experiment = experiment(
            "  poll:\n    - label: default\n    - label: busy\n      on: machine\n      sysctl: { net.core.busy_poll: 50 }\n  \
             tc:\n    - {}\n    - before: |\n        echo one\n        echo two\n      after: echo three\n      on: hosts\n    \
             - ethtool: { underlay: { rx-gro: off } }\n",
        );
        let text = text(&lines(&experiment), 100).expect("settings");
        insta::assert_snapshot!(text, @r"
        Applied before each sample of a cell that has the level, undone after it:
          poll: busy (6 cells)
            sysctl net.core.busy_poll = 50, on this machine, outside of the lab
          tc: echo one... (4 cells)
            commands, `sh -c` as the user who runs wirecost, 2 times a sample: in the namespaces of both hosts
              before  echo one
                      echo two
              after   echo three
          tc: underlay rx-gro=off (4 cells)
            ethtool underlay rx-gro off
        ");
        assert_eq!(
            notice(&experiment).as_deref(),
            Some(
                "this plan runs commands (1 level) and changes this machine outside of the lab (1 level); --dry-run \
                 shows the details"
            )
        );
    }

    #[test]
    fn a_command_runs_in_every_guest_and_on_existing_hosts_in_none() {
        let often = |plan: &str| {
            let text = format!("name: x\n{plan}");
            let loaded = wirecost_plan::load("plan.yaml", &text);
            let experiment = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
            let lines = lines(&experiment);
            let shown = text_of(&lines);
            let often = shown.split_once("wirecost, ").expect("a command").1;
            let (often, _) = often.split_once(" a sample").expect("how often");
            let [line] = &lines[..] else {
                panic!("one level: {lines:?}");
            };
            let document = serde_json::to_value(line).expect("a document");
            let figure = |key: &str| document.get(key).map(ToString::to_string);
            let json = ["commands_a_sample", "fewest_commands_a_sample"].map(figure);
            (often.to_owned(), json)
        };
        let vary = |on: &str| {
            format!("vary: {{ x: [{{}}, {{ before: echo, after: echo, on: {on} }}] }}\n")
        };
        let one = |number: u32| [Some(number.to_string()), None];
        let said = |guests: &str, on: &str| often(&format!("guests: {guests}\n{}", vary(on)));
        assert_eq!(said("3", "guests"), ("6 times".to_owned(), one(6)));
        assert_eq!(said("3", "both"), ("8 times".to_owned(), one(8)));
        assert_eq!(said("3", "b"), ("4 times".to_owned(), one(4)));
        assert_eq!(said("3", "hosts"), ("2 times".to_owned(), one(2)));
        assert_eq!(said("3", "machine"), ("once".to_owned(), one(1)));
        let range = [Some("10".to_owned()), Some("4".to_owned())];
        assert_eq!(said("[1, 4]", "both"), ("4 to 10 times".to_owned(), range));
        let hosts = "hosts: { a: \"netns:x\", b: \"netns:y\" }\nnetwork: existing\nallow_host_changes: on\n";
        assert_eq!(
            often(&format!("{hosts}{}", vary("a"))),
            ("once".to_owned(), one(1))
        );
    }

    #[test]
    fn who_runs_a_command_depends_on_the_host_and_on_what_else_the_plan_changes() {
        let user = |hosts: &str, also: &str| {
            let text = format!(
                "name: x\nhosts: {{ a: \"{hosts}:x\", b: \"{hosts}:y\" }}\nnetwork: existing\n\
                 allow_host_changes: on\nvary: {{ x: [{{}}, {{ before: echo, after: echo{also} }}] }}\n"
            );
            let loaded = wirecost_plan::load("plan.yaml", &text);
            let experiment = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
            lines(&experiment)[0].user
        };
        let sysctl = ", sysctl: { net.ipv4.tcp_sack: 0 }";
        assert_eq!(user("ssh", ""), "the user of the login");
        assert_eq!(user("ssh", sysctl), "root");
        assert_eq!(user("netns", sysctl), "the user who runs wirecost");
    }

    fn text_of(lines: &[Line<'_>]) -> String {
        text(lines, 100).expect("settings")
    }

    #[test]
    fn a_plan_without_settings_says_nothing_of_them() {
        let experiment = experiment("  none:\n    - {}\n");
        assert_eq!(text(&lines(&experiment), 100), None);
        assert_eq!(notice(&experiment), None);
    }

    #[test]
    fn what_a_terminal_would_hide_is_shown() {
        assert_eq!(
            visible("a\u{1b}[2Kb\u{202e}c\td"),
            "a\\u{1b}[2Kb\\u{202e}c\td"
        );
    }
}
