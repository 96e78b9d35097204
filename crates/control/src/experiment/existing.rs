//! An experiment between existing hosts: what is known of it only once they are reached.

use std::fmt;
use std::sync::atomic::AtomicBool;

pub use wirecost_agent::protocol::{HostWay, PathDevice};
use wirecost_model::cell::Experiment;
use wirecost_model::load::{Load, Rate};
use wirecost_model::plan::{HostPair, MaxRate};
use wirecost_model::units::format_rate;

use super::error::RunError;
use super::tunnel;
use crate::hosts::{HostsContext, HostsError};
use crate::lab::{Existing, Lab};
use crate::placement::Placement;

/// The most that streams send between machines where neither the plan nor the devices say how much, bit/s.
const CAUTIOUS: u64 = 1_000_000_000;

/// The limit on what every stream load sends together in one direction, bit/s; `None`: no limit.
fn limit(wanted: MaxRate, existing: &Existing) -> Option<u64> {
    match wanted {
        MaxRate::None => None,
        MaxRate::BitsPerSecond(rate) => Some(rate),
        MaxRate::Auto if existing.one_machine => None,
        MaxRate::Auto => Some(existing.speed().map_or(CAUTIOUS, |speed| speed / 2)),
    }
}

/// The experiment as it is run between these pairs of hosts: no stream sends more than the limit of its pair. Returns the
/// limits.
///
/// # Errors
/// As of [`tunnel::settle`].
pub(super) fn settle(
    experiment: &mut Experiment,
    pairs: &[Existing],
) -> Result<Vec<Option<u64>>, RunError> {
    if experiment.plan.hosts.is_tunnel() {
        tunnel::settle(experiment, pairs)?;
    }
    let plan = &experiment.plan;
    let limits: Vec<Option<u64>> = pairs
        .iter()
        .map(|existing| limit(plan.max_rate, existing))
        .collect();
    for cell in experiment.cells.iter_mut().chain(&mut experiment.twin) {
        let Some(limit) = limits[plan.pair_of(&cell.levels)] else {
            continue;
        };
        let streams = |load: &Load| !load.workload.is_request_response();
        let sharing = cell
            .loads
            .iter()
            .filter(|named| streams(&named.load))
            .count() as u64;
        for named in cell.loads.iter_mut().filter(|named| streams(&named.load)) {
            let load = &mut named.load;
            let flow = limit / sharing.max(1) / u64::from(load.streams.max(1));
            let rate = match load.rate {
                Some(Rate::BitsPerSecond(asked)) => asked.min(flow),
                _ => flow,
            };
            load.rate = Some(Rate::BitsPerSecond(rate));
        }
    }
    Ok(limits)
}

/// On which cores pairs of hosts are.
///
/// # Errors
/// Where the hosts of one pair share a machine and those of another do not: their CPU cannot be compared.
pub(super) fn placement(pairs: &[Existing]) -> Result<Placement, RunError> {
    let is_one = |existing: &&Existing| existing.one_machine;
    let (one, several): (Vec<_>, Vec<_>) = pairs.iter().partition(is_one);
    if let (Some(one), Some(several)) = (one.first(), several.first()) {
        return Err(RunError::Setting(format!(
            "hosts {} are on one machine, and hosts {} on two: CPU of the one cannot be compared with CPU of the others; \
             measure them by plans of their own",
            one.pair.names, several.pair.names
        )));
    }
    Ok(pairs[0].placement())
}

/// What a run will send over a network that is not its own, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Bit/s in one direction; `None`: as fast as it goes.
    pub limit: Option<u64>,
    /// Seconds of load, warm-ups included.
    pub seconds: f64,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds;
        match self.limit {
            Some(limit) => {
                let gigabytes = limit as f64 * seconds / 8e9;
                write!(
                    f,
                    "streams send at most {} in each direction for {seconds:.0} s, {gigabytes:.1} GB (`max_rate` changes that)",
                    format_rate(limit)
                )
            }
            None => write!(
                f,
                "streams send as fast as they can for {seconds:.0} s (`max_rate` limits them)"
            ),
        }
    }
}

/// Two existing hosts, looked at.
#[derive(Debug)]
pub struct Looked {
    hosts: Existing,
    /// Of a and of b.
    ways: [HostWay; 2],
}

/// Reaches both hosts of an experiment and looks at their devices; changes nothing.
///
/// # Errors
/// Where a host is not reached, or has no address towards the other.
pub fn look(
    context: &HostsContext,
    pair: &HostPair,
    experiment: &Experiment,
    interrupt: &AtomicBool,
) -> Result<Looked, HostsError> {
    let network = &experiment.cells[0].network;
    let mut lab = Lab::join(context, pair, network, interrupt)?;
    let ways = lab.ways(interrupt)?;
    let hosts = lab.into_hosts().0;
    Ok(Looked { hosts, ways })
}

impl Looked {
    /// The slower device's speed in bit/s, where both are known.
    pub fn speed(&self) -> Option<u64> {
        self.hosts.speed()
    }

    /// What packets to the other host pass on host a (0) or b (1).
    pub fn way(&self, host: usize) -> &HostWay {
        &self.ways[host]
    }

    /// Name of the device with the measured address of that host.
    pub fn measured(&self, host: usize) -> &str {
        &self.hosts.joined[host].device.name
    }

    /// Number of processors of that host.
    pub fn cores(&self, host: usize) -> u32 {
        self.hosts.joined[host].cpus.len() as u32
    }

    /// Whether both hosts are one machine.
    pub fn is_one_machine(&self) -> bool {
        self.hosts.one_machine
    }
}
