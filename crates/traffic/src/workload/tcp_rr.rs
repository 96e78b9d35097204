//! Requests and responses on persistent connections.

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::options::Options;
use crate::task::rr_client::RrClient;
use crate::task::rr_server::RrServer;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block,
    flow_kind: FlowKind::Connection { streams: false },
    client: |shared, flow| {
        let requester = RrClient::new(shared, flow.socket, flow.index);
        Ok(vec![Box::new(requester)])
    },
    server: ServerTasks::PerConnection(|_, socket, flow| {
        Ok(vec![Box::new(RrServer::new(socket, flow))])
    }),
    shut_to_stop: false,
    closing: closing::by_end,
    after_close: None,
    threads: ThreadPolicy::SharedFlows,
    buffers: BufferSizes::tcp_rr,
};

/// Outstanding bytes up to which two blocking ends cannot both block in a write.
const SAFELY_OUTSTANDING: u64 = 16 << 10;

/// A thread that blocks for a response cannot wait for the time of the next request.
fn may_block(options: &Options) -> bool {
    let largest = u64::from(options.load.request.max(options.load.response));
    let one_at_a_time =
        options.load.depth == 1 || largest * u64::from(options.load.depth) <= SAFELY_OUTSTANDING;
    one_at_a_time && (!options.load.is_timed() || options.load.depth == 1)
}
