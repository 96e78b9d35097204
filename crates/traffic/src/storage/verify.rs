//! Verification of what was read and written, after the load: some of its I/Os are read back on the same connection.
//!
//! Not within the window: comparing bytes is no part of the load.

use std::io::{self, Write};
use std::net::Shutdown;
use std::time::Instant;

use socket2::Socket;
use wirecost_nbd::arrived::ArrivedData;
use wirecost_nbd::client::Negotiated;
use wirecost_nbd::protocol::command;
use wirecost_nbd::reply::{Event, Outstanding, ReplyReader};
use wirecost_nbd::request::Request;

use super::content::{Writer, first_difference, seed, stamp};
use super::protocol;
use crate::flow::Flow;
use crate::opening::{read_all, remaining};
use crate::shared::Shared;

/// One outstanding read, and what has arrived of its data.
struct OutstandingRead(Request, ArrivedData);

impl Outstanding for OutstandingRead {
    fn find(&mut self, cookie: u64) -> Option<(Request, &mut ArrivedData)> {
        (cookie == self.0.cookie).then_some((self.0, &mut self.1))
    }
}

/// Reads the flow's sample back, and ends the connection (`DISC`).
///
/// # Errors
/// `InvalidData`: the content is not what was written, or the server violates the protocol; errors of the socket.
pub(crate) fn verify(
    shared: &Shared,
    flow: &Flow,
    mut socket: &Socket,
    negotiated: Negotiated,
    deadline: Instant,
) -> io::Result<()> {
    let options = &shared.options;
    let length = options.load.request;
    let request = |command, offset, number: u64| Request {
        flags: 0,
        command,
        // Not a cookie of the load.
        cookie: u64::MAX - number,
        offset,
        length,
    };
    if let Some(read_back) = flow.read_back.get() {
        let writer = if read_back.command == command::WRITE {
            Writer::Client
        } else {
            Writer::Target
        };
        let seed = seed(options);
        for (number, offset) in (0..).zip(&read_back.offsets) {
            let request = request(command::READ, *offset, number);
            socket.write_all(&request.encode())?;
            flow.tx.messages.add(1);
            let found = read_one(socket, request, negotiated, deadline)?;
            flow.rx.bytes.add(found.len() as u64);
            flow.rx.messages.add(1);
            let stamp = stamp(seed, writer, *offset);
            if let Some(byte) = first_difference(&found, &shared.message, stamp, *offset) {
                let words = format!(
                    "the {length} bytes at offset {offset} are not what was written there, from byte {byte} on"
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, words));
            }
        }
    }
    socket.write_all(&request(command::DISCONNECT, 0, 0).encode())?;
    let _ = socket.shutdown(Shutdown::Write);
    Ok(())
}

fn read_one(
    socket: &Socket,
    request: Request,
    negotiated: Negotiated,
    deadline: Instant,
) -> io::Result<Vec<u8>> {
    let (start, length) = (request.offset, request.length as usize);
    let mut found = vec![0; length];
    let mut reader = ReplyReader::new(negotiated.structured);
    let mut one = OutstandingRead(request, ArrivedData::default());
    // Only this reply is outstanding: it may be read in small pieces.
    let mut buffer = vec![0; 64 << 10];
    loop {
        socket.set_read_timeout(Some(remaining(deadline)))?;
        let read = receive_some(socket, &mut buffer, deadline)?;
        let mut input = &buffer[..read];
        loop {
            let before = input;
            let Some(event) = reader.next(&mut input, &mut one).map_err(protocol)? else {
                break;
            };
            match event {
                Event::Data { offset, length, .. } => {
                    let at = (offset - start) as usize;
                    let taken = before.len() - input.len();
                    let data = &before[taken - length as usize..taken];
                    found[at..at + data.len()].copy_from_slice(data);
                }
                Event::Zeroes { .. } => {}
                Event::Done { .. } => return Ok(found),
            }
        }
    }
}

/// Receives at least one byte, by the deadline.
fn receive_some(socket: &Socket, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    let (first, rest) = buffer.split_at_mut(1);
    read_all(&mut &*socket, first, deadline)?;
    socket.set_nonblocking(true)?;
    let more = wirecost_sys::socket::receive(socket, rest);
    socket.set_nonblocking(false)?;
    match more {
        Ok(more) => Ok(1 + more),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(1),
        Err(error) => Err(error),
    }
}
