//! The receiving side of one of a machine's connections, at the destination.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::socket::{receive, send};

use super::destination_machine::DestinationMachine;
use super::pages::{Digest, PageRange, bytes_of, clear, of_channel};
use super::post_copy::{PostCopy, invalid};
use super::post_copy_receiver::PostCopyReceiver;
use super::record::{HEAD_BYTES, Head, Kind, REPLY_BYTES, Reply, decode, encode_reply};
use crate::storage::session::Step;
use crate::task::IoFailure;

/// Steps before other connections of the thread are served.
const BUDGET: u32 = 8;

/// One connection of a machine at its destination.
#[derive(Debug)]
pub(crate) struct MigrationReceiver {
    /// Index of the connection among those of its machine.
    pub(crate) channel: u32,
    head: [u8; HEAD_BYTES],
    /// Bytes of the head that have arrived.
    filled: usize,
    /// Byte ranges of the memory that are to be received, in order; bytes that have arrived are cut off.
    missing: Vec<Range<usize>>,
    /// Index of the first range in `missing` that is not complete.
    next: usize,
    /// A reply that is not completely sent, and how many of its bytes are.
    reply: Option<([u8; REPLY_BYTES], usize)>,
    /// The digest in progress: the ranges of pages that are left, in reverse order, and the digest so far.
    digest: Option<(Vec<PageRange>, Digest)>,
    /// With post-copy, once pages are announced as missing: those that arrive after the machine has resumed here.
    post_copy_receiver: Option<PostCopyReceiver>,
    /// The source has ended the move, or given it up.
    ended: bool,
    /// Bytes of page content that have arrived.
    pub(crate) bytes: u64,
    /// Pages that have arrived or are announced, zero pages included.
    pub(crate) pages: u64,
}

impl MigrationReceiver {
    /// Connection number `channel` of its machine, on which nothing has arrived.
    pub(crate) fn new(channel: u32) -> Self {
        Self {
            channel,
            head: [0; HEAD_BYTES],
            filled: 0,
            missing: Vec::new(),
            next: 0,
            reply: None,
            digest: None,
            post_copy_receiver: None,
            ended: false,
            bytes: 0,
            pages: 0,
        }
    }

    /// When data last arrived, while pages are missing that the machine here may wait for.
    pub(crate) fn awaits(&self) -> Option<Instant> {
        let receiver = self.post_copy_receiver.as_ref().filter(|_| !self.ended)?;
        Some(receiver.last_activity)
    }

