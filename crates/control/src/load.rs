//! `wirecost load`: a load between two hosts, opened, polled in parts, ended and reported.
//!
//! Unlike a run's windows, this window is polled while it lasts: both agents report their counts twice a second.

mod document;
mod figures;
mod fragments;
mod interval;
mod notes;
mod session;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::Measured;
use wirecost_model::host::HostAddress;
use wirecost_model::load::NamedLoad;

use crate::hosts::{AgentHost, HostsContext, HostsError, data_plane, link_local, open};

use self::interval::IntervalCollector;
use self::session::Session;
pub use document::{
    Cpu, Datagrams, Document, FORMAT, FlowFigures, Latencies, LatencyBound, LoadHostReport,
    LoadReport, Outcome, Requests, SCHEMA, Stream,
};
pub use interval::Interval;
pub use wirecost_stats::Summary;

/// The options of `wirecost load`.
#[derive(Debug, Clone)]
pub struct ManualLoad {
    /// Host a, which has the clients where a load's direction does not say otherwise, and host b.
    pub hosts: [HostAddress; 2],
    /// Loads that run at the same time; no two have the same name.
    pub loads: Vec<NamedLoad>,
    /// Port of the servers, over TCP and over UDP; `None` is any free port. Where both hosts have the same address,
    /// servers of host a listen on the next port.
    pub port: Option<u16>,
    /// Rounds, 1 or more. Each round opens its connections anew.
    pub rounds: u32,
    /// Warm-up before the counted window, seconds.
    pub warmup_s: f64,
    /// Length of the counted window, seconds; `None`: from the start until the loads reach their own limits, without
    /// warm-up.
    pub seconds: Option<f64>,
    /// Length of the reported intervals, seconds.
    pub interval_s: f64,
    /// Latency bounds: for each, the share of answers that came within it is reported.
    pub bounds: Vec<Duration>,
}

/// Progress of the loads, as reported to the caller.
#[derive(Debug)]
pub enum LoadEvent<'a> {
    /// Both agents are running, and the data-plane addresses are determined.
    Reached {
        /// Data-plane addresses, host a's and host b's.
        addresses: [IpAddr; 2],
        /// Whether both hosts are one machine.
        one_machine: bool,
    },
    /// The kernel fragments the messages of a load: the note about it.
    Fragments(&'a str),
    /// A round begins; rounds are counted from 1.
    Round(u32),
    /// The loads began.
    Began,
    /// An interval ended; it holds the figures of every load.
    Interval(&'a Interval),
}

/// Runs the loads and returns the result. An interrupt ends the loads, and what was counted until then is the result.
///
/// To be called on a thread that outlives the loads: the kernel ends agents of this machine with it.
///
/// # Errors
/// Where nothing could be counted: hosts that were not reached, loads that could not be opened in the first round.
pub fn run_manual(
    asked: &ManualLoad,
    context: &HostsContext,
    interrupt: &AtomicBool,
    on_event: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<Document, HostsError> {
    let (started, began) = (jiff::Timestamp::now().to_string(), Instant::now());
    let [a, b] = &asked.hosts;
    let opened = open(context, &[a, b], interrupt)?;
    let Ok([mut from, mut to]) = <[Link; 2]>::try_from(opened) else {
        unreachable!("a link for each host");
    };
    let addresses = match link_local([a, b], [&mut from, &mut to], interrupt)? {
        Some(addresses) => addresses,
        None => data_plane(
            [a, b],
            &mut AgentHost {
                link: &mut from,
                interrupt,
            },
            &mut AgentHost {
                link: &mut to,
                interrupt,
            },
        )?,
    };
    let mut session = Session {
        asked,
        links: [from, to],
        addresses,
        interrupt,
        parts: IntervalCollector::new(&asked.loads, asked.interval_s),
    };
    let machines = session.machines()?;
    let one_machine = machines[0] == machines[1];
    on_event(LoadEvent::Reached {
        addresses,
        one_machine,
    });
    let fragments = session.fragments();
    for words in &fragments {
        on_event(LoadEvent::Fragments(words));
    }
    let mut rounds: Vec<Round> = Vec::new();
    for number in 1..=asked.rounds {
        on_event(LoadEvent::Round(number));
        let started_s = began.elapsed().as_secs_f64();
        match session.open() {
            Ok(()) => rounds.push(session.round(started_s, on_event)),
            Err(error) => {
                let error = session.blame(error);
                // Rounds that were measured before the error are a result.
                let Some(last) = rounds.last_mut() else {
                    return Err(error.into());
                };
                (last.outcome, last.reason) = ending(error);
            }
        }
        if rounds
            .last()
            .is_some_and(|round| round.outcome != Outcome::Complete)
        {
            break;
        }
    }
    Ok(figures::document(figures::DocumentParts {
        asked,
        started,
        addresses,
        one_machine,
        fragments,
        rounds,
    }))
}

/// The result of one round.
struct Round {
    outcome: Outcome,
    reason: Option<String>,
    /// Start of the round, seconds since the command's start.
    started_s: f64,
    /// Length of the round, seconds.
    took_s: f64,
    measured: [Option<Measured>; 2],
    intervals: Vec<Interval>,
}

/// Outcome and reason of a round that an error ended.
fn ending(error: LinkError) -> (Outcome, Option<String>) {
    match error {
        LinkError::Interrupted => (Outcome::Interrupted, None),
        error => (Outcome::Failed, Some(error.to_string())),
    }
}
