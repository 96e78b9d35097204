//! The client and server ends of loads on this host: opened, started, counted ([`WindowCounter`]) and ended.

mod counting;

use std::thread;
use std::time::Duration;

use wirecost_model::end_window::End;
use wirecost_model::load::Address;
use wirecost_netbuild::LabHost;
use wirecost_sys::process;
use wirecost_traffic::{
    Client, Finished, Observer, Options, Server, Snapshot, TrafficError, check_resources, preflight,
};

use crate::error::{AgentError, Context, Result};
use crate::protocol::{EndedLoad, HostNetns, LoadEnd};

pub(crate) use counting::WindowCounter;

/// How long the flows of a load may take to open or to end: a base, and more for each connection, since its thread may
/// be one of a thousand.
const PATIENCE: Duration = Duration::from_secs(5);
const PER_FLOW: Duration = Duration::from_millis(20);

fn patience(load: &Options) -> Duration {
    PATIENCE + PER_FLOW * load.load.connections()
}

/// An open end of a load.
#[derive(Debug)]
struct Open<T> {
    name: String,
    place: HostNetns,
    engine: T,
}

/// All open ends of loads on this host.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    servers: Vec<Open<Server>>,
    clients: Vec<Open<Client>>,
}

impl Loads {
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.clients.is_empty()
    }

    /// Opens servers and returns their addresses, in the order of `ends`. Servers with the same address and place share
    /// one TCP and one UDP port.
    pub(crate) fn serve(
        &mut self,
        ends: &[LoadEnd],
        host: Option<&LabHost>,
    ) -> Result<Vec<Address>> {
        self.make_room(ends, End::Server)?;
        let mut groups: Vec<((HostNetns, &Address), Vec<usize>)> = Vec::new();
        for (number, end) in ends.iter().enumerate() {
            let at = (end.place, &end.address);
            match groups.iter_mut().find(|(known, _)| *known == at) {
                Some((_, numbers)) => numbers.push(number),
                None => groups.push((at, vec![number])),
            }
        }
        let mut opened = Vec::new();
        for (_, numbers) in groups {
            let group: Vec<&LoadEnd> = numbers.iter().map(|number| &ends[*number]).collect();
            let servers = open(&group, End::Server, host, Server::listen_all)?;
            opened.extend(numbers.into_iter().zip(servers));
        }
        opened.sort_by_key(|(number, _)| *number);
        self.servers
            .extend(opened.into_iter().map(|(_, server)| server));
        let address = |server: &Open<Server>| server.engine.address();
        Ok(self.servers.iter().map(address).collect())
    }

    /// Opens clients, each with all of its flows.
    pub(crate) fn connect(&mut self, ends: &[LoadEnd], host: Option<&LabHost>) -> Result<()> {
        self.make_room(ends, End::Client)?;
        for end in ends {
            let opened = open(&[end], End::Client, host, |address, options| {
                let clients = options.iter();
                clients
                    .map(|options| Client::connect(address.clone(), options, patience(options)))
                    .collect()
            })?;
            for client in &opened {
                watch(client, host)?;
            }
            self.clients.extend(opened);
        }
        Ok(())
    }

    /// Checks that this host has the resources for these ends in addition to the open ones.
    fn make_room(&self, ends: &[LoadEnd], which: End) -> Result<()> {
        if ends.is_empty() {
            return Ok(());
        }
        let new: Vec<Options> = ends.iter().map(options).collect();
        let new = new.iter().map(|options| (options, which));
        let servers = self.servers.iter();
        let servers = servers.map(|server| (server.engine.options(), End::Server));
        let clients = self.clients.iter();
        let clients = clients.map(|client| (client.engine.options(), End::Client));
        let findings = check_resources(servers.chain(clients), new);
        if findings.is_empty() {
            return Ok(());
        }
        let mut names: Vec<&str> = ends.iter().map(|end| end.name.as_str()).collect();
        names.dedup();
        let words: Vec<String> = findings.iter().map(ToString::to_string).collect();
        Err(blame(&names.join(" and "), &words.join("; ")))
    }

    /// Waits until every flow is connected at its server, which counts a flow slightly later than its client.
    fn all_here(&self) -> Result<()> {
        for server in &self.servers {
            let here = server
                .engine
                .wait_connected(patience(server.engine.options()));
            here.map_err(|error| server.blame(&error))?;
        }
        Ok(())
    }

    /// Starts all clients together.
    pub(crate) fn start(&self) -> Result<()> {
        self.all_here()?;
        for client in &self.clients {
            client
                .engine
                .start()
                .map_err(|error| client.blame(&error))?;
        }
        Ok(())
    }

    /// Ends all clients together. Returns the first error, after every client has ended.
    pub(crate) fn stop_clients(&mut self) -> Result<Vec<EndedLoad>> {
        // The memory of machines is compared, of all loads at the same time.
        let loads = self.clients.iter().map(|open| &open.engine.options().load);
        let compared: Duration = loads.map(wirecost_traffic::Load::memory_time).sum();
        let within = PATIENCE + compared;
        end_all(&mut self.clients, End::Client, move |client| {
            client.stop(within).map(Some)
        })
    }

    /// Whether any load on this host ends by itself.
    fn have_limits(&self) -> bool {
        let servers = self.servers.iter().map(|server| server.engine.options());
        let clients = self.clients.iter().map(|client| client.engine.options());
        let mut all = servers.chain(clients);
        all.any(|options| options.load.ends_by_itself())
    }

    /// Sets whether clients count what they send from now on.
    fn set_counted(&self, counted: bool) {
        for client in &self.clients {
            client.engine.set_counted(counted);
        }
    }

    /// Ends all servers together. Returns the first error, after every server has ended.
    ///
    /// The clients must have ended before: flows that they reset at their end are no error, unless the load is counted
    /// to its last byte.
    pub(crate) fn stop_servers(&mut self) -> Result<Vec<EndedLoad>> {
        end_all(&mut self.servers, End::Server, |server| {
            let is_counted_whole = server.options().load.ends_by_itself();
            match server.finish(PATIENCE) {
                Err(error) if error.is_reset() && !is_counted_whole => Ok(None),
                ended => ended.map(Some),
            }
        })
    }

    /// Snapshots of every end, servers first.
    fn snapshots(&self) -> Result<Vec<Snapshot>> {
        let servers = self.servers.iter().map(|server| {
            let taken = server.engine.snapshot();
            taken.map_err(|error| server.blame(&error))
        });
        let clients = self.clients.iter().map(|client| {
            let taken = client.engine.snapshot();
            taken.map_err(|error| client.blame(&error))
        });
        servers.chain(clients).collect()
    }

    /// The error of the first client that makes no more progress; `Ok` where there is none.
    fn check_progress(&self) -> Result<()> {
        for client in &self.clients {
            let progress = client.engine.check_progress();
            progress.map_err(|error| client.blame(&error))?;
        }
        Ok(())
    }

    /// Bytes read and messages received by every end, servers first.
    fn received(&self) -> Vec<(u64, u64)> {
        let servers = self.servers.iter().map(|server| server.engine.received());
        let clients = self.clients.iter().map(|client| client.engine.received());
        servers.chain(clients).collect()
    }
}

