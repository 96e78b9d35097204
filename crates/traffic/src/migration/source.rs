//! Machines at their source: which pages are to be sent, and when a machine is stopped.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use wirecost_model::load::{Fallback, MAX_SENT_FACTOR, Migration, MoveEngine};
use wirecost_model::machine_move::{MachineMove, MoveOutcome, MoveRound, predict};
use wirecost_sys::dirty_pages::DirtyPages;
use wirecost_sys::shared_memory::SharedMemory;
use wirecost_sys::socket::tcp_info;

use super::guest::Guest;
use super::handover::Handover;
use super::pages::{PAGE, PageRange, by_channel, fill};
use super::search::Search;
use crate::flow::Flows;
use crate::options::Options;
use crate::storage::content;
use crate::timeouts::PEER_TIMEOUT;

/// Shortest round after which another begins, where a round trip is not longer ([`shortest_round`]).
const SHORTEST_ROUND: Duration = Duration::from_millis(1);
/// Throttle of a machine that writes too fast, percent of its time: initial value, increment and maximum. The
/// defaults of QEMU's `cpu-throttle-initial`, `cpu-throttle-increment` and `max-cpu-throttle`.
const THROTTLE: [u8; 3] = [20, 10, 99];
/// A machine is throttled where it wrote to more pages than this share of the pages sent meanwhile: the default of
/// QEMU's `throttle-trigger-threshold`.
const THROTTLE_FROM: f64 = 0.5;

/// What a machine's connections are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Wait for the order to move.
    Waiting,
    /// Send the pages of their lists, in the round of this number, from 1.
    Copying(u32),
    /// The last round, with the machine stopped: send the pages of their lists, and then the end of the move.
    Last(u32),
    /// Post-copy: announce the pages of their lists as missing, let the machine resume at the destination, and send
    /// them.
    PostCopy,
    /// Send that the move is given up.
    GivenUp,
    /// Nothing more: the last move is over.
    Over,
}

impl Stage {
    fn encode(self) -> u32 {
        match self {
            Self::Waiting => 0,
            Self::GivenUp => 1,
            Self::Over => 4,
            Self::PostCopy => 8,
            Self::Copying(round) => round << 2 | 2,
            Self::Last(round) => round << 2 | 3,
        }
    }

    fn decode(number: u32) -> Self {
        match number & 3 {
            0 if number == 4 => Self::Over,
            0 if number == 8 => Self::PostCopy,
            0 => Self::Waiting,
            1 => Self::GivenUp,
            2 => Self::Copying(number >> 2),
            _ => Self::Last(number >> 2),
        }
    }
}

/// The machines at their source, of one load.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) machines: Box<[Source]>,
    /// Machines whose moves are over.
    finished: AtomicU32,
}

/// One machine at its source.
#[derive(Debug)]
pub(crate) struct Source {
    number: u32,
    pub(crate) migration: Migration,
    pub(crate) memory: Arc<SharedMemory>,
    tracking: DirtyPages,
    guest: Guest,
    seed: u64,
    /// Ranges of pages that each connection is to send.
    lists: Box<[Mutex<Vec<PageRange>>]>,
    /// The [`Stage`], encoded.
    stage: AtomicU32,
    /// Connections that have not finished the round, or whose end of the move is not confirmed.
    busy: AtomicU32,
    /// Pages sent in this round: with their content, and as zero.
    sent: [AtomicU64; 2],
    /// Bytes that all connections have handed to the kernel in this move.
    wire: AtomicU64,
    progress: Mutex<Progress>,
    /// The machine's last move brought it to its destination.
    there: AtomicBool,
    /// With post-copy: what is known once the machine has resumed at its destination.
    pub(crate) handover: Handover,
    result: OnceLock<MachineMove>,
}

/// The state of the current move.
#[derive(Debug, Default)]
struct Progress {
    /// When the move was ordered; before that, when the guest was started.
    ordered: Option<Instant>,
    /// When the first round began.
    first: Option<Instant>,
    /// When the current round began.
    began: Option<Instant>,
    setup_s: f64,
    /// Bytes that the destination's kernel had acknowledged before the move.
    acked_before: u64,
    /// Writes of the guest before the move.
    writes_before: u64,
    rounds: Vec<MoveRound>,
    /// Bytes per second that were acknowledged in the first round.
    bandwidth: f64,
    /// Percent by which the guest is slowed down.
    throttle: u8,
    /// Set once the machine was told to stop: whether pre-copy had converged, or post-copy follows.
    stopping: Option<bool>,
    /// With `find_limit`, the dirty rate of this move, bits per second; `None` in the first one.
    rate: Option<f64>,
    /// With `find_limit`, the result of the first move.
    first_move: Option<MachineMove>,
    /// With `find_limit`, the search so far.
    search: Search,
}

