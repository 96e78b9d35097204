//! The end that waits for the flows and serves them.

mod door;
pub(crate) mod lobby;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_model::end_window::End as Which;
use wirecost_sys::epoll::Wake;
use wirecost_sys::socket::steer_reuseport;

use self::door::{Behind, Door, Keeper};
use self::lobby::Lobby;
use crate::error::TrafficError;
use crate::flow::{End, Finished, FlowEnd};
use crate::load::Load;
use crate::options::{Options, Waiting};
use crate::preflight::raise_descriptors;
use crate::snapshot::Snapshot;
use crate::socket::{self, Adopt};
use crate::steering;
use crate::table::{Entrance, MakeServer, Opening, Serving};
use crate::worker::{Drive, spawn};

/// Connections that may queue beside the load's own.
const SPARE_BACKLOG: u32 = 64;

/// The end that answers or reads: listens on one port, takes its load's flows and no others, and serves each to its
/// end.
///
/// Dropping it gives up every flow at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    load: Arc<Load>,
    door: Option<Behind>,
    threads: Vec<JoinHandle<()>>,
    /// All sockets on its UDP port, in order: none may leave their group before the last load ends.
    _group: Arc<[Arc<Socket>]>,
}

impl Server {
    /// Listens on `bind` (port 0: any free one), from the calling thread's network namespace.
    pub fn listen(bind: SocketAddr, options: &Options) -> Result<Self, TrafficError> {
        let mut servers = Self::listen_all(bind, std::slice::from_ref(options))?;
        // One load, one server.
        Ok(servers.remove(0))
    }

    /// Listens for several loads on one TCP and one UDP port of an address (port 0: any free ones); a server for each,
    /// in their order.
    ///
    /// # Errors
    /// Also where two loads have secrets that cannot be told apart on the way: at all, by their last four bytes, or by
    /// the tag that datagrams have of them.
    pub fn listen_all(bind: SocketAddr, options: &[Options]) -> Result<Vec<Self>, TrafficError> {
        let mut loads = Vec::new();
        for options in options {
            options.validate()?;
            raise_descriptors(options)?;
            loads.push(Load::new(options, options.threads(), Which::Server)?);
        }
        if !steering::can_be_told_apart(&loads) {
            let words = "loads on one port have secrets that are too much alike";
            return Err(TrafficError::Options(words.to_owned()));
        }
        let (datagrams, connections): (Vec<usize>, Vec<usize>) =
            (0..loads.len()).partition(|at| loads[*at].table.opening == Opening::Ports);
        let of = |places: &[usize]| -> Vec<Arc<Load>> {
            places.iter().map(|at| Arc::clone(&loads[*at])).collect()
        };
        let mut servers: Vec<(usize, Self)> = Vec::new();
        if !datagrams.is_empty() {
            let opened = Self::with_ports(bind, of(&datagrams))?;
            servers.extend(datagrams.into_iter().zip(opened));
        }
        if !connections.is_empty() {
            let opened = Self::with_a_listener(bind, of(&connections))?;
            servers.extend(connections.into_iter().zip(opened));
        }
        servers.sort_by_key(|(place, _)| *place);
        Ok(servers.into_iter().map(|(_, server)| server).collect())
    }

    fn new(address: SocketAddr, load: Arc<Load>, group: &Arc<[Arc<Socket>]>) -> Self {
        Self {
            address,
            load,
            door: None,
            threads: Vec::new(),
            _group: Arc::clone(group),
        }
    }