impl<T> Open<T> {
    fn blame(&self, error: &TrafficError) -> AgentError {
        blame(&self.name, error)
    }
}

/// An error of the load `name`.
fn blame(name: &str, error: &impl std::fmt::Display) -> AgentError {
    AgentError::Load {
        name: name.to_owned(),
        problem: error.to_string(),
    }
}

fn options(end: &LoadEnd) -> Options {
    Options {
        source: end.source,
        export: end.load.server.as_ref().map(|server| server.export.clone()),
        ..Options::of(end.load.clone(), end.secret)
    }
}

/// Checks what prevents ends of one address from running at their place, and opens them there.
fn open<T: Send>(
    ends: &[&LoadEnd],
    which: End,
    host: Option<&LabHost>,
    start: impl FnOnce(Address, &[Options]) -> Result<Vec<T>, TrafficError> + Send,
) -> Result<Vec<Open<T>>> {
    let Some(first) = ends.first() else {
        return Ok(Vec::new());
    };
    let options: Vec<Options> = ends.iter().map(|end| options(end)).collect();
    let opening = || {
        for (end, options) in ends.iter().zip(&options) {
            let findings = preflight(options, which);
            let words: Vec<String> = findings.iter().map(ToString::to_string).collect();
            if !words.is_empty() {
                return Err(blame(&end.name, &words.join("; ")));
            }
        }
        let names: Vec<&str> = ends.iter().map(|end| end.name.as_str()).collect();
        let _pinned = PinnedThread::to(&first.cpus)?;
        start(first.address.clone(), &options).map_err(|error| blame(&names.join(" and "), &error))
    };
    let engines = match first.place {
        HostNetns::Host => opening()?,
        HostNetns::Guest(number) => {
            let host = host.ok_or(AgentError::NotReady("the host is not prepared yet"))?;
            let guest = host.guests().nth(number as usize);
            let guest = guest.ok_or_else(|| format!("there is no guest {number} on this host"))?;
            let entered = guest.within(opening);
            entered.context("entering the guest's namespace")??
        }
    };
    let opened = |(end, engine): (&&LoadEnd, T)| Open {
        name: end.name.clone(),
        place: end.place,
        engine,
    };
    Ok(ends.iter().zip(engines).map(opened).collect())
}

