//! The server: listens, takes its load's flows and serves them.

mod acceptor;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_model::end_window::End;
use wirecost_model::load::Address;
use wirecost_sys::epoll::Waker;
use wirecost_sys::socket::{bind_here, steer_reuseport};

use self::acceptor::{Acceptor, AcceptorHandle, SharedAcceptor};
use crate::dispatch::Dispatcher;
use crate::engine::Engine;
use crate::error::TrafficError;
use crate::flow::{Finished, FinishedFlow, Outcome};
use crate::migration::service::Service;
use crate::ops::{FlowKind, Listener, MakeThreadTask, ServerTasks};
use crate::options::Options;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::socket::{self, OptionFixup};
use crate::steering;

/// Connections that the listen backlog holds beyond the flows of the loads.
const SPARE_BACKLOG: u32 = 64;

/// TCP ports that are tried until the UDP port of the same number is free, too.
const PORT_ATTEMPTS: u32 = 16;

/// The end that listens on one port, and answers or receives. It takes its load's flows and no others, and serves each
/// until it ends.
///
/// Dropping it aborts every flow.
#[derive(Debug)]
pub struct Server {
    address: Address,
    engine: Engine,
    acceptor: Option<AcceptorHandle>,
    threads: Vec<JoinHandle<()>>,
    /// Answers the observer for watched machines that have arrived.
    service: Option<Service>,
    /// All sockets of the server's UDP port: none may leave the reuseport group before the last load ends.
    _group: Arc<[Arc<Socket>]>,
}

impl Server {
    /// Listens on `bind` (port 0: any free one) in the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of [`Self::listen_all`].
    pub fn listen(bind: impl Into<Address>, options: &Options) -> Result<Self, TrafficError> {
        let mut servers = Self::listen_all(bind, std::slice::from_ref(options))?;
        // One load, one server.
        Ok(servers.remove(0))
    }

    /// Listens for several loads on one TCP and one UDP port of an address (port 0: any free ones). A migration that is
    /// watched has the UDP port with the number of its TCP port, too: a second one is on a port of its own. Returns a
    /// server for each, in their order.
    ///
    /// # Errors
    /// Invalid options; what this host lacks; an address that cannot be bound; secrets of two loads that are equal, or
    /// agree in the last four bytes or in the tag of datagrams.
    pub fn listen_all(
        bind: impl Into<Address>,
        options: &[Options],
    ) -> Result<Vec<Self>, TrafficError> {
        let bind = bind.into();
        let engines = options
            .iter()
            .map(|options| Engine::new(options, End::Server));
        let engines: Vec<Engine> = engines.collect::<Result<_, _>>()?;
        if !steering::are_distinguishable(&loads(&engines)) {
            let words = "loads on one port have secrets that are too much alike";
            return Err(TrafficError::Options(words.to_owned()));
        }
        let (datagrams, connections): (Vec<usize>, Vec<usize>) =
            (0..engines.len()).partition(|at| engines[*at].ops.flow_kind == FlowKind::Udp);
        let of = |loads: &[usize]| loads.iter().map(|at| engines[*at].clone()).collect();
        let mut servers: Vec<(usize, Self)> = Vec::new();
        if !datagrams.is_empty() {
            let opened = Self::listen_udp(socket::ip(&bind)?, of(&datagrams))?;
            servers.extend(datagrams.into_iter().zip(opened));
        }
        // The first watched one shares the port of the others, which may be the only one that a firewall opens.
        let mut shares = true;
        let (connections, alone): (Vec<usize>, Vec<usize>) = connections
            .into_iter()
            .partition(|at| !is_watched(&engines[*at]) || std::mem::take(&mut shares));
        let alone = alone.into_iter().map(|at| vec![at]);
        for group in alone.chain((!connections.is_empty()).then_some(connections)) {
            let opened = Self::listen_connections(&bind, of(&group))?;
            servers.extend(group.into_iter().zip(opened));
        }
        servers.sort_by_key(|(index, _)| *index);
        Ok(servers.into_iter().map(|(_, server)| server).collect())
    }