impl Sources {
    /// The machines of a load, their memory filled and tracked; none where a hypervisor moves them.
    ///
    /// # Errors
    /// `ENOMEM`; those of [`DirtyPages::track`].
    pub(crate) fn of_load(options: &Options) -> io::Result<Self> {
        let migration = options.load.migration;
        let Some(migration) = migration.filter(|one| one.engine == MoveEngine::Memory) else {
            return Ok(Self::default());
        };
        let machines = 0..options.load.streams;
        Ok(Self {
            machines: machines
                .map(|number| Source::new(number, migration, content::seed(options)))
                .collect::<io::Result<_>>()?,
            finished: AtomicU32::new(0),
        })
    }

    /// The moves that are over, by number of the machine.
    pub(crate) fn moves(&self) -> impl Iterator<Item = MachineMove> {
        let machines = self.machines.iter();
        machines.filter_map(|machine| machine.result.get().cloned())
    }

    /// Whether a machine may move: no more than `at_once` move at the same time.
    fn may_move(&self, machine: &Source) -> bool {
        let at_once = machine.migration.at_once.unwrap_or(u32::MAX);
        machine.number
            < self
                .finished
                .load(Ordering::Acquire)
                .saturating_add(at_once)
    }
}

impl Source {
    fn new(number: u32, migration: Migration, seed: u64) -> io::Result<Self> {
        let seed = content::of_machine(seed, number);
        let memory = Arc::new(SharedMemory::in_small_pages(migration.memory as usize)?);
        fill(&memory, &migration, seed);
        Ok(Self {
            number,
            tracking: DirtyPages::track(Arc::clone(&memory))?,
            memory,
            guest: Guest::new(),
            seed,
            lists: (0..migration.channels).map(|_| Mutex::default()).collect(),
            stage: AtomicU32::new(Stage::Waiting.encode()),
            busy: AtomicU32::new(0),
            sent: Default::default(),
            wire: AtomicU64::new(0),
            progress: Mutex::default(),
            there: AtomicBool::new(false),
            handover: Handover::default(),
            result: OnceLock::new(),
            migration,
        })
    }

    /// Whether the machine runs here: until it is stopped.
    pub(crate) fn runs(&self) -> bool {
        self.guest.stopped_at().is_none()
    }

    /// Number of writes that the machine has made here.
    pub(crate) fn writes(&self) -> u64 {
        self.guest.writes()
    }

    /// With post-copy: makes the memory here what it must be at the destination, after `writes` writes of the
    /// machine.
    ///
    /// # Errors
    /// Those of [`Handover::replay`].
    pub(crate) fn replay(&self, writes: u64) -> io::Result<()> {
        let (guest, memory) = (&self.guest, &self.memory);
        self.handover
            .replay(writes, guest, memory, &self.migration, self.seed)
    }

    pub(crate) fn stage(&self) -> Stage {
        Stage::decode(self.stage.load(Ordering::Acquire))
    }

    /// Whether the machine is at its destination, where its memory must be the same.
    pub(crate) fn is_there(&self) -> bool {
        self.there.load(Ordering::Acquire)
    }

    /// Takes the list of a connection, the ranges of pages that it is to send, and leaves `list` in its place.
    pub(crate) fn take(&self, channel: u32, list: &mut Vec<PageRange>) {
        std::mem::swap(list, &mut lock(&self.lists[channel as usize]));
    }

