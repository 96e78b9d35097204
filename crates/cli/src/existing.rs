//! Existing hosts of `wirecost run`: named on the command line, and asked for before they are loaded or changed.

use std::io::{self, BufRead, IsTerminal};
use std::str::FromStr;

use wirecost_model::cell::Experiment;
use wirecost_model::host::HostAddressError;
use wirecost_model::plan::{HostPair, Hosts};

use crate::dry_run::settings;
use crate::failure::{Cause, Failure};
use crate::screen;

/// `A,B`: the comma is the first one with a host behind it, since commands may have others.
#[derive(Debug, Clone)]
pub(crate) struct TwoHosts(HostPair);

impl FromStr for TwoHosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: [&str; 4] = ["local", "netns:", "ssh:", "exec:"];
        let is_host = |at: &usize| FORMS.iter().any(|form| text[*at..].starts_with(form));
        let mut commas = text.match_indices(',').map(|(at, _)| at + 1);
        let Some(second) = commas.find(is_host) else {
            return Err("write two hosts with a comma between them, such as `ssh:db1=10.0.0.1,ssh:db2=10.0.0.2`".into());
        };
        let host = |text: &str| {
            text.parse()
                .map_err(|error: HostAddressError| error.to_string())
        };
        Ok(Self(HostPair {
            a: host(&text[..second - 1])?,
            b: host(&text[second..])?,
        }))
    }
}

/// Puts the command line's hosts into a plan for existing ones.
pub(crate) fn name_hosts(
    experiment: &mut Experiment,
    hosts: Option<&TwoHosts>,
) -> Result<(), Failure> {
    let Some(TwoHosts(pair)) = hosts else {
        return Ok(());
    };
    match &mut experiment.plan.hosts {
        Hosts::Existing(named) | Hosts::Tunnel(named) => {
            *named = Some(Box::new(pair.clone()));
            Ok(())
        }
        Hosts::Lab => Err(
            Failure::new(Cause::Usage, "--hosts: this plan builds a lab of its own").fix(
                "write `network: existing` into the plan to measure between hosts as they are, or `network: tunnel` to build \
                 tunnels between them",
            ),
        ),
    }
}

/// Asks before hosts other than this machine are loaded, and before any existing one is changed.
pub(crate) fn confirm(experiment: &Experiment, yes: bool) -> Result<(), Failure> {
    let hosts = &experiment.plan.hosts;
    let Some(HostPair { a, b }) = hosts.pair() else {
        return Ok(());
    };
    let changes = settings::changes(experiment, screen::terminal().width);
    if yes || (a.place.is_here() && b.place.is_here() && changes.is_none()) {
        return Ok(());
    }
    let mut words = format!("This loads the network between {a} and {b}");
    if let Some(changes) = changes {
        words = format!("{words} and changes settings of these hosts.\n{changes}");
    } else if hosts.is_tunnel() {
        words += ", after building on either a network namespace with guests, a bridge and a tunnel, which go when the run \
                  ends. Settings and devices of the hosts themselves stay as they are.";
    } else {
        words += ".";
    }
    let refused = |message: &str| {
        Err(Failure::new(Cause::Usage, message)
            .fix("`--yes` goes on without asking; `--dry-run` shows what would be done"))
    };
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        screen::say(&words);
        return refused(
            "nobody can be asked whether to go on: standard input or standard error is no terminal",
        );
    }
    screen::say(&format!("{words}\nGo on? [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => refused("not confirmed: nothing was loaded or changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hosts_are_split_at_the_comma_before_the_second() {
        let two = |text: &str| {
            text.parse::<TwoHosts>()
                .map(|TwoHosts(pair)| (pair.a.to_string(), pair.b.to_string()))
        };
        let (a, b) = two("ssh:db1=10.0.0.1,ssh:db2").expect("two hosts");
        assert_eq!((&*a, &*b), ("ssh:db1=10.0.0.1", "ssh:db2"));
        let (a, b) = two("exec:run --with a,b,netns:x").expect("two hosts");
        assert_eq!((&*a, &*b), ("exec:run --with a,b", "netns:x"));
        assert!(two("ssh:db1").is_err());
        assert!(two("nonsense,local").is_err());
    }
}
