//! `wirecost load`: a load between two hosts, opened, polled in parts, ended and reported.
//!
//! Unlike a run's windows this one is looked into while it goes on: both agents are asked twice a second what came.

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

use crate::hosts::{HostsContext, HostsError, LinkedHost, data_plane, link_local, open};

use self::interval::Parts;
use self::session::Session;
pub use document::{
    Cpu, Datagrams, Document, FORMAT, FlowFigures, Latencies, LatencyBound, LoadHostReport,
    LoadReport, Outcome, Requests, SCHEMA, Stream,
};
pub use interval::Interval;
pub use wirecost_stats::Summary;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ManualLoad {
    /// Host a, which sends or asks where a load's direction does not say otherwise, and host b.
    pub hosts: [HostAddress; 2],
    /// What runs at once; no two have the same name.
    pub loads: Vec<NamedLoad>,
    /// Servers listen on this port, over TCP and over UDP, those of the first host on the next where both hosts have one
    /// address; `None` is any free port.
    pub port: Option<u16>,
    /// How often, 1 or more: each round opens its connections anew.
    pub rounds: u32,
    /// Seconds that are not counted, from the start.
    pub warmup_s: f64,
    /// Seconds that are counted; `None` is until the loads' own limits end them, without a warm-up.
    pub seconds: Option<f64>,
    /// Seconds of each interval that is told.
    pub interval_s: f64,
    /// Latencies of which the share below is wanted.
    pub bounds: Vec<Duration>,
}

/// What happens, as it happens.
#[derive(Debug)]
pub enum Step<'a> {
    /// Both agents are up, and it is known which addresses are used.
    Reached {
        /// The addresses of both.
        addresses: [IpAddr; 2],
        /// Whether both hosts are one machine.
        one_machine: bool,
    },
    /// Messages of a load leave in fragments: why, in words.
    Fragments(&'a str),
    /// A round begins, counted from 1.
    Round(u32),
    /// The loads began.
    Began,
    /// An interval is over, one for each load.
    Interval(&'a Interval),
}

/// Runs the loads and returns the result. An interrupt ends them, and what there is is the result.
///
/// To be called on a thread that lives as long: the kernel ends agents of this machine with it.
///
/// # Errors
/// Where nothing could be counted: hosts that were not reached, loads that could not be opened.
pub fn run_manual(
    asked: &ManualLoad,
    context: &HostsContext,
    interrupt: &AtomicBool,
    told: &mut dyn FnMut(Step<'_>),
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
            &mut LinkedHost {
                link: &mut from,
                interrupt,
            },
            &mut LinkedHost {
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
        parts: Parts::new(&asked.loads, asked.interval_s),
    };
    let machines = session.machines()?;
    let one_machine = machines[0] == machines[1];
    told(Step::Reached {
        addresses,
        one_machine,
    });
    let fragments = session.fragments();
    for words in &fragments {
        told(Step::Fragments(words));
    }
    let mut rounds: Vec<Round> = Vec::new();
    for number in 1..=asked.rounds {
        told(Step::Round(number));
        let started_s = began.elapsed().as_secs_f64();
        match session.open() {
            Ok(()) => rounds.push(session.round(started_s, told)),
            Err(error) => {
                let error = session.blame(error);
                // What was measured before it is a result.
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

/// What one round counted.
struct Round {
    outcome: Outcome,
    reason: Option<String>,
    /// Seconds since the first one's beginning, and those that it took.
    started_s: f64,
    took_s: f64,
    measured: [Option<Measured>; 2],
    intervals: Vec<Interval>,
}

/// How something ended early.
fn ending(error: LinkError) -> (Outcome, Option<String>) {
    match error {
        LinkError::Interrupted => (Outcome::Interrupted, None),
        error => (Outcome::Failed, Some(error.to_string())),
    }
}
