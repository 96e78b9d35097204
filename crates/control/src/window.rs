//! Loads over a lab, counted on both hosts over one window: opened, begun, counted, ended.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{
    CountingStart, EndedLoad, HostNetns, LoadEnd, Measured, MeasuredEnd, Part, PartOrder, Reply,
    Request, Stage,
};
use wirecost_model::end_window::{Counts, End, EndWindow};
use wirecost_model::latency::Latency;
use wirecost_model::load::{
    Address, Limit, Load, MoveEngine, NamedLoad, NbdUri, PATH_PATIENCE, Waiting,
};
use wirecost_model::sample::LoadResult;

use crate::calls::PROMPT;
use crate::lab::Lab;

/// How long opening or ending one load may take beyond the rest.
const PER_LOAD: Duration = Duration::from_secs(6);
/// Virtual machines are tried first, by KVM and by emulation.
const FIRST_BOOT: Duration = Duration::from_secs(30);
/// How long starting one may take, and filling its memory.
const PER_MACHINE: Duration = Duration::from_secs(10);
/// How much longer anything may take for each flow: its threads may be a thousand that always have something to do.
const PER_FLOW: Duration = Duration::from_millis(20);

/// How long a look at loads that go on may take.
pub(crate) fn poll_timeout(loads: &[NamedLoad]) -> Duration {
    PROMPT + PER_FLOW * loads.iter().map(|named| named.load.connections()).sum()
}

/// How long opening or ending all loads may take.
pub(crate) fn patience(loads: &[NamedLoad]) -> Duration {
    let virtual_machines = loads.iter().map(|named| match named.load.migration {
        Some(migration) if migration.engine == MoveEngine::Qemu => named.load.streams,
        _ => 0,
    });
    let machines: u32 = virtual_machines.sum();
    let boot = if machines > 0 {
        FIRST_BOOT
    } else {
        Duration::ZERO
    };
    let paths = loads.iter().filter(|named| named.load.path.is_some());
    poll_timeout(loads)
        + PER_LOAD * loads.len() as u32
        + PATH_PATIENCE * paths.count() as u32
        + boot
        + PER_MACHINE * machines
}

/// When to count, and what belongs to the run.
#[derive(Debug, Clone, Copy)]
pub struct CountingWindow<'a> {
    /// Seconds from now to the window's start.
    pub warmup_s: f64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Length of the intervals within it, in seconds.
    pub interval_s: f64,
    /// Processes that are not foreign: the controller, every agent, the tools it started.
    pub ours: &'a [u32],
}

/// Where the clients of loads are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clients<'a> {
    /// On the other host than their servers: over the network.
    Across,
    /// Those of storage that asks for the network's share on their target's host, over a Unix socket. In a lab with the
    /// processors that they have across the network: host a's and host b's.
    AtTargets([&'a [u32]; 2]),
}

impl Clients<'_> {
    fn is_at_target(self, named: &NamedLoad) -> bool {
        let shares = named
            .load
            .storage
            .is_some_and(|storage| storage.network_share);
        shares && matches!(self, Self::AtTargets(_))
    }

    /// The host that has an end of a load, 0 or 1.
    fn host_of(self, named: &NamedLoad, end: End) -> usize {
        let end = if self.is_at_target(named) {
            End::Server
        } else {
            end
        };
        host_of(named, end)
    }

    /// Processors of an end where they are not those of its host.
    fn cpus(self, named: &NamedLoad, end: End) -> Vec<u32> {
        match self {
            Self::AtTargets(cpus) if end == End::Client && self.is_at_target(named) => {
                cpus[host_of(named, End::Client)].to_vec()
            }
            _ => Vec::new(),
        }
    }
}

/// What loads came to.
#[derive(Debug)]
pub struct WindowResult {
    /// Host a's counts come first.
    pub measured: [Measured; 2],
    /// Whether loads that end by themselves did so in time.
    pub is_whole: bool,
}

/// How long loads that end by themselves may take.
pub(crate) const TO_THE_END: Duration = Duration::from_mins(10);
/// How often is asked whether they are over.
const SLICE: Duration = Duration::from_millis(500);

impl Lab {
    /// Runs loads between a's guests and b's, each divided evenly among the pairs of guests, all at once, counts them and ends them.
    /// Loads with a limit are counted from their start to their own end, whatever `counting` says.
    pub fn load(
        &mut self,
        loads: &[NamedLoad],
        secret: [u8; 16],
        counting: CountingWindow<'_>,
        interrupt: &AtomicBool,
    ) -> Result<WindowResult, LinkError> {
        self.load_from(Clients::Across, loads, secret, counting, interrupt)
    }