    fn new(address: Address, engine: Engine, group: &Arc<[Arc<Socket>]>) -> Self {
        Self {
            address,
            engine,
            acceptor: None,
            threads: Vec::new(),
            service: None,
            _group: Arc::clone(group),
        }
    }

    /// Listens for loads over TCP or a Unix socket. The threads of a load with a connection for each transaction accept
    /// and serve its connections themselves; an acceptor hands the connections of all other loads to serving threads.
    fn listen_connections(bind: &Address, engines: Vec<Engine>) -> Result<Vec<Self>, TrafficError> {
        let accepts = |engine: &Engine| engine.ops.is_served_by_threads();
        let leader = engines
            .iter()
            .find(|engine| accepts(engine))
            .unwrap_or(&engines[0]);
        let all: Vec<&Options> = engines
            .iter()
            .map(|engine| &engine.shared.options)
            .collect();
        let listening = socket::of_listener(&leader.shared.options, &all);
        let watched = engines.iter().position(is_watched);
        let (address, listener, answering) = listen(bind, &listening, &all, watched.is_some())?;
        let listener = Arc::new(listener);
        let new_wake = || {
            Waker::new()
                .map(Arc::new)
                .map_err(|source| TrafficError::Socket {
                    what: "making an acceptor's wake",
                    source,
                })
        };
        let acceptor_wake = new_wake()?;
        let wakes: Vec<Arc<Waker>> = engines
            .iter()
            .map(|engine| {
                if accepts(engine) {
                    new_wake()
                } else {
                    Ok(Arc::clone(&acceptor_wake))
                }
            })
            .collect::<Result<_, _>>()?;
        let dispatcher = Arc::new(Dispatcher::new(
            engines.iter().map(|engine| &*engine.shared).zip(wakes),
        ));
        let own = (!engines.iter().any(accepts)).then(|| Arc::clone(&listener));
        let mut admitting = Acceptor::new(own, Arc::clone(&dispatcher), Arc::clone(&acceptor_wake));
        let acceptor = Arc::new(SharedAcceptor {
            wake: acceptor_wake,
            open: AtomicUsize::new(0),
            thread: Mutex::default(),
        });
        let mut servers: Vec<Self> = engines
            .into_iter()
            .map(|engine| Self::new(address.clone(), engine, &Arc::default()))
            .collect();
        let fixups: Vec<Option<OptionFixup>> = servers
            .iter()
            .map(|server| OptionFixup::of(&listening, &server.engine.shared.options))
            .collect::<Result<_, _>>()?;
        if let Some((at, socket)) = watched.zip(answering) {
            let service = Service::start(&servers[at].engine.shared, End::Server, socket);
            servers[at].service = Some(service.map_err(|source| TrafficError::Socket {
                what: "answering the observer",
                source,
            })?);
        }
        for (index, server) in servers.iter_mut().enumerate() {
            if let ServerTasks::PerThread(make) = server.engine.ops.server {
                for thread in 0..server.engine.shared.threads.len() {
                    let listener = Listener {
                        socket: Arc::clone(&listener),
                        dispatcher: Some((Arc::clone(&dispatcher), index)),
                        fixup: fixups[index].clone(),
                    };
                    server.start_thread(thread, listener, make)?;
                }
            }
        }
        // Nothing may fail from here to the acceptor's start: a dropped server would wait for its threads forever.
        for ((index, server), fixup) in servers.iter_mut().enumerate().zip(fixups) {
            if !accepts(&server.engine) {
                let threads = admitting.add(server.engine.clone(), index, fixup);
                acceptor.open.fetch_add(1, Ordering::Relaxed);
                let acceptor = Arc::clone(&acceptor);
                server.acceptor = Some(AcceptorHandle { acceptor, threads });
            }
        }
        if acceptor.open.load(Ordering::Relaxed) > 0 {
            let thread = thread::Builder::new()
                .name("load-accept".to_owned())
                .spawn(move || admitting.run())
                .map_err(TrafficError::Thread)?;
            acceptor.replace_thread(Some(thread));
        }
        Ok(servers)
    }