/// The calling thread, pinned to some processors: threads that it starts inherit them. Dropping this restores the
/// earlier processors.
struct PinnedThread(Option<Vec<u32>>);

impl PinnedThread {
    /// Pins the thread to `cpus`; nothing is changed where they are empty.
    fn to(cpus: &[u32]) -> Result<Self> {
        if cpus.is_empty() {
            return Ok(Self(None));
        }
        let before = process::allowed_cpus().context("reading its processors")?;
        process::pin_to(cpus).context("giving the load its processors")?;
        Ok(Self(Some(before)))
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // The thread was allowed to run on these processors before.
            let _ = process::pin_to(before);
        }
    }
}

/// Starts an observer of a migrated machine: in the next guest of this host, a third one besides the two that the
/// machine moves between; where there is no other guest, in the client's own namespace.
fn watch(client: &Open<Client>, host: Option<&LabHost>) -> Result<()> {
    let Some(at) = client.engine.watched_at() else {
        return Ok(());
    };
    let here = || Observer::here(at.ip());
    let step = "opening the observer's socket";
    let observer = match (client.place, host) {
        (HostNetns::Guest(number), Some(host)) => {
            let next = (number as usize + 1) % host.guests().len();
            let guest = host.guests().nth(next);
            let guest = guest.ok_or_else(|| format!("there is no guest {next} on this host"))?;
            let entered = guest
                .within(here)
                .context("entering the observer's namespace")?;
            entered.context(step)?
        }
        _ => here().context(step)?,
    };
    client.engine.observe(observer);
    Ok(())
}

/// Ends all ends of loads at the same time. A load that was reset gives no result.
fn end_all<T: Send>(
    ends: &mut Vec<Open<T>>,
    which: End,
    end: impl Fn(T) -> Result<Option<Finished>, TrafficError> + Copy + Send,
) -> Result<Vec<EndedLoad>> {
    thread::scope(|scope| {
        let ending: Vec<_> = ends
            .drain(..)
            .map(|open| {
                let Open {
                    name,
                    place,
                    engine,
                } = open;
                scope.spawn(move || {
                    let ended = end(engine).map_err(|error| blame(&name, &error))?;
                    Ok(ended.map(|ended| EndedLoad {
                        name,
                        place,
                        end: which,
                        datagrams: ended.flows.iter().map(|flow| flow.counted).sum(),
                    }))
                })
            })
            .collect();
        let ended = ending.into_iter().map(|thread| {
            let panicked = |_| Err(AgentError::Thread);
            thread.join().unwrap_or_else(panicked)
        });
        // Every thread is joined, even after an error of the first.
        let ended: Vec<Result<Option<EndedLoad>>> = ended.collect();
        ended.into_iter().filter_map(Result::transpose).collect()
    })
}
