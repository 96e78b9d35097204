//! Read-only rtnetlink requests, with attributes by number. Decoded by hand rather than into typed messages: an audit
//! must not fail on a kind of device that a library does not know yet.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Size of struct nlmsghdr, bytes: length, type, flags, sequence, port.
const HEADER: usize = 16;
/// Clears the flags for nested attributes and network byte order (include/uapi/linux/netlink.h).
const TYPE_MASK: u16 = 0x3fff;

/// An rtnetlink connection in the namespace that it was opened in.
#[derive(Debug)]
pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Dumps every object of a kind: the bytes after each message's header.
    pub(super) fn dump(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.ask(kind, REQUEST | DUMP, body)
    }

    /// Gets one object: the bytes after the message's header.
    pub(super) fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.ask(kind, REQUEST | ACK, body)?.into_iter().next())
    }

    fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(body);
        self.socket.send(&message, 0)?;
        let mut found = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = datagram.as_slice();
            while let Some((kind, sequence, body, next)) = split(rest) {
                rest = next;
                if sequence != self.sequence {
                    continue;
                }
                if let Some(result) = end(kind, body) {
                    return result.map(|()| found);
                }
                found.push(body.to_vec());
            }
        }
    }
}

/// The result with which a message ends an answer; `None`: it is a part of the answer. A dump that fails ends with the
/// error number (net/netlink/af_netlink.c, `netlink_dump_done`).
fn end(kind: u16, body: &[u8]) -> Option<io::Result<()>> {
    if !matches!(kind, DONE | ERROR) {
        return None;
    }
    let code = body
        .first_chunk()
        .map_or(0, |code| i32::from_ne_bytes(*code));
    Some(if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-code))
    })
}

/// Splits off one message: type, sequence, body, and the bytes after it.
fn split(bytes: &[u8]) -> Option<(u16, u32, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let message = bytes.get(..length).filter(|_| length >= HEADER)?;
    let kind = u16::from_ne_bytes([message[4], message[5]]);
    let sequence = u32::from_ne_bytes(message[8..12].try_into().ok()?);
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, sequence, &message[HEADER..], next))
}

/// A sequence of netlink attributes: number and content. A truncated attribute ends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Attributes<'a> {
    /// All attributes, in order.
    fn all(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
            let attribute = rest.get(..length).filter(|_| length >= 4)?;
            let number = u16::from_ne_bytes([attribute[2], attribute[3]]) & TYPE_MASK;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            Some((number, &attribute[4..]))
        })
    }

    /// Content of the first attribute with this number.
    pub(super) fn find(self, number: u16) -> Option<&'a [u8]> {
        self.all()
            .find_map(|(found, content)| (found == number).then_some(content))
    }

    /// The attributes nested in this one; empty where there is none.
    pub(super) fn nested(self, number: u16) -> Attributes<'a> {
        Attributes(self.find(number).unwrap_or_default())
    }

    pub(super) fn u32(self, number: u16) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.find(number)?.first_chunk()?))
    }

    pub(super) fn u8(self, number: u16) -> Option<u8> {
        self.find(number)?.first().copied()
    }

    /// A 16-bit number in network byte order.
    pub(super) fn be16(self, number: u16) -> Option<u16> {
        Some(u16::from_be_bytes(*self.find(number)?.first_chunk()?))
    }

    pub(super) fn u16(self, number: u16) -> Option<u16> {
        Some(u16::from_ne_bytes(*self.find(number)?.first_chunk()?))
    }

    pub(super) fn text(self, number: u16) -> Option<String> {
        let bytes = self.find(number)?;
        let end = bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// An IPv4 or IPv6 address, by the length of the attribute.
    pub(super) fn address(self, number: u16) -> Option<std::net::IpAddr> {
        let bytes = self.find(number)?;
        if let Ok(four) = <[u8; 4]>::try_from(bytes) {
            return Some(four.into());
        }
        <[u8; 16]>::try_from(bytes).ok().map(Into::into)
    }
}

/// Encodes an attribute, padded to 4 bytes.
pub(super) fn attribute(number: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + content.len());
    bytes.extend((4 + content.len() as u16).to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_reads_back() {
        let bytes = [
            attribute(3, b"eth0\0"),
            attribute(4, &9000u32.to_ne_bytes()),
        ]
        .concat();
        let attributes = Attributes(&bytes);
        assert_eq!(attributes.text(3).as_deref(), Some("eth0"));
        assert_eq!(attributes.u32(4), Some(9000));
        assert_eq!(attributes.u32(5), None);
    }

    #[test]
    fn a_dump_that_fails_ends_with_its_error_number() {
        let failed = end(DONE, &(-2i32).to_ne_bytes()).expect("an end");
        assert_eq!(failed.expect_err("ENOENT").raw_os_error(), Some(2));
        assert!(matches!(end(DONE, &[0; 4]), Some(Ok(()))));
        assert!(end(16, &[0; 4]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_run_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Attributes(&bytes).all().count() <= 50);
            let mut rest = bytes.as_slice();
            while let Some((_, _, _, next)) = split(rest) {
                prop_assert!(next.len() < rest.len());
                rest = next;
            }
        }
    }
}
