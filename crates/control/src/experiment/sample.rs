//! Takes one sample: adapts the lab, applies the cell's settings, proves the path, loads, counts, proves again.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_agent::link::LinkError;
use wirecost_model::cell::Cell;
use wirecost_model::load::NamedLoad;
use wirecost_model::plan::Repeat;
use wirecost_model::sample::{
    AtTarget, Invalid, LoadResult, Mark, Proof, ProofTime, Sample, Saturated,
};

use super::core_distance;
use crate::concurrent::KEEP_EVERY;
use crate::lab::Lab;
use crate::marks::{generator_bound, marks};
use crate::placement::Placement;
use crate::window::{self, Clients, CountingWindow};

/// Length of the intervals within a window, seconds.
const INTERVAL_S: f64 = 0.1;

/// What taking a sample needs besides its lab and its cell.
pub(crate) struct SampleContext<'a> {
    pub(crate) repeat: &'a Repeat,
    /// Which host has which cores.
    pub(crate) placement: &'a Placement,
    /// Process ids of this run, which do not count as foreign load.
    pub(crate) ours: &'a [u32],
    /// Random bytes that identify the flows of the sample's loads; new for each sample.
    pub(crate) secret: [u8; 16],
    pub(crate) interrupt: &'a AtomicBool,
}

