//! A connection for each request and response.

use std::io;

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::socket;
use crate::task::crr_client::CrrClient;
use crate::task::crr_server::CrrServer;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block: |_| true,
    flow_kind: FlowKind::ConnectionPerTransaction,
    client: |shared, flow| {
        let target = socket::ip(&flow.target).map_err(io::Error::other)?;
        Ok(vec![Box::new(CrrClient::new(shared, target, flow.index))])
    },
    server: ServerTasks::PerThread(|shared, listener, _| {
        Ok(Box::new(CrrServer::new(shared, listener)?))
    }),
    shut_to_stop: false,
    closing: closing::by_connection,
    after_close: None,
    threads: ThreadPolicy::Processors,
    buffers: BufferSizes::tcp,
};
