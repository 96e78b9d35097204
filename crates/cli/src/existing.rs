//! Existing hosts of `wirecost run`: named on the command line, and confirmed by the user before they are loaded or
//! changed.

mod confirmed;

use std::io::{self, BufRead, IsTerminal};
use std::str::FromStr;

use wirecost_control::experiment::Traffic;
use wirecost_model::cell::Experiment;
use wirecost_model::host::{HostAddress, HostAddressError};
use wirecost_model::plan::{HostPair, Hosts, NamedPair, PairNames};

use self::confirmed::Confirmed;
use crate::dry_run::hosts::attached_to_hosts;
use crate::dry_run::settings;
use crate::failure::{Cause, Failure};
use crate::screen;

/// Most hosts of `--hosts`, which are called a to z.
const MOST_HOSTS: usize = 26;

/// The hosts of `--hosts A,B[,...]`. Only a comma before a host separates: commands of `exec:` may have commas too.
#[derive(Debug, Clone)]
pub(crate) struct HostsArgument {
    pair: HostPair,
    /// Hosts after the second.
    more: Vec<HostAddress>,
}

impl FromStr for HostsArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORMS: [&str; 4] = ["local", "netns:", "ssh:", "exec:"];
        let is_host = |at: &usize| FORMS.iter().any(|form| text[*at..].starts_with(form));
        let commas = text.match_indices(',').map(|(at, _)| at + 1);
        let mut hosts = Vec::new();
        let mut begin = 0;
        for end in commas.filter(is_host).chain([text.len() + 1]) {
            let host = text[begin..end - 1].parse();
            hosts.push(host.map_err(|error: HostAddressError| error.to_string())?);
            begin = end;
        }
        if hosts.len() > MOST_HOSTS {
            return Err(format!(
                "{} hosts are given, and at most {MOST_HOSTS} have a name, a to z: write them into the plan's `hosts`",
                hosts.len()
            ));
        }
        let mut hosts = hosts.into_iter();
        let (Some(a), Some(b)) = (hosts.next(), hosts.next()) else {
            return Err("write two hosts with a comma between them, such as `ssh:db1=10.0.0.1,ssh:db2=10.0.0.2`".into());
        };
        Ok(Self {
            pair: HostPair { a, b },
            more: hosts.collect(),
        })
    }
}

/// Puts the command line's hosts into a plan for existing ones.
pub(crate) fn name_hosts(
    experiment: &mut Experiment,
    hosts: Option<&HostsArgument>,
) -> Result<(), Failure> {
    let Some(HostsArgument { pair, more }) = hosts else {
        return Ok(());
    };
    let plan = &mut experiment.plan;
    let usage = |message: String| Failure::new(Cause::Usage, message);
    match &mut plan.hosts {
        Hosts::Existing(named) | Hosts::Tunnel(named) => *named = Some(Box::new(pair.clone())),
        Hosts::Lab => {
            return Err(usage("--hosts: this plan builds a lab of its own".into()).fix(
                "write `network: existing` into the plan to measure between hosts as they are, or `network: tunnel` to build \
                 tunnels between them",
            ));
        }
    }
    let letters = ('c'..='z').map(String::from);
    plan.more_hosts = letters.zip(more.iter().cloned()).collect();
    let given = 2 + more.len();
    let mut named = plan.pairs.iter().flat_map(|PairNames(names)| names);
    if let Some(unknown) = named.find(|name| plan.host(name).is_none()) {
        return Err(usage(format!(
            "--hosts: the plan's `pairs` have a host `{unknown}`, and {given} hosts are given, which are called a, b, c and so \
             on"
        ))
        .fix("give as many hosts, or name the plan's hosts in its `hosts`"));
    }
    let in_no_pair = |name: &&String| {
        let mut named = plan.pairs.iter().flat_map(|PairNames(names)| names);
        !named.any(|known| known == *name)
    };
    if let Some(name) = plan.more_hosts.keys().find(in_no_pair) {
        return Err(usage(format!(
            "--hosts: {given} hosts are given, and host `{name}` is in no pair of the plan"
        ))
        .fix("write into the plan which two are measured, such as `pairs: [[a, b], [a, c]]`"));
    }
    Ok(())
}

/// Asks the user before hosts other than this machine are loaded for the first time, and before existing hosts are
/// changed.
///
/// # Errors
/// Nobody can be asked, or the answer is not yes; `fix` is what to do then.
pub(crate) fn confirm(experiment: &Experiment, yes: bool, fix: &str) -> Result<(), Failure> {
    let hosts = &experiment.plan.hosts;
    let Some(pairs) = experiment.plan.host_pairs() else {
        return Ok(());
    };
    let changes = settings::changes(experiment, screen::terminal().width);
    let attached = attached_to_hosts(experiment);
    let is_elsewhere =
        |pair: &&NamedPair| !(pair.hosts.a.place.is_here() && pair.hosts.b.place.is_here());
    let mut confirmed = Confirmed::read();
    let elsewhere: Vec<&HostPair> = pairs
        .iter()
        .filter(is_elsewhere)
        .map(|pair| &pair.hosts)
        .collect();
    let is_known = elsewhere.iter().all(|pair| confirmed.has(pair));
    if yes || (changes.is_none() && attached.is_none() && is_known) {
        return Ok(());
    }
    let between: Vec<String> = pairs
        .iter()
        .map(|NamedPair { hosts, .. }| format!("{} and {}", hosts.a, hosts.b))
        .collect();
    let mut words = format!(
        "This loads the network between {}",
        between.join(", and between ")
    );
    if let Some(changes) = changes {
        words = format!("{words} and changes settings of these hosts.\n{changes}");
    } else if hosts.is_tunnel() {
        words += ", after building on each a network namespace with guests and tunnels, which are removed when the run \
                  ends. Settings and devices of the hosts themselves stay as they are.";
        if let Some(attached) = attached {
            words = format!("{words}\n{attached}");
        }
    } else {
        words += ".";
    }
    words = format!("{words}\nAltogether {}.", Traffic::planned(experiment));
    let refused = |message: &str| Err(Failure::new(Cause::Usage, message).fix(fix));
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        screen::print_stderr(&words);
        return refused(
            "no terminal to confirm on: standard input or standard error is not a terminal",
        );
    }
    screen::print_stderr(&format!("{words}\nGo on? [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => {
            confirmed.add(&elsewhere);
            Ok(())
        }
        _ => refused("not confirmed: nothing was loaded or changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_split_at_the_commas_before_a_host() {
        let given = |text: &str| {
            let HostsArgument { pair, more } = text.parse()?;
            let hosts = [pair.a, pair.b].into_iter().chain(more);
            Ok::<_, String>(hosts.map(|host| host.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(
            given("ssh:db1=10.0.0.1,ssh:db2").expect("two hosts"),
            ["ssh:db1=10.0.0.1", "ssh:db2"]
        );
        assert_eq!(
            given("exec:run --with a,b,netns:x,local").expect("three hosts"),
            ["exec:run --with a,b", "netns:x", "local"]
        );
        assert!(given("ssh:db1").is_err());
        assert!(given(&["local"; 26].join(",")).is_ok());
        assert!(given(&["local"; 27].join(",")).is_err());
        assert!(given("nonsense,local").is_err());
    }
}
