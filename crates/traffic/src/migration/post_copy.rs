//! Post-copy at the destination: a machine that resumes before all of its pages have arrived.
//!
//! Missing pages are removed from the machine's memory, and a thread that touches one waits (userfaultfd(2)). The
//! kernel reports each such fault to a thread that requests the page from the source, on the connection that carries
//! it; the machine's connections place what arrives. A page has one connection, so no two of them bring the same one.

use std::fmt::Display;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_model::load::Migration;
use wirecost_sys::epoll::Waker;
use wirecost_sys::missing_pages::MissingPages;
use wirecost_sys::shared_memory::SharedMemory;
use wirecost_sys::socket::{poll_readable, send};

use super::guest::Guest;
use super::page_set::PageSet;
use super::pages::{PageRange, channel_of};
use super::record::{Reply, encode_reply};
use crate::timeouts::PEER_TIMEOUT;

/// Longest wait of the thread for a fault before it checks again; nothing depends on it.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Interval between two attempts to send a reply for which the socket has no room.
const ROOM: Duration = Duration::from_millis(1);

/// An `InvalidData` error: the source broke the protocol.
pub(crate) fn invalid(words: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words.to_string())
}

/// Post-copy of one machine. When this is dropped the machine's threads have ended.
#[derive(Debug)]
pub(crate) struct PostCopy {
    missing: Arc<Missing>,
    memory: Arc<SharedMemory>,
    guest: Guest,
    migration: Migration,
    seed: u64,
    /// How many connections have announced all of their missing pages, and the writes after which the machine
    /// resumes.
    switched: Mutex<(u32, u64)>,
    /// The machine runs here.
    runs: AtomicBool,
    /// The thread that requests missing pages.
    handler: Mutex<Option<JoinHandle<()>>>,
}

/// What the machine's connections share with the thread that requests pages.
#[derive(Debug)]
struct Missing {
    pages: MissingPages,
    channels: Box<[Mutex<Channel>]>,
    /// The thread is to end, and missing pages no longer block anyone.
    ending: AtomicBool,
    /// Why the thread could not request pages.
    failed: OnceLock<io::Error>,
    /// Ends the thread's wait for a fault.
    wake: Waker,
}

/// One connection's share of the missing pages.
#[derive(Debug)]
struct Channel {
    /// The socket on which pages are requested. Nothing else is written to it while pages are missing.
    socket: Option<Arc<Socket>>,
    /// Pages that have not arrived yet.
    missing: PageSet,
    /// Number of pages that the machine has waited for.
    fetched: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PostCopy {
    /// Post-copy of a machine whose memory is zero, with every page of it resident.
    ///
    /// # Errors
    /// Those of [`MissingPages::of`]; no descriptor for the waker.
    pub(crate) fn of(
        memory: &Arc<SharedMemory>,
        migration: &Migration,
        seed: u64,
    ) -> io::Result<Self> {
        let pages = migration.pages() as u32;
        let channel = |_| {
            Mutex::new(Channel {
                socket: None,
                missing: PageSet::none_of(pages),
                fetched: 0,
            })
        };
        Ok(Self {
            missing: Arc::new(Missing {
                pages: MissingPages::of(Arc::clone(memory))?,
                channels: (0..migration.channels).map(channel).collect(),
                ending: AtomicBool::new(false),
                failed: OnceLock::new(),
                wake: Waker::new()?,
            }),
            memory: Arc::clone(memory),
            guest: Guest::new(),
            migration: *migration,
            seed,
            switched: Mutex::new((0, 0)),
            runs: AtomicBool::new(false),
            handler: Mutex::new(None),
        })
    }

    fn channel(&self, channel: u32) -> MutexGuard<'_, Channel> {
        lock(&self.missing.channels[channel as usize])
    }

    /// Whether the machine runs here.
    pub(crate) fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    /// How many pages of a connection are missing.
    pub(crate) fn left(&self, channel: u32) -> u32 {
        self.channel(channel).missing.len()
    }

    /// How many pages of a connection the machine has waited for.
    pub(crate) fn fetched(&self, channel: u32) -> u64 {
        self.channel(channel).fetched
    }

    /// Marks pages of a connection as missing: they were not sent, or are out of date. Their content is removed.
    ///
    /// # Errors
    /// `InvalidData`: the connection does not carry these pages, or they are missing already; those of
    /// [`MissingPages::remove`].
    pub(crate) fn remove(&self, channel: u32, range: PageRange) -> io::Result<()> {
        let mut own = self.channel(channel);
        for page in range.first..range.first + range.count {
            if channel_of(page, self.migration.channels) != channel || !own.missing.insert(page) {
                return Err(invalid(format!(
                    "page {page} was announced as missing twice, or on the wrong connection"
                )));
            }
        }
        self.missing
            .pages
            .remove(range.first as usize, range.count as usize)
    }

