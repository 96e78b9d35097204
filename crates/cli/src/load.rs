//! `wirecost load`: runs loads between any two hosts.

mod beside;
mod kind;
mod migration;
mod options;
mod print;
mod progress;
mod values;

use std::time::Duration;

use clap::Args;
use wirecost_control::hosts::AgentRole;
use wirecost_control::load::{ManualLoad, Outcome, run_manual};
use wirecost_model::host::HostAddress;
use wirecost_model::load::{Limit, NamedLoad, Workload};

use self::kind::Kind;
use self::options::LoadOptions;
use self::progress::LoadProgress;
use self::values::{duration, size};
use crate::binaries::AgentBinaries;
use crate::check::{host, unreached};
use crate::failure::{Cause, CommandResult, Failure};
use crate::verbosity::Verbosity;
use crate::{exit, interrupt, screen};

/// Largest time option, seconds: a day.
const LONGEST_S: f64 = 86_400.0;
/// Largest number of rounds.
const MOST_ROUNDS: i64 = 1000;
/// Shortest measurement and interval, seconds.
const SHORTEST_INTERVAL_S: f64 = 0.1;

#[derive(Debug, Args)]
#[command(
    after_help = "HOSTS\n  local, netns:NAME, ssh:[USER@]HOST[:PORT] or exec:COMMAND, whose standard input and output lead to a shell \
    there, such as exec:docker exec -i NAME; each optionally followed by =ADDRESS, the address that the load uses; a link-local one is followed by its device: \
     local=fe80::1%eth0.\n\n\
    Exit codes: 0 measured, 2 the command line is wrong, or the addresses to use are ambiguous, 3 the load could not \
     be completed (its counts so far are printed)."
)]
pub(crate) struct Load {
    /// The host that sends the data or the requests
    #[arg(value_parser = host)]
    from: HostAddress,
    /// The host that receives them
    #[arg(value_parser = host)]
    to: HostAddress,
    /// The workload; `mix` is tcp-stream with tcp-rr at the same time
    #[arg(default_value = "tcp-stream")]
    workload: Kind,
    #[command(flatten)]
    options: LoadOptions,
    /// Another load at the same time, with its options: "tcp-rr --rate 100/s"; may be repeated
    #[arg(long, value_name = "LOAD", value_parser = beside::beside)]
    beside: Vec<NamedLoad>,
    /// How long to measure [default: 10s]
    #[arg(long, value_parser = duration, group = "end")]
    time: Option<Duration>,
    /// Send this many bytes instead, all flows together: 10GiB
    #[arg(long, value_parser = size, value_name = "SIZE", group = "end")]
    bytes: Option<u64>,
    /// Make this many transactions, or send this many datagrams, instead
    #[arg(long, value_name = "NUMBER", group = "end")]
    transactions: Option<u64>,
    /// How often to measure, each time with new connections: figures then have 95 % intervals
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_ROUNDS))]
    rounds: u32,
    /// Warm-up before measuring [default: 1s]
    #[arg(long, value_parser = duration, value_name = "TIME", conflicts_with_all = ["bytes", "transactions"])]
    warmup: Option<Duration>,
    /// Print a line of progress this often
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// Print the share of responses within this latency: 500us; may be repeated
    #[arg(long, value_parser = duration, value_name = "TIME")]
    bound: Vec<Duration>,
    /// The port to listen on at a serving host, over TCP and UDP, for all loads [default: any]
    #[arg(long)]
    port: Option<u16>,
    #[command(flatten)]
    agent: AgentBinaries,
    /// Print the result as one JSON document (`wirecost schema load`)
    #[arg(long)]
    json: bool,
}

