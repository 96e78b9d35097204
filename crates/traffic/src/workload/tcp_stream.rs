//! The client sends, the server receives to the end and confirms the number of bytes.

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::task::stream_receiver::{OnEof, StreamReceiver};
use crate::task::stream_sender::{Initiator, StreamSender};

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block: |_| true,
    flow_kind: FlowKind::Connection { streams: true },
    client: |shared, flow| {
        let source = StreamSender::new(&shared.options, flow.socket, flow.index, Initiator::Local);
        Ok(vec![Box::new(source)])
    },
    server: ServerTasks::PerConnection(|_, socket, flow| {
        let sink = StreamReceiver::new(socket, flow, OnEof::SendCount);
        Ok(vec![Box::new(sink)])
    }),
    shut_to_stop: true,
    closing: closing::by_count,
    after_close: None,
    threads: ThreadPolicy::TasksUpToProcessors,
    buffers: BufferSizes::tcp_stream,
};
