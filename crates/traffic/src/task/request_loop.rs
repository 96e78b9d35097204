//! The loop of a request/response client on a connection that stays: it receives, queues requests and sends them.

use std::io;
use std::mem::MaybeUninit;

use socket2::Socket;
use wirecost_sys::epoll::Interest;

use super::{Context, IoFailure, Progress};
use crate::flow::Outcome;
use crate::options::WaitMode;

/// Passes of one flow's loop before the others of its thread are polled.
const BUDGET: u32 = 8;

/// A request/response client on a connection that stays.
pub(super) trait RequestClient {
    /// The connection.
    fn socket(&self) -> &Socket;

    /// Requests without a complete response.
    fn outstanding(&self) -> usize;

    /// Queues the requests that may be sent at `now`.
    fn queue(&mut self, context: &Context<'_>, now: u64);

    /// Writes queued requests; `false` where the socket takes no more.
    fn send(&mut self, context: &Context<'_>, now: u64) -> io::Result<bool>;

    /// Reads what has arrived; `false` where there is no more.
    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<bool>;

    /// Whether the server has been silent for too long.
    fn timed_out(&self, now: u64) -> bool;

    /// What a client without outstanding requests waits for.
    fn idle(&mut self, context: &Context<'_>) -> Idle;

    /// Latest time of the next poll while requests are outstanding, nanoseconds by [`crate::shared::Shared::now`].
    fn until(&self) -> Option<u64>;
}

/// What a client without outstanding requests waits for.
pub(super) enum Idle {
    /// The time at which the next request is due, where it is known.
    Until(Option<u64>),
    /// Nothing: the client has ended.
    Over(Outcome),
}

/// Polls a client: does what can be done now, in at most [`BUDGET`] passes.
pub(super) fn poll(client: &mut impl RequestClient, context: &mut Context<'_>) -> Progress {
    let idle = client.outstanding() == 0;
    let sleeps = context.shared.options.load.waiting == WaitMode::Sleep;
    for _ in 0..BUDGET {
        if client.outstanding() > 0 {
            match client.receive(context) {
                Ok(false) if client.timed_out(context.shared.now()) => {
                    return Progress::failed(io::ErrorKind::TimedOut.into());
                }
                // The blocking read timed out.
                Ok(false) if context.blocking => return Progress::READ,
                Ok(_) => {}
                Err(error) => return Progress::failed(error),
            }
        }
        let now = context.shared.now();
        client.queue(context, now);
        let all_sent = match client.send(context, now) {
            Ok(all) => all,
            Err(error) => return Progress::failed(error),
        };
        if client.outstanding() == 0 {
            let interest = Interest {
                read: !context.blocking,
                write: false,
            };
            return match client.idle(context) {
                Idle::Over(outcome) => Progress::Over(outcome),
                Idle::Until(due) => {
                    // Woken with nothing to do: what woke it would do so again at once.
                    let woken = idle && !context.blocking && sleeps;
                    match woken.then(|| unasked(client.socket())).flatten() {
                        Some(error) => Progress::failed(error),
                        None => Progress::Wait(interest, due),
                    }
                }
            };
        }
        if !context.blocking {
            // The responses cannot have arrived yet.
            let interest = Interest {
                read: true,
                write: !all_sent,
            };
            return Progress::Wait(interest, client.until());
        }
    }
    Progress::Again
}

/// What has arrived on a connection on which nothing is awaited, as an error: its end, or bytes that nobody asked for.
fn unasked(socket: &Socket) -> Option<io::Error> {
    match socket.peek(&mut [MaybeUninit::uninit()]) {
        Ok(0) => Some(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => {
            let words = "the server sent what it was not asked for";
            Some(io::Error::new(io::ErrorKind::InvalidData, words))
        }
        Err(error) => match IoFailure::from(error) {
            IoFailure::Broken(error) => Some(error),
            IoFailure::Interrupted | IoFailure::Blocked => None,
        },
    }
}
