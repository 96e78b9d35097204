//! Requests and responses in datagrams.

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::options::Options;
use crate::task::udp_rr_client::UdpRrClient;
use crate::task::udp_server::UdpServer;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block,
    flow_kind: FlowKind::Udp,
    client: |shared, flow| {
        let requester = UdpRrClient::new(shared, flow.socket, flow.index);
        Ok(vec![Box::new(requester)])
    },
    server: ServerTasks::PerThread(|shared, listener, thread| {
        Ok(Box::new(UdpServer::new(shared, listener.socket, thread)))
    }),
    shut_to_stop: false,
    closing: closing::by_datagram,
    after_close: None,
    threads: ThreadPolicy::SharedFlows,
    buffers: BufferSizes::udp_rr,
};

/// A thread that blocks for a response cannot wait for the time of the next request.
fn may_block(options: &Options) -> bool {
    !options.load.is_timed() || options.load.depth == 1
}
