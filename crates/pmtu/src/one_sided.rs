//! What one side can find out where no agent answers at the far end.
//!
//! An echo request (ICMP, DF set) comes back at its full size: a size whose reply arrives passes in
//! **both directions**, and a size whose reply does not was lost in either. A datagram to a closed
//! port is answered by a small ICMP message, which shows that the datagram passed in the
//! **forward** direction. So the echo size is searched first, and then one byte more is sent to a
//! closed port. Hosts limit such ICMP messages (Linux: 6 at once, then one a second,
//! net/ipv4/icmp.c), so few are provoked: datagrams that are dropped on the path provoke none.

use std::time::Duration;

use crate::config::{Arrival, Config, Probe};
use crate::evidence::{ERROR, Log, LossCount, fisher_exact_p};
use crate::flight::Flight;
use crate::outcome::{CannotTellReason, Limit, Outcome, TooBig};
use crate::pacing::RateLimit;
use crate::prober::Prober;

/// How a probe is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// As an ICMP echo request, whose reply has the same size.
    Echo,
    /// As a UDP datagram to a port on which nothing listens.
    ClosedPort,
}

/// A probe, and how to send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneSidedProbe {
    /// How to send the probe.
    pub kind: ProbeKind,
    /// The probe; its id is unique over both kinds.
    pub probe: Probe,
}

/// What is known of the forward direction when larger echoes do not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardMtu {
    /// Not probed: every size of interest comes back, or this host sends no larger one.
    NotAsked,
    /// The forward direction carries at least this size in bytes: the return direction is the
    /// narrow one or, where no echo came back at all, echoes are filtered.
    AtLeast(u32),
    /// The forward direction carries no more than what comes back; the return direction may carry
    /// more. Where no echo came back at all: it carries small packets and not the largest size of
    /// interest.
    SameAsEcho,
    /// The closed port does not answer, or too seldom: either direction may be the narrow one.
    CannotTell,
}

/// The result of probing from one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneSidedResult {
    /// The largest size that comes back as an echo.
    pub both_ways: Outcome,
    /// What the forward direction carries beyond that.
    pub forward: ForwardMtu,
    /// Number of packets sent.
    pub probes: u32,
}

impl OneSidedResult {
    /// Whether not even small echoes came back.
    pub const fn is_dead(&self) -> bool {
        matches!(
            self.both_ways,
            Outcome::CannotTell {
                reason: CannotTellReason::NoAnswer,
                at_least: None,
            }
        )
    }
}

/// Share of missing answers, among sizes that pass, above which a rate limit on echoes is suspected
/// and they are sent more slowly.
const RATE_LIMIT_LOSS: f64 = 0.5;
/// Large datagrams to the closed port after each small one. That 5 small ones are answered and 20
/// large ones lost is chance once in 53,130 times, and takes 5 of the 6 answers that Linux gives at
/// once.
const LARGE_PER_SMALL: u32 = 5;
const SMALL_DATAGRAMS: u32 = 5;
/// Wait for an answer from a closed port where no echo was answered.
const CLOSED_PORT_WAIT: Duration = Duration::from_secs(1);

/// Probes a path from one side: first by echoes, then by a closed port.
#[derive(Debug)]
pub struct OneSided {
    echo: Prober,
    flight: Flight,
    config: Config,
    high: u32,
    /// First probe id of the closed-port check.
    base: u64,
    port: Option<PortCheck>,
    forward: Option<ForwardMtu>,
    /// Rounds of echoes that were examined for a rate limit.
    rounds_evaluated: u32,
    tally: LossCount,
}

#[derive(Debug)]
struct PortCheck {
    size: u32,
    small: u32,
    log: Log,
    sent: u32,
    last: Option<Duration>,
    small_ids: Vec<u64>,
    answered_small: u32,
}

impl OneSided {
    /// A search from `low` to `high` bytes that tries `likely_sizes` first.
    pub fn new(
        low: u32,
        high: u32,
        likely_sizes: Vec<u32>,
        config: Config,
        pace: RateLimit,
    ) -> Self {
        Self {
            echo: Prober::search(low, high, likely_sizes, config),
            flight: Flight::new(1, config, pace),
            config,
            high,
            base: 0,
            port: None,
            forward: None,
            rounds_evaluated: 0,
            tally: LossCount::default(),
        }
    }

