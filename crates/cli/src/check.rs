//! `wirecost check`: the path MTU between two hosts, findings, and the commands that fix them.

mod details;
mod print;
mod progress;
mod simulate;

use std::net::IpAddr;

use clap::Args;
use wirecost_check::MAX_FLOWS;
use wirecost_control::hosts::{AgentRole, HostsError};
use wirecost_control::path::{Check as Asked, CheckTarget, check as run};
use wirecost_model::host::HostAddress;
use wirecost_model::units::{UnitError, parse_rate};
use wirecost_wire::overhead::Stack;

use self::progress::CheckProgress;
use self::simulate::NotNamespaces;
use crate::binaries::AgentBinaries;
use crate::failure::{Cause, CommandResult, Failure};
use crate::verbosity::Verbosity;
use crate::{exit, interrupt, screen};

/// Default number of flows: they meet each of up to four equal-cost paths with 95 % probability (the stopping rule of
/// the Multipath Detection Algorithm: `wirecost_pmtu::flows_to_cover_all`).
const FLOWS: u32 = 16;
/// [`MAX_FLOWS`] as clap takes it.
const MOST_FLOWS: i64 = MAX_FLOWS as i64;
/// Smallest IP packet for `--expect`, bytes: what a probe needs over IPv6.
const MIN_IP_BYTES: i64 = 81;
/// Largest IP packet for `--expect`, bytes: the longest without jumbograms.
const MAX_IP_BYTES: i64 = 65_535;
/// Default of `--bandwidth`, 40 MB/s.
const BANDWIDTH: &str = "320mbit";

#[derive(Debug, Args)]
#[command(
    after_help = "HOSTS\n  local, netns:NAME, ssh:[USER@]HOST[:PORT] or exec:COMMAND, as for `wirecost load`, each \
                  optionally followed by =ADDRESS, the address that the probes use; a link-local one is followed by its device: \
                  local=fe80::1%eth0. TO may be a bare address (10.0.0.2, fe80::2%eth0, where the device is FROM's): then \
                  the far end has no agent, and only what one side can measure is reported.\n\n\
    Exit codes: 0 nothing was found (severity info does not count), 1 something was found, 2 the command line is \
     wrong, or the addresses to use are ambiguous, 3 the check could not be completed."
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct Check {
    /// One host
    #[arg(value_parser = host)]
    from: HostAddress,
    /// The other host, or an address without an agent
    #[arg(value_parser = far)]
    to: CheckTarget,
    /// Size of the IP packet that every direction should carry [default: what the sender's device or route takes]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(MIN_IP_BYTES..=MAX_IP_BYTES))]
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
    /// Most datagrams per second in each direction
    #[arg(long, value_name = "NUMBER", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rate: u32,
    /// Most bits per second in each direction
    #[arg(long, value_name = "RATE", default_value = BANDWIDTH, value_parser = bandwidth)]
    bandwidth: u64,
    /// Prove the path over TCP instead, to this open port of TO: no agent is needed there, and nothing is sent over UDP
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), conflicts_with_all = ["port", "simulate"])]
    tcp: Option<u16>,
    /// Then probe each hop: address, round trip, the largest size that reaches it, ICMP message
    #[arg(long)]
    trace: bool,
    /// Print the largest MTU of guests that fits every path, and what limits it
    #[arg(long)]
    recommend: bool,
    /// Check this pair of hosts as well; may be repeated
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], action = clap::ArgAction::Append)]
    pair: Vec<String>,
    #[command(flatten)]
    simulate: simulate::Options,
    /// Print the list for large frames as well: done, missing, cannot see
    #[arg(long)]
    checklist: bool,
    #[command(flatten)]
    agent: AgentBinaries,
    /// Print the result as one JSON document (`wirecost schema check`)
    #[arg(long)]
    json: bool,
}

/// Parses a host, whose address may be link-local with a device: `local=fe80::1%eth0`.
pub(crate) fn host(text: &str) -> Result<HostAddress, String> {
    HostAddress::with_device(text).map_err(|error| error.to_string())
}

/// Parses the other end: a bare address, or a host.
fn far(text: &str) -> Result<CheckTarget, String> {
    if let Some((address, device)) = text.split_once('%')
        && let Ok(address) = address.parse::<IpAddr>()
    {
        return match HostAddress::with_device(&format!("local={text}")) {
            Ok(_) => Ok(CheckTarget::OnLink(address, device.to_owned())),
            Err(error) => Err(error.problem.to_string()),
        };
    }
    match text.parse::<IpAddr>() {
        // An address that cannot stand behind the = of a host is refused for the far end too.
        Ok(address) => match format!("local={address}").parse::<HostAddress>() {
            Ok(_) => Ok(CheckTarget::Address(address)),
            Err(error) => Err(error.problem.to_string()),
        },
        Err(_) => HostAddress::with_device(text)
            .map(CheckTarget::Host)
            .map_err(|error| {
                format!("{error}; or write an address without an agent, such as 10.0.0.2")
            }),
    }
}

/// Parses a rate into bit/s.
fn bandwidth(text: &str) -> Result<u64, UnitError> {
    parse_rate(text)
}

pub(crate) fn check(arguments: &Check, verbosity: Verbosity) -> CommandResult {
    let asked = arguments.asked();
    let asked = asked.map_err(|error| Failure::of(Cause::Usage, &error))?;
    let others = arguments.others(&asked);
    let others = others.map_err(|wrong| Failure::all(Cause::Usage, wrong))?;
    let started = interrupt::with_hosts(verbosity.verbose, &arguments.agent);
    let (interrupt, mut context) = started.map_err(|error| Failure::of(Cause::Machine, &error))?;
    context.role = AgentRole::Check;
    let progress = CheckProgress::start(verbosity.quiet);
    let mut document = run(&asked, &context, &interrupt, &mut |step| {
        progress.show(step);
    })
    .map_err(|error| unreached(&error))?;
    for other in &others {
        let more = run(other, &context, &interrupt, &mut |step| progress.show(step));
        document.join(more.map_err(|error| unreached(&error))?);
    }
    drop(progress);
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

/// The failure of a command whose hosts could not be reached or have no usable addresses.
pub(crate) fn unreached(error: &HostsError) -> Failure {
    match error {
        HostsError::Address(_) => Failure::of(Cause::Usage, error),
        HostsError::Link(_) => Failure::of(Cause::Host, error),
    }
}

impl Check {
    fn asked(&self) -> Result<Asked, NotNamespaces> {
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
            tcp: self.tcp,
            trace: self.trace,
            recommend: self.recommend,
            simulate: self.simulate.simulation(&self.from, &self.to)?,
        })
    }

    /// The checks of the further pairs (`--pair`), or everything that is wrong with their hosts.
    fn others(&self, asked: &Asked) -> Result<Vec<Asked>, Vec<String>> {
        let mut wrong = Vec::new();
        let mut others = Vec::new();
        for pair in self.pair.chunks_exact(2) {
            match (host(&pair[0]), far(&pair[1])) {
                (Ok(from), Ok(to)) => others.push(Asked {
                    from,
                    to,
                    simulate: None,
                    ..asked.clone()
                }),
                (from, to) => {
                    let errors = [from.err(), to.err()];
                    let hosts = pair.iter().zip(errors);
                    wrong.extend(
                        hosts.filter_map(|(host, error)| {
                            Some(format!("--pair `{host}`: {}", error?))
                        }),
                    );
                }
            }
        }
        if wrong.is_empty() {
            Ok(others)
        } else {
            Err(wrong)
        }
    }
}