pub(crate) fn load(arguments: &Load, verbosity: Verbosity) -> CommandResult {
    let asked = asked(arguments).map_err(|wrong| Failure::all(Cause::Usage, wrong))?;
    let started = interrupt::with_hosts(verbosity.verbose, &arguments.agent);
    let (interrupt, mut context) = started.map_err(|error| Failure::of(Cause::Machine, &error))?;
    context.role = AgentRole::Load;
    let progress = LoadProgress::new(&asked, verbosity);
    let document = run_manual(&asked, &context, &interrupt, &mut |event| {
        progress.show(&event);
    });
    let document = document.map_err(|error| unreached(&error))?;
    let printed = if arguments.json {
        screen::print_json(&document)?
    } else {
        screen::print(&print::text(&document, screen::terminal().width))?
    };
    Ok(match document.outcome {
        Outcome::Complete => printed,
        Outcome::Interrupted => exit::incomplete(),
        Outcome::Failed => {
            let reason = document.reason.as_deref().unwrap_or_default();
            screen::print_stderr(&format!("wirecost: {reason}"));
            exit::incomplete()
        }
    })
}

/// The loads that the command line asks for, or everything that is wrong with it.
fn asked(arguments: &Load) -> Result<ManualLoad, Vec<String>> {
    let mut wrong = Vec::new();
    let mut loads = Vec::new();
    let workload = arguments.workload.first();
    match arguments.options.resolve(workload) {
        Ok(load) => loads.push(NamedLoad::alone(load)),
        Err(words) => wrong.extend(words),
    }
    if arguments.workload == Kind::Mix {
        loads.push(NamedLoad::alone(wirecost_model::load::Load::new(
            Workload::TcpRr,
        )));
    }
    loads.extend(arguments.beside.iter().cloned());
    if arguments.options.both_ways() {
        let back: Vec<NamedLoad> = loads.iter().take(1).map(turned).collect();
        loads.splice(
            1.min(loads.len())..,
            back.into_iter()
                .chain(loads.get(1..).unwrap_or_default().to_vec()),
        );
    }
    let limit = arguments
        .bytes
        .map(Limit::Bytes)
        .or(arguments.transactions.map(Limit::Transactions));
    if limit.is_some() && loads.len() > 1 {
        wrong.push(
            "--bytes and --transactions end a single load: loads at the same time need --time"
                .to_owned(),
        );
    }
    let alone = loads.len() == 1;
    for named in &mut loads {
        named.load.limit = limit.filter(|_| alone);
        let faults = named.load.faults();
        wrong.extend(
            faults
                .iter()
                .map(|fault| options::fault(&named.name, fault)),
        );
    }
    let endless = !loads.iter().any(|named| named.load.ends_by_itself());
    beside::number_duplicates(&mut loads);
    let seconds = arguments.time.map_or(10.0, |time| time.as_secs_f64());
    let (warmup_s, interval_s) = (
        arguments.warmup.map_or(1.0, |time| time.as_secs_f64()),
        arguments.interval.as_secs_f64(),
    );
    for (option, value, least) in [
        ("--time", seconds, SHORTEST_INTERVAL_S),
        ("--warmup", warmup_s, 0.0),
        ("--interval", interval_s, SHORTEST_INTERVAL_S),
    ] {
        if !(least..=LONGEST_S).contains(&value) {
            wrong.push(format!("{option} is {value} s: {least} s to {LONGEST_S} s"));
        }
    }
    if arguments.bound.iter().any(Duration::is_zero) {
        wrong.push("--bound: above 0".to_owned());
    }
    let answers = |named: &NamedLoad| named.load.workload.is_request_response();
    if !arguments.bound.is_empty() && !loads.is_empty() && !loads.iter().any(answers) {
        wrong.push("--bound: no load here has requests and responses".to_owned());
    }
    if arguments.port == Some(0) {
        wrong.push("--port: 1 to 65535".to_owned());
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(ManualLoad {
        hosts: [arguments.from.clone(), arguments.to.clone()],
        loads,
        port: arguments.port,
        rounds: arguments.rounds,
        warmup_s,
        seconds: endless.then_some(seconds),
        interval_s,
        bounds: arguments.bound.clone(),
    })
}

/// The load in the opposite direction.
fn turned(named: &NamedLoad) -> NamedLoad {
    let mut turned = named.clone();
    turned.load.direction = named.load.direction.reversed();
    turned
}
