//! One sample: adapt, put the cell's settings in force, prove, load, count, prove again.

use std::sync::atomic::AtomicBool;

use wirecost_agent::link::LinkError;
use wirecost_model::cell::Cell;
use wirecost_model::plan::{Cores, Repeat};
use wirecost_model::sample::{Invalid, LoadResult, Mark, Proof, ProofTime, Sample};
use wirecost_model::usage::HostUsage;

use crate::lab::Lab;
use crate::load::{self, Counting};

/// Cores that tasks of others may use before a sample is marked.
pub const FOREIGN_CORES_THRESHOLD: f64 = 0.05;
/// Share of a host's core time that the hypervisor may take before a sample is marked.
pub const STEAL_THRESHOLD: f64 = 0.02;
/// Length of the intervals within a window, seconds.
const INTERVAL_S: f64 = 0.1;

/// What a sample needs beside its lab and its cell.
pub(crate) struct Taking<'a> {
    pub(crate) repeat: &'a Repeat,
    /// How the hosts share the cores, as it came out.
    pub(crate) cores: Cores,
    /// Processes of this run.
    pub(crate) ours: &'a [u32],
    /// Random, new for each sample.
    pub(crate) secret: [u8; 16],
    pub(crate) interrupt: &'a AtomicBool,
}

/// Takes one sample into `sample`, whose place in the plan is filled in.
///
/// # Errors
/// Where a host refused, or an agent or its line failed; what was learned until then is in
/// `sample`, the reason is not.
pub(crate) fn take(
    lab: &mut Lab,
    cell: &Cell,
    taking: &Taking<'_>,
    sample: &mut Sample,
) -> Result<(), LinkError> {
    let interrupt = taking.interrupt;
    sample.devices = lab.adapt(cell.guest_mtu, &cell.offload, interrupt)?;
    match lab.put_in_force(&cell.settings, interrupt) {
        Ok(None) => {}
        Ok(Some(devices)) => sample.devices = devices,
        Err(LinkError::Refused { message, .. }) => {
            sample.invalid = Some(Invalid::Setting(message));
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let before = lab.prove(ProofTime::Before, cell.guest_mtu, interrupt)?;
    sample.proofs.extend(before);
    if let Some(reason) = failed_proof(&sample.proofs) {
        sample.invalid = Some(Invalid::Proof(reason));
        return Ok(());
    }

    let counting = Counting {
        warmup_s: taking.repeat.warmup,
        seconds: taking.repeat.seconds,
        interval_s: INTERVAL_S,
        ours: taking.ours,
    };
    let measured = lab.load(&cell.loads, taking.secret, counting, interrupt)?;
    let after = lab.prove(ProofTime::After, cell.guest_mtu, interrupt)?;
    sample.proofs.extend(after);

    let Some(loads) = load::results(&cell.loads, &measured) else {
        return Err(lab.a.confused("Measure"));
    };
    sample.loads = loads;
    sample.invalid = failed_proof(&sample.proofs)
        .map(Invalid::Proof)
        .or_else(|| nothing_arrived(&sample.loads).map(Invalid::Load));
    let [a, b] = measured.map(|host| host.usage);
    sample.marks = marks(&a, &b, taking.cores);
    sample.marks.extend(generator_bound(&sample.loads));
    sample.sender = Some(a);
    sample.receiver = Some(b);
    Ok(())
}

/// The loads of which nothing came through within the window, in words.
fn nothing_arrived(loads: &[LoadResult]) -> Option<String> {
    let silent = |load: &&LoadResult| {
        let stream = load.stream.as_ref();
        let bytes = stream.map(|stream| stream.bytes + stream.back_bytes);
        let transactions = load.requests.as_ref().map(|requests| requests.transactions);
        bytes.or(transactions).unwrap_or_default() == 0
    };
    let names: Vec<&str> = loads
        .iter()
        .filter(silent)
        .map(|load| load.name.as_str())
        .collect();
    match &names[..] {
        [] => None,
        _ if loads.len() == 1 => Some("nothing arrived within the window".to_owned()),
        names => Some(format!(
            "nothing arrived within the window of {}",
            names.join(" and ")
        )),
    }
}

/// A mark for each end whose own threads were the limit.
fn generator_bound(loads: &[LoadResult]) -> impl Iterator<Item = Mark> {
    loads.iter().flat_map(|load| {
        let bound = load.generator.iter().filter(|end| end.bound);
        bound.map(|end| Mark::GeneratorBound {
            load: load.name.clone(),
            host: end.host.clone(),
            end: end.end,
        })
    })
}

fn failed_proof(proofs: &[Proof]) -> Option<String> {
    let failed = proofs.iter().find(|proof| !proof.proven)?;
    let when = match failed.when {
        ProofTime::Before => "before",
        ProofTime::After => "after",
    };
    Some(format!(
        "{when} the window, from guest {}: a datagram of {} bytes was not proven to cross: {}",
        failed.from,
        failed.size,
        failed.reason.as_deref().unwrap_or("no reason given"),
    ))
}

fn marks(sender: &HostUsage, receiver: &HostUsage, cores: Cores) -> Vec<Mark> {
    let mut marks = Vec::new();
    if let Some(foreign) = sender
        .foreign_cores
        .filter(|cores| *cores > FOREIGN_CORES_THRESHOLD)
    {
        marks.push(Mark::ForeignLoad {
            cores: foreign,
            threshold: FOREIGN_CORES_THRESHOLD,
        });
    }
    // With shared cores both hosts read the same counters.
    let hosts = [("a", sender), ("b", receiver)];
    let apart = if cores == Cores::Split {
        &hosts[..]
    } else {
        &hosts[..1]
    };
    for (name, usage) in apart {
        let fraction = usage.steal_fraction();
        if fraction > STEAL_THRESHOLD {
            let host = (*name).to_owned();
            marks.push(Mark::Steal {
                host,
                fraction,
                threshold: STEAL_THRESHOLD,
            });
        }
        if usage.backlog_drops > 0 {
            let host = (*name).to_owned();
            marks.push(Mark::BacklogDrops {
                host,
                packets: usage.backlog_drops,
            });
        }
    }
    marks
}
