//! Notes on the figures of `wirecost load`.

use wirecost_model::sample::{DatagramResult, LoadResult, MissedSchedule};
use wirecost_model::usage::{ENOUGH_FOR_CPU_S, HostUsage};

use super::document::LoadReport;

/// The congestion control of plans that name none (docs/plan.md).
const OF_PLANS: &str = "cubic";
/// Number of datagrams by which the counts at the edges of a window may differ.
const EDGE: f64 = 10.0;
/// Share of the datagrams sent above which those neither received nor counted as lost get a note.
const UNKNOWN: f64 = 0.05;
/// Windows that differ by more than this share of the longer one get a note.
const NOTED_WINDOW_DIFFERENCE: f64 = 0.1;
/// Smallest difference between two windows' lengths that gets a note, seconds.
const LEAST_APART_S: f64 = 0.1;

pub(super) fn notes(
    loads: &[LoadReport],
    asked_s: Option<f64>,
    usage: &[Option<HostUsage>; 2],
    one_machine: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    for load in loads {
        let name = &load.asked.name;
        if let Some(bound) = &load.generator_bound {
            notes.push(format!("{name} was generator-bound, {bound}"));
        }
        let Some(result) = &load.result else { continue };
        let own = [
            nothing(result).map(str::to_owned),
            asked_s.and_then(|asked| window([result.client_seconds, result.seconds], asked)),
            result.missed_schedule(&load.asked.load).map(missed),
            result.datagrams.and_then(unknown),
            strays(result),
            congestion(load),
        ];
        notes.extend(
            own.into_iter()
                .flatten()
                .map(|words| format!("{name}: {words}")),
        );
    }
    notes.extend(windows_differ(loads));
    if one_machine {
        notes.push(
            "both hosts are one machine: CPU figures include both hosts and all other work on it"
                .to_owned(),
        );
    }
    if let [Some(a), Some(b)] = usage {
        let enough_s = a.enough_for_cpu_s().max(b.enough_for_cpu_s());
        notes.extend(short(a.window_s.min(b.window_s), enough_s));
        notes.extend(stolen(a.steal_fraction().max(b.steal_fraction())));
    }
    notes
}

/// Note on a window that is too short for exact CPU figures, or for any.
fn short(seconds: f64, enough_s: f64) -> Option<String> {
    (seconds < enough_s).then(|| {
        let ms = seconds * 1e3;
        let why = if enough_s < ENOUGH_FOR_CPU_S {
            format!("{ms:.0} ms are too short for exact CPU figures")
        } else {
            format!("CPU time is counted in steps of 10 ms, and a window of {ms:.0} ms holds few of them")
        };
        format!("{why}: count for {enough_s} s or longer")
    })
}

fn stolen(fraction: f64) -> Option<String> {
    let percent = fraction * 100.0;
    (fraction > wirecost_model::usage::STEAL_THRESHOLD)
        .then(|| format!("the hypervisor took {percent:.1} % of the CPU time (steal)"))
}

/// Note on a host's default congestion control that is not the one that plans use.
fn congestion(load: &LoadReport) -> Option<String> {
    let usual = load.asked.load.congestion.is_none();
    let mut used = load
        .flows
        .iter()
        .filter_map(|flow| flow.congestion.as_deref());
    let other = used.find(|name| *name != OF_PLANS && usual)?;
    Some(format!(
        "its congestion control is {other}, the default of its host, and that of plans is {OF_PLANS}: --congestion \
         {OF_PLANS} for figures that are comparable with a run's"
    ))
}

/// Note on a window in which no request completed, or no datagram was due.
fn nothing(result: &LoadResult) -> Option<&'static str> {
    let requests = result.requests.as_ref();
    if requests.is_some_and(|counted| counted.transactions == 0 && counted.timeouts == 0) {
        return Some("no request completed within the window: count for longer, or raise the rate");
    }
    let datagrams = result.datagrams;
    datagrams
        .is_some_and(|counted| counted.sent == 0 && counted.received == 0)
        .then_some("no datagram was due within the window: count for longer, or send more often")
}