    /// Likewise, with clients where `from` says.
    pub(crate) fn load_from(
        &mut self,
        from: Clients<'_>,
        loads: &[NamedLoad],
        secret: [u8; 16],
        counting: CountingWindow<'_>,
        interrupt: &AtomicBool,
    ) -> Result<WindowResult, LinkError> {
        let (prompt, within) = (poll_timeout(loads), patience(loads));
        let loads = &among_guests(loads, self.network().guests)[..];
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
        let elsewhere = loads.iter().map(|load| elsewhere(&load.named.load));
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
        let listening = match self.both(&a, &b, within, interrupt)? {
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
            within,
            interrupt,
        )?;
        if loads.iter().any(|load| load.named.load.ends_by_itself()) {
            return self.count_to_the_end(from, loads, [prompt, within], interrupt);
        }
        self.both_done_within([Request::Start, Request::Start], within, interrupt)?;
        let mut measured = self.count_within(counting, prompt, interrupt)?;
        // The clients first: servers read to the end of what was sent.
        let mut ended = self.both_ended(&Request::StopClients, within, interrupt)?;
        ended.extend(self.both_ended(&Request::StopServers, within, interrupt)?);
        settle(measured.iter_mut(), &ended);
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
        match self.both(request, request, within, interrupt)? {
            [Reply::Ended(a), Reply::Ended(b)] => Ok([a, b].concat()),
            _ => Err(self.a.unexpected_reply(request.doing())),
        }
    }

    /// Starts loads that end by themselves, and counts them from there to the last byte.
    fn count_to_the_end(
        &mut self,
        from: Clients<'_>,
        loads: &[GuestLoad],
        [prompt, within]: [Duration; 2],
        interrupt: &AtomicBool,
    ) -> Result<WindowResult, LinkError> {
        let begin = || Request::Begin(CountingStart::default());
        self.both_done_within([begin(), begin()], within, interrupt)?;
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
        // What was still under way when the last part ended. Where the clients know that their servers have everything, it
        // is counted before they stop: comparing contents is no part of the load.
        let on_the_way = |load: &GuestLoad| {
            load.named.load.limit.is_some() && !load.named.load.workload.is_confirmed()
        };
        let stops_first = loads.iter().any(on_the_way);
        let rest = [Duration::ZERO; 2].map(part);
        if !stops_first {
            self.parts(rest.clone(), prompt, interrupt)?;
        }
        let mut ended = self.both_ended(&Request::StopClients, within, interrupt)?;
        if stops_first {
            self.parts(rest, prompt, interrupt)?;
        }
        ended.extend(self.both_ended(&Request::StopServers, within, interrupt)?);
        let mut measured = self.whole(within, interrupt)?;
        settle(measured.iter_mut(), &ended);
        Ok(WindowResult { measured, is_whole })
    }

    fn parts(
        &mut self,
        orders: [PartOrder; 2],
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Part; 2], LinkError> {
        let [a, b] = orders.map(Request::Part);
        match self.both(&a, &b, within, interrupt)? {
            [Reply::Part(a), Reply::Part(b)] => Ok([*a, *b]),
            _ => Err(self.a.unexpected_reply("Part")),
        }
    }

    fn whole(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        match self.both(&Request::Total, &Request::Total, within, interrupt)? {
            [Reply::Measured(a), Reply::Measured(b)] => Ok([*a, *b]),
            _ => Err(self.a.unexpected_reply("Whole")),
        }
    }

    /// Counts on both hosts at once, whatever loads them. One host of each machine looks for foreign load.
    pub fn count(
        &mut self,
        counting: CountingWindow<'_>,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        self.count_within(counting, PROMPT, interrupt)
    }

