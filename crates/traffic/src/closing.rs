//! Closes a client's flows, each with the server's confirmation that it ended too.

use std::error::Error;
use std::io::{self, Read};
use std::mem;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_sys::socket::set_udp_segment;

use crate::error::TrafficError;
use crate::flow::Outcome;
use crate::handshake::{COUNT_BYTES, Header, Phase, read_answer};
use crate::opening::{await_answer, connect_flow, read_all, remaining, request_answer};
use crate::ops::ClientFlow;
use crate::options::Sending;
use crate::shared::Shared;
use crate::task::stream_sender::count_completions;

/// How long zero-copy completions are waited for after the server has read all data.
const COMPLETION: Duration = Duration::from_millis(100);

/// Datagrams count as lost after this time without an arrival.
const LATE_DATAGRAMS: Duration = Duration::from_millis(100);

/// The deadline passed before the memory that a connection moved was compared: [`TrafficError::NotCompared`].
#[derive(Debug, thiserror::Error)]
#[error("the memory was not compared in time")]
pub(crate) struct NotCompared;

impl From<NotCompared> for io::Error {
    fn from(late: NotCompared) -> Self {
        Self::new(io::ErrorKind::TimedOut, late)
    }
}

impl NotCompared {
    /// Whether an error is this one.
    pub(crate) fn is(error: &io::Error) -> bool {
        error
            .get_ref()
            .is_some_and(<dyn Error + Send + Sync>::is::<Self>)
    }
}

/// Closes a stream: the server sends its count of bytes once it has read to the end. `false`: not by the deadline.
///
/// # Errors
/// `InvalidData`: the server's count is not what was sent.
pub(crate) fn by_count(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    let socket = &flow.socket;
    socket.set_nonblocking(false)?;
    // A sender that never started has not shut down its direction.
    let _ = socket.shutdown(Shutdown::Write);
    let mut count = [0; COUNT_BYTES];
    match read_all(&mut &**socket, &mut count, deadline) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
        read => read?,
    }
    let state = &shared.flows.all()[flow.index as usize];
    let (read, sent) = (u64::from_be_bytes(count), state.tx.bytes.get());
    if read != sent {
        let words = format!("the server says that it read {read} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    if shared.options.load.sending == Sending::ZeroCopy {
        await_completions(shared, socket, flow.index)?;
    }
    end_of_peer(socket, deadline)?;
    Ok(true)
}

fn await_completions(shared: &Shared, socket: &Socket, index: u32) -> io::Result<()> {
    let flow = &shared.flows.all()[index as usize];
    let until = Instant::now() + COMPLETION;
    loop {
        count_completions(socket, flow)?;
        if flow.tx.completed.get() >= flow.tx.zero_copy.get() || Instant::now() >= until {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the server's FIN, which follows its count. Once the FIN is acknowledged, the server has no half-closed
/// connection left. A late FIN does not make the flow less drained.
fn end_of_peer(mut socket: &Socket, deadline: Instant) -> io::Result<()> {
    socket.set_linger(None)?;
    socket.set_read_timeout(Some(remaining(deadline)))?;
    let _ = socket.read(&mut [0; 1]);
    Ok(())
}

/// Closes a bidirectional stream, which the server shuts down last: `true` if this end's receiving task has seen its
/// FIN.
pub(crate) fn by_peer(shared: &Shared, flow: &ClientFlow, _: Instant) -> io::Result<bool> {
    let state = &shared.flows.all()[flow.index as usize];
    let orderly = matches!(state.outcome.get(), Some(Outcome::Orderly));
    if orderly {
        flow.socket.set_linger(None)?;
    }
    Ok(orderly)
}

/// Closes a connection whose requests are all answered: shuts it down and waits for the server's FIN. `false`: not by
/// the deadline.
///
/// # Errors
/// `InvalidData`: the server sends anything else.
pub(crate) fn by_end(_: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    let socket = &flow.socket;
    socket.set_nonblocking(false)?;
    let _ = socket.shutdown(Shutdown::Write);
    let mut past = [0; 1];
    match read_all(&mut &**socket, &mut past, deadline) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            socket.set_linger(None)?;
            Ok(true)
        }
        Err(error) => Err(error),
        Ok(()) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it answered more than was asked",
        )),
    }
}

fn io_error(error: TrafficError) -> io::Error {
    match error {
        TrafficError::Connect { source, .. }
        | TrafficError::NoAnswer { source, .. }
        | TrafficError::Socket { source, .. } => source,
        other => io::Error::other(other.to_string()),
    }
}

/// Closes a flow with a connection for each transaction: a further connection tells the server that it has ended.
pub(crate) fn by_connection(
    shared: &Shared,
    flow: &ClientFlow,
    deadline: Instant,
) -> io::Result<bool> {
    let socket = flow.socket.try_clone()?;
    let socket = connect_flow(
        socket,
        &flow.target,
        &shared.options,
        flow.index,
        Phase::Close,
        false,
        deadline,
    )
    .map_err(io_error)?;
    await_answer(&socket, &flow.target, flow.index, deadline).map_err(io_error)?;
    Ok(true)
}

/// Closes a flow over UDP: a datagram tells the server that it has ended, and how many messages were sent.
pub(crate) fn by_datagram(
    shared: &Shared,
    flow: &ClientFlow,
    deadline: Instant,
) -> io::Result<bool> {
    send_close(shared, flow, deadline).map(|_| true)
}

/// Sends the close and returns how many messages of the flow have arrived at the server.
fn send_close(shared: &Shared, flow: &ClientFlow, deadline: Instant) -> io::Result<u64> {
    let socket = &flow.socket;
    socket.set_nonblocking(false)?;
    if shared.options.load.segmentation.send {
        // This datagram must not be segmented.
        set_udp_segment(&**socket, 0)?;
    }
    let sent = shared.flows.all()[flow.index as usize].tx.messages.get();
    let mut question = Header::new(&shared.options, flow.index, Phase::Close)
        .encode()
        .to_vec();
    question.extend(sent.to_be_bytes());
    let Some((answer, arrived)) = request_answer(socket, &question, deadline)? else {
        let words = "it did not answer that the flow is over";
        return Err(io::Error::new(io::ErrorKind::TimedOut, words));
    };
    read_answer(answer)?.map_err(|refusal| io::Error::other(refusal.to_string()))?;
    Ok(arrived)
}

/// Waits for datagrams that the close of a UDP stream has overtaken: until the server has received as many as were
/// sent, no flow has received any for [`LATE_DATAGRAMS`], or the deadline.
pub(crate) fn await_late_datagrams(shared: &Shared, flows: &[ClientFlow], deadline: Instant) {
    let sent = |flow: &ClientFlow| shared.flows.all()[flow.index as usize].tx.messages.get();
    // Each with the number of messages that had arrived at its last query.
    let mut missed: Vec<(&ClientFlow, u64)> = flows.iter().map(|flow| (flow, 0)).collect();
    let mut quiet = Instant::now();
    loop {
        let mut have_come = false;
        missed.retain_mut(|(flow, before)| {
            let Ok(arrived) = send_close(shared, flow, deadline) else {
                return false;
            };
            have_come |= arrived > mem::replace(before, arrived);
            arrived < sent(flow)
        });
        let now = Instant::now();
        if have_come {
            quiet = now;
        }
        if missed.is_empty() || now >= deadline || now - quiet >= LATE_DATAGRAMS {
            return;
        }
        std::thread::sleep(LATE_DATAGRAMS / 10);
    }
}
