//! What comes over one connection once its machine goes on at the destination: pages that are placed where they are
//! missing.

use std::collections::VecDeque;
use std::io;
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::socket::receive;

use super::pages::{PAGE, PageRange};
use super::post_copy::PostCopy;
use super::push::PUSHED;

/// One connection.
#[derive(Debug)]
pub(crate) struct Late {
    /// The source has said that the machine goes on.
    pub(crate) switched: bool,
    /// When something came last.
    pub(crate) heard: Instant,
    /// Pages whose content is due, in order.
    due: VecDeque<u32>,
    /// Content that was not placed yet: the kernel copies a page from here to where it is missing.
    content: Box<[u8]>,
    filled: usize,
}

impl Late {
    pub(crate) fn new() -> Self {
        Self {
            switched: false,
            heard: Instant::now(),
            due: VecDeque::new(),
            content: vec![0; PUSHED * PAGE].into_boxed_slice(),
            filled: 0,
        }
    }

    /// Whether content is due.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// These pages come next, or are zero.
    ///
    /// # Errors
    /// Of [`PostCopy::place`].
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

    /// Takes content, and places what is complete. Returns how many bytes came; 0 at the end of the connection.
    ///
    /// # Errors
    /// Of the socket and of [`PostCopy::place`].
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        machine: &PostCopy,
        channel: u32,
    ) -> io::Result<usize> {
        let room = self.content.len().min(self.due.len() * PAGE);
        let read = receive(socket, &mut self.content[self.filled..room])?;
        self.heard = Instant::now();
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
