//! What differs between workloads: a table of functions for each ([`WorkloadOps`]).

use std::io;
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;
use wirecost_model::load::Address;

use crate::buffers::BufferSizes;
use crate::dispatch::Dispatcher;
use crate::options::Options;
use crate::shared::Shared;
use crate::socket::OptionFixup;
use crate::task::Task;

/// The tasks of one flow.
pub(crate) type Tasks = io::Result<Vec<Box<dyn Task>>>;

/// The functions and properties of one workload.
#[derive(Debug)]
pub(crate) struct WorkloadOps {
    /// Tasks for each flow: 2 where both directions carry a stream.
    pub(crate) tasks_per_flow: u32,
    /// Whether a task with a thread of its own may use a blocking socket.
    pub(crate) may_block: fn(&Options) -> bool,
    /// How a client's flow is opened.
    pub(crate) flow_kind: FlowKind,
    /// Makes the tasks of a client's flow.
    pub(crate) client: fn(&Shared, ClientFlow) -> Tasks,
    /// Makes the tasks of a server.
    pub(crate) server: ServerTasks,
    /// Whether a client's flow is stopped by shutdown(2), since its task may be waiting in a write.
    pub(crate) shut_to_stop: bool,
    /// Closes a client's flow once its tasks have ended. Returns whether the server confirmed the end.
    pub(crate) closing: Closing,
    /// What a client waits for once all of its flows are closed.
    pub(crate) after_close: Option<fn(&Shared, &[ClientFlow], Instant)>,
    /// Default number of threads of an end.
    pub(crate) threads: ThreadPolicy,
    /// Sizes of a thread's buffers.
    pub(crate) buffers: fn(&Options) -> BufferSizes,
}

/// The default number of threads of an end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ThreadPolicy {
    /// One for each task; as many as processors where there are many tasks.
    TasksUpToProcessors,
    /// One for several flows: at least two, at most one for each processor.
    SharedFlows,
    /// One for each processor.
    Processors,
    /// One for each flow.
    PerFlow,
}

/// Closes a client's flow by a deadline. Returns whether the server confirmed the end.
pub(crate) type Closing = fn(&Shared, &ClientFlow, Instant) -> io::Result<bool>;

/// Makes the task of a server thread, which is given by its index.
pub(crate) type MakeThreadTask = fn(&Shared, Listener, usize) -> io::Result<Box<dyn Task>>;

/// Where a server thread's connections or datagrams come from.
pub(crate) struct Listener {
    /// The listener, or the thread's own socket on the port.
    pub(crate) socket: Arc<Socket>,
    /// Over TCP: the dispatcher of the loads on the port, and the index of this load.
    pub(crate) dispatcher: Option<(Arc<Dispatcher>, usize)>,
    /// Sets the load's options on accepted sockets that inherit others from the listener.
    pub(crate) fixup: Option<OptionFixup>,
}

/// A flow of a client.
#[derive(Debug, Clone)]
pub(crate) struct ClientFlow {
    pub(crate) index: u32,
    pub(crate) target: Address,
    /// The flow's connection or UDP socket. Where the flow has a connection for each transaction: the socket of the
    /// last connection, which ends the flow.
    pub(crate) socket: Arc<Socket>,
}

/// How a client's flow uses sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlowKind {
    /// One TCP connection; `streams`: this end writes a stream to it.
    Connection {
        /// Whether the socket gets [`crate::socket::set_sender_options`].
        streams: bool,
    },
    /// A TCP connection for each transaction.
    ConnectionPerTransaction,
    /// A UDP socket.
    Udp,
    /// No socket, but a file or device; its tasks are made by [`crate::task::path_client`].
    Path,
}

/// Which threads serve a server's flows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerTasks {
    /// Tasks are made for each admitted connection and distributed over the threads.
    PerConnection(fn(&Shared, Arc<Socket>, u32) -> Tasks),
    /// One task for each thread, which serves any flow: all threads share a TCP listener, or have a UDP socket each.
    PerThread(MakeThreadTask),
}

impl WorkloadOps {
    /// Whether each thread serves any flow, and so notices itself when all flows have ended.
    pub(crate) fn is_served_by_threads(&self) -> bool {
        matches!(self.server, ServerTasks::PerThread(_))
    }
}