    /// Listens for loads over UDP: each thread has a socket on the port, and serves its share of the flows
    /// ([`steering`]).
    fn listen_udp(bind: SocketAddr, engines: Vec<Engine>) -> Result<Vec<Self>, TrafficError> {
        let mut address = bind;
        let mut sockets = Vec::new();
        for shared in engines
            .iter()
            .flat_map(|engine| engine.shared.threads.iter().map(|_| &engine.shared))
        {
            let options = &shared.options;
            let flows = options
                .load
                .connections()
                .div_ceil(shared.threads.len() as u32);
            let socket = socket::udp(bind, options, flows)?;
            socket::segment(&socket, options, false)?;
            let bound = || -> io::Result<SocketAddr> {
                // The first socket is bound without SO_REUSEPORT: otherwise it could join a group of another program
                // of the same user and share its datagrams.
                socket.set_reuse_port(!sockets.is_empty())?;
                bind_here(&socket, address)?;
                socket.set_reuse_port(true)?;
                let bound = socket.local_addr()?.as_socket();
                bound.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            };
            address = bound().map_err(|source| TrafficError::Listen {
                address: address.into(),
                source,
            })?;
            sockets.push(Arc::new(socket));
        }
        if let [first, _, ..] = &sockets[..] {
            let program = steering::program(&loads(&engines));
            steer_reuseport(&**first, &program).map_err(|source| TrafficError::Socket {
                what: "setting SO_ATTACH_REUSEPORT_CBPF",
                source,
            })?;
        }
        let group: Arc<[Arc<Socket>]> = sockets.into();
        let mut of_threads = group.iter();
        let mut servers = Vec::new();
        for engine in engines {
            let threads = engine.shared.threads.len();
            let mut server = Self::new(address.into(), engine, &group);
            if let ServerTasks::PerThread(make) = server.engine.ops.server {
                for (thread, socket) in of_threads.by_ref().take(threads).enumerate() {
                    let listener = Listener {
                        socket: Arc::clone(socket),
                        dispatcher: None,
                        fixup: None,
                    };
                    server.start_thread(thread, listener, make)?;
                }
            }
            servers.push(server);
        }
        Ok(servers)
    }

    /// Starts a thread that serves any flow.
    fn start_thread(
        &mut self,
        thread: usize,
        listener: Listener,
        make: MakeThreadTask,
    ) -> Result<(), TrafficError> {
        let task = make(&self.engine.shared, listener, thread);
        let task = task.map_err(|source| TrafficError::Socket {
            what: "setting a thread up",
            source,
        })?;
        let thread = self.engine.spawn(thread, vec![task])?;
        self.threads.push(thread);
        Ok(())
    }

    /// The address that the server listens on, with the port that was chosen.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// Waits, at most `timeout`, until every flow is connected.
    ///
    /// # Errors
    /// [`TrafficError::NotConnected`]; a flow that failed.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), TrafficError> {
        let flows = &self.engine.shared.flows;
        let connected = || flows.connected().count() as u32;
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

