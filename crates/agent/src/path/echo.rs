//! Echo requests (ICMP) beside a survey that nobody answers: with their answer it is known how far the other end is, and so
//! how long a datagram's answer is worth waiting for.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_pmtu::{Config, FAR_AWAY, RateLimit};
use wirecost_probe::one_sided;

use crate::protocol::PathDirection;
use crate::prove::smallest;

/// Passes wherever anything does, bytes; large enough for a probe over either version.
const SMALL: u32 = 128;
/// Beside two round trips of the echo, whose own time includes the search for a neighbour.
const SPARE: Duration = Duration::from_millis(400);

/// Echo requests under way, on a thread of their own in the calling thread's network namespace.
#[derive(Debug)]
pub(super) struct Echo {
    answered: Arc<OnceLock<Duration>>,
}

impl Echo {
    pub(super) fn ask(way: &PathDirection) -> Self {
        let answered = Arc::new(OnceLock::new());
        let (told, from, to) = (Arc::clone(&answered), way.from.address, way.to.address);
        let asking = move || {
            let began = Instant::now();
            let config = Config {
                patience: FAR_AWAY,
                ..Config::default()
            };
            let sizes = (smallest(to).min(SMALL), SMALL);
            // Not allowed to, perhaps: it would have said more.
            let answer = one_sided(from, to, sizes, config, RateLimit::default());
            if answer.is_ok_and(|(answer, _)| !answer.is_dead()) {
                let _ = told.set(began.elapsed());
            }
        };
        let _ = thread::Builder::new().name("echo".into()).spawn(asking);
        Self { answered }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.get().is_some()
    }

    /// Whether datagrams that are not answered by `now`, the time since both began, are not going to be.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        let answered = self.answered.get();
        answered.is_some_and(|&took| now > took * 2 + SPARE)
    }
}