    /// Does what can be done now. It is the source that ends the connection.
    ///
    /// # Errors
    /// Errors of the socket and of [`PostCopy`]; `InvalidData`: the source broke the protocol; `UnexpectedEof`: the
    /// connection ended within a record or a move.
    pub(crate) fn poll(
        &mut self,
        socket: &Arc<Socket>,
        machine: &DestinationMachine,
    ) -> io::Result<Step> {
        for _ in 0..BUDGET {
            let step = match self.step(socket, machine) {
                Ok(step) => step,
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => Step::Again,
                    IoFailure::Blocked if self.reply.is_some() => Step::Write,
                    IoFailure::Blocked => Step::Read,
                    IoFailure::Broken(error) => return Err(error),
                },
            };
            if step != Step::Again {
                return Ok(step);
            }
        }
        Ok(Step::Again)
    }

    fn step(&mut self, socket: &Arc<Socket>, machine: &DestinationMachine) -> io::Result<Step> {
        if let Some((bytes, sent)) = &mut self.reply {
            *sent += send(&**socket, &bytes[*sent..])?;
            if *sent == bytes.len() {
                self.reply = None;
            }
        } else if let Some((left, digest)) = &mut self.digest {
            // One range at a time, at most 256 KiB.
            if let Some(range) = left.pop() {
                digest.add(&machine.memory, range);
            } else {
                let reply = Reply::Digest(digest.0);
                self.reply = Some((encode_reply(reply), 0));
                self.digest = None;
            }
        } else if self.next < self.missing.len() {
            self.receive_pages(socket, machine)?;
        } else if let Some(receiver) = self
            .post_copy_receiver
            .as_mut()
            .filter(|receiver| receiver.is_due())
        {
            let read = receiver.receive(socket, post_copy(machine)?, self.channel)?;
            if read == 0 {
                return Err(within("a page"));
            }
            self.bytes += read as u64;
        } else {
            let read = receive(&**socket, &mut self.head[self.filled..])?;
            self.filled += read;
            if let Some(receiver) = &mut self.post_copy_receiver {
                receiver.last_activity = Instant::now();
            }
            match (read, self.filled) {
                (0, 0) if self.ended => return Ok(Step::Over),
                (0, 0) => return Err(within("a move")),
                (0, _) => return Err(within("a head")),
                (_, HEAD_BYTES) => {
                    self.begin(decode(&self.head, machine.pages)?, socket, machine)?;
                }
                _ => {}
            }
        }
        Ok(Step::Again)
    }

    fn begin(
        &mut self,
        head: Head,
        socket: &Arc<Socket>,
        machine: &DestinationMachine,
    ) -> io::Result<()> {
        self.filled = 0;
        match head.kind {
            Kind::Pages => {
                self.ended = false;
                self.missing.clear();
                self.next = 0;
                for (range, zero) in head.ranges {
                    self.pages += u64::from(range.count);
                    if let Some(receiver) = &mut self.post_copy_receiver {
                        receiver.expect(range, zero, post_copy(machine)?, self.channel)?;
                    } else if zero {
                        clear(&machine.memory, range);
                    } else {
                        self.missing.push(bytes_of(range));
                    }
                }
            }
            Kind::Missing => {
                let receiver = self
                    .post_copy_receiver
                    .get_or_insert_with(PostCopyReceiver::new);
                if receiver.switched {
                    return Err(invalid(
                        "pages were announced as missing once the machine runs",
                    ));
                }
                for (range, _) in head.ranges {
                    post_copy(machine)?.remove(self.channel, range)?;
                }
            }
            Kind::Switch => {
                let receiver = self
                    .post_copy_receiver
                    .get_or_insert_with(PostCopyReceiver::new);
                if std::mem::replace(&mut receiver.switched, true) {
                    return Err(invalid("the machine was told to resume twice"));
                }
                post_copy(machine)?.switch(self.channel, socket, head.writes)?;
            }
            Kind::End => {
                let fetched = match &machine.post_copy {
                    None => 0,
                    Some(post_copy) => self.end_late(post_copy)?,
                };
                machine.complete();
                self.ended = true;
                self.reply = Some((encode_reply(Reply::Done(fetched)), 0));
            }
            Kind::GiveUp => {
                if let Some(post_copy) = &machine.post_copy {
                    post_copy.abandon();
                }
                self.ended = true;
                self.reply = Some((encode_reply(Reply::Done(0)), 0));
            }
            Kind::Verify => {
                if let Some(post_copy) = &machine.post_copy {
                    let writes = post_copy.halt()?;
                    self.reply = Some((encode_reply(Reply::Wrote(writes)), 0));
                }
                let ranges = of_channel(machine.pages, machine.channels, self.channel);
                let mut ranges: Vec<PageRange> = ranges.collect();
                ranges.reverse();
                self.digest = Some((ranges, Digest::default()));
            }
        }
        Ok(())
    }

    /// Checks that no page of this connection is missing. Returns for how many pages the machine waited.
    fn end_late(&self, post_copy: &PostCopy) -> io::Result<u64> {
        if !self
            .post_copy_receiver
            .as_ref()
            .is_some_and(|receiver| receiver.switched)
        {
            return Err(invalid(
                "the source ended the move before the machine went on",
            ));
        }
        match post_copy.left(self.channel) {
            0 => Ok(post_copy.fetched(self.channel)),
            left => Err(invalid(format!(
                "the source ended the move, and {left} pages are missing"
            ))),
        }
    }

    fn receive_pages(&mut self, socket: &Socket, machine: &DestinationMachine) -> io::Result<()> {
        let missing = self.missing[self.next..].iter().cloned();
        let mut read = machine.memory.receive_into(socket, missing)?;
        if read == 0 {
            return Err(within("a page"));
        }
        self.bytes += read as u64;
        for range in &mut self.missing[self.next..] {
            let taken = range.len().min(read);
            range.start += taken;
            read -= taken;
            if range.start < range.end {
                break;
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// The post-copy state of a machine; `InvalidData` where it moves without post-copy.
fn post_copy(machine: &DestinationMachine) -> io::Result<&PostCopy> {
    let post_copy = machine.post_copy.as_ref();
    post_copy.ok_or_else(|| invalid("the machine cannot resume before all pages have arrived"))
}

fn within(what: &str) -> io::Error {
    let words = format!("the source ended the connection within {what}");
    io::Error::new(io::ErrorKind::UnexpectedEof, words)
}
