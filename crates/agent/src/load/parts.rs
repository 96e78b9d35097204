//! Counting in parts, each of which is told at once: for loads that somebody watches.
//!
//! Between two parts nothing is missing: a part begins where the one before it ended.

use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_meter::Meter;
use wirecost_model::end_window::{Counts, End};
use wirecost_traffic::{Snapshot, TrafficError, Window as Counted};

use super::{Loads, blame};
use crate::protocol::{Measured, MeasuredEnd, Part, PartOfEnd, Place};

/// This host at a moment.
#[derive(Debug)]
struct Moment {
    host: wirecost_meter::Snapshot,
    /// Servers first, as they were when counting began.
    ends: Vec<Snapshot>,
}

/// What is counted since it began.
#[derive(Debug)]
pub(crate) struct Counting {
    names: Vec<(String, Place, End)>,
    first: Moment,
    last: Option<Moment>,
}

impl Counting {
    /// Counts from now on.
    pub(crate) fn begin(meter: &mut Meter, loads: &Loads) -> Result<Self, String> {
        let servers = loads.servers.iter();
        let servers = servers.map(|open| (open.name.clone(), open.place, End::Server));
        let clients = loads.clients.iter();
        let clients = clients.map(|open| (open.name.clone(), open.place, End::Client));
        loads.all_here()?;
        loads.set_counted(true);
        let ends = loads.snapshots()?;
        Ok(Self {
            names: servers.chain(clients).collect(),
            first: Moment {
                host: meter.snapshot().map_err(|error| error.to_string())?,
                ends,
            },
            last: None,
        })
    }

    /// Waits so long, or until every client here is over by its own limit, and tells what came since the last part.
    pub(crate) fn part(
        &mut self,
        meter: &mut Meter,
        loads: &Loads,
        within: Duration,
        last: bool,
    ) -> Result<Part, String> {
        let over = wait(loads, within)?;
        if last {
            loads.set_counted(false);
        }
        let before = self.last.as_ref().unwrap_or(&self.first);
        let mut ends = loads.snapshots()?;
        // Clients that were stopped are as they last were.
        ends.extend(before.ends.iter().skip(ends.len()).cloned());
        let now = Moment {
            ends,
            host: meter.snapshot().map_err(|error| error.to_string())?,
        };
        let told = self
            .names
            .iter()
            .zip(before.ends.iter().zip(&now.ends))
            .map(|((name, place, end), (before, after))| {
                let counted =
                    Counted::until_end(before, after).map_err(|error| blame(name, &error))?;
                let retransmits = |flow: &wirecost_model::end_window::FlowWindow| {
                    flow.tcp.as_ref().map_or(0, |tcp| tcp.retransmits)
                };
                Ok(PartOfEnd {
                    name: name.clone(),
                    place: *place,
                    end: *end,
                    seconds: counted.seconds,
                    counts: sum(&counted),
                    lost: counted.lost(),
                    retransmits: counted.flows.iter().map(retransmits).sum(),
                    latency: counted.latency,
                })
            });
        let ends = told.collect::<Result<_, String>>()?;
        self.last = Some(now);
        Ok(Part { over, ends })
    }

    /// What came from the beginning to the end of the last part.
    ///
    /// # Errors
    /// There was no part.
    pub(crate) fn whole(&self) -> Result<Measured, String> {
        let last = self.last.as_ref().ok_or("nothing was counted")?;
        let ends = self
            .names
            .iter()
            .zip(self.first.ends.iter().zip(&last.ends));
        let loads = ends.map(|((name, place, end), (before, after))| {
            let counted = Counted::until_end(before, after).map_err(|error| blame(name, &error))?;
            Ok(MeasuredEnd {
                name: name.clone(),
                place: *place,
                end: *end,
                window: counted.record(Vec::new()),
            })
        });
        Ok(Measured {
            usage: wirecost_meter::delta(&self.first.host, &last.host),
            loads: loads.collect::<Result<_, String>>()?,
        })
    }
}

/// Whether all clients here are over, before the time is.
fn wait(loads: &Loads, within: Duration) -> Result<bool, String> {
    let deadline = Instant::now() + within;
    let left = || deadline.saturating_duration_since(Instant::now());
    if loads.clients.is_empty() {
        sleep(left());
        return Ok(false);
    }
    let mut over = true;
    for client in &loads.clients {
        match client.engine.wait_over(left()) {
            Ok(()) => {}
            Err(TrafficError::NotOver { .. }) => over = false,
            Err(error) => return Err(client.blame(&error)),
        }
    }
    Ok(over)
}

fn sum(counted: &Counted) -> Counts {
    let mut sum = Counts::default();
    for flow in &counted.flows {
        let counts = &flow.counts;
        sum.sent_bytes += counts.sent_bytes;
        sum.read_bytes += counts.read_bytes;
        sum.sent += counts.sent;
        sum.received += counts.received;
        sum.expected += counts.expected;
        sum.duplicated += counts.duplicated;
        sum.reordered += counts.reordered;
        sum.too_old += counts.too_old;
        // A state and not a count: the largest of the flows.
        sum.jitter_ns = sum.jitter_ns.max(counts.jitter_ns);
        sum.timeouts += counts.timeouts;
        sum.late += counts.late;
        sum.zero_copy += counts.zero_copy;
        sum.zero_copy_completed += counts.zero_copy_completed;
        sum.zero_copy_copied += counts.zero_copy_copied;
        sum.zero_copy_fallbacks += counts.zero_copy_fallbacks;
    }
    sum
}