    /// Adds bytes that a connection has handed to the kernel.
    pub(crate) fn count_wire(&self, bytes: usize) {
        self.wire.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Adds pages that a connection has sent in this round.
    pub(crate) fn count_pages(&self, pages: u64, zero_pages: u64) {
        self.sent[0].fetch_add(pages, Ordering::Relaxed);
        self.sent[1].fetch_add(zero_pages, Ordering::Relaxed);
    }

    /// Notes that a connection has sent its list. Returns whether it was the last one, which is to call
    /// [`Self::advance`].
    pub(crate) fn finished(&self, pages: u64, zero_pages: u64) -> bool {
        self.count_pages(pages, zero_pages);
        self.busy.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that the destination has confirmed the end of the move on a connection. Returns whether it was the last
    /// one: with it the move is over.
    pub(crate) fn confirmed(&self, all: &Sources, now: Instant) -> bool {
        let last = self.busy.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            if self.end(now) {
                self.publish(Stage::Waiting);
            } else {
                all.finished.fetch_add(1, Ordering::AcqRel);
                self.publish(Stage::Over);
            }
        }
        last
    }

    fn publish(&self, stage: Stage) {
        self.busy.store(self.lists.len() as u32, Ordering::Release);
        self.stage.store(stage.encode(), Ordering::Release);
    }

    /// Starts the machine's thread, and orders the move as soon as the machine may move: all pages are listed. Only
    /// the machine's first connection calls this. `false`: the machine may not move yet.
    pub(crate) fn order(&self, all: &Sources, flows: &Flows, now: Instant) -> io::Result<bool> {
        let mut progress = lock(&self.progress);
        if progress.ordered.is_none() {
            progress.ordered = Some(now);
            let mut migration = self.migration;
            if let Some(rate) = progress.rate {
                migration.dirty_rate = rate as u64;
            }
            self.guest.start(&self.memory, migration, self.seed, 0)?;
        }
        if !all.may_move(self) {
            return Ok(false);
        }
        progress.ordered = Some(now);
        (progress.acked_before, _) = self.acked(flows)?;
        self.wire.store(0, Ordering::Relaxed);
        progress.writes_before = self.guest.writes();
        self.tracking.clear(|_, _| ())?;
        self.list(PageRange {
            first: 0,
            count: self.migration.pages() as u32,
        });
        let ready = Instant::now();
        progress.setup_s = (ready - now).as_secs_f64();
        (progress.first, progress.began) = (Some(ready), Some(ready));
        self.publish(Stage::Copying(1));
        Ok(true)
    }

    fn list(&self, range: PageRange) {
        by_channel(range, self.migration.channels, |channel, part| {
            lock(&self.lists[channel]).push(part);
        });
    }

    fn list_dirty(&self) -> io::Result<()> {
        self.tracking.clear(|first, count| {
            self.list(PageRange {
                first: first as u32,
                count: count as u32,
            });
        })
    }

    /// Bytes that the destination's kernel has acknowledged on all connections of the machine, and the longest of their
    /// smallest round-trip times.
    fn acked(&self, flows: &Flows) -> io::Result<(u64, Duration)> {
        let channels = self.migration.channels as usize;
        let first = self.number as usize * channels;
        let flows = &flows.all()[first..first + channels];
        let (mut acked, mut round_trip) = (0, 0_u32);
        for socket in flows.iter().filter_map(|flow| flow.socket.get()) {
            let info = tcp_info(&**socket)?;
            acked += info.bytes_acked;
            // `u32::MAX` before the first.
            if info.min_rtt < u32::MAX {
                round_trip = round_trip.max(info.min_rtt);
            }
        }
        Ok((acked, Duration::from_micros(round_trip.into())))
    }

    /// Decides what follows a round. `Some`: call again at this time, since it cannot be decided before.
    pub(crate) fn advance(&self, flows: &Flows, now: Instant) -> io::Result<Option<Instant>> {
        let mut progress = lock(&self.progress);
        let round = progress.rounds.len() as u32;
        if progress.stopping.is_some() {
            if self.guest.stopped_at().is_none() {
                return Ok(Some(now + Duration::from_micros(20)));
            }
            self.list_dirty()?;
            progress.began = Some(now);
            self.publish(if self.migration.post_copy {
                Stage::PostCopy
            } else {
                Stage::Last(round + 1)
            });
            return Ok(None);
        }
        let (Some(first), Some(began)) = (progress.first, progress.began) else {
            return Ok(Some(now + SHORTEST_ROUND));
        };
        let (acked, round_trip) = self.acked(flows)?;
        let acked = acked.saturating_sub(progress.acked_before);
        let shortest = if self.migration.post_copy {
            shortest_round(acked, SHORTEST_ROUND)
        } else {
            shortest_round(acked, round_trip)
        };
        // Without a bandwidth nothing can be decided.
        if acked == 0 && now - began < shortest {
            return Ok(Some(now + SHORTEST_ROUND));
        }
        let dirtied = self.tracking.count()?;
        let on_the_way = self.wire.load(Ordering::Relaxed).saturating_sub(acked);
        let bandwidth = acked as f64 / (now - first).as_secs_f64();
        let left_s = (on_the_way + (dirtied * PAGE) as u64) as f64 / bandwidth;
        let fits = left_s <= self.migration.max_downtime.as_secs_f64();
        if now - began < shortest && !fits {
            return Ok(Some(began + shortest));
        }
        let [pages, zero_pages] = self
            .sent
            .each_ref()
            .map(|sent| sent.swap(0, Ordering::Relaxed));
        progress.rounds.push(MoveRound {
            seconds: (now - began).as_secs_f64(),
            pages,
            zero_pages,
            dirtied: dirtied as u64,
        });
        if round == 0 {
            progress.bandwidth = bandwidth;
        }
        let sent: u64 = progress.rounds.iter().map(|round| round.pages).sum();
        // A machine that is slowed down may still converge.
        let slows =
            self.migration.fallback == Fallback::Throttle && progress.throttle < THROTTLE[2];
        let gives_up = round + 1 >= self.migration.max_rounds
            || (sent >= MAX_SENT_FACTOR * self.migration.pages() && !slows);
        let forces = gives_up && self.migration.fallback == Fallback::Stop;
        let post_copy = self.migration.post_copy;
        if fits || forces || post_copy {
            progress.stopping = Some(fits || post_copy);
            self.guest.stop();
            return Ok(Some(now));
        }
        if gives_up {
            self.guest.stop();
            self.publish(Stage::GivenUp);
            return Ok(None);
        }
        if self.migration.fallback == Fallback::Throttle
            && dirtied as f64 > THROTTLE_FROM * (pages + zero_pages) as f64
        {
            let [initial, more, most] = THROTTLE;
            progress.throttle = match progress.throttle {
                0 => initial,
                before => (before + more).min(most),
            };
            self.guest.throttle(progress.throttle);
        }
        self.list_dirty()?;
        progress.began = Some(now);
        self.publish(Stage::Copying(round + 2));
        Ok(None)
    }

    /// Records a move that is over. Returns whether the machine moves once more.
    fn end(&self, now: Instant) -> bool {
        let mut progress = lock(&self.progress);
        let (Some(ordered), Some(began)) = (progress.ordered, progress.began) else {
            return false;
        };
        let outcome = match progress.stopping {
            Some(true) => MoveOutcome::Moved,
            Some(false) => MoveOutcome::Forced,
            None => MoveOutcome::NotConverged,
        };
        let stopped = self.guest.stopped_at().unwrap_or(now);
        // With post-copy the machine runs before everything has arrived.
        let runs = self.handover.runs().unwrap_or(now);
        let downtime = (runs - stopped).as_secs_f64();
        if outcome.is_there() {
            let [pages, zero_pages] = self
                .sent
                .each_ref()
                .map(|sent| sent.swap(0, Ordering::Relaxed));
            progress.rounds.push(MoveRound {
                seconds: (now - began).as_secs_f64(),
                pages,
                zero_pages,
                dirtied: 0,
            });
        }
        let written = self.guest.writes() - progress.writes_before;
        let ran_s = (stopped - ordered).as_secs_f64();
        let pages: u64 = progress.rounds.iter().map(|round| round.pages).sum();
        self.there.store(outcome.is_there(), Ordering::Release);
        let moved = MachineMove {
            machine: self.number,
            outcome,
            setup_s: progress.setup_s,
            total_s: (now - ordered).as_secs_f64(),
            downtime_s: if outcome.is_there() { downtime } else { 0.0 },
            rounds: std::mem::take(&mut progress.rounds),
            memory_bytes: self.migration.memory,
            sent_bytes: pages * PAGE as u64,
            bandwidth: progress.bandwidth,
            dirty_rate: self.migration.dirty_rate as f64,
            dirty_reached: written as f64 * PAGE as f64 * 8.0 / ran_s,
            throttle: progress.throttle,
            predicted: predict(&self.migration, progress.bandwidth),
            limit: None,
            seen: None,
            hypervisor: None,
            fetched_pages: self.handover.fetched(),
        };
        let mut search = progress.search;
        let rate = progress.rate.unwrap_or(moved.dirty_rate);
        let next = self.migration.find_limit.then(|| search.next(rate, &moved));
        let first = progress.first_move.take().unwrap_or(moved);
        if let Some(Some(rate)) = next {
            *progress = Progress {
                rate: Some(rate),
                first_move: Some(first),
                search,
                ..Progress::default()
            };
            return true;
        }
        let limit = next.is_some().then(|| search.limit());
        let _ = self.result.set(MachineMove { limit, ..first });
        false
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shortest round after which another stage begins: in a shorter one than a round trip the connections may not
/// have acknowledged anything. Where nothing at all has been acknowledged, as while the send buffers hold the first
/// round, it is waited for until the peer counts as gone.
fn shortest_round(acked: u64, round_trip: Duration) -> Duration {
    if acked == 0 {
        PEER_TIMEOUT
    } else {
        round_trip.max(SHORTEST_ROUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_no_shorter_than_a_round_trip_and_the_first_one_waits_for_an_acknowledgement() {
        let ms = Duration::from_millis;
        for (acked, round_trip, shortest) in [
            (0, ms(200), PEER_TIMEOUT),
            (1, ms(200), ms(200)),
            (1, Duration::from_micros(30), SHORTEST_ROUND),
        ] {
            let found = shortest_round(acked, round_trip);
            assert_eq!(found, shortest, "{acked} bytes, {round_trip:?}");
        }
    }
}