    /// Notes that a connection has announced all of its missing pages. With the last connection the machine resumes
    /// here after `after` writes, and its source is told.
    ///
    /// # Errors
    /// `InvalidData`: the connections do not agree on the number of writes; a thread cannot be created; errors of the
    /// socket.
    pub(crate) fn switch(&self, channel: u32, socket: &Arc<Socket>, after: u64) -> io::Result<()> {
        // Locked until the source is told that the machine runs: requests of pages on this connection come later.
        let mut own = self.channel(channel);
        own.socket = Some(Arc::clone(socket));
        let mut switched = lock(&self.switched);
        if switched.0 > 0 && switched.1 != after {
            return Err(invalid("connections differ in how often the machine wrote"));
        }
        *switched = (switched.0 + 1, after);
        if switched.0 < self.migration.channels {
            return Ok(());
        }
        let missing = Arc::clone(&self.missing);
        let handler = thread::Builder::new()
            .name("missing-pages".to_owned())
            .stack_size(128 << 10)
            .spawn(move || missing.ask())?;
        *lock(&self.handler) = Some(handler);
        self.guest
            .start(&self.memory, self.migration, self.seed, after)?;
        self.runs.store(true, Ordering::Release);
        self.missing.send_reply(socket, Reply::Runs)
    }

    /// Places a missing page that has arrived.
    ///
    /// # Errors
    /// `InvalidData`: the page was not missing; those of [`MissingPages::place`]; why the thread could not request
    /// pages, where it could not.
    pub(crate) fn place(&self, channel: u32, page: u32, content: &[u8]) -> io::Result<()> {
        let mut own = self.channel(channel);
        if !own.missing.contains(page) {
            return Err(invalid(format!("page {page} arrived, but was not missing")));
        }
        let placed = self.missing.pages.place(page as usize, content);
        match (placed, self.missing.failed.get()) {
            (_, Some(why)) => {
                let words = format!("a missing page could not be asked for: {why}");
                return Err(io::Error::new(why.kind(), words));
            }
            // The move was just given up, on another connection.
            (Err(_), None) if self.missing.ending.load(Ordering::Acquire) => {}
            (placed, None) => placed?,
        }
        own.missing.remove(page);
        Ok(())
    }

    /// Number of writes of the machine.
    #[cfg(test)]
    pub(crate) fn writes(&self) -> u64 {
        self.guest.writes()
    }

    /// Stops the machine. Returns its number of writes, at the source and here.
    ///
    /// # Errors
    /// `InvalidData`: the machine does not run here, or pages are missing that it may wait for.
    pub(crate) fn halt(&self) -> io::Result<u64> {
        let missing: u32 = (0..self.migration.channels)
            .map(|channel| self.left(channel))
            .sum();
        if missing > 0 || !self.runs() {
            return Err(invalid(format!(
                "the machine is to be verified while {missing} pages are missing"
            )));
        }
        Ok(self.guest.halt())
    }

    /// Gives the move up: stops the machine, and releases threads that wait for missing pages.
    pub(crate) fn abandon(&self) {
        self.guest.stop();
        self.missing.give_up();
    }
}

impl Drop for PostCopy {
    fn drop(&mut self) {
        // Before the guest's thread is joined, which may be waiting for a page.
        self.abandon();
        let handler = lock(&self.handler).take();
        if let Some(handler) = handler {
            let _ = handler.join();
        }
    }
}

impl Missing {
    /// Requests every page that a thread waits for, until `ending` is set.
    fn ask(&self) {
        while !self.ending.load(Ordering::Acquire) {
            let places = [self.pages.as_fd(), self.wake.as_fd()];
            let asked = poll_readable(&places, LOOK_EVERY)
                .and_then(|_| self.pages.next_fault())
                .and_then(|page| page.map_or(Ok(()), |page| self.fetch(page as u32)));
            if let Err(error) = asked {
                let _ = self.failed.set(error);
                return self.give_up();
            }
        }
    }

    fn fetch(&self, page: u32) -> io::Result<()> {
        let channel = channel_of(page, self.channels.len() as u32);
        let mut channel = lock(&self.channels[channel as usize]);
        channel.fetched += 1;
        match &channel.socket {
            Some(socket) if channel.missing.contains(page) => {
                self.send_reply(socket, Reply::Fetch(page))
            }
            // The page has just arrived, which released the thread that waited.
            _ => Ok(()),
        }
    }

    /// Sends a reply to the source. The source reads at once, so a connection without room for [`PEER_TIMEOUT`] is
    /// broken.
    fn send_reply(&self, socket: &Socket, reply: Reply) -> io::Result<()> {
        let bytes = encode_reply(reply);
        let (mut sent, until) = (0, Instant::now() + PEER_TIMEOUT);
        while sent < bytes.len() {
            match send(socket, &bytes[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.ending.load(Ordering::Acquire) || Instant::now() > until {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    thread::sleep(ROOM);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn give_up(&self) {
        self.ending.store(true, Ordering::Release);
        // Fails only where the pages were released before.
        let _ = self.pages.release();
        self.wake.raise();
    }
}
