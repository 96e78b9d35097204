//! Counters of the host, and of every end of a load on it, in consecutive parts.
//!
//! Parts have no gap: each begins where the one before it ended. A window of fixed length is a single part.

use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_meter::{ForeignSnapshot, Meter};
use wirecost_model::end_window::{End, EndWindow, Interval};
use wirecost_traffic::{Client, Snapshot, TrafficError, window, window_until_end};

use super::{Loads, Open, blame};
use crate::error::{AgentError, Context, Result};
use crate::protocol::{
    CountingStart, EndPart, HostNetns, Measured, MeasuredEnd, PartOrder, WindowPart,
};

/// How long before the window the scan for foreign load begins.
const SCAN_LEAD: Duration = Duration::from_millis(25);

/// Counters of this host at one moment.
#[derive(Debug)]
struct CounterSnapshot {
    host: wirecost_meter::Snapshot,
    /// Snapshots of the ends of loads: servers first, in the order at the beginning of counting.
    ends: Vec<Snapshot>,
}

/// Counters since the beginning of counting.
#[derive(Debug)]
pub(crate) struct WindowCounter {
    names: Vec<(String, HostNetns, End)>,
    /// Whether flows may end by themselves.
    have_limits: bool,
    /// Processes of this run; `None` where this host does not measure foreign load.
    ours: Option<Vec<u32>>,
    foreign: Option<ForeignSnapshot>,
    foreign_cores: Option<f64>,
    first: CounterSnapshot,
    last: Option<CounterSnapshot>,
    began: Instant,
    /// Bytes read and messages received by each end when the last interval ended.
    received: Vec<(u64, u64)>,
    /// Intervals of each end.
    intervals: Vec<Vec<Interval>>,
}

impl WindowCounter {
    /// Begins to count at the end of the warm-up. Without a load only the host is counted.
    pub(crate) fn begin(meter: &mut Meter, loads: &Loads, order: CountingStart) -> Result<Self> {
        let warmup = Duration::try_from_secs_f64(order.warmup_s).context("the warm-up")?;
        let began = Instant::now();
        let servers = loads.servers.iter();
        let servers = servers.map(|open| (open.name.clone(), open.place, End::Server));
        let clients = loads.clients.iter();
        let clients = clients.map(|open| (open.name.clone(), open.place, End::Client));
        let names: Vec<_> = servers.chain(clients).collect();
        loads.all_here()?;
        // A scan of all processes takes milliseconds: it runs before and after the window, never within.
        sleep_until(began + warmup.saturating_sub(SCAN_LEAD));
        let foreign = scan(order.foreign_to.as_deref());
        sleep_until(began + warmup);
        loads.set_counted(true);
        let (began, received) = (Instant::now(), loads.received());
        let ends = loads.snapshots()?;
        Ok(Self {
            began,
            received,
            intervals: vec![Vec::new(); names.len()],
            names,
            have_limits: loads.have_limits(),
            ours: order.foreign_to,
            foreign,
            foreign_cores: None,
            first: CounterSnapshot {
                host: meter.snapshot()?,
                ends,
            },
            last: None,
        })
    }

    /// Counts the host from now: where counting begins before the load, the host with fewer processes to scan has
    /// waited for the other. The ends are counted from the beginning: nothing that the other end sends is missed.
    /// A host that is told later than the clients counts less work in less time: its cost per unit stays the same.
    pub(crate) fn host_from_now(&mut self, meter: &mut Meter) -> Result<()> {
        self.first.host = meter.snapshot()?;
        Ok(())
    }

    /// Waits for the part's duration, or until every client on this host has reached its own limit, and returns the
    /// counts since the last part.
    pub(crate) fn part(
        &mut self,
        meter: &mut Meter,
        loads: &Loads,
        order: &PartOrder,
    ) -> Result<WindowPart> {
        let over = self.wait(loads, order)?;
        loads.check_progress()?;
        if order.last {
            loads.set_counted(false);
        }
        let before = self.last.as_ref().unwrap_or(&self.first);
        let mut ends = loads.snapshots()?;
        // Clients that have been stopped keep their last snapshot.
        ends.extend(before.ends.iter().skip(ends.len()).cloned());
        let now = CounterSnapshot {
            ends,
            host: meter.snapshot()?,
        };
        if order.last {
            let foreign = self.foreign.as_ref().zip(scan(self.ours.as_deref()));
            self.foreign_cores =
                foreign.map(|(before, after)| wirecost_meter::foreign_cores(before, &after));
        }
        let ends = self
            .windows(before, &now, false)?
            .map(|((name, place, end), window)| EndPart {
                name: name.clone(),
                place: *place,
                end: *end,
                seconds: window.seconds,
                counts: window.counts(),
                lost: window.lost(),
                retransmits: window.retransmits(),
                latency: window.latency,
            })
            .collect();
        self.last = Some(now);
        Ok(WindowPart { over, ends })
    }

