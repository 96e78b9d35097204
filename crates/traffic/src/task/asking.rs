//! How a client of requests and responses goes on, on a connection that stays: it reads, asks for more and writes.

use std::io;

use wirecost_sys::epoll::Interest;

use super::{Context, Progress};
use crate::flow::Outcome;

/// Rounds of one flow before the others of its thread are polled.
const BUDGET: u32 = 8;

/// Such a client.
pub(super) trait Asking {
    /// Requests without a complete response.
    fn outstanding(&self) -> usize;

    /// Adds the requests that may be sent now.
    fn queue(&mut self, context: &Context<'_>, now: u64);

    /// Writes requests; `false` where the socket takes no more.
    fn send(&mut self, context: &Context<'_>, now: u64) -> io::Result<bool>;

    /// Reads what has arrived; `false` where there is no more.
    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<bool>;

    /// Whether the server has been silent for too long.
    fn timed_out(&self, now: u64) -> bool;

    /// With nothing outstanding: when the next request is due, or that there is none any more.
    fn idle(&mut self, context: &Context<'_>) -> Idle;

    /// With something outstanding: when to poll again at the latest.
    fn until(&self) -> Option<u64>;
}

/// What a client with nothing outstanding waits for.
pub(super) enum Idle {
    /// This time.
    Until(Option<u64>),
    /// Nothing: it has ended.
    Over(Outcome),
}

/// Does what can be done now.
pub(super) fn poll(client: &mut impl Asking, context: &mut Context<'_>) -> Progress {
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