    /// The next probe to send. `None`: wait for an answer or for
    /// [`next_timeout`](Self::next_timeout), unless there is a [`result`](Self::result).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<OneSidedProbe> {
        if self.forward.is_some() {
            return None;
        }
        self.flight.evaluate_losses(now);
        if self.flight.is_exhausted(now) {
            self.echo.give_up(CannotTellReason::OutOfBudget);
            self.forward = Some(ForwardMtu::CannotTell);
            return None;
        }
        if self.echo.outcome().is_none() {
            if self.echo.next_timeout().is_some_and(|at| now >= at) {
                self.echo.on_timeout(now);
            }
            self.look_for_a_limit();
        }
        if self.echo.outcome().is_some() && self.port.is_none() {
            self.begin_port_check();
        }
        if self.forward.is_some() || !self.flight.is_free(now) {
            return None;
        }
        let sent = if let Some(port) = &mut self.port {
            port.transmit(now, self.config.control_size)
                .map(|probe| OneSidedProbe {
                    kind: ProbeKind::ClosedPort,
                    probe: Probe {
                        id: self.base + probe.id,
                        ..probe
                    },
                })
        } else {
            self.echo.poll_transmit(now).map(|probe| OneSidedProbe {
                kind: ProbeKind::Echo,
                probe,
            })
        };
        if let Some(sent) = sent {
            let id = self.flight.sent(0, sent.probe.size, now);
            debug_assert_eq!(id, sent.probe.id);
            return Some(sent);
        }
        if self.echo.outcome().is_some() && self.port.is_none() {
            // The search ended just now.
            self.begin_port_check();
            return if self.port.is_some() {
                self.poll_transmit(now)
            } else {
                None
            };
        }
        self.conclude_port_check(now);
        None
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no answer comes; `None` at the end.
    pub fn next_timeout(&self) -> Option<Duration> {
        if self.forward.is_some() {
            return None;
        }
        let free = self.flight.free_at();
        let next = match &self.port {
            Some(port) if port.is_complete() => port.last.unwrap_or_default() + self.port_wait(),
            Some(_) => free,
            None if self.echo.is_due() || self.echo.outcome().is_some() => free,
            None => self.echo.next_timeout().unwrap_or(free),
        };
        Some(self.flight.ends_at().map_or(next, |end| next.min(end)))
    }

    /// Records an answer: an echo came back, whole or in fragments, or the closed port sent its ICMP message.
    pub fn on_answered(&mut self, probe: u64, arrival: Arrival, now: Duration) {
        let whole = arrival == Arrival::Whole;
        if !self.flight.answered(0, probe, whole, now) {
            return;
        }
        let Some(port) = &mut self.port else {
            self.echo.on_arrived(probe, arrival, now);
            return;
        };
        let Some(id) = probe.checked_sub(self.base) else {
            return;
        };
        if port.log.answered(id, Arrival::Whole).is_none() {
            return;
        }
        if port.small_ids.contains(&id) {
            port.answered_small += 1;
        } else {
            self.forward.get_or_insert(ForwardMtu::AtLeast(port.size));
        }
    }

    /// Records an ICMP message that a packet was too big.
    pub fn on_too_big(&mut self, message: TooBig) {
        self.echo.on_too_big(message);
        // Such a message comes from the forward direction: routers of the return direction send
        // theirs to the other end.
    }

    /// Records that this host refused to send a probe because of its size; `mtu` is the limit it named.
    pub fn on_send_refused(&mut self, probe: u64, mtu: Option<u32>) {
        self.flight.refused(0, probe);
        if let Some(port) = &self.port {
            // The check began with more than this host sends: it restarts with what the host does send.
            if let Some(mtu) = mtu.filter(|&mtu| mtu < port.size && self.echoes_are_unanswered()) {
                self.port = Some(PortCheck::new(mtu));
                self.base = probe + 1;
            } else {
                self.forward.get_or_insert(ForwardMtu::NotAsked);
            }
        } else {
            self.echo.on_send_refused(probe, mtu);
        }
    }

