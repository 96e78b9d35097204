//! Memory of machines that go on writing to it.

use std::io::{self, Write};
use std::time::Instant;

use crate::buffers::BufferSizes;
use crate::closing;
use crate::migration::pages::{Digest, of_channel};
use crate::migration::record::{HEAD_BYTES, Kind, REPLY_BYTES, Reply, decode_reply, encode};
use crate::opening::read_all;
use crate::ops::{ClientFlow, FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::shared::Shared;
use crate::task::migration_source::MigrationSource;
use crate::task::migration_target::MigrationTarget;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    // Connections of one machine wait for each other.
    may_block: |_| false,
    flow_kind: FlowKind::Connection { streams: true },
    client: |shared, flow| {
        let task = MigrationSource::new(shared, flow.socket, flow.index);
        Ok(vec![Box::new(task)])
    },
    server: ServerTasks::PerConnection(|shared, socket, flow| {
        Ok(vec![Box::new(MigrationTarget::new(shared, socket, flow))])
    }),
    shut_to_stop: false,
    closing: verify_and_close,
    after_close: None,
    threads: ThreadPolicy::Halves,
    buffers: |_| BufferSizes::default(),
};

fn verify_and_close(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    match verify(shared, flow, deadline) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
        verified => verified?,
    }
    closing::by_end(shared, flow, deadline)
}

/// Compares the pages of a connection with what the destination has.
fn verify(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<()> {
    let load = &shared.options.load;
    let channels = load.connections() / load.streams;
    let (number, channel) = (flow.index / channels, flow.index % channels);
    let machine = &shared.sources.machines[number as usize];
    if !machine.is_there() {
        return Ok(());
    }
    let mut socket = &*flow.socket;
    socket.set_nonblocking(false)?;
    let mut head = [0; HEAD_BYTES];
    encode(Kind::Verify, &[], &mut head);
    socket.write_all(&head)?;
    let mut digest = Digest::default();
    for range in of_channel(machine.migration.pages() as u32, channels, channel) {
        digest.add(&machine.memory, range);
    }
    let mut reply = [0; REPLY_BYTES];
    read_all(&mut socket, &mut reply, deadline)?;
    if decode_reply(&reply)? == Reply::Digest(digest.0) {
        return Ok(());
    }
    let words = format!("the memory of machine {number} is not the same at the destination");
    Err(io::Error::new(io::ErrorKind::InvalidData, words))
}
