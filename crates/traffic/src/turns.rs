//! Readers of streams that share a processor take turns at waiting for data.
//!
//! A line lets the segments of several streams through one by one. Readers that each wait for their own are woken for each
//! segment, and the kernel acknowledges each. Where one at a time waits and the others stay away, their data gather:
//! fewer wakings, longer reads, fewer acknowledgements, and the sender has its share of that. docs/loads.md has the
//! measurements.
//!
//! It is for readers with time on their hands. Those that are behind find their queues full whatever they do, and then a
//! stream that stalls would have the processor wait for it while there is something to read. So turns are taken as long
//! as the processor's readers wait for half of the time and more, and for one another no longer than [`LONGEST`],
//! whether one stream stalls or many readers come before.
//!
//! A reader that is behind and has read all there was would be woken by the next segment, and then wait for the processor
//! while each further segment wakes it again (`sock_def_readable`, net/core/sock.c: for as long as a thread is in the
//! socket's queue, whether it has been woken or not). So it stays away from the socket until enough has gathered.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wirecost_sys::process::allowed_cpus;

use crate::options::{Options, Receiving, Waiting, Workload};

/// How long a reader has the others wait at most, and stays away from its own data, however many there are. Well above
/// a round trip.
const LONGEST: Duration = Duration::from_millis(2);
/// A receive buffer below which no turns are taken, bytes: what 4 Gbit/s bring in [`LONGEST`]. It would be full before
/// its reader's turn comes, and its sender stand still.
const ROOMY: u64 = 1 << 20;
/// Reads of a reader from one judgement to the next.
const READS: u32 = 64;
/// Reads for which one that kept the others waiting in vain waits by itself: a stall at a line is over soon.
const ALONE: u32 = 8;
/// How full a reader's reads are at most where it is ahead of its data, percent.
const AHEAD: u64 = 60;
/// What one that is behind has gather before it looks again, bytes: far less than a read holds, since more may come.
const GATHERED: u64 = 48 << 10;
/// Where that takes less or more, it does not stay away: a timer cannot tell it apart, or the stream is slow, one of many.
const STAYS_AWAY: RangeInclusive<Duration> = Duration::from_micros(150)..=Duration::from_millis(1);
/// How often, while nothing comes, before it waits at the socket: a stream that stalls does so for longer.
const LOOKS: u32 = 4;
/// How much of the time is looked at together, nanoseconds.
const SPAN: u64 = 50_000_000;
/// The part of it that has to pass waiting for turns to go on being taken, percent. What the processor does for the
/// network in the meantime is in it.
const WAITED: u64 = 50;
/// After that was not so, nanoseconds until they may be taken again.
const BACK_OFF: u64 = 500_000_000;

/// The readers of one end, in groups of those that share a processor.
#[derive(Debug)]
pub(crate) struct Turns {
    groups: Box<[Group]>,
}

/// Readers of which one at a time waits.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Group {
    taken: AtomicBool,
    /// Before this they are not taken (`Load::now`).
    not_before: AtomicU64,
    account: Mutex<Account>,
    /// Nobody waits any more.
    left: Condvar,
}

/// Whether a reader waits, and how the time went since turns were taken, or since the last judgement.
#[derive(Debug, Default)]
struct Account {
    waiting: bool,
    since: u64,
    waited: u64,
}

/// One reader's part.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The last read took all there was.
    emptied: bool,
    /// Reads for which it still waits by itself, since the others waited for it in vain.
    alone: u32,
    /// How long it stays away from an emptied queue before it waits there.
    away: Option<Duration>,
    /// Reads since this time (`Load::now`), and what they brought.
    since: u64,
    reads: u32,
    bytes: u64,
}

impl Turns {
    /// Of one end of a load with so many threads; `None` where its readers have nothing to share, or may not gather: small
    /// messages are read one by one, and what is discarded costs nothing.
    pub(crate) fn of(options: &Options, threads: u32) -> Option<Self> {
        let processors = allowed_cpus().map_or(1, |cpus| cpus.len().max(1));
        let gathers = options.workload == Workload::TcpStream
            && options.waiting == Waiting::Sleep
            && options.receiving == Receiving::Copy
            && !options.nodelay
            && receive_buffer(options).is_none_or(|bytes| bytes >= ROOMY);
        (gathers && threads as usize > processors).then(|| Self {
            groups: (0..processors).map(|_| Group::default()).collect(),
        })
    }