    /// The result, once probing has ended.
    pub fn result(&self) -> Option<OneSidedResult> {
        Some(OneSidedResult {
            both_ways: self.echo.outcome()?.clone(),
            forward: self.forward?,
            probes: self.flight.datagrams(),
        })
    }

    /// Ends probing where nothing was answered.
    pub fn give_up_unanswered(&mut self) {
        if !self.flight.rtt().is_known() {
            self.echo.give_up(CannotTellReason::NoAnswer);
            self.forward.get_or_insert(ForwardMtu::CannotTell);
        }
    }

    /// How long an answer from a closed port is waited for.
    fn port_wait(&self) -> Duration {
        self.flight.wait().max(if self.echoes_are_unanswered() {
            CLOSED_PORT_WAIT
        } else {
            self.config.wait * 2
        })
    }

    fn echoes_are_unanswered(&self) -> bool {
        let outcome = self.echo.outcome();
        matches!(outcome, Some(Outcome::CannotTell { .. }))
    }

    /// Slows down where many answers to sizes that pass are missing: the other end may limit them.
    fn look_for_a_limit(&mut self) {
        let rounds = self.echo.rounds();
        if rounds == self.rounds_evaluated {
            return;
        }
        self.rounds_evaluated = rounds;
        let passing = self.echo.passing();
        let (sent, lost) = (
            passing.sent.saturating_sub(self.tally.sent),
            passing.lost.saturating_sub(self.tally.lost),
        );
        self.tally = passing;
        if sent > 0 && f64::from(lost) > RATE_LIMIT_LOSS * f64::from(sent) {
            self.flight.slow_down();
        }
    }

    fn begin_port_check(&mut self) {
        let forward = match self.echo.outcome() {
            Some(Outcome::Carries {
                mtu,
                limit: Limit::Fragmented { .. },
            }) => ForwardMtu::AtLeast(mtu + 1),
            Some(Outcome::Carries {
                mtu,
                limit: Limit::BlackHole | Limit::Signalled { .. },
            }) if *mtu < self.high => {
                self.base = u64::from(self.echo.probes());
                self.port = Some(PortCheck::new(mtu + 1));
                return;
            }
            // Echo requests may be filtered while the port is not.
            Some(Outcome::CannotTell {
                reason: CannotTellReason::NoAnswer,
                at_least: None,
            }) => {
                self.base = u64::from(self.echo.probes());
                self.port = Some(PortCheck::new(self.high));
                return;
            }
            Some(Outcome::CannotTell { .. }) => ForwardMtu::CannotTell,
            _ => ForwardMtu::NotAsked,
        };
        self.forward = Some(forward);
    }

    fn conclude_port_check(&mut self, now: Duration) {
        let Some(port) = &self.port else { return };
        let over = port.last.unwrap_or_default() + self.port_wait();
        if self.forward.is_some() || !port.is_complete() || now < over {
            return;
        }
        let small = LossCount {
            sent: port.small,
            lost: port.small.saturating_sub(port.answered_small),
        };
        let large = port.sent - port.small;
        let sure = port.answered_small > 0 && fisher_exact_p(large, small) <= ERROR;
        self.forward = Some(if sure {
            ForwardMtu::SameAsEcho
        } else {
            ForwardMtu::CannotTell
        });
    }
}

impl PortCheck {
    fn new(size: u32) -> Self {
        let mut log = Log::default();
        log.start_round();
        Self {
            size,
            small: 0,
            log,
            sent: 0,
            last: None,
            small_ids: Vec::new(),
            answered_small: 0,
        }
    }

    fn is_complete(&self) -> bool {
        // The check begins and ends with a small datagram.
        self.sent > (SMALL_DATAGRAMS - 1) * (1 + LARGE_PER_SMALL)
    }

    fn transmit(&mut self, now: Duration, small: u32) -> Option<Probe> {
        if self.is_complete() {
            return None;
        }
        let control = self.sent.is_multiple_of(1 + LARGE_PER_SMALL);
        let size = if control { small } else { self.size };
        let id = self.log.sent(size, now);
        self.sent += 1;
        self.last = Some(now);
        if control {
            self.small += 1;
            self.small_ids.push(id);
        }
        Some(Probe { id, size, control })
    }
}

#[cfg(test)]
mod tests;
