//! Requests to two hosts at the same time.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{Reply, Request};

use crate::timeouts::PROMPT;

/// Interval of requests to a host that waits for something else of the run. Without a request an existing host undoes
/// the settings of a level after ten seconds, and any host ends its loads after a minute.
pub(crate) const KEEP_EVERY: Duration = Duration::from_secs(3);

/// An interrupt flag that is never set.
pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// Sends each host its request, if it has one, and waits for both answers. Every answer is read even where the other
/// one is an error, unless an interrupt ends the wait. A host that has answered is kept from giving up while the other
/// one works.
///
/// # Errors
/// That of the first host, otherwise that of the second; only after `Refused` can both connections still be used.
pub(crate) fn call_both(
    [a, b]: [&mut Link; 2],
    requests: [Option<&Request>; 2],
    within: Duration,
    interrupt: &AtomicBool,
) -> Result<[Option<Reply>; 2], LinkError> {
    let sent_a = requests[0].map(|request| a.send(request));
    let sent_b = requests[1].map(|request| b.send(request));
    let every = keep_every(requests.into_iter().flatten());
    let mut kept = [0; 2];
    let mut keep = || kept[1] += keep_alive(b);
    let from_a = sent_a
        .map(|sent| sent.and_then(|()| a.receive_while(within, interrupt, (every, &mut keep))));
    if let Some(Err(LinkError::Interrupted)) = from_a {
        return Err(LinkError::Interrupted);
    }
    let mut keep = || kept[0] += keep_alive(a);
    let from_b = sent_b
        .map(|sent| sent.and_then(|()| b.receive_while(within, interrupt, (every, &mut keep))));
    if let Some(Err(LinkError::Interrupted)) = from_b {
        return Err(LinkError::Interrupted);
    }
    for (link, requests) in [a, b].into_iter().zip(kept) {
        for _ in 0..requests {
            // The next request tells of a host that is gone.
            let _ = link.receive(PROMPT, &NEVER);
        }
    }
    Ok([from_a.transpose()?, from_b.transpose()?])
}

/// How often a host that has answered is asked for something while the other one works. Nothing is sent to hosts that
/// count.
fn keep_every<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Duration {
    let counts = |request: &Request| matches!(request, Request::Begin(_) | Request::Part(_));
    if requests.into_iter().any(counts) {
        Duration::MAX
    } else {
        KEEP_EVERY
    }
}

/// Sends a host, which may still be busy, a request that changes nothing. Returns the number of answers to expect.
fn keep_alive(link: &mut Link) -> u32 {
    u32::from(link.send(&Request::Machine).is_ok())
}

#[cfg(test)]
mod tests {
    use wirecost_agent::protocol::{CountingStart, PartOrder};

    use super::*;

    #[test]
    fn a_host_is_kept_while_the_other_one_works_but_not_while_it_counts() {
        let (part, begin) = (PartOrder::default(), CountingStart::default());
        for request in [Request::Part(part), Request::Begin(begin)] {
            assert_eq!(keep_every([&request]), Duration::MAX);
            assert_eq!(keep_every([&Request::Machine, &request]), Duration::MAX);
        }
        for request in [Request::StopClients, Request::OpenClients(Vec::new())] {
            assert_eq!(keep_every([&request, &request]), KEEP_EVERY);
        }
    }
}
