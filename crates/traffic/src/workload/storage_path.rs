//! Reads and writes of blocks of a file or device: no connection, and no server of ours.

use std::io;

use crate::buffers::BufferSizes;
use crate::ops::{FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block: |_| true,
    flow_kind: FlowKind::Path,
    client: |_, _| Err(io::ErrorKind::Unsupported.into()),
    server: ServerTasks::PerConnection(|_, _, _| Err(io::ErrorKind::Unsupported.into())),
    shut_to_stop: false,
    closing: |_, _, _| Ok(true),
    after_close: None,
    threads: ThreadPolicy::PerFlow,
    buffers: BufferSizes::path,
};
