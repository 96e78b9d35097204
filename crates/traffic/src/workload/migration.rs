//! Live migration: the memory of machines that go on writing to it.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use wirecost_model::load::MoveEngine;

use crate::buffers::BufferSizes;
use crate::closing::{self, NotCompared};
use crate::migration::pages::{Digest, of_channel};
use crate::migration::qemu::message::{Message, read_line};
use crate::migration::record::{HEAD_BYTES, Kind, REPLY_BYTES, Reply, decode_reply, encode};
use crate::opening::read_all;
use crate::ops::{ClientFlow, FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::options::Options;
use crate::shared::Shared;
use crate::task::migration_source::MigrationSource;
use crate::task::migration_target::MigrationTarget;
use crate::task::qemu_source::QemuSource;
use crate::task::qemu_target::QemuTarget;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    // Connections of one machine wait for each other, so their tasks may not block. QEMU has connections of its own,
    // and a task with a thread that waits for each machine.
    may_block: is_virtual,
    flow_kind: FlowKind::Connection { streams: true },
    client: |shared, flow| {
        Ok(vec![if is_virtual(&shared.options) {
            Box::new(QemuSource::new(shared, &flow)?)
        } else {
            Box::new(MigrationSource::new(shared, flow.socket, flow.index))
        }])
    },
    server: ServerTasks::PerConnection(|shared, socket, flow| {
        Ok(vec![if is_virtual(&shared.options) {
            Box::new(QemuTarget::new(shared, socket, flow)?)
        } else {
            Box::new(MigrationTarget::new(shared, socket, flow))
        }])
    }),
    shut_to_stop: false,
    closing: verify_and_close,
    after_close: None,
    threads: ThreadPolicy::TasksUpToProcessors,
    buffers: |_| BufferSizes::default(),
};

/// Whether QEMU moves the machines.
fn is_virtual(options: &Options) -> bool {
    let migration = options.load.migration;
    migration.is_some_and(|migration| migration.engine == MoveEngine::Qemu)
}

fn verify_and_close(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    let verified = if is_virtual(&shared.options) {
        verify_virtual(shared, flow, deadline)
    } else {
        verify(shared, flow, deadline)
    };
    verified.map_err(|error| match error.kind() {
        // The kernel's own is a connection that failed.
        io::ErrorKind::TimedOut if error.raw_os_error().is_none() => NotCompared.into(),
        _ => error,
    })?;
    closing::by_end(shared, flow, deadline)
}

fn not_after(deadline: Instant) -> io::Result<()> {
    if Instant::now() < deadline {
        Ok(())
    } else {
        Err(NotCompared.into())
    }
}

/// Compares the pages of a connection with those at the destination, by their digest.
fn verify(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<()> {
    let load = &shared.options.load;
    let channels = load.connections() / load.streams;
    let (number, channel) = (flow.index / channels, flow.index % channels);
    let machine = &shared.sources.machines[number as usize];
    if !machine.is_there() {
        return Ok(());
    }
    // One that is not asked any more does not seem silent.
    not_after(deadline)?;
    let mut socket = &*flow.socket;
    socket.set_nonblocking(false)?;
    let mut head = [0; HEAD_BYTES];
    encode(Kind::Verify, &[], &mut head);
    socket.write_all(&head)?;
    let mut reply = [0; REPLY_BYTES];
    if machine.migration.post_copy {
        read_all(&mut socket, &mut reply, deadline)?;
        let Reply::Wrote(writes) = decode_reply(&reply)? else {
            let words = "the destination does not say how often the machine wrote";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        };
        machine.replay(writes)?;
    }
    let mut digest = Digest::default();
    for range in of_channel(machine.migration.pages() as u32, channels, channel) {
        not_after(deadline)?;
        digest.add(&machine.memory, range);
    }
    read_all(&mut socket, &mut reply, deadline)?;
    if decode_reply(&reply)? == Reply::Digest(digest.0) {
        return Ok(());
    }
    let words = format!("the memory of machine {number} is not the same at the destination");
    Err(io::Error::new(io::ErrorKind::InvalidData, words))
}

/// Has the destination stop a virtual machine and compare its memory with what follows from its guest's writes.
fn verify_virtual(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<()> {
    if !shared.qemu_machines.is_there(flow.index) {
        return Ok(());
    }
    not_after(deadline)?;
    let socket = &*flow.socket;
    socket.set_nonblocking(false)?;
    Message::Verify.send(socket)?;
    let left = deadline.saturating_duration_since(Instant::now());
    socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
    let line = read_line(socket).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    })?;
    let words = match Message::parse(&line.unwrap_or_default())? {
        Message::Same { .. } => return Ok(()),
        Message::Differs { words } | Message::Failed { words } => words,
        other => format!("the destination answered {other:?}"),
    };
    let words = format!("virtual machine {} at the destination: {words}", flow.index);
    Err(io::Error::new(io::ErrorKind::InvalidData, words))
}
