//! A machine at its destination that goes on before all of its pages are there.
//!
//! Pages that are missing are taken out of its memory, and whoever touches one waits (userfaultfd(2)). A thread of the
//! machine is told of each such page by the kernel and asks the source for it, on the connection that the page comes
//! over; the machine's connections place what arrives. A page has one connection, so no two of them bring the same one.

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

/// How long the thread waits for faults at most before it looks again: nothing depends on it.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Between two tries to send a request that the connection had no room for.
const ROOM: Duration = Duration::from_millis(1);

/// What comes is not what it must be.
pub(crate) fn invalid(words: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words.to_string())
}

/// One machine. When it is dropped its threads have ended.
#[derive(Debug)]
pub(crate) struct PostCopy {
    missing: Arc<Missing>,
    memory: Arc<SharedMemory>,
    guest: Guest,
    migration: Migration,
    seed: u64,
    /// How many connections said that the machine goes on, and after how many writes.
    switched: Mutex<(u32, u64)>,
    runs: AtomicBool,
    handler: Mutex<Option<JoinHandle<()>>>,
}

/// What its connections share with the thread that asks for pages.
#[derive(Debug)]
struct Missing {
    pages: MissingPages,
    channels: Box<[Mutex<Channel>]>,
    /// The thread is to end, and nobody is to wait any more.
    ending: AtomicBool,
    /// Why pages could not be asked for.
    failed: OnceLock<io::Error>,
    wake: Waker,
}

/// One connection.
#[derive(Debug)]
struct Channel {
    /// Where pages are asked for. Nobody else writes to it while pages are missing.
    socket: Option<Arc<Socket>>,
    missing: PageSet,
    fetched: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PostCopy {
    /// Of a machine whose memory is all there, with nothing in it.
    ///
    /// # Errors
    /// The kernel lets nobody wait for pages; no descriptors.
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

    /// How many of its pages the machine has waited for.
    pub(crate) fn fetched(&self, channel: u32) -> u64 {
        self.channel(channel).fetched
    }

    /// Pages of a connection are missing, or out of date.
    ///
    /// # Errors
    /// `InvalidData`: it has no such pages, or they are missing already; of the kernel.
    pub(crate) fn remove(&self, channel: u32, range: PageRange) -> io::Result<()> {
        let mut own = self.channel(channel);
        for page in range.first..range.first + range.count {
            if channel_of(page, self.migration.channels) != channel || !own.missing.insert(page) {
                return Err(invalid(format!(
                    "page {page} is said to be missing twice, or by another connection"
                )));
            }
        }
        self.missing
            .pages
            .remove(range.first as usize, range.count as usize)
    }

    /// A connection has told all of its pages that are missing. With the last one the machine goes on here, and its source
    /// is told so.
    ///
    /// # Errors
    /// `InvalidData`: connections do not agree on how often it has written; no more threads; of the connection.
    pub(crate) fn switch(&self, channel: u32, socket: &Arc<Socket>, after: u64) -> io::Result<()> {
        // Held until the source is told: the first request comes later.
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
        self.missing.say(socket, Reply::Runs)
    }

    /// A page that was missing has come.
    ///
    /// # Errors
    /// `InvalidData`: it was not missing; of the kernel.
    pub(crate) fn place(&self, channel: u32, page: u32, content: &[u8]) -> io::Result<()> {
        let mut own = self.channel(channel);
        if !own.missing.contains(page) {
            return Err(invalid(format!("page {page} came, which was not missing")));
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

    /// How often it has written.
    #[cfg(test)]
    pub(crate) fn writes(&self) -> u64 {
        self.guest.writes()
    }

    /// Stops the machine. Returns how often it has written, before its move and since.
    ///
    /// # Errors
    /// `InvalidData`: it does not run here, or pages are missing that it may wait for.
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

    /// What is missing never comes: the machine ends, and nobody waits for pages any more.
    pub(crate) fn abandon(&self) {
        self.guest.stop();
        self.missing.give_up();
    }
}

impl Drop for PostCopy {
    fn drop(&mut self) {
        // Before its guest is waited for, which may be waiting for a page.
        self.abandon();
        let handler = lock(&self.handler).take();
        if let Some(handler) = handler {
            let _ = handler.join();
        }
    }
}

impl Missing {
    /// Asks for every page that somebody waits for, until it is told to end.
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
            Some(socket) if channel.missing.contains(page) => self.say(socket, Reply::Fetch(page)),
            // It has just come, which let go who waited.
            _ => Ok(()),
        }
    }

    /// Says something to the source, which reads at once: a connection without room for it is as good as broken.
    fn say(&self, socket: &Socket, reply: Reply) -> io::Result<()> {
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
        // Fails only where it was done already.
        let _ = self.pages.release();
        self.wake.raise();
    }
}
