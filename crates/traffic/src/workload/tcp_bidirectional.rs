//! Both ends send and receive on each connection. The server starts with the first byte it receives, and shuts down
//! at the client's FIN: the server's FIN confirms both directions.

use std::io;
use std::sync::Arc;

use socket2::Socket;

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{FlowKind, ServerTasks, Tasks, ThreadPolicy, WorkloadOps};
use crate::options::Options;
use crate::task::Task;
use crate::task::stream_receiver::{OnEof, StreamReceiver};
use crate::task::stream_sender::{Initiator, StreamSender};

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 2,
    may_block: |_| true,
    flow_kind: FlowKind::Connection { streams: true },
    client: |shared, flow| {
        let (options, socket) = (&shared.options, flow.socket);
        tasks_per_flow(
            options,
            socket,
            flow.index,
            Initiator::Local,
            OnEof::Nothing,
        )
    },
    server: ServerTasks::PerConnection(|shared, socket, flow| {
        crate::socket::set_sender_options(&socket, &shared.options)
            .map_err(|error| io::Error::other(error.to_string()))?;
        tasks_per_flow(
            &shared.options,
            socket,
            flow,
            Initiator::Remote,
            OnEof::ShutdownWrite,
        )
    }),
    shut_to_stop: true,
    closing: closing::by_peer,
    after_close: None,
    threads: ThreadPolicy::TasksUpToProcessors,
    buffers: BufferSizes::tcp_stream,
};

fn tasks_per_flow(
    options: &Options,
    socket: Arc<Socket>,
    flow: u32,
    initiator: Initiator,
    on_eof: OnEof,
) -> Tasks {
    // Two descriptors: one cannot be added twice to an epoll set.
    let other = Arc::new(socket.try_clone()?);
    let sink = StreamReceiver::new(other, flow, on_eof);
    let source: Box<dyn Task> = Box::new(StreamSender::new(options, socket, flow, initiator));
    Ok(vec![source, Box::new(sink)])
}