    /// Counts from the beginning to the end of the last part.
    ///
    /// # Errors
    /// No part was counted, or a flow of loads without a limit had ended by then.
    pub(crate) fn total(&self) -> Result<Measured> {
        let last = self
            .last
            .as_ref()
            .ok_or(AgentError::NotReady("nothing was counted"))?;
        let windows = self.windows(&self.first, last, !self.have_limits)?;
        let mut usage = wirecost_meter::delta(&self.first.host, &last.host);
        usage.foreign_cores = self.foreign_cores;
        Ok(Measured {
            usage,
            loads: windows
                .zip(&self.intervals)
                .map(|(((name, place, end), window), intervals)| MeasuredEnd {
                    name: name.clone(),
                    place: *place,
                    end: *end,
                    window: EndWindow {
                        intervals: intervals.clone(),
                        ..window
                    },
                })
                .collect(),
        })
    }

    /// Counts of each end between two moments. With `strict`, a flow that has ended is an error.
    fn windows(
        &self,
        before: &CounterSnapshot,
        after: &CounterSnapshot,
        strict: bool,
    ) -> Result<impl Iterator<Item = (&(String, HostNetns, End), EndWindow)>> {
        let between = if strict { window } else { window_until_end };
        let moments = before.ends.iter().zip(&after.ends);
        let windows = self
            .names
            .iter()
            .zip(moments)
            .map(|(end, (before, after))| {
                let counted = between(before, after).map_err(|error| blame(&end.0, &error))?;
                Ok((end, counted))
            });
        let windows: Vec<_> = windows.collect::<Result<_>>()?;
        Ok(windows.into_iter())
    }

    /// Waits for the part's duration, and records what every end received in each interval. Returns whether all clients
    /// on this host ended before.
    fn wait(&mut self, loads: &Loads, order: &PartOrder) -> Result<bool> {
        let within = Duration::try_from_secs_f64(order.within_s).context("the window")?;
        let Some(interval_s) = order.interval_s else {
            return wait_until(loads, Instant::now() + within);
        };
        // Counted from the beginning, however long the order took to arrive.
        let began = self.began;
        let count = (order.within_s / interval_s.max(1e-3)).round().max(1.0) as u32;
        for index in 1..=count {
            let over = wait_until(loads, began + within * index / count)?;
            let now = loads.received();
            let end_s = began.elapsed().as_secs_f64();
            for (end, (now, last)) in self
                .intervals
                .iter_mut()
                .zip(now.iter().zip(&self.received))
            {
                end.push(Interval {
                    end_s,
                    bytes: now.0 - last.0,
                    messages: now.1 - last.1,
                });
            }
            self.received = now;
            if over {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Run times of all processes for foreign load; `None` where they are not requested, or the kernel does not keep them.
fn scan(ours: Option<&[u32]>) -> Option<ForeignSnapshot> {
    wirecost_meter::foreign_snapshot(ours?).ok()
}

/// Waits until all clients on this host have ended, or until the deadline; returns whether they have. `false` without
/// clients.
fn wait_until(loads: &Loads, deadline: Instant) -> Result<bool> {
    if loads.clients.is_empty() {
        sleep_until(deadline);
        return Ok(false);
    }
    let mut over = true;
    // Where some clients end by themselves, the part is over with those; the others are not waited for.
    let by_itself = |client: &&Open<Client>| client.engine.options().load.ends_by_itself();
    let any = loads.clients.iter().any(|client| by_itself(&client));
    for client in loads
        .clients
        .iter()
        .filter(|client| !any || by_itself(client))
    {
        let left = deadline.saturating_duration_since(Instant::now());
        match client.engine.wait_ended(left) {
            Ok(()) => {}
            Err(TrafficError::NotOver { .. }) => over = false,
            Err(error) => return Err(client.blame(&error)),
        }
    }
    Ok(over)
}

fn sleep_until(moment: Instant) {
    sleep(moment.saturating_duration_since(Instant::now()));
}
