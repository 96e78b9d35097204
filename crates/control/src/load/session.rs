//! Runs loads on two hosts: opens them, polls both agents part by part, ends them.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{
    CountingStart, EndedLoad, HostNetns, LoadEnd, Measured, PartOrder, Reply, Request, WindowPart,
};
use wirecost_model::end_window::End;
use wirecost_model::load::{Address, NamedLoad};

use super::interval::IntervalCollector;
use super::{LoadEvent, ManualLoad, Outcome, Round, ending};
use crate::concurrent::{NEVER, call_both};
use crate::random;
use crate::timeouts::{PROMPT, load_timeout, memory_timeout, poll_timeout};
use crate::window::{add_datagram_totals, external_target};

/// Interval at which both agents are polled; an interrupt waits at most this long.
const SLICE: Duration = Duration::from_millis(500);

/// How late the answer of a host may be before the host is asked once more.
const ANSWER_GRACE: Duration = Duration::from_millis(200);

/// Interval of keep-alive requests in a warm-up: an agent without a request for a minute gives up its loads.
const ASK_EVERY: Duration = Duration::from_secs(10);

/// The agents of both hosts while the loads run.
pub(super) struct Session<'a> {
    pub(super) asked: &'a ManualLoad,
    pub(super) links: [Link; 2],
    pub(super) addresses: [IpAddr; 2],
    pub(super) interrupt: &'a AtomicBool,
    pub(super) parts: IntervalCollector,
}

