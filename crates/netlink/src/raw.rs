//! A netlink connection of any protocol: requests and answers as bytes (netlink(7)).

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE};
use netlink_sys::{Socket, SocketAddr};

// include/uapi/linux/netlink.h
const NLM_F_DUMP_INTR: u16 = 0x10;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Size of struct nlmsghdr, bytes: length, type, flags, sequence, port.
const HEADER: usize = 16;
/// How often a dump is asked for while something changes it; the last one is taken as it is.
const DUMPS: u32 = 4;

/// A connection in the network namespace that it was opened in.
#[derive(Debug)]
pub struct Raw {
    socket: Socket,
    sequence: u32,
}

impl Raw {
    /// A connection to rtnetlink: devices, addresses, routes.
    ///
    /// # Errors
    /// Errors of socket(2) and bind(2).
    pub fn route() -> io::Result<Self> {
        Self::open(NETLINK_ROUTE)
    }

    /// A connection to generic netlink.
    pub(crate) fn generic() -> io::Result<Self> {
        Self::open(NETLINK_GENERIC)
    }

    fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Dumps every object of a kind: the bytes after each message's header. Asks again where an object came or went
    /// meanwhile, which leaves others out.
    ///
    /// # Errors
    /// The kernel's error number; `UnexpectedEof` for a truncated answer.
    pub fn dump(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut left = DUMPS;
        loop {
            left -= 1;
            let (answers, is_interrupted) = self.request(kind, NLM_F_DUMP, body)?;
            if !is_interrupted || left == 0 {
                return Ok(answers);
            }
        }
    }

    /// Changes something, or gets one object: the bytes after each message's header.
    ///
    /// # Errors
    /// As [`Raw::dump`].
    pub fn call(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.request(kind, NLM_F_ACK, body)?.0)
    }

    /// [`Raw::call`]: the first message, if there is one.
    ///
    /// # Errors
    /// As [`Raw::dump`].
    pub fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.call(kind, body)?.into_iter().next())
    }

    /// The answers, and whether something changed while they were dumped (`NLM_F_DUMP_INTR`).
    fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<(Vec<Vec<u8>>, bool)> {
        self.sequence += 1;
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0_u32.to_ne_bytes());
        message.extend(body);
        self.socket.send(&message, 0)?;
        let (mut answers, mut is_interrupted) = (Vec::new(), false);
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let (message, behind) = split(rest)?;
                rest = behind;
                if message.sequence != self.sequence {
                    continue;
                }
                is_interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
                if let Some(result) = end(message.kind, message.body) {
                    return result.map(|()| (answers, is_interrupted));
                }
                answers.push(message.body.to_vec());
            }
        }
    }
}

/// One netlink message of a datagram.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// First message of a datagram, and the bytes after it.
fn split(datagram: &[u8]) -> io::Result<(Message<'_>, &[u8])> {
    let (header, _) = datagram
        .split_first_chunk::<HEADER>()
        .ok_or_else(truncated)?;
    let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
    let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
    let body = datagram.get(HEADER..length).ok_or_else(truncated)?;
    let message = Message {
        kind: u16::from_ne_bytes([k0, k1]),
        flags: u16::from_ne_bytes([f0, f1]),
        sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
        body,
    };
    let behind = datagram.get(length.next_multiple_of(4)..);
    Ok((message, behind.unwrap_or_default()))
}

/// The result with which a message ends an answer; `None`: it is a part of the answer. A dump that fails ends with the
/// error number (net/netlink/af_netlink.c, `netlink_dump_done`).
fn end(kind: u16, body: &[u8]) -> Option<io::Result<()>> {
    match (kind, body.first_chunk()) {
        (NLMSG_DONE, None) => Some(Ok(())),
        (NLMSG_ERROR, None) => Some(Err(truncated())),
        (NLMSG_ERROR | NLMSG_DONE, Some(code)) => Some(match i32::from_ne_bytes(*code) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(-code)),
        }),
        _ => None,
    }
}

/// An answer that ends too early.
pub(crate) fn truncated() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        assert!(split(&[0; 7]).is_err());
        let header = [20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert!(split(&header).is_err());
        assert!(split(&[1; 16]).is_err());
        assert!(split(&[0; 16]).is_err(), "a message has a header at least");
        assert!(end(NLMSG_ERROR, &[1, 2]).is_some_and(|result| result.is_err()));
    }

    #[test]
    fn a_dump_that_fails_ends_with_its_error_number() {
        let failed = end(NLMSG_DONE, &(-2_i32).to_ne_bytes()).expect("an end");
        assert_eq!(failed.expect_err("ENOENT").raw_os_error(), Some(2));
        assert!(matches!(end(NLMSG_DONE, &[0; 4]), Some(Ok(()))));
        assert!(matches!(end(NLMSG_DONE, &[]), Some(Ok(()))));
        assert!(end(16, &[0; 4]).is_none());
    }
}