    /// The group of a flow.
    pub(crate) fn group(&self, flow: u32) -> &Group {
        &self.groups[flow as usize % self.groups.len()]
    }
}

impl Group {
    /// One read of a reader: `ways` are those in which it may read, `room` how much it can hold, `now` the load's clock.
    ///
    /// # Errors
    /// Of the read; `WouldBlock` where there was nothing, and it is to be called again.
    pub(crate) fn read(
        &self,
        turn: &mut Turn,
        ways: &mut impl Ways,
        room: usize,
        now: impl Fn() -> u64,
    ) -> io::Result<usize> {
        if !self.taken.load(Relaxed) || turn.alone > 0 {
            let bytes = turn.wait_and_read(ways)?;
            turn.alone = turn.alone.saturating_sub(1);
            turn.emptied = bytes < room;
            if turn.has_time(bytes, room, &now) {
                self.take(now());
            }
            return Ok(bytes);
        }
        turn.reads = 0;
        if turn.emptied && !self.wait(ways, now)? {
            turn.alone = ALONE;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let read = ways.read();
        turn.emptied = !matches!(read, Ok(bytes) if bytes == room);
        read
    }

    /// Has turns taken from now on, if they may be.
    fn take(&self, now: u64) {
        if self.taken.load(Relaxed) || now < self.not_before.load(Relaxed) {
            return;
        }
        let mut account = self.account();
        if !self.taken.swap(true, Relaxed) {
            tracing::debug!("readers of a processor take turns at waiting");
            account.since = now;
            account.waited = 0;
        }
    }

    /// Waits for its turn, and then for data; whether there are any, or may be.
    fn wait(&self, ways: &mut impl Ways, now: impl Fn() -> u64) -> io::Result<bool> {
        if !self.begin() {
            return Ok(true);
        }
        let began = now();
        let came = ways.wait(LONGEST);
        self.end(began, now());
        came
    }

    /// Waits for its turn; whether it came in time. If not, what has gathered is to be read: what is left in many queues
    /// for long comes back as bursts of their senders, and is lost at the line.
    fn begin(&self) -> bool {
        let (mut account, _) = self
            .left
            .wait_timeout_while(self.account(), LONGEST, |account| account.waiting)
            .unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut account.waiting, true)
    }

    /// Its turn is over.
    fn end(&self, began: u64, ended: u64) {
        let mut account = self.account();
        account.waiting = false;
        account.waited += ended - began;
        let time = ended.saturating_sub(account.since);
        if time >= SPAN {
            if account.waited * 100 < time * WAITED {
                self.not_before.store(ended + BACK_OFF, Relaxed);
                self.taken.store(false, Relaxed);
                tracing::debug!("readers of a processor wait each for its own data again");
            }
            account.since = ended;
            account.waited = 0;
        }
        drop(account);
        self.left.notify_one();
    }

    #[cfg(test)]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Relaxed)
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        // It holds numbers only, which are right whoever panicked.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Waits for the reader's own data and reads them.
    fn wait_and_read(&self, ways: &mut impl Ways) -> io::Result<usize> {
        if let Some(away) = self.away.filter(|_| self.emptied) {
            for _ in 0..LOOKS {
                ways.stay_away(away);
                match ways.read() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            }
        }
        ways.wait_and_read()
    }

    /// Whether a reader that waits by itself is ahead of its data: its reads are not full. One that is not stays away
    /// from now on.
    fn has_time(&mut self, bytes: usize, room: usize, now: impl Fn() -> u64) -> bool {
        if self.reads == 0 {
            self.since = now();
            self.bytes = 0;
        }
        self.reads += 1;
        self.bytes += bytes as u64;
        if self.reads < READS {
            return false;
        }
        self.reads = 0;
        let full = u64::from(READS) * room as u64;
        let has_time = self.bytes * 100 < full * AHEAD;
        self.away = if has_time {
            None
        } else {
            gathering(self.bytes, now().saturating_sub(self.since))
        };
        has_time
    }
}

