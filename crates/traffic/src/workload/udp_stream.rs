//! Datagrams from client to server.

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::task::udp_sender::UdpSender;
use crate::task::udp_server::UdpServer;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block: |_| true,
    flow_kind: FlowKind::Udp,
    client: |shared, flow| {
        let source = UdpSender::new(shared, flow.socket, flow.index);
        Ok(vec![Box::new(source)])
    },
    server: ServerTasks::PerThread(|shared, listener, thread| {
        Ok(Box::new(UdpServer::new(shared, listener.socket, thread)))
    }),
    shut_to_stop: false,
    closing: closing::by_datagram,
    after_close: Some(closing::await_late_datagrams),
    threads: ThreadPolicy::Processors,
    buffers: BufferSizes::udp_stream,
};