/// Note on a window that is not as long as asked for, or differs between client and server, seconds.
fn window([client, server]: [f64; 2], asked_s: f64) -> Option<String> {
    let differ = |a: f64, b: f64| {
        (a - b).abs() > a.max(b) * NOTED_WINDOW_DIFFERENCE && (a - b).abs() > LEAST_APART_S
    };
    let why = "this program, an agent or the machine was stalled";
    if differ(client, server) {
        return Some(format!(
            "its client was counted over {client:.2} s and its server over {server:.2} s: {why}; sent and received \
             counts do not match, so measure again"
        ));
    }
    differ(client, asked_s)
        .then(|| format!("the window is {client:.2} s long, and not {asked_s} s: {why}"))
}

/// Note on concurrent loads that were counted over windows of different lengths.
fn windows_differ(loads: &[LoadReport]) -> Option<String> {
    let seconds = |load: &LoadReport| Some(load.result.as_ref()?.client_seconds);
    let windows = || loads.iter().filter_map(seconds);
    let (least, most) = (windows().reduce(f64::min)?, windows().reduce(f64::max)?);
    let together = loads.iter().any(|load| load.asked.load.ends_by_itself());
    (!together && most - least > most * NOTED_WINDOW_DIFFERENCE).then(|| {
        format!(
            "the loads' windows are {least:.2} s to {most:.2} s: the machine was too busy to begin and end counting them at \
             the same time"
        )
    })
}

/// Note on a load that did not keep its rate.
fn missed(schedule: MissedSchedule) -> String {
    format!(
        "it did not keep its rate, and sent {}: {} ({})",
        schedule.words(),
        MissedSchedule::WHY,
        MissedSchedule::ADVICE
    )
}

/// Note on datagrams that were neither received nor counted as lost. A loss is only known from the number of a later
/// datagram.
fn unknown(counted: DatagramResult) -> Option<String> {
    let unknown = counted.sent as f64 - counted.received as f64 - counted.lost as f64;
    (unknown > EDGE && unknown > counted.sent as f64 * UNKNOWN).then(|| {
        format!(
            "{unknown:.0} of {} datagrams sent were neither received nor counted as lost, because no later datagram \
             arrived: the path may have stopped carrying them",
            counted.sent
        )
    })
}

fn strays(result: &LoadResult) -> Option<String> {
    let strays = result.strays;
    (strays > 0).then(|| {
        format!("{strays} connections or datagrams of others reached its port and were dropped")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_something_made_longer_or_uneven_is_told() {
        insta::assert_snapshot!(window([1.5, 6.5], 4.0).unwrap(), @"its client was counted over 1.50 s and its server over 6.50 s: this program, an agent or the machine was stalled; sent \
                                                                    and received counts do not match, so measure \
                                                                    again");
        insta::assert_snapshot!(window([6.5, 6.5], 4.0).unwrap(), @"the window is 6.50 s long, and not 4 s: this program, an agent or the machine was stalled");
        assert_eq!(window([4.0, 4.2], 4.0), None, "a twentieth");
        assert_eq!(window([0.02, 0.09], 0.02), None, "both are over at once");
    }

    #[test]
    fn a_schedule_that_was_not_kept_is_told() {
        let kept = MissedSchedule {
            due_per_s: 600.0,
            over_per_s: 80.0,
            backlog: 1040.0,
            bits: false,
        };
        insta::assert_snapshot!(missed(kept), @"it did not keep its rate, and sent 80 of 600 requests/s: what was measured is how fast the load could go, and not what its rate does to the path (ask for less, or for more streams or depth)");
    }

    #[test]
    fn datagrams_of_which_nothing_is_known_are_told() {
        let counted = |sent, received, lost| DatagramResult {
            sent,
            received,
            lost,
            reordered: 0,
            duplicated: 0,
            too_old: 0,
            jitter_s: 0.0,
        };
        insta::assert_snapshot!(unknown(counted(356, 160, 0)).unwrap(), @"196 of 356 datagrams sent were neither \
                                                                          received nor counted as lost, because no \
                                                                          later datagram arrived: the path may have \
                                                                          stopped carrying them");
        // All that is lost is known, or it is what is on its way at a window's edge.
        assert_eq!(unknown(counted(356, 160, 196)), None);
        assert_eq!(unknown(counted(100_000, 99_000, 0)), None);
        assert_eq!(unknown(counted(15, 6, 0)), None);
    }
}
