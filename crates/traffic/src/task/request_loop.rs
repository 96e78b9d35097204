//! The loop of a request/response client on a connection that stays: it receives, queues requests and sends them.

use std::io;

use wirecost_sys::epoll::Interest;

use super::{Context, Progress};
use crate::flow::Outcome;

/// Passes of one flow's loop before the others of its thread are polled.
const BUDGET: u32 = 8;

/// A request/response client on a connection that stays.
pub(super) trait RequestClient {
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
                Idle::Until(due) => Progress::Wait(interest, due),
                Idle::Over(outcome) => Progress::Over(outcome),
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