/// Takes one sample into `sample`, whose round, position and cell are filled in already.
///
/// # Errors
/// Where a host refused a request, or an agent or its connection failed. What was measured until then is in `sample`,
/// the reason is not.
pub(crate) fn take(
    lab: &mut Lab,
    cell: &Cell,
    taking: &SampleContext<'_>,
    sample: &mut Sample,
) -> Result<(), LinkError> {
    let interrupt = taking.interrupt;
    sample.open_vswitch = lab.open_vswitch().cloned();
    sample.not_steered = !lab.is_steered();
    sample.devices = lab.adapt(cell.guest_mtu, &cell.offload, interrupt)?;
    match lab.apply(&cell.settings, interrupt) {
        Ok(None) => {}
        Ok(Some(devices)) => sample.devices = devices,
        Err(LinkError::Refused { message, .. }) => {
            sample.invalid = Some(Invalid::Setting(message));
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    if lab.is_here() {
        sample.cores_apart = core_distance::before(taking.placement);
    }
    let size = lab.size(cell, &sample.devices);
    let before = lab.prove_size(ProofTime::Before, size, interrupt)?;
    sample.proofs.extend(before);
    if let Some(reason) = failed_proof(&sample.proofs) {
        sample.invalid = Some(Invalid::Proof(reason));
        return Ok(());
    }

    // The windows share the plan's seconds: a sample with two windows takes no longer.
    let windows = f64::from(cell.windows());
    let counting = CountingWindow {
        warmup_s: taking.repeat.warmup / windows,
        seconds: taking.repeat.seconds / windows,
        interval_s: INTERVAL_S,
        ours: taking.ours,
    };
    let asked = oriented(&cell.loads, sample.round);
    pause(&asked, interrupt, KEEP_EVERY, &mut || {
        lab.keep_settings(interrupt)
    })?;
    let loaded = lab.load(&asked, taking.secret, counting, interrupt)?;
    let measured = loaded.measured;
    let saturated = if cell.has_saturated_window() {
        Some(saturated(lab, cell, taking, counting)?)
    } else {
        None
    };
    let at_target = if cell.has_window_at_target() {
        Some(at_target(lab, cell, taking, counting)?)
    } else {
        None
    };
    let after = lab.prove_size(ProofTime::After, size, interrupt)?;
    sample.proofs.extend(after);
    core_distance::after(&mut sample.cores_apart);

    let Some(loads) = window::results(&asked, &measured) else {
        return Err(lab.a.unexpected_reply("Total"));
    };
    sample.loads = loads;
    sample.invalid = failed_proof(&sample.proofs)
        .map(Invalid::Proof)
        .or_else(|| (!loaded.is_whole).then(|| Invalid::Load(not_over())))
        .or_else(|| {
            let overrun = measured.iter().any(|host| host.usage.backlog_drops > 0);
            nothing_arrived(&cell.loads, &sample.loads, overrun).map(Invalid::Load)
        });
    let [a, b] = measured.map(|host| host.usage);
    sample.marks = marks(&a, &b, taking.placement.cores);
    sample
        .marks
        .extend(generator_bound(&sample.loads, [&a, &b]));
    sample
        .marks
        .extend(core_distance::moved(&sample.cores_apart));
    if let Some(saturated) = saturated {
        let (disturbed, own): (Vec<Mark>, Vec<Mark>) =
            saturated.marks.into_iter().partition(is_of_others);
        add_marks(sample, disturbed);
        sample.saturated = Some(Saturated {
            marks: own,
            ..saturated
        });
    }
    if let Some((window, marks)) = at_target {
        let disturbed = marks.into_iter().filter(is_of_others);
        add_marks(sample, disturbed.collect());
        sample.at_target = Some(window);
    }
    sample.sender = Some(a);
    sample.receiver = Some(b);
    Ok(())
}

/// The loads of a round: migrations with `back_and_forth` are reversed in every second round.
fn oriented(loads: &[NamedLoad], round: u32) -> Vec<NamedLoad> {
    let mut loads = loads.to_vec();
    for NamedLoad { load, .. } in &mut loads {
        let returns = load
            .migration
            .is_some_and(|migration| migration.back_and_forth);
        if returns && round % 2 == 1 {
            load.direction = load.direction.reversed();
        }
    }
    loads
}

/// Waits the longest pause that a load asks for before it begins; calls `keep` after each interval `every` of it.
fn pause(
    loads: &[NamedLoad],
    interrupt: &AtomicBool,
    every: Duration,
    keep: &mut dyn FnMut() -> Result<(), LinkError>,
) -> Result<(), LinkError> {
    let pauses = loads.iter().filter_map(|named| named.load.migration);
    let pause = pauses.map(|migration| migration.pause).max();
    let end = Instant::now() + pause.unwrap_or_default();
    let mut kept = Instant::now();
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(LinkError::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if kept.elapsed() >= every {
            keep()?;
            kept = Instant::now();
        }
        sleep(left.min(Duration::from_millis(200)));
    }
}

fn is_of_others(mark: &Mark) -> bool {
    matches!(mark, Mark::ForeignLoad { .. } | Mark::Steal { .. })
}

/// Adds the marks of a further window of the sample; one mark of each kind is kept.
fn add_marks(sample: &mut Sample, marks: Vec<Mark>) {
    for mark in marks {
        if sample.marks.iter().all(|known| known.kind() != mark.kind()) {
            sample.marks.push(mark);
        }
    }
}

/// Runs the loads once more with storage initiators on their targets' hosts. In a lab the initiators keep the
/// processors that they have across the network: otherwise both ends would share the processors of one host.
fn at_target(
    lab: &mut Lab,
    cell: &Cell,
    taking: &SampleContext<'_>,
    counting: CountingWindow<'_>,
) -> Result<(AtTarget, Vec<Mark>), LinkError> {
    let mut secret = taking.secret;
    secret[0] ^= 2;
    let placement = taking.placement;
    let from = Clients::AtTargets(if lab.existing.is_none() {
        [&placement.a, &placement.b]
    } else {
        [&[], &[]]
    });
    let measured = lab
        .load_from(from, &cell.loads, secret, counting, taking.interrupt)?
        .measured;
    let Some(loads) = window::results_from(from, &cell.loads, &measured) else {
        return Err(lab.a.unexpected_reply("Total"));
    };
    let [a, b] = measured.map(|host| host.usage);
    Ok((AtTarget { loads }, marks(&a, &b, placement.cores)))
}

/// Runs the loads once more with new connections while the rate limit of the line is lifted. New connections neither
/// lose the packets that were queued for the line, nor take a datagram of one window for the other's.
fn saturated(
    lab: &mut Lab,
    cell: &Cell,
    taking: &SampleContext<'_>,
    counting: CountingWindow<'_>,
) -> Result<Saturated, LinkError> {
    let mut secret = taking.secret;
    secret[0] ^= 1;
    lab.lift_line(taking.interrupt)?;
    let loaded = lab.load(&cell.loads, secret, counting, taking.interrupt);
    let put_back = lab.set_line(taking.interrupt);
    let measured = loaded?.measured;
    put_back?;
    let Some(loads) = window::results(&cell.loads, &measured) else {
        return Err(lab.a.unexpected_reply("Total"));
    };
    let [sender, receiver] = measured.map(|host| host.usage);
    let mut marks = marks(&sender, &receiver, taking.placement.cores);
    marks.extend(generator_bound(&loads, [&sender, &receiver]));
    Ok(Saturated {
        loads,
        sender,
        receiver,
        marks,
    })
}

fn not_over() -> String {
    let minutes = window::TO_THE_END.as_secs() / 60;
    format!(
        "the load had not ended after {minutes} minutes: ask for less, or count over a window (`limit: none`)"
    )
}

/// Error message about the loads of which nothing arrived within the window; `loads` are the results of `asked`, in the
/// same order. `overrun`: whether a core's backlog was full (`net.core.netdev_max_backlog`) and packets were dropped.
fn nothing_arrived(asked: &[NamedLoad], loads: &[LoadResult], overrun: bool) -> Option<String> {
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
    if names.is_empty() {
        return None;
    }
    let mut words = "nothing arrived within the window".to_owned();
    if loads.len() > 1 {
        words += " of ";
        words += &names.join(" and ");
    }
    let is_flood = |load: &LoadResult| load.datagrams.is_some_and(|counted| counted.sent > 0);
    let mut floods = asked.iter().zip(loads).filter(|(_, load)| is_flood(load));
    if overrun && let Some((NamedLoad { name, load }, _)) = floods.next() {
        let whose = match loads.len() {
            1 => "the load".to_owned(),
            _ => format!("`{name}`"),
        };
        let lower = if load.rate.is_some() { "lower " } else { "" };
        let or = if load.segmentation.send && load.segmentation.receive {
            ""
        } else {
            ", or `segmentation_offload: both`"
        };
        let _ = write!(
            words,
            ": the receiving core spends its time dropping datagrams (its backlog is full): \
             give {whose} a {lower}`rate`{or}"
        );
    }
    Some(words)
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

#[cfg(test)]
mod tests {
    use wirecost_model::end_window::{End, Schedule};
    use wirecost_model::fixtures;
    use wirecost_model::load::{Load, Rate, Workload};
    use wirecost_model::sample::{DatagramResult, Generator};
    use wirecost_model::usage::{ClassShares, HostUsage};

    use super::*;

    fn usage(busy_s: f64, user: f64) -> HostUsage {
        let shares = ClassShares {
            user,
            system: 1.0 - user,
            ..ClassShares::default()
        };
        let mut usage = fixtures::usage(1.0, busy_s);
        usage.cores[0].shares = shares;
        usage
    }

    #[test]
    fn a_flood_of_which_nothing_arrives_is_named_with_what_to_change() {
        let sent = DatagramResult {
            sent: 9,
            received: 0,
            lost: 9,
            reordered: 0,
            duplicated: 0,
            too_old: 0,
            jitter_s: 0.0,
        };
        let flood = LoadResult {
            datagrams: Some(sent),
            ..fixtures::load("bulk", Workload::UdpStream)
        };
        let mut asked = NamedLoad {
            name: "bulk".into(),
            load: Load::new(Workload::UdpStream),
        };
        let alone = [flood.clone()];
        let words = |asked: &NamedLoad, overrun| {
            nothing_arrived(std::slice::from_ref(asked), &alone, overrun).expect("words")
        };
        insta::assert_snapshot!(words(&asked, false), @"nothing arrived within the window");
        insta::assert_snapshot!(words(&asked, true), @"nothing arrived within the window: the receiving core spends \
                                                       its time dropping datagrams (its backlog is full): give the load a `rate`, or `segmentation_offload: both`");
        asked.load.rate = Some(Rate::BitsPerSecond(1));
        asked.load.segmentation.send = true;
        asked.load.segmentation.receive = true;
        insta::assert_snapshot!(words(&asked, true), @"nothing arrived within the window: the receiving core spends \
                                                       its time dropping datagrams (its backlog is full): give the load a lower `rate`");

        let beside = [flood, fixtures::load("ping", Workload::TcpRr)];
        let words = nothing_arrived(&[asked], &beside, true).expect("words");
        insta::assert_snapshot!(words, @"nothing arrived within the window of bulk and ping: the receiving core \
                                         spends its time dropping datagrams (its backlog is full): give `bulk` a lower `rate`");
    }

    #[test]
    fn hosts_are_asked_within_a_pause_and_not_without_one() {
        let mut named = NamedLoad::alone(Load::new(Workload::Migration));
        for (length, asked) in [(0, 0), (1, 1), (600, 1)] {
            let migration = named.load.migration.as_mut().expect("a migration");
            migration.pause = Duration::from_secs(length);
            let mut times = 0;
            // Its error ends the pause: the test need not wait for the end.
            let mut keep = || {
                times += 1;
                Err(LinkError::Interrupted)
            };
            let loads = std::slice::from_ref(&named);
            let paused = pause(loads, &AtomicBool::new(false), Duration::ZERO, &mut keep);
            assert_eq!((paused.is_err(), times), (asked > 0, asked), "{length} s");
        }
    }

    #[test]
    fn a_generator_is_the_limit_unless_the_stack_leaves_it_no_room() {
        let load = LoadResult {
            generator: vec![Generator {
                host: "a".into(),
                end: End::Client,
                threads: Vec::new(),
                bound: true,
            }],
            ..fixtures::load("tcp-stream", Workload::TcpStream)
        };
        let idle = usage(0.1, 0.0);
        for (sender, marks) in [
            (usage(0.99, 0.1), 0),
            (usage(0.6, 0.1), 1),
            (usage(0.99, 0.8), 1),
        ] {
            let found = generator_bound(std::slice::from_ref(&load), [&sender, &idle]);
            assert_eq!(found.count(), marks, "{sender:?}");
        }
        let paced = LoadResult {
            schedule: Some(Schedule::default()),
            ..load
        };
        let full = usage(0.99, 0.1);
        let found = generator_bound(std::slice::from_ref(&paced), [&full, &idle]);
        assert_eq!(found.count(), 1, "it is to sleep between its messages");
    }
}
