//! How a client's flows are closed, and what says that the server has ended too.

use std::io::{self, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_sys::socket::set_udp_segment;

use crate::error::TrafficError;
use crate::flow::End;
use crate::handshake::{COUNT_BYTES, Header, Phase, read_answer};
use crate::load::Load;
use crate::machine::source::count_completions;
use crate::opening::{ask, hear, knock, left, read_all};
use crate::options::Sending;
use crate::table::ClientFlow;

/// How long the completions of zero-copy sends are waited for once all was read.
const COMPLETION: Duration = Duration::from_millis(100);

/// How long nothing may come of datagrams that were overtaken before they count as lost.
const STRAGGLERS: Duration = Duration::from_millis(100);

/// The server sends its count once it has read all of ours. `false`: not by the deadline.
pub(crate) fn by_count(load: &Load, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    let socket = &flow.socket;
    socket.set_nonblocking(false)?;
    // A source that never began has not ended its half.
    let _ = socket.shutdown(Shutdown::Write);
    let mut count = [0; COUNT_BYTES];
    match read_all(&mut &**socket, &mut count, deadline) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
        read => read?,
    }
    let book = &load.flows.all()[flow.index as usize];
    let (read, sent) = (u64::from_be_bytes(count), book.out.bytes.get());
    if read != sent {
        let words = format!("the sink says that it read {read}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    if load.options.sending == Sending::ZeroCopy {
        await_completions(load, socket, flow.index)?;
    }
    end_of_peer(socket, deadline)?;
    Ok(true)
}

fn await_completions(load: &Load, socket: &Socket, index: u32) -> io::Result<()> {
    let flow = &load.flows.all()[index as usize];
    let until = Instant::now() + COMPLETION;
    loop {
        count_completions(socket, flow)?;
        if flow.out.completed.get() >= flow.out.zero_copy.get() || Instant::now() >= until {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The server's end of stream is right behind. Acknowledged before our namespace may go, it leaves the server no
/// half-closed connection either; that it comes late makes nothing less drained.
fn end_of_peer(mut socket: &Socket, deadline: Instant) -> io::Result<()> {
    socket.set_linger(None)?;
    socket.set_read_timeout(Some(left(deadline)))?;
    let _ = socket.read(&mut [0; 1]);
    Ok(())
}

/// The server's half ended behind ours: our own reading half has seen that, or has not.
pub(crate) fn by_peer(load: &Load, flow: &ClientFlow, _: Instant) -> io::Result<bool> {
    let book = &load.flows.all()[flow.index as usize];
    let orderly = matches!(book.end.get(), Some(End::Orderly));
    if orderly {
        flow.socket.set_linger(None)?;
    }
    Ok(orderly)
}

/// We end our half, the server answers what was asked and ends its own.
pub(crate) fn by_end(_: &Load, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
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

/// One more connection says that the flow is over.
pub(crate) fn by_connection(load: &Load, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    let socket = flow.socket.try_clone()?;
    let socket = knock(
        socket,
        flow.target,
        &load.options,
        flow.index,
        Phase::Close,
        deadline,
    )
    .map_err(io_error)?;
    hear(&socket, flow.target, flow.index, deadline).map_err(io_error)?;
    Ok(true)
}

/// A datagram says that the flow is over, and how many there were.
pub(crate) fn by_datagram(load: &Load, flow: &ClientFlow, deadline: Instant) -> io::Result<bool> {
    say_over(load, flow, deadline).map(|_| true)
}

/// Likewise. Returns how many have come there by now.
fn say_over(load: &Load, flow: &ClientFlow, deadline: Instant) -> io::Result<u64> {
    let socket = &flow.socket;
    socket.set_nonblocking(false)?;
    if load.options.segmentation.send {
        // This datagram is to stay one.
        set_udp_segment(&**socket, 0)?;
    }
    let sent = load.flows.all()[flow.index as usize].out.messages.get();
    let mut question = Header::new(&load.options, flow.index, Phase::Close)
        .encode()
        .to_vec();
    question.extend(sent.to_be_bytes());
    let Some((answer, arrived)) = ask(socket, &question, deadline)? else {
        let words = "it did not answer that the flow is over";
        return Err(io::Error::new(io::ErrorKind::TimedOut, words));
    };
    read_answer(answer)?.map_err(|refusal| io::Error::other(refusal.to_string()))?;
    Ok(arrived)
}

/// The word that a stream of datagrams is over may overtake some of them: waits until the server has as many as were
/// sent, or for [`STRAGGLERS`] no more of any flow have come there, or for `deadline`.
pub(crate) fn await_stragglers(load: &Load, flows: &[ClientFlow], deadline: Instant) {
    let sent = |flow: &ClientFlow| load.flows.all()[flow.index as usize].out.messages.get();
    // With how many had come when it was asked before.
    let mut missed: Vec<(&ClientFlow, Option<u64>)> =
        flows.iter().map(|flow| (flow, None)).collect();
    let mut quiet = Instant::now();
    loop {
        let mut have_come = false;
        missed.retain_mut(|(flow, before)| {
            let Ok(arrived) = say_over(load, flow, deadline) else {
                return false;
            };
            have_come |= before
                .replace(arrived)
                .is_some_and(|before| arrived > before);
            arrived < sent(flow)
        });
        let now = Instant::now();
        if have_come {
            quiet = now;
        }
        if missed.is_empty() || now >= deadline || now - quiet >= STRAGGLERS {
            return;
        }
        std::thread::sleep(STRAGGLERS / 10);
    }
}