    /// Loads over TCP. Connections of a load that has one for each transaction are accepted and served by its threads;
    /// those of others by threads that get them from one who accepts and lets in.
    fn with_a_listener(bind: SocketAddr, loads: Vec<Arc<Load>>) -> Result<Vec<Self>, TrafficError> {
        let accepts = |load: &Arc<Load>| matches!(load.table.server, Serving::Thread(_));
        let leader = loads.iter().find(|load| accepts(load)).unwrap_or(&loads[0]);
        let all: Vec<&Options> = loads.iter().map(|load| &load.options).collect();
        let listening = socket::shared(&leader.options, &all);
        let (address, listener) = listen(bind, &listening, &all)?;
        let listener = Arc::new(listener);
        let new_wake = || {
            Wake::new()
                .map(Arc::new)
                .map_err(|source| TrafficError::Socket {
                    what: "making a door's wake",
                    source,
                })
        };
        let door_wake = new_wake()?;
        let wakes: Vec<Arc<Wake>> = loads
            .iter()
            .map(|load| {
                if accepts(load) {
                    new_wake()
                } else {
                    Ok(Arc::clone(&door_wake))
                }
            })
            .collect::<Result<_, _>>()?;
        let lobby = Arc::new(Lobby::new(loads.iter().zip(wakes)));
        let own = (!loads.iter().any(accepts)).then(|| Arc::clone(&listener));
        let mut door = Door::new(own, Arc::clone(&lobby), Arc::clone(&door_wake));
        let keeper = Arc::new(Keeper {
            wake: door_wake,
            open: AtomicUsize::new(0),
            thread: Mutex::default(),
        });
        let mut servers: Vec<Self> = loads
            .into_iter()
            .map(|load| Self::new(address, load, &Arc::default()))
            .collect();
        let adopts: Vec<Option<Adopt>> = servers
            .iter()
            .map(|server| Adopt::of(&listening, &server.load.options))
            .collect::<Result<_, _>>()?;
        for (place, server) in servers.iter_mut().enumerate() {
            if let Serving::Thread(make) = server.load.table.server {
                for seat in 0..server.load.seats.len() {
                    let entrance = Entrance {
                        socket: Arc::clone(&listener),
                        lobby: Some((Arc::clone(&lobby), place)),
                        adopt: adopts[place].clone(),
                    };
                    server.employ(seat, entrance, make)?;
                }
            }
        }
        // Nothing fails from here to the door's start: who waits for its threads would wait for ever.
        for ((place, server), adopt) in servers.iter_mut().enumerate().zip(adopts) {
            if !accepts(&server.load) {
                let threads = door.house(Arc::clone(&server.load), place, adopt);
                keeper.open.fetch_add(1, Ordering::Relaxed);
                let keeper = Arc::clone(&keeper);
                server.door = Some(Behind { keeper, threads });
            }
        }
        if keeper.open.load(Ordering::Relaxed) > 0 {
            let thread = thread::Builder::new()
                .name("load-door".to_owned())
                .spawn(move || door.run())
                .map_err(TrafficError::Thread)?;
            keeper.keep(Some(thread));
        }
        Ok(servers)
    }

    /// Loads over UDP: every thread of each has a socket on the one port, and takes its share of the flows there
    /// ([`steering`]).
    fn with_ports(bind: SocketAddr, loads: Vec<Arc<Load>>) -> Result<Vec<Self>, TrafficError> {
        let mut address = bind;
        let mut sockets = Vec::new();
        for load in loads
            .iter()
            .flat_map(|load| load.seats.iter().map(move |_| load))
        {
            let options = &load.options;
            let flows = options.streams.div_ceil(load.seats.len() as u32);
            let socket = socket::udp(bind, options, flows)?;
            socket::segment(&socket, options, false)?;
            let bound = || -> io::Result<SocketAddr> {
                // The first one alone, and open to the others from then on: a group of somebody else's sockets, another
                // run's of the same user, would let it in and share its datagrams.
                socket.set_reuse_port(!sockets.is_empty())?;
                socket.bind(&address.into())?;
                socket.set_reuse_port(true)?;
                let bound = socket.local_addr()?.as_socket();
                bound.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            };
            address = bound().map_err(|source| TrafficError::Listen { address, source })?;
            sockets.push(Arc::new(socket));
        }
        if let [first, _, ..] = &sockets[..] {
            let program = steering::program(&loads);
            steer_reuseport(&**first, &program).map_err(|source| TrafficError::Socket {
                what: "setting SO_ATTACH_REUSEPORT_CBPF",
                source,
            })?;
        }
        let group: Arc<[Arc<Socket>]> = sockets.into();
        let mut of_threads = group.iter();
        let mut servers = Vec::new();
        for load in loads {
            let mut server = Self::new(address, Arc::clone(&load), &group);
            if let Serving::Thread(make) = load.table.server {
                for (seat, socket) in of_threads.by_ref().take(load.seats.len()).enumerate() {
                    let entrance = Entrance {
                        socket: Arc::clone(socket),
                        lobby: None,
                        adopt: None,
                    };
                    server.employ(seat, entrance, make)?;
                }
            }
            servers.push(server);
        }
        Ok(servers)
    }