    /// Likewise; the hosts answer within `prompt` after the window.
    fn count_within(
        &mut self,
        counting: CountingWindow<'_>,
        prompt: Duration,
        interrupt: &AtomicBool,
    ) -> Result<[Measured; 2], LinkError> {
        let begin = |foreign_to| {
            Request::Begin(CountingStart {
                warmup_s: counting.warmup_s,
                foreign_to,
            })
        };
        let begins = self.known_processes(counting.ours).map(begin);
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

/// A part of a load that ends by itself.
fn part(within: Duration) -> PartOrder {
    PartOrder {
        within_s: within.as_secs_f64(),
        interval_s: None,
        last: false,
    }
}

/// 0 for host a, 1 for host b.
fn host_of(named: &NamedLoad, end: End) -> usize {
    usize::from(named.load.direction.host_of(end) == "b")
}

/// The share of a load that runs between one pair of guests.
struct GuestLoad {
    /// The same of both hosts.
    guest: u32,
    named: NamedLoad,
}

/// Threads that a load has on a host at most, all guests together, where the plan says nothing: as many as
/// it would have with as many flows and a single guest.
const THREADS: u32 = 64;

/// Every load for every pair of guests. A load's flows are as many as can be divided evenly (the plan sees to
/// it), and so are its threads, but that each guest has one.
fn among_guests(loads: &[NamedLoad], guests: u32) -> Vec<GuestLoad> {
    let of = |named: &NamedLoad, guest| {
        let mut named = named.clone();
        let load = &mut named.load;
        load.streams = (load.streams / guests).max(1);
        if guests > 1 {
            let usual = match load.waiting {
                Waiting::Sleep => THREADS,
                // Each has a processor to itself.
                Waiting::Spin => guests,
            };
            let all = load.threads.unwrap_or(usual);
            load.threads = Some((all / guests).clamp(1, load.connections()));
        }
        let part = |all: u64| {
            let (each, rest) = (all / u64::from(guests), all % u64::from(guests));
            each + u64::from(u64::from(guest) < rest)
        };
        load.limit = load.limit.map(|limit| match limit {
            Limit::Time(time) => Limit::Time(time),
            Limit::Bytes(all) => Limit::Bytes(part(all)),
            Limit::Transactions(all) => Limit::Transactions(part(all)),
        });
        GuestLoad { guest, named }
    };
    let pairs = |named| (0..guests).map(move |guest| of(named, guest));
    loads.iter().flat_map(pairs).collect()
}

/// One end of every load, by host; `place` is where the end of a guest and host runs, with the address that a client's packets
/// leave with where it is to be set; `address` is told the load's number and the host's.
fn ends(
    from: Clients<'_>,
    loads: &[GuestLoad],
    secret: [u8; 16],
    end: End,
    place: impl Fn(u32, usize) -> (HostNetns, Option<IpAddr>),
    address: impl Fn(usize, usize, &[u8; 16]) -> Address,
) -> [Vec<LoadEnd>; 2] {
    let mut ends = [Vec::new(), Vec::new()];
    for (index, GuestLoad { guest, named }) in loads.iter().enumerate() {
        if end == End::Server && !named.load.has_server() {
            continue;
        }
        let host = from.host_of(named, end);
        // No flow of one load, or of one guest, is let in by another.
        let mut secret = secret;
        for (byte, number) in secret[12..].iter_mut().zip((index as u32).to_be_bytes()) {
            *byte ^= number;
        }
        let (place, source) = place(*guest, host);
        ends[host].push(LoadEnd {
            name: named.name.clone(),
            place,
            address: address(index, host, &secret),
            source: source.filter(|_| end == End::Client),
            cpus: from.cpus(named, end),
            load: named.load.clone(),
            secret,
        });
    }
    ends
}

/// Adds to what was counted what only the ends of the loads could tell.
pub(crate) fn settle<'a>(measured: impl Iterator<Item = &'a mut Measured>, ended: &[EndedLoad]) {
    for one in measured.flat_map(|host| &mut host.loads) {
        let same =
            |end: &&EndedLoad| (&end.name, end.place, end.end) == (&one.name, one.place, one.end);
        one.window.datagrams = ended.iter().find(same).map(|end| end.datagrams);
    }
}

/// The other end of a client whose server is not ours: it has read what the client sent.
fn unseen(client: &EndWindow) -> EndWindow {
    let mut window = client.clone();
    for flow in &mut window.flows {
        flow.counts = Counts {
            read_bytes: flow.counts.sent_bytes,
            received: flow.counts.sent,
            ..Counts::default()
        };
        flow.tcp = None;
    }
    window.threads.clear();
    window.generator_bound = false;
    window.strays = 0;
    (window.latency, window.lateness) = (Latency::default(), Latency::default());
    (window.schedule, window.io) = (None, None);
    window
}

/// Where a load's target is that is not ours; `None`: it is.
///
/// # Errors
/// A name without an address.
pub(crate) fn elsewhere(load: &Load) -> Result<Option<Address>, LinkError> {
    match (&load.server, &load.path) {
        (Some(server), _) => resolved(server).map(Some),
        (None, path) => Ok(path.clone().map(Address::Path)),
    }
}

fn resolved(server: &NbdUri) -> Result<Address, LinkError> {
    if let Some(socket) = &server.socket {
        return Ok(Address::Path(socket.clone()));
    }
    let refused = |words: String| LinkError::Refused {
        host: server.host.clone(),
        stage: Stage::Load,
        message: words,
    };
    let found = (server.host.as_str(), server.port).to_socket_addrs();
    let mut found = found.map_err(|error| refused(error.to_string()))?;
    let found = found.next().map(Address::Ip);
    found.ok_or_else(|| refused("its name has no address".to_owned()))
}

/// The name of an abstract Unix socket that no other load has.
fn socket_name(secret: &[u8; 16]) -> String {
    // Anyone may read it (/proc/net/unix): most of the secret is not in it.
    let digits = secret[12..].iter().map(|byte| format!("{byte:02x}"));
    format!("wirecost-{}", digits.collect::<String>())
}

/// What each load did, from what both hosts counted. `None` where an end is missing from the counts.
pub fn results(loads: &[NamedLoad], measured: &[Measured; 2]) -> Option<Vec<LoadResult>> {
    results_from(Clients::Across, loads, measured)
}

/// Likewise, of clients where `from` says.
pub(crate) fn results_from(
    from: Clients<'_>,
    loads: &[NamedLoad],
    measured: &[Measured; 2],
) -> Option<Vec<LoadResult>> {
    let result = |named: &NamedLoad| {
        let found = |end| {
            let here = move |one: &&MeasuredEnd| one.name == named.name && one.end == end;
            measured[from.host_of(named, end)].loads.iter().filter(here)
        };
        let pair = |client: &MeasuredEnd| -> Option<(EndWindow, EndWindow)> {
            if !named.load.has_server() {
                return Some((client.window.clone(), unseen(&client.window)));
            }
            let server = found(End::Server).find(|server| server.place == client.place)?;
            Some((client.window.clone(), server.window.clone()))
        };
        let pairs: Option<Vec<_>> = found(End::Client).map(pair).collect();
        let pairs = pairs.filter(|pairs| !pairs.is_empty())?;
        Some(LoadResult::join(named, &pairs))
    };
    loads.iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use wirecost_model::load::Workload;

    use super::*;

    #[test]
    fn a_load_is_divided_evenly_among_guests_and_its_threads_are_not_multiplied() {
        let load = NamedLoad::alone(Load {
            streams: 80,
            ..Load::new(Workload::TcpStream)
        });
        let divided = among_guests(std::slice::from_ref(&load), 16);
        let guests: Vec<u32> = divided.iter().map(|part| part.guest).collect();
        assert_eq!(guests, (0..16).collect::<Vec<_>>());
        for part in &divided {
            assert_eq!(
                (part.named.load.streams, part.named.load.threads),
                (5, Some(4))
            );
        }
        let [whole] = &among_guests(std::slice::from_ref(&load), 1)[..] else {
            panic!("one guest");
        };
        assert_eq!(whole.named, load, "one guest is left to the engine");
        let wide = NamedLoad::alone(Load {
            streams: 1024,
            ..Load::new(Workload::TcpRr)
        });
        let parts = among_guests(&[wide], 64);
        let threads = parts.iter().map(|part| part.named.load.threads);
        assert_eq!(threads.map(Option::unwrap_or_default).sum::<u32>(), 64);
    }

    #[test]
    fn a_limit_is_divided_to_the_last_byte() {
        let load = NamedLoad::alone(Load {
            streams: 3,
            limit: Some(Limit::Bytes(1000)),
            ..Load::new(Workload::TcpStream)
        });
        let parts = among_guests(&[load], 3);
        let limits: Vec<_> = parts.iter().map(|part| part.named.load.limit).collect();
        assert_eq!(
            limits,
            [334, 333, 333].map(|bytes| Some(Limit::Bytes(bytes)))
        );
    }

    #[test]
    fn no_two_ends_have_the_same_secret() {
        let load = NamedLoad::alone(Load::new(Workload::TcpStream));
        let parts = among_guests(&[load.clone(), load], 64);
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let guest = |guest, _| (HostNetns::Guest(guest), None);
        let across = Clients::Across;
        let [_, servers] = ends(across, &parts, [7; 16], End::Server, guest, |_, _, _| {
            here.into()
        });
        let secrets: std::collections::BTreeSet<_> = servers.iter().map(|end| end.secret).collect();
        assert_eq!(secrets.len(), 128);
    }
}
