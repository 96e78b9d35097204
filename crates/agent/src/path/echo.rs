//! ICMP echo requests during a survey: where its datagrams are unanswered, the echo's round trip sets how long to wait
//! for them.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_pmtu::{Config, FAR_PATIENCE, RateLimit};
use wirecost_probe::one_sided;

use crate::protocol::PathDirection;
use crate::prove::smallest;

/// Size of an echo request, bytes: it passes any path, and is large enough for a probe over IPv4 or IPv6.
const SMALL: u32 = 128;
/// Added to twice the time of the echo, which includes the neighbour resolution.
const SPARE: Duration = Duration::from_millis(400);

/// Echo requests that run on a thread of their own, in the calling thread's network namespace.
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
                patience: FAR_PATIENCE,
                ..Config::default()
            };
            let sizes = (smallest(to).min(SMALL), SMALL);
            // Without permission for ICMP sockets there is no answer.
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

    /// Whether datagrams without an answer at `now`, the time since both were started, are not going to be answered.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        let answered = self.answered.get();
        answered.is_some_and(|&took| now > took * 2 + SPARE)
    }
}
