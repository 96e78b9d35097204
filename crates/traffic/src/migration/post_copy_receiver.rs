//! Post-copy at the destination: what arrives on one connection once the machine has resumed. Pages are placed where
//! they are missing.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::socket::receive;

use super::pages::{PAGE, PageRange};
use super::post_copy::PostCopy;
use super::post_copy_sender::MAX_PUSHED_PAGES;

/// One connection of a machine that has resumed, or is about to.
#[derive(Debug)]
pub(crate) struct PostCopyReceiver {
    /// The source has announced all missing pages of this connection ([`super::record::Kind::Switch`]).
    pub(crate) switched: bool,
    /// When data last arrived.
    pub(crate) last_activity: Instant,
    /// Pages whose content arrives next, in order.
    due: VecDeque<u32>,
    /// Content that is not placed yet: the kernel copies complete pages from here to where they are missing.
    content: Box<[u8]>,
    /// Bytes of `content` that have arrived.
    filled: usize,
}

impl PostCopyReceiver {
    pub(crate) fn new() -> Self {
        Self {
            switched: false,
            last_activity: Instant::now(),
            due: VecDeque::new(),
            content: vec![0; MAX_PUSHED_PAGES * PAGE].into_boxed_slice(),
            filled: 0,
        }
    }

    /// Whether the content of pages arrives next.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Expects the content of pages next; zero pages are placed at once.
    ///
    /// # Errors
    /// Those of [`PostCopy::place`].
    pub(crate) fn expect(
        &mut self,
        range: PageRange,
        zero: bool,
        machine: &PostCopy,
        channel: u32,
    ) -> io::Result<()> {
        for page in range.first..range.first + range.count {
            if zero {
                machine.place(channel, page, &[0; PAGE])?;
            } else {
                self.due.push_back(page);
            }
        }
        Ok(())
    }

    /// Receives content, and places complete pages. Returns how many bytes arrived; 0 at the end of the connection.
    ///
    /// # Errors
    /// Errors of the socket, and those of [`PostCopy::place`].
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        machine: &PostCopy,
        channel: u32,
    ) -> io::Result<usize> {
        let room = self.content.len().min(self.due.len() * PAGE);
        let read = receive(socket, &mut self.content[self.filled..room])?;
        self.last_activity = Instant::now();
        self.filled += read;
        let (pages, _) = self.content[..self.filled].as_chunks::<PAGE>();
        for content in pages {
            if let Some(page) = self.due.pop_front() {
                machine.place(channel, page, content)?;
            }
        }
        let placed = pages.len() * PAGE;
        self.content.copy_within(placed..self.filled, 0);
        self.filled -= placed;
        Ok(read)
    }
}
