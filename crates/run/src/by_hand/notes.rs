//! What has to be known of loads by hand beside their figures.

use wirecost_model::load::{NamedLoad, Rate};
use wirecost_model::sample::{DatagramResult, LoadResult};

use super::document::{Cpu, LoadSaid};

/// A rate is reached where so much of it was.
const REACHED: f64 = 0.95;
/// Requests or datagrams by which the edges of a window may be off.
const EDGE: f64 = 10.0;
/// Datagrams of which nothing is known are told from this share of those sent on.
const UNKNOWN: f64 = 0.05;

pub(super) fn notes(loads: &[LoadSaid], cpu: Option<&Cpu>, one_machine: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for load in loads {
        let name = &load.asked.name;
        if let Some(bound) = &load.generator_bound {
            notes.push(format!("{name} was generator-bound, {bound}"));
        }
        let Some(result) = &load.result else { continue };
        let own = [
            behind(&load.asked, result),
            result.datagrams.and_then(unknown),
            strays(result),
        ];
        notes.extend(
            own.into_iter()
                .flatten()
                .map(|words| format!("{name}: {words}")),
        );
    }
    if one_machine {
        notes.push(
            "both hosts are one machine: its processors worked for both, and for everything else on it".to_owned(),
        );
    }
    if let Some(cpu) = cpu
        && cpu.steal_fraction > crate::STEAL_THRESHOLD
    {
        let percent = cpu.steal_fraction * 100.0;
        notes.push(format!(
            "a hypervisor took {percent:.1} % of the processors' time"
        ));
    }
    notes
}

/// That requests did not keep to their schedule, by which their latencies count.
fn behind(asked: &NamedLoad, result: &LoadResult) -> Option<String> {
    let (Some(Rate::RequestsPerSecond(rate)), Some(requests)) = (asked.load.rate, &result.requests)
    else {
        return None;
    };
    let seconds = result.client_seconds;
    let due = rate * f64::from(asked.load.streams) * seconds;
    let done = (requests.transactions + requests.timeouts) as f64;
    (done + EDGE < due * REACHED).then(|| {
        format!(
            "{:.0} requests a second were due and {:.0} were over: a latency counts from when its request was due, and has the \
             wait behind that schedule in it (ask for less, or for more streams or depth)",
            due / seconds,
            done / seconds
        )
    })
}

/// That much of what was sent has neither come nor is known as lost, which a later datagram's number tells.
fn unknown(counted: DatagramResult) -> Option<String> {
    let unknown = counted.sent as f64 - counted.received as f64 - counted.lost as f64;
    (unknown > EDGE && unknown > counted.sent as f64 * UNKNOWN).then(|| {
        format!(
            "{unknown:.0} of {} datagrams sent neither came nor count as lost, since nothing came after them: the path may \
             have stopped carrying them",
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
    use wirecost_model::latency::Latency;
    use wirecost_model::load::{Direction, Load, Workload};
    use wirecost_model::sample::RequestResult;

    use super::*;

    fn of_requests(transactions: u64, timeouts: u64) -> LoadResult {
        LoadResult {
            name: "tcp-rr".to_owned(),
            workload: Workload::TcpRr,
            direction: Direction::AToB,
            seconds: 2.0,
            client_seconds: 2.0,
            stream: None,
            requests: Some(RequestResult {
                transactions,
                timeouts,
                late: 0,
                latency: Latency::default(),
                intervals: Vec::new(),
            }),
            datagrams: None,
            zero_copy: None,
            flows: Vec::new(),
            strays: 0,
            generator: Vec::new(),
        }
    }

    #[test]
    fn a_schedule_that_was_not_kept_is_told() {
        let mut load = Load::new(Workload::TcpRr);
        load.streams = 3;
        load.rate = Some(Rate::RequestsPerSecond(200.0));
        let asked = NamedLoad::alone(load);
        insta::assert_snapshot!(behind(&asked, &of_requests(150, 10)).unwrap(), @"600 requests a second were due and 80 were over: a latency counts from when its request was due, and has the wait behind that schedule in it (ask for less, or for more streams or depth)");
        // What times out was not late by its schedule.
        assert_eq!(behind(&asked, &of_requests(1_000, 190)), None);
        let as_fast_as_possible = NamedLoad::alone(Load::new(Workload::TcpRr));
        assert_eq!(behind(&as_fast_as_possible, &of_requests(1, 0)), None);
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
        insta::assert_snapshot!(unknown(counted(356, 160, 0)).unwrap(), @"196 of 356 datagrams sent neither came nor count as lost, since nothing came after them: the path may have stopped carrying them");
        // All that is lost is known, or it is what is on its way at a window's edge.
        assert_eq!(unknown(counted(356, 160, 196)), None);
        assert_eq!(unknown(counted(100_000, 99_000, 0)), None);
        assert_eq!(unknown(counted(15, 6, 0)), None);
    }
}
