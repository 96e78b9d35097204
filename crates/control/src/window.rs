//! Runs loads over a lab and counts them on both hosts over one window.

mod clients;
mod ends;
mod guests;
mod measured;
mod targets;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{
    CountingStart, EndedLoad, HostNetns, Measured, PartOrder, Reply, Request, WindowPart,
};
use wirecost_model::end_window::End;
use wirecost_model::load::{Address, NamedLoad};

use self::clients::host_of;
use self::ends::{ends, socket_name};
use self::guests::{GuestLoad, divide_among_guests};
use crate::lab::Lab;
use crate::timeouts::{PROMPT, load_timeout, memory_timeout, poll_timeout};

pub(crate) use self::clients::Clients;
pub use self::measured::results;
pub(crate) use self::measured::{add_datagram_totals, results_from};
pub(crate) use self::targets::external_target;

/// When to count, and which processes belong to the run.
#[derive(Debug, Clone, Copy)]
pub struct CountingWindow<'a> {
    /// Seconds from now to the window's start.
    pub warmup_s: f64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Length of the intervals within it, in seconds.
    pub interval_s: f64,
    /// Process ids that do not count as foreign load: the controller, every agent, the daemons that agents started.
    pub ours: &'a [u32],
}

/// The counts of a window.
#[derive(Debug)]
pub struct WindowResult {
    /// Counts of host a and of host b.
    pub measured: [Measured; 2],
    /// Whether loads that end by themselves did so within ten minutes; true for others.
    pub is_whole: bool,
}

/// Time limit of loads that end by themselves.
pub(crate) const TO_THE_END: Duration = Duration::from_mins(10);
/// Interval at which the agents are asked whether such loads are over.
const SLICE: Duration = Duration::from_millis(500);
/// Time before such loads start in which a host looks for foreign load, seconds: a scan of all processes takes
/// milliseconds.
const SCAN_S: f64 = 0.025;

impl Lab {
    /// Runs all loads at the same time, each divided evenly among the pairs of guests of hosts a and b, counts them and
    /// ends them. Loads with a limit are counted from their start to their own end, whatever `counting` says.
    pub fn load(
        &mut self,
        loads: &[NamedLoad],
        secret: [u8; 16],
        counting: CountingWindow<'_>,
        interrupt: &AtomicBool,
    ) -> Result<WindowResult, LinkError> {
        self.load_from(Clients::Across, loads, secret, counting, interrupt)
    }

    /// [`Lab::load`] with the clients on the hosts that `from` says.
    pub(crate) fn load_from(
        &mut self,
        from: Clients<'_>,
        loads: &[NamedLoad],
        secret: [u8; 16],
        counting: CountingWindow<'_>,
        interrupt: &AtomicBool,
    ) -> Result<WindowResult, LinkError> {
        let (prompt, memory, within) = (
            poll_timeout(loads),
            memory_timeout(loads),
            load_timeout(loads),
        );
        let loads = &divide_among_guests(loads, self.network().guests)[..];
        let hosts = self.guest_addresses();
        let (sources, in_guests) = (
            [0, 1].map(|host| self.source(host)),
            self.existing.is_none(),
        );
        let place = |guest, host: usize| {
            if in_guests {
                (HostNetns::Guest(guest), None)
            } else {
                (HostNetns::Host, sources[host])
            }
        };
        let elsewhere = loads.iter().map(|load| external_target(&load.named.load));
        let elsewhere = elsewhere.collect::<Result<Vec<_>, _>>()?;
        let unbound = |load: &GuestLoad, host: usize, secret: &[u8; 16]| {
            if from.is_at_target(&load.named) {
                return Address::Abstract(socket_name(secret));
            }
            let addresses: &[IpAddr] = &hosts[host];
            SocketAddr::new(addresses[load.guest as usize], 0).into()
        };
        let servers = ends(
            from,
            loads,
            secret,
            End::Server,
            place,
            |index, host, secret| unbound(&loads[index], host, secret),
        );
        let [a, b] = servers.map(Request::OpenServers);
        let listening = match self.call_both(&a, &b, memory, interrupt)? {
            [Reply::Listening(a), Reply::Listening(b)] => [a, b],
            _ => return Err(self.a.unexpected_reply("OpenServers")),
        };
        let mut next = listening.each_ref().map(|addresses| addresses.iter());
        let targets: Option<Vec<Address>> = loads
            .iter()
            .zip(elsewhere)
            .map(|(load, there)| {
                there.or_else(|| next[host_of(&load.named, End::Server)].next().cloned())
            })
            .collect();
        let Some(targets) = targets else {
            return Err(self.a.unexpected_reply("OpenServers"));
        };
        let [a, b] = ends(from, loads, secret, End::Client, place, |index, _, _| {
            targets[index].clone()
        });
        self.both_done_within(
            [Request::OpenClients(a), Request::OpenClients(b)],
            memory,
            interrupt,
        )?;
        if loads.iter().any(|load| load.named.load.ends_by_itself()) {
            let whole = CountingWindow {
                warmup_s: SCAN_S,
                ..counting
            };
            let timeouts = [prompt, memory, within];
            return self.count_to_the_end(from, loads, whole, timeouts, interrupt);
        }
        self.both_done_within([Request::Start, Request::Start], within, interrupt)?;
        let mut measured = self.count_within(counting, prompt, interrupt)?;
        // Stop the clients first, so that servers read everything that was sent.
        let mut ended = self.both_ended(&Request::StopClients, memory, interrupt)?;
        ended.extend(self.both_ended(&Request::StopServers, within, interrupt)?);
        add_datagram_totals(measured.iter_mut(), &ended);
        Ok(WindowResult {
            measured,
            is_whole: true,
        })
    }