impl Session<'_> {
    /// Starts and counts the loads that are open, and ends them.
    pub(super) fn round(
        &mut self,
        started_s: f64,
        on_event: &mut dyn FnMut(LoadEvent<'_>),
    ) -> Round {
        let began = Instant::now();
        self.parts = IntervalCollector::new(&self.asked.loads, self.asked.interval_s);
        let counted = self.count(on_event);
        let mut told_at_end = Vec::new();
        let stopped = self.end(&mut told_at_end);
        let (outcome, reason) = match counted.and(stopped) {
            Ok(()) => (Outcome::Complete, None),
            Err(error) => ending(self.blame(error)),
        };
        if let Some(interval) = self.parts.rest() {
            on_event(LoadEvent::Interval(&interval));
        }
        let mut measured = self.whole();
        add_datagram_totals(measured.iter_mut().flatten(), &told_at_end);
        Round {
            outcome,
            reason,
            started_s,
            took_s: began.elapsed().as_secs_f64(),
            measured,
            intervals: self.parts.take(),
        }
    }

    /// Sends each host its request and waits for both answers. Not interruptible: an unread answer would be taken for
    /// that of the next request. Waits are short, but for the memory of machines, which is filled and compared.
    fn call_both(
        &mut self,
        requests: &[Option<Request>; 2],
        within: Duration,
    ) -> Result<[Option<Reply>; 2], LinkError> {
        let requests = requests.each_ref().map(Option::as_ref);
        call_both(self.links.each_mut(), requests, within, &NEVER)
    }

    fn all(&mut self, request: &Request, within: Duration) -> Result<(), LinkError> {
        let requests = [Some(request.clone()), Some(request.clone())];
        match self.call_both(&requests, within)? {
            [Some(Reply::Done), Some(Reply::Done)] => Ok(()),
            _ => Err(self.links[0].unexpected_reply(request.doing())),
        }
    }

    pub(super) fn machines(&mut self) -> Result<[String; 2], LinkError> {
        let requests = [Some(Request::Machine), Some(Request::Machine)];
        match self.call_both(&requests, PROMPT)? {
            [Some(Reply::Machine(a)), Some(Reply::Machine(b))] => Ok([a, b]),
            _ => Err(self.links[0].unexpected_reply("Machine")),
        }
    }

    pub(super) fn open(&mut self) -> Result<(), LinkError> {
        let others = self.asked.loads.iter();
        let others = others.map(|named| external_target(&named.load));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let (secret, within) = (
            random::bytes_for(&self.links[0])?,
            memory_timeout(&self.asked.loads),
        );
        let [a, b] = self.addresses;
        let unbound = |_, host: usize| {
            let beside = u16::from(host == 0 && a == b);
            let port = self
                .asked
                .port
                .map_or(0, |port| port.saturating_add(beside));
            SocketAddr::new(self.addresses[host], port).into()
        };
        let servers = self.ends(secret, End::Server, unbound);
        let [a, b] = servers.map(|ends| Some(Request::OpenServers(ends)));
        let [Some(Reply::Listening(a)), Some(Reply::Listening(b))] =
            self.call_both(&[a, b], within)?
        else {
            return Err(self.links[0].unexpected_reply("OpenServers"));
        };
        // Without the scope id of a link-local address: on the client's host the device has another index.
        let plain = |address: Address| match address {
            Address::Ip(address) => SocketAddr::new(address.ip(), address.port()).into(),
            unix => unix,
        };
        let mut listening = [a, b].map(|all| all.into_iter().map(plain));
        let targets: Option<Vec<Address>> = self
            .asked
            .loads
            .iter()
            .zip(others)
            .map(|(named, there)| there.or_else(|| listening[host_of(named, End::Server)].next()))
            .collect();
        let Some(targets) = targets else {
            return Err(self.links[0].unexpected_reply("OpenServers"));
        };
        let clients = self.ends(secret, End::Client, |index, _| targets[index].clone());
        let [a, b] = clients.map(|ends| Some(Request::OpenClients(ends)));
        match self.call_both(&[a, b], within)? {
            [Some(Reply::Done), Some(Reply::Done)] => Ok(()),
            _ => Err(self.links[0].unexpected_reply("OpenClients")),
        }
    }

    /// The given end of every load, by host. `address` gets the load's index and the host's.
    fn ends(
        &self,
        secret: [u8; 16],
        end: End,
        address: impl Fn(usize, usize) -> Address,
    ) -> [Vec<LoadEnd>; 2] {
        let mut ends = [Vec::new(), Vec::new()];
        for (index, named) in self.asked.loads.iter().enumerate() {
            if end == End::Server && !named.load.has_server() {
                continue;
            }
            let host = host_of(named, end);
            // A secret for each load: no load accepts the flows of another.
            let mut secret = secret;
            secret[15] ^= index as u8;
            // Only where the user gave the address: otherwise the kernel's choice is already the right one.
            let said = self.asked.hosts[host].data;
            ends[host].push(LoadEnd {
                name: named.name.clone(),
                place: HostNetns::Host,
                address: address(index, host),
                source: said.filter(|_| end == End::Client),
                cpus: Vec::new(),
                load: named.load.clone(),
                secret,
            });
        }
        ends
    }

    /// Starts the loads and counts them for the time asked for, or until they reach their own limits.
    fn count(&mut self, on_event: &mut dyn FnMut(LoadEvent<'_>)) -> Result<(), LinkError> {
        let prompt = poll_timeout(&self.asked.loads);
        let Some(seconds) = self.asked.seconds else {
            self.all(&Request::Begin(CountingStart::default()), prompt)?;
            self.all(&Request::Start, prompt)?;
            on_event(LoadEvent::Began);
            while !self.part(SLICE, false, on_event)? {}
            return Ok(());
        };
        self.all(&Request::Start, prompt)?;
        on_event(LoadEvent::Began);
        let warm = Instant::now() + Duration::from_secs_f64(self.asked.warmup_s);
        let mut asked = Instant::now();
        while let left @ 1.. = warm.saturating_duration_since(Instant::now()).as_nanos() {
            self.not_interrupted()?;
            for link in &mut self.links {
                link.check_running("warming up")?;
            }
            if asked.elapsed() > ASK_EVERY {
                self.machines()?;
                asked = Instant::now();
            }
            sleep(SLICE.min(Duration::from_nanos(
                u64::try_from(left).unwrap_or(u64::MAX),
            )));
        }
        self.all(&Request::Begin(CountingStart::default()), prompt)?;
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // At most to the end of the interval, so that intervals are as long as asked for.
            let within = self.parts.left_of_interval().min(SLICE).min(left);
            // True too where the window was over before this request, as after this program was stopped.
            let last = within == left;
            self.part(within, last, on_event)?;
            if last {
                return Ok(());
            }
        }
    }

    fn not_interrupted(&self) -> Result<(), LinkError> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(LinkError::Interrupted);
        }
        Ok(())
    }

    /// Counts a part on both hosts: hosts with clients wait for its end, then the others are asked. Returns whether all
    /// clients are over. Where the answer comes late, as after this program was stopped (Ctrl-Z), hosts with clients
    /// are asked once more, so that both ends are counted to the same time.
    fn part(
        &mut self,
        within: Duration,
        last: bool,
        on_event: &mut dyn FnMut(LoadEvent<'_>),
    ) -> Result<bool, LinkError> {
        self.not_interrupted()?;
        let loads = &self.asked.loads;
        let prompt = poll_timeout(loads);
        let has_clients = [0, 1].map(|host| {
            loads.iter().any(|named| {
                let waits = self.asked.seconds.is_some() || named.load.ends_by_itself();
                waits && host_of(named, End::Client) == host
            })
        });
        let began = Instant::now();
        let mut parts = self.parts_of(has_clients, within, last, prompt)?;
        let over = parts.iter().all(|part| part.over);
        if began.elapsed() > within + ANSWER_GRACE {
            parts.extend(self.parts_of(has_clients, Duration::ZERO, last, prompt)?);
        }
        parts.extend(self.parts_of(has_clients.map(|has| !has), Duration::ZERO, last, prompt)?);
        if let Some(interval) = self.parts.add(&parts) {
            on_event(LoadEvent::Interval(&interval));
        }
        Ok(over)
    }

    /// Ends the loads on both hosts. Where the loads' own limits ended them, counts what arrived meanwhile. What each
    /// end reports is added to `told`.
    fn end(&mut self, told: &mut Vec<EndedLoad>) -> Result<(), LinkError> {
        let loads = &self.asked.loads;
        let (clients_end, servers_end) = (memory_timeout(loads), load_timeout(loads));
        // Where servers confirm to the clients that they have everything, nothing is in flight: the last part is
        // counted before the clients stop, since comparing contents is not part of the load.
        let on_the_way = |named: &NamedLoad| !named.load.workload.is_confirmed();
        let stops_first = self.asked.loads.iter().any(on_the_way);
        let mut counted = Ok(());
        let counts = self.asked.seconds.is_none() && !self.interrupt.load(Ordering::Relaxed);
        if counts && !stops_first {
            counted = self.last_part();
        }
        let stopped = self.ended(&Request::StopClients, clients_end, told);
        if counts && stops_first && stopped.is_ok() {
            counted = self.last_part();
        }
        let served = self.ended(&Request::StopServers, servers_end, told);
        stopped.and(counted).and(served)
    }

    fn ended(
        &mut self,
        request: &Request,
        within: Duration,
        told: &mut Vec<EndedLoad>,
    ) -> Result<(), LinkError> {
        let requests = [Some(request.clone()), Some(request.clone())];
        for reply in self.call_both(&requests, within)? {
            match reply {
                Some(Reply::Ended(ends)) => told.extend(ends),
                _ => return Err(self.links[0].unexpected_reply(request.doing())),
            }
        }
        Ok(())
    }

    fn last_part(&mut self) -> Result<(), LinkError> {
        let prompt = poll_timeout(&self.asked.loads);
        let parts = self.parts_of([true; 2], Duration::ZERO, true, prompt)?;
        self.parts.add_quietly(&parts);
        Ok(())
    }

    /// What each of the chosen hosts counted since the part before, answered after `within`.
    fn parts_of(
        &mut self,
        hosts: [bool; 2],
        within: Duration,
        last: bool,
        prompt: Duration,
    ) -> Result<Vec<WindowPart>, LinkError> {
        let request = Request::Part(PartOrder {
            within_s: within.as_secs_f64(),
            interval_s: None,
            last,
        });
        let requests = hosts.map(|asked| asked.then(|| request.clone()));
        let replies = self.call_both(&requests, within + prompt)?;
        let mut parts = Vec::new();
        for reply in replies.into_iter().flatten() {
            let Reply::Part(part) = reply else {
                return Err(self.links[0].unexpected_reply("Part"));
            };
            parts.push(*part);
        }
        Ok(parts)
    }

    /// What each host counted over the whole window; `None` where its agent cannot report it any more.
    fn whole(&mut self) -> [Option<Measured>; 2] {
        let prompt = poll_timeout(&self.asked.loads);
        self.links
            .each_mut()
            .map(|link| match link.call(&Request::Total, prompt, &NEVER) {
                Ok(Reply::Measured(measured)) => Some(*measured),
                _ => None,
            })
    }

    /// The end of an agent, where one has ended, instead of the refusal that it caused at the other host.
    pub(super) fn blame(&mut self, error: LinkError) -> LinkError {
        let [a, b] = &mut self.links;
        crate::lab::blame(error, &mut [a, b])
    }
}

/// Index of the host with that end of a load: 0 for the host that is given first, 1 for the other.
pub(super) fn host_of(named: &NamedLoad, end: End) -> usize {
    usize::from(named.load.direction.host_of(end) == "b")
}
