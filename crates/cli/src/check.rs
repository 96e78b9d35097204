//! `wirecost check`: the path MTU between two hosts, findings, and the commands that fix them.

mod print;
mod simulate;
mod watch;

use std::net::IpAddr;

use clap::Args;
use wirecost_control::hosts::HostsError;
use wirecost_control::path::{Check as Asked, CheckTarget, check as run};
use wirecost_model::host::HostAddress;
use wirecost_model::units::{UnitError, parse_rate};
use wirecost_wire::overhead::Stack;

use self::simulate::NotALab;
use self::watch::Watch;
use crate::failure::{Cause, Done, Failure};
use crate::talk::Talk;
use crate::{exit, interrupt, screen};

/// Each of up to four equal paths is met with a probability of 95 % (the stopping rule of the Multipath Detection
/// Algorithm: `wirecost_pmtu::flows_to_meet_all`).
const FLOWS: u32 = 16;
/// More sockets than this are not opened.
const MOST_FLOWS: i64 = 1024;
/// The smallest IP packet that is worth asking for, bytes: what a probe needs over IPv6.
const SMALLEST: i64 = 81;
/// The longest IP packet without jumbograms, bytes.
const LONGEST: i64 = 65_535;
/// 40 MB/s.
const BANDWIDTH: &str = "320mbit";

#[derive(Debug, Args)]
#[command(
    after_help = "HOSTS\n  local, netns:NAME, ssh:[USER@]HOST[:PORT] or exec:COMMAND, as for `wirecost load`, each \
                  optionally followed by =ADDRESS, the address that the probes use. TO may be a bare address: then \
                  the far end has no agent, and only what one side can measure is reported.\n\n\
    Exit codes: 0 as expected (info is no finding), 1 something was found, 2 the command line is wrong, or the \
     addresses to use are ambiguous, 3 the check could not be completed."
)]
pub(crate) struct Check {
    /// One host
    from: HostAddress,
    /// The other host, or an address without an agent
    #[arg(value_parser = far)]
    to: CheckTarget,
    /// The IP packet that every direction should carry [default: what the sender's device or route takes]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(SMALLEST..=LONGEST))]
    expect: Option<u32>,
    /// Flows of each direction, each with its own source port; 16 cover 4 equal paths with 95 % probability
    #[arg(long, value_name = "NUMBER", default_value_t = FLOWS, value_parser = clap::value_parser!(u32).range(1..=MOST_FLOWS))]
    flows: u32,
    /// Destination port of the probes, such as a tunnel's [default: the encapsulation's, else any]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Encapsulation of the guests' traffic, as for `wirecost overhead`: prints the MTU that guests can have
    #[arg(long, value_name = "FORMAT")]
    encapsulation: Option<Stack>,
    /// Datagrams a second of each direction at most
    #[arg(long, value_name = "NUMBER", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Bits a second of each direction at most
    #[arg(long, value_name = "RATE", default_value = BANDWIDTH, value_parser = bandwidth)]
    bandwidth: u64,
    #[command(flatten)]
    simulate: simulate::Options,
    /// Print the list for large frames as well: done, missing, cannot see
    #[arg(long)]
    checklist: bool,
    /// Print the result as one JSON document (`wirecost schema check`)
    #[arg(long)]
    json: bool,
}

/// The other end: an address, or a host.
fn far(text: &str) -> Result<CheckTarget, String> {
    match text.parse::<IpAddr>() {
        // What cannot be a host's own address behind a = cannot be that of a far end either.
        Ok(address) => match format!("local={address}").parse::<HostAddress>() {
            Ok(_) => Ok(CheckTarget::Address(address)),
            Err(error) => Err(error.problem.to_string()),
        },
        Err(_) => text
            .parse()
            .map(CheckTarget::Host)
            .map_err(|error| format!("{error}; or an address without an agent")),
    }
}

/// A rate in bits per second.
fn bandwidth(text: &str) -> Result<u64, UnitError> {
    parse_rate(text)
}

pub(crate) fn check(arguments: &Check, talk: Talk) -> Done {
    let asked = arguments.asked();
    let asked = asked.map_err(|error| Failure::of(Cause::Usage, &error))?;
    let started = interrupt::with_hosts(talk.verbose);
    let (interrupt, context) = started.map_err(|error| Failure::of(Cause::Machine, &error))?;
    let watch = Watch::start(talk.quiet);
    let document = run(&asked, &context, &interrupt, &mut |step| watch.show(step));
    drop(watch);
    let document = document.map_err(|error| unreached(&error))?;
    let printed = if arguments.json {
        screen::print_json(&document)?
    } else {
        let width = screen::terminal().width;
        screen::print(&print::text(&document, arguments.checklist, width))?
    };
    Ok(if document.has_findings() {
        exit::finding()
    } else {
        printed
    })
}

/// Why two hosts could not be used.
pub(crate) fn unreached(error: &HostsError) -> Failure {
    match error {
        HostsError::Address(_) => Failure::of(Cause::Usage, error),
        HostsError::Link(_) => Failure::of(Cause::Host, error),
    }
}

impl Check {
    fn asked(&self) -> Result<Asked, NotALab> {
        let stack = self.encapsulation.as_ref();
        Ok(Asked {
            from: self.from.clone(),
            to: self.to.clone(),
            expect: self.expect,
            flows: self.flows,
            port: self.port.or(stack.and_then(wirecost_check::tunnel_port)),
            encapsulation: self.encapsulation.clone(),
            datagrams_per_s: f64::from(self.rate),
            bytes_per_s: self.bandwidth as f64 / 8.0,
            simulate: self.simulate.wanted(&self.from, &self.to)?,
        })
    }
}