    fn both_ended(
        &mut self,
        request: &Request,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Vec<EndedLoad>, LinkError> {
        match self.call_both(request, request, within, interrupt)? {
            [Reply::Ended(a), Reply::Ended(b)] => Ok([a, b].concat()),
            _ => Err(self.a.unexpected_reply(request.doing())),
        }
    }

    /// Starts loads that end by themselves, and counts them from the start to the last byte.
    fn count_to_the_end(
        &mut self,
        from: Clients<'_>,
        loads: &[GuestLoad],
        counting: CountingWindow<'_>,
        [prompt, memory, within]: [Duration; 3],
        interrupt: &AtomicBool,
    ) -> Result<WindowResult, LinkError> {
        let begins = self.begins(counting);
        self.both_done_within(begins, within, interrupt)?;
        self.both_done_within([Request::Start, Request::Start], within, interrupt)?;
        let deadline = Instant::now() + TO_THE_END;
        let asks = [0, 1].map(|host| {
            let client = |load: &GuestLoad| {
                load.named.load.ends_by_itself() && from.host_of(&load.named, End::Client) == host
            };
            loads.iter().any(client)
        });
        let mut is_whole = false;
        while !is_whole && Instant::now() < deadline {
            let [a, b] = asks.map(|asks| if asks { SLICE } else { Duration::ZERO });
            let parts = self.parts([a, b].map(part), SLICE + prompt, interrupt)?;
            is_whole = asks
                .iter()
                .zip(parts)
                .all(|(asks, part)| !asks || part.over);
        }
        // Counts what was in flight when the last part ended. Where servers confirm to the clients that they have
        // everything, it is counted before the clients stop: comparing contents is not part of the load.
        let on_the_way = |load: &GuestLoad| {
            load.named.load.limit.is_some() && !load.named.load.workload.is_confirmed()
        };
        let stops_first = loads.iter().any(on_the_way);
        let rest = [Duration::ZERO; 2].map(|none| PartOrder {
            last: true,
            ..part(none)
        });
        if !stops_first {
            self.parts(rest.clone(), prompt, interrupt)?;
        }
        let mut ended = self.both_ended(&Request::StopClients, memory, interrupt)?;
        if stops_first {
            self.parts(rest, prompt, interrupt)?;
        }
        ended.extend(self.both_ended(&Request::StopServers, within, interrupt)?);
        let mut measured = self.whole(within, interrupt)?;
        add_datagram_totals(measured.iter_mut(), &ended);
        Ok(WindowResult { measured, is_whole })
    }

    fn parts(
        &mut self,
        orders: [PartOrder; 2],
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[WindowPart; 2], LinkError> {
        let [a, b] = orders.map(Request::Part);
        match self.call_both(&a, &b, within, interrupt)? {
            [Reply::Part(a), Reply::Part(b)] => Ok([*a, *b]),
            _ => Err(self.a.unexpected_reply("Part")),
        }
    }

    fn whole(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        match self.call_both(&Request::Total, &Request::Total, within, interrupt)? {
            [Reply::Measured(a), Reply::Measured(b)] => Ok([*a, *b]),
            _ => Err(self.a.unexpected_reply("Total")),
        }
    }

    /// The orders to begin to count. One host of each machine looks for foreign load.
    fn begins(&self, counting: CountingWindow<'_>) -> [Request; 2] {
        self.known_processes(counting.ours).map(|foreign_to| {
            Request::Begin(CountingStart {
                warmup_s: counting.warmup_s,
                foreign_to,
            })
        })
    }

    /// Counts on both hosts at the same time, whatever loads them. One host of each machine looks for foreign load.
    pub fn count(
        &mut self,
        counting: CountingWindow<'_>,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        self.count_within(counting, PROMPT, interrupt)
    }

    /// [`Lab::count`]; the hosts must answer within `prompt` after the window.
    fn count_within(
        &mut self,
        counting: CountingWindow<'_>,
        prompt: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        let begins = self.begins(counting);
        let warmup = Duration::from_secs_f64(counting.warmup_s);
        self.both_done_within(begins, warmup + prompt, interrupt)?;
        let order = PartOrder {
            within_s: counting.seconds,
            interval_s: Some(counting.interval_s),
            last: true,
        };
        let within = Duration::from_secs_f64(counting.seconds) + prompt;
        self.parts([order.clone(), order], within, interrupt)?;
        self.whole(prompt, interrupt)
    }
}

/// The order of one part of a load that ends by itself.
fn part(within: Duration) -> PartOrder {
    PartOrder {
        within_s: within.as_secs_f64(),
        interval_s: None,
        last: false,
    }
}
