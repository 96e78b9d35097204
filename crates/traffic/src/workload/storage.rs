//! Reads and writes of blocks over NBD.

use std::io;
use std::time::Instant;

use crate::buffers::BufferSizes;
use crate::closing;
use crate::ops::{ClientFlow, FlowKind, ServerTasks, ThreadPolicy, WorkloadOps};
use crate::options::Options;
use crate::shared::Shared;
use crate::storage::{handshake, verify};
use crate::task::nbd_client::NbdClient;
use crate::task::nbd_server::NbdServer;
use crate::timeouts::PEER_TIMEOUT;

pub(crate) static OPS: WorkloadOps = WorkloadOps {
    tasks_per_flow: 1,
    may_block,
    flow_kind: FlowKind::Connection { streams: false },
    client: |shared, flow| {
        let export = shared.options.export.as_deref().unwrap_or_default();
        let negotiated = handshake::choose(&flow.socket, export, Instant::now() + PEER_TIMEOUT)?;
        fits(&shared.options, &negotiated.export)?;
        let _ = shared.flows.all()[flow.index as usize]
            .negotiated
            .set(negotiated);
        let client = NbdClient::new(shared, flow.socket, flow.index, negotiated);
        Ok(vec![Box::new(client)])
    },
    server: ServerTasks::PerConnection(|shared, socket, flow| {
        Ok(vec![Box::new(NbdServer::new(shared, socket, flow)?)])
    }),
    shut_to_stop: false,
    closing: verify_and_close,
    after_close: None,
    threads: ThreadPolicy::SharedFlows,
    buffers: BufferSizes::storage,
};

/// With one request outstanding neither end writes while the other one does.
fn may_block(options: &Options) -> bool {
    options.load.depth == 1
}

/// Checks that an export can serve the load.
///
/// # Errors
/// `InvalidInput` with the reason.
fn fits(options: &Options, export: &wirecost_nbd::export::Export) -> io::Result<()> {
    let load = &options.load;
    let writes = load.storage.is_some_and(|storage| storage.pattern.writes());
    let refuse = |words: String| Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    if writes && export.is_read_only() {
        return refuse("the export is read-only, and the load writes".to_owned());
    }
    let flushes = load.storage.is_some_and(|storage| storage.flush_every > 0);
    if flushes && !export.can_flush() {
        return refuse(
            "the export takes no flush (SEND_FLUSH), and the load asks for some".to_owned(),
        );
    }
    if export.size < u64::from(load.request) {
        return refuse(format!(
            "the export has {} bytes, less than one I/O",
            export.size
        ));
    }
    let (least, most) = (export.min_block, export.max_block);
    if !load.request.is_multiple_of(least) || load.request > most {
        return refuse(format!(
            "the export takes I/O of a multiple of {least} bytes up to {most}, not of {}",
            load.request
        ));
    }
    if load.streams > 1 && writes && !export.can_multi_conn() {
        return refuse(
            "the server does not promise that several connections see the same content (CAN_MULTI_CONN): use one \
             connection"
                .to_owned(),
        );
    }
    Ok(())
}

fn verify_and_close(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    let state = &shared.flows.all()[flow.index as usize];
    flow.socket.set_nonblocking(false)?;
    if let Some(negotiated) = state.negotiated.get() {
        match verify::verify(shared, state, &flow.socket, *negotiated, deadline) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
            verified => verified?,
        }
    }
    closing::by_end(shared, flow, deadline)
}