    /// Waits of each thread in its ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        self.engine.rings()
    }

    /// The options that the server was opened with.
    pub fn options(&self) -> &Options {
        &self.engine.shared.options
    }

    /// Counters, threads and socket states now.
    ///
    /// # Errors
    /// A flow that failed; flows that are not connected yet.
    pub fn snapshot(&self) -> Result<Snapshot, TrafficError> {
        self.engine.snapshot()
    }

    /// Bytes of messages read, and messages received, so far, all flows (`read_bytes` and `received` of
    /// [`wirecost_model::end_window::Counts`]).
    pub fn received(&self) -> (u64, u64) {
        self.engine.shared.flows.received()
    }

    /// The shared state of this end.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.engine.shared
    }

    #[cfg(test)]
    pub(crate) fn load_strays(&self) -> u32 {
        self.engine.shared.flows.strays()
    }

    /// Bytes of messages read or handed to the kernel so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.engine.shared.flows.bytes()
    }

    /// Takes no more flows, and waits, at most `timeout`, until the client has ended every connected flow. Flows that
    /// have not ended by then are aborted.
    ///
    /// # Errors
    /// A flow that failed. Every thread is joined all the same.
    pub fn finish(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        self.end(Instant::now() + timeout);
        let flows = &self.engine.shared.flows;
        flows.check()?;
        let ends = flows
            .all()
            .iter()
            .map(|flow| FinishedFlow {
                bytes: flow.bytes(),
                drained: matches!(flow.outcome.get(), Some(Outcome::Orderly)),
                counted: flow.rx.counted.get(),
            })
            .collect();
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: flows.strays(),
        })
    }

    fn end(&mut self, deadline: Instant) {
        self.service = None;
        let flows = &self.engine.shared.flows;
        flows.set_stopping();
        if let Some(AcceptorHandle { acceptor, threads }) = self.acceptor.take() {
            acceptor.wake.raise();
            // An acceptor that panicked sends no threads.
            self.threads.extend(threads.recv().unwrap_or_default());
            acceptor.end();
        }
        flows.wait_until(Some(deadline), || flows.all_ended());
        if !flows.all_ended() || !self.engine.ops.is_served_by_threads() {
            flows.abort();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.acceptor.is_some() || !self.threads.is_empty() {
            self.end(Instant::now());
        }
    }
}

fn loads(engines: &[Engine]) -> Vec<&Shared> {
    engines.iter().map(|engine| &*engine.shared).collect()
}

/// Whether an observer asks for the machines of this load.
fn is_watched(engine: &Engine) -> bool {
    let migration = engine.shared.options.load.migration;
    migration.is_some_and(|migration| migration.watch)
}

/// Listens with these options for the flows of all loads. `watched`: also binds the UDP port with the number of the TCP
/// port, for the service that answers the observer.
fn listen(
    bind: &Address,
    options: &Options,
    all: &[&Options],
    watched: bool,
) -> Result<(Address, Socket, Option<Socket>), TrafficError> {
    let flows: u32 = all.iter().map(|options| options.load.connections()).sum();
    let backlog = flows + SPARE_BACKLOG;
    let listening = |socket: &Socket| -> io::Result<Address> {
        match bind {
            Address::Ip(bind) => {
                socket.set_reuse_address(true)?;
                bind_here(socket, *bind)?;
            }
            Address::Path(_) | Address::Abstract(_) => {
                socket.bind(&socket::kernel_address(bind)?)?;
            }
        }
        socket.listen(backlog as i32)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?.as_socket();
        Ok(address.map_or_else(|| bind.clone(), Address::Ip))
    };
    let any_port = bind.ip().is_some_and(|bind| bind.port() == 0);
    let mut attempts = 0;
    loop {
        attempts += 1;
        let socket = socket::connection(bind, options)?;
        let address = listening(&socket).map_err(|source| TrafficError::Listen {
            address: bind.clone(),
            source,
        })?;
        if !watched {
            return Ok((address, socket, None));
        }
        let at = socket::ip(&address)?;
        let bound = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))
            .and_then(|answering| bind_here(&answering, at).map(|()| answering));
        match bound {
            Ok(answering) => return Ok((address, socket, Some(answering))),
            // The kernel chose a TCP port that is free; another program has the UDP port.
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && any_port
                    && attempts < PORT_ATTEMPTS => {}
            Err(source) => return Err(TrafficError::Listen { address, source }),
        }
    }
}