/// What a stream's receive buffer holds at most: what it was given, or what the kernel lets it grow to (tcp_rmem, tcp(7)).
fn receive_buffer(options: &Options) -> Option<u64> {
    options.socket_buffer.map(u64::from).or_else(|| {
        let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").ok()?;
        text.split_whitespace().next_back()?.parse().ok()
    })
}

/// How long to stay away from a stream that brought so much in so many nanoseconds.
fn gathering(bytes: u64, nanoseconds: u64) -> Option<Duration> {
    let long = Duration::from_nanos(GATHERED.saturating_mul(nanoseconds) / bytes.max(1));
    STAYS_AWAY.contains(&long).then_some(long)
}

/// The ways to read a stream.
pub(crate) trait Ways {
    /// Waits for data as the socket does, and reads them.
    fn wait_and_read(&mut self) -> io::Result<usize>;

    /// Lets data gather for so long.
    fn stay_away(&mut self, long: Duration);

    /// Waits for data no longer than this; whether there are any.
    fn wait(&mut self, longest: Duration) -> io::Result<bool>;

    /// Reads what is there.
    fn read(&mut self) -> io::Result<usize>;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const ROOM: usize = 1000;
    const MS: u64 = 1_000_000;

    /// A stream from which this comes, and what was done to it.
    struct Told<'c> {
        clock: &'c Cell<u64>,
        /// Bytes of each read.
        bytes: usize,
        /// Nanoseconds until there are any.
        after: u64,
        /// Nanoseconds for which a reader stayed away in sum.
        away: u64,
        did: Vec<&'static str>,
    }

    impl Ways for Told<'_> {
        fn wait_and_read(&mut self) -> io::Result<usize> {
            self.did.push("waits by itself");
            self.clock.set(self.clock.get() + self.after);
            Ok(self.bytes)
        }

        fn stay_away(&mut self, long: Duration) {
            self.did.push("stays away");
            let long = long.as_nanos() as u64;
            self.away += long;
            self.clock.set(self.clock.get() + long);
        }

        fn wait(&mut self, longest: Duration) -> io::Result<bool> {
            self.did.push("waits");
            let longest = longest.as_nanos() as u64;
            self.clock.set(self.clock.get() + self.after.min(longest));
            Ok(self.after <= longest)
        }

        fn read(&mut self) -> io::Result<usize> {
            self.did.push("reads");
            if self.away > 0 && self.away < self.after {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(self.bytes)
        }
    }

    fn told(clock: &Cell<u64>, bytes: usize, after: u64) -> Told<'_> {
        Told {
            clock,
            bytes,
            after,
            away: 0,
            did: Vec::new(),
        }
    }

    fn read_often(group: &Group, turn: &mut Turn, stream: &mut Told<'_>, times: u32) {
        let clock = stream.clock;
        for _ in 0..times {
            let _ = group.read(turn, stream, ROOM, || clock.get());
        }
    }

    /// A group whose reader has taken to turns.
    fn taking(clock: &Cell<u64>) -> (Group, Turn) {
        let (group, mut turn) = (Group::default(), Turn::default());
        read_often(&group, &mut turn, &mut told(clock, ROOM / 2, MS), READS);
        assert!(group.is_taken());
        (group, turn)
    }

    #[test]
    fn a_reader_that_is_ahead_takes_turns_and_one_that_is_behind_does_not() {
        let clock = Cell::new(0);
        let (group, mut turn) = (Group::default(), Turn::default());
        let mut full = told(&clock, ROOM, 0);
        read_often(&group, &mut turn, &mut full, 10 * READS);
        assert!(!group.is_taken());
        read_often(&group, &mut turn, &mut told(&clock, ROOM / 2, MS), READS);
        assert!(group.is_taken());
    }

    #[test]
    fn who_emptied_its_queue_waits_for_its_turn_and_who_did_not_reads_on() {
        let clock = Cell::new(0);
        let (group, mut turn) = taking(&clock);
        let mut stream = told(&clock, ROOM, MS);
        read_often(&group, &mut turn, &mut stream, 3);
        stream.bytes = ROOM - 1;
        read_often(&group, &mut turn, &mut stream, 2);
        // The last read before turns were taken was not full.
        assert_eq!(
            stream.did,
            [
                "waits", "reads", "reads", "reads", "reads", "waits", "reads"
            ]
        );
    }

    /// A reader that is behind: `READS` full reads, of which each took so many nanoseconds.
    fn behind(clock: &Cell<u64>, room: usize, each: u64) -> (Group, Turn) {
        let (group, mut turn) = (Group::default(), Turn::default());
        let mut stream = told(clock, room, each);
        for _ in 0..READS {
            let read = group.read(&mut turn, &mut stream, room, || clock.get());
            assert_eq!(read.unwrap(), room);
        }
        assert!(!group.is_taken());
        assert!(stream.did.iter().all(|did| *did == "waits by itself"));
        (group, turn)
    }

    #[test]
    fn who_is_behind_and_has_emptied_its_queue_lets_data_gather() {
        let clock = Cell::new(0);
        let room = 128 << 10;
        // A read each millisecond (the first read's time is not counted).
        let expected = MS * 48 / 128 * 63 / 64..=MS * 48 / 128;
        let (group, mut turn) = behind(&clock, room, MS);
        let mut stream = told(&clock, room - 1, 0);
        let mut read = |stream: &mut Told<'_>| {
            stream.did.clear();
            stream.away = 0;
            group
                .read(&mut turn, stream, room, || clock.get())
                .expect("a read")
        };
        read(&mut stream);
        assert_eq!(stream.did, ["waits by itself"], "its last read was full");
        read(&mut stream);
        assert_eq!(stream.did, ["stays away", "reads"]);
        assert!(expected.contains(&stream.away), "{}", stream.away);
        stream.after = MS / 2;
        read(&mut stream);
        assert_eq!(
            stream.did,
            ["stays away", "reads", "stays away", "reads"],
            "nothing had come"
        );
        stream.after = 100 * MS;
        read(&mut stream);
        let (last, looks) = stream.did.split_last().expect("something was done");
        assert_eq!(looks, ["stays away", "reads"].repeat(LOOKS as usize));
        assert_eq!(*last, "waits by itself", "it stalls");
    }

    #[test]
    fn who_is_ahead_again_stays_away_no_longer() {
        let clock = Cell::new(0);
        let (group, mut turn) = behind(&clock, ROOM, ROOM as u64 * MS / GATHERED);
        group.not_before.store(u64::MAX, Relaxed);
        let mut stream = told(&clock, ROOM / 2, 0);
        read_often(&group, &mut turn, &mut stream, READS);
        assert_eq!(
            stream
                .did
                .iter()
                .filter(|did| **did == "stays away")
                .count() as u32,
            READS - 1
        );
        stream.did.clear();
        read_often(&group, &mut turn, &mut stream, 2);
        assert_eq!(stream.did, ["waits by itself", "waits by itself"]);
    }

    #[test]
    fn it_stays_away_where_a_timer_can_tell_how_long_and_the_stream_is_not_slow() {
        let second = 1_000_000_000;
        // 1 Gbit/s: 48 KiB in 393 microseconds.
        assert_eq!(
            gathering(125_000_000, second).map(|away| away.as_micros()),
            Some(393)
        );
        assert_eq!(gathering(GATHERED, 149_999), None);
        assert_eq!(
            gathering(GATHERED, 150_000),
            Some(Duration::from_micros(150))
        );
        assert_eq!(gathering(GATHERED, MS), Some(Duration::from_millis(1)));
        for slow in [0, 1, 1 << 20] {
            assert_eq!(gathering(slow, second), None);
        }
        assert_eq!(gathering(u64::MAX, 1), None);
        assert_eq!(gathering(1, u64::MAX), None);
    }

    #[test]
    fn what_an_earlier_time_brought_is_not_counted_after_turns() {
        let clock = Cell::new(0);
        let (group, mut turn) = taking(&clock);
        let mut stream = told(&clock, ROOM, 0);
        read_often(&group, &mut turn, &mut stream, 1);
        group.taken.store(false, Relaxed);
        clock.set(clock.get() + 1000 * MS);
        // As fast as it gets: nothing to stay away for, however long the turns took.
        read_often(&group, &mut turn, &mut stream, READS);
        assert_eq!(turn.away, None);
    }

    #[test]
    fn a_stream_that_stalls_has_the_others_wait_once_and_then_waits_by_itself() {
        let clock = Cell::new(0);
        let (group, mut turn) = taking(&clock);
        let mut stream = told(&clock, ROOM / 2, 50 * MS);
        let before = clock.get();
        let error = group.read(&mut turn, &mut stream, ROOM, || clock.get());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(clock.get() - before, LONGEST.as_nanos() as u64);
        read_often(&group, &mut turn, &mut stream, ALONE);
        assert!(stream.did[1..].iter().all(|did| *did == "waits by itself"));
        stream.did.clear();
        stream.after = MS;
        read_often(&group, &mut turn, &mut stream, 1);
        assert_eq!(stream.did, ["waits", "reads"]);
    }

    #[test]
    fn whose_turn_does_not_come_in_time_reads_what_has_gathered() {
        let clock = Cell::new(0);
        let (group, mut turn) = taking(&clock);
        group.account().waiting = true;
        let mut stream = told(&clock, ROOM / 2, MS);
        read_often(&group, &mut turn, &mut stream, 2);
        assert_eq!(stream.did, ["reads", "reads"]);
        group.end(clock.get(), clock.get());
        stream.did.clear();
        read_often(&group, &mut turn, &mut stream, 1);
        assert_eq!(stream.did, ["waits", "reads"]);
    }

    #[test]
    fn turns_end_where_hardly_any_time_is_waited_and_come_back_later() {
        let clock = Cell::new(0);
        let (group, mut turn) = taking(&clock);
        // A tenth of the time is waited, the rest passes elsewhere.
        let mut stream = told(&clock, ROOM / 2, MS / 10);
        for _ in 0..60 {
            clock.set(clock.get() + MS);
            read_often(&group, &mut turn, &mut stream, 1);
        }
        assert!(!group.is_taken());
        read_often(&group, &mut turn, &mut stream, 2 * READS);
        assert!(!group.is_taken(), "too early");
        clock.set(clock.get() + BACK_OFF);
        read_often(&group, &mut turn, &mut stream, READS);
        assert!(group.is_taken());
    }

    #[test]
    fn turns_go_on_where_much_time_is_waited() {
        let clock = Cell::new(0);
        let (group, mut turn) = taking(&clock);
        let mut stream = told(&clock, ROOM / 2, MS);
        for _ in 0..100 {
            clock.set(clock.get() + MS / 4);
            read_often(&group, &mut turn, &mut stream, 1);
        }
        assert!(group.is_taken());
    }

    #[test]
    fn readers_share_turns_only_where_they_share_processors() {
        let options = |workload| Options {
            streams: 64,
            ..Options::new(workload, [0; 16])
        };
        let stream = options(Workload::TcpStream);
        let processors = allowed_cpus().unwrap().len() as u32;
        assert!(Turns::of(&stream, processors).is_none());
        let turns = Turns::of(&stream, processors + 1).unwrap();
        assert_eq!(turns.groups.len(), processors as usize);
        assert!(std::ptr::eq(turns.group(0), turns.group(processors)));
        assert!(Turns::of(&options(Workload::TcpBidirectional), 1000).is_none());
        let small = Options {
            nodelay: true,
            ..stream.clone()
        };
        assert!(Turns::of(&small, 1000).is_none());
        for (bytes, share) in [(4 << 10, false), (1 << 20, true)] {
            let buffered = Options {
                socket_buffer: Some(bytes),
                ..stream.clone()
            };
            assert_eq!(Turns::of(&buffered, 1000).is_some(), share, "{bytes}");
        }
    }
}