    /// Starts a thread that serves whatever flow comes.
    fn employ(
        &mut self,
        seat: usize,
        entrance: Entrance,
        make: MakeServer,
    ) -> Result<(), TrafficError> {
        let drive = match self.load.options.waiting {
            Waiting::Sleep => Drive::Blocking,
            Waiting::Spin => Drive::Spinning,
        };
        let machine = make(&self.load, entrance, seat);
        let machine = machine.map_err(|source| TrafficError::Socket {
            what: "setting a thread up",
            source,
        })?;
        let thread = spawn(&self.load, seat, vec![machine], drive, false)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where it listens, the port resolved.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits, at most `timeout`, until every flow arrived.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), TrafficError> {
        let flows = &self.load.flows;
        let connected = || flows.here().count() as u32;
        if flows.wait_until(Some(Instant::now() + timeout), || {
            connected() == flows.count()
        }) {
            return flows.check();
        }
        Err(TrafficError::NotConnected {
            connected: connected(),
            wanted: flows.count(),
            strays: flows.strays(),
            after: timeout,
        })
    }

    /// How often each thread waited in a ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        let seats = self.load.seats.iter();
        seats.map(|seat| seat.rings.get()).collect()
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.load.options
    }

    /// Counters, threads and socket states now.
    ///
    /// # Errors
    /// A flow that broke, by name; flows that are not there yet.
    pub fn snapshot(&self) -> Result<Snapshot, TrafficError> {
        Snapshot::take(&self.load)
    }

    /// Bytes of messages read, and messages received, so far, all flows (`read_bytes` and `received` of
    /// [`wirecost_model::end_window::Counts`]).
    pub fn received(&self) -> (u64, u64) {
        self.load.flows.received()
    }

    #[cfg(test)]
    pub(crate) fn load_strays(&self) -> u32 {
        self.load.flows.strays()
    }

    /// Bytes of messages read or handed to the kernel so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.load.flows.bytes()
    }

    /// Takes no more flows, and waits, at most `timeout`, until every flow that is there was served to its end, which
    /// the client says. What was not is given up.
    ///
    /// # Errors
    /// A flow that broke, by name. Every thread is joined all the same.
    pub fn finish(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        self.end(Instant::now() + timeout);
        let flows = &self.load.flows;
        flows.check()?;
        let ends = flows
            .all()
            .iter()
            .map(|flow| FlowEnd {
                bytes: flow.bytes(),
                drained: matches!(flow.end.get(), Some(End::Orderly)),
                counted: flow.incoming.counted.get(),
            })
            .collect();
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: flows.strays(),
        })
    }

    fn end(&mut self, deadline: Instant) {
        let flows = &self.load.flows;
        flows.set_stopping();
        if let Some(Behind { keeper, threads }) = self.door.take() {
            keeper.wake.raise();
            // A door that broke down has none.
            self.threads.extend(threads.recv().unwrap_or_default());
            keeper.end();
        }
        flows.wait_until(Some(deadline), || flows.all_over());
        if !flows.all_over() || !self.load.table.is_served_by_threads() {
            flows.cut();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.door.is_some() || !self.threads.is_empty() {
            self.end(Instant::now());
        }
    }
}

/// Listens with these options for the flows of all of those.
fn listen(
    bind: SocketAddr,
    options: &Options,
    all: &[&Options],
) -> Result<(SocketAddr, Socket), TrafficError> {
    let socket = socket::tcp(bind, options)?;
    let flows: u32 = all.iter().map(|options| options.streams).sum();
    let backlog = flows + SPARE_BACKLOG;
    let listening = || -> io::Result<SocketAddr> {
        socket.set_reuse_address(true)?;
        socket.bind(&bind.into())?;
        socket.listen(backlog as i32)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?.as_socket();
        address.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    };
    let address = listening().map_err(|source| TrafficError::Listen {
        address: bind,
        source,
    })?;
    Ok((address, socket))
}
