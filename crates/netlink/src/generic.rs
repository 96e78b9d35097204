//! Generic netlink: commands to one family of the kernel (Documentation/userspace-api/netlink/intro.rst).

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED, NlasIterator};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

// include/uapi/linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENL_VERSION: u8 = 2;
// include/uapi/linux/netlink.h
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;
const ENOENT: i32 = 2;

/// A connection to one family, in the network namespace that it was opened in.
#[derive(Debug)]
pub struct Generic {
    socket: Socket,
    family: u16,
    sequence: u32,
}

/// How a command is requested, with its number in the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Acknowledged: changes something, or reports one object.
    Do(u8),
    /// As a dump: reports all objects of a kind.
    Dump(u8),
}

/// Payloads of attributes by attribute number.
pub type Numbered = BTreeMap<u16, Vec<u8>>;

impl Generic {
    /// Opens a connection to the family of that name. The kernel loads a module that provides it.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no such family; otherwise errors of socket(2).
    pub fn open(name: &str) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut generic = Self {
            socket,
            family: GENL_ID_CTRL,
            sequence: 0,
        };
        let name = [name.as_bytes(), &[0]].concat();
        let asked = [DefaultNla::new(CTRL_ATTR_FAMILY_NAME, name)];
        let told = generic.call(Command::Do(CTRL_CMD_GETFAMILY), GENL_VERSION, &asked)?;
        let id = told
            .first()
            .and_then(|told| told.get(&CTRL_ATTR_FAMILY_ID)?[..].try_into().ok());
        generic.family = u16::from_ne_bytes(id.ok_or_else(cut)?);
        Ok(generic)
    }

    /// Sends a command with the family's version, and returns the attributes of each answer.
    ///
    /// # Errors
    /// The kernel's error number for the command; `UnexpectedEof` for a truncated answer.
    pub fn call(
        &mut self,
        command: Command,
        version: u8,
        attributes: &[DefaultNla],
    ) -> io::Result<Vec<Numbered>> {
        self.sequence += 1;
        let request = request(self.family, self.sequence, command, version, attributes);
        self.socket.send(&request, 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let (message, behind) = split(rest)?;
                rest = behind;
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    NLMSG_DONE if message.body.is_empty() => return Ok(answers),
                    NLMSG_ERROR | NLMSG_DONE => {
                        return acknowledged(message.body).map(|()| answers);
                    }
                    // The generic netlink header of 4 bytes (command, version) comes first.
                    _ => answers.push(numbered(message.body.get(4..).ok_or_else(cut)?)),
                }
            }
        }
    }
}

/// Whether the kernel has a family of that name. The kernel loads a module that provides it.
///
/// # Errors
/// Errors of [`Generic::open`] other than `ENOENT`.
pub fn has_family(name: &str) -> io::Result<bool> {
    match Generic::open(name) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// An attribute that contains attributes (`NLA_F_NESTED`).
pub fn nested(number: u16, attributes: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(number | NLA_F_NESTED, bytes(attributes))
}

/// Payloads by attribute number, up to the first attribute that is truncated.
pub fn numbered(bytes: &[u8]) -> Numbered {
    NlasIterator::new(bytes)
        .map_while(Result::ok)
        .map(|attribute| (attribute.kind(), attribute.value().to_vec()))
        .collect()
}

fn bytes(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut bytes = vec![0; attributes.buffer_len()];
    attributes.emit(&mut bytes);
    bytes
}

fn request(
    family: u16,
    sequence: u32,
    command: Command,
    version: u8,
    attributes: &[DefaultNla],
) -> Vec<u8> {
    let (command, flags) = match command {
        Command::Do(command) => (command, NLM_F_ACK),
        Command::Dump(command) => (command, NLM_F_DUMP),
    };
    let attributes = bytes(attributes);
    let length = HEADER_BYTES + 4 + attributes.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([command, version, 0, 0]);
    bytes.extend(attributes);
    bytes
}

/// One netlink message of a datagram.
struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

/// First message of a datagram, and the bytes after it.
fn split(datagram: &[u8]) -> io::Result<(Message<'_>, &[u8])> {
    let (header, _) = datagram
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or_else(cut)?;
    let [l0, l1, l2, l3, k0, k1, _, _, s0, s1, s2, s3, ..] = *header;
    let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
    let body = datagram.get(HEADER_BYTES..length).ok_or_else(cut)?;
    let message = Message {
        kind: u16::from_ne_bytes([k0, k1]),
        sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
        body,
    };
    let behind = datagram.get(length.next_multiple_of(4)..);
    Ok((message, behind.unwrap_or_default()))
}

/// Result in the body of an `NLMSG_ERROR` or `NLMSG_DONE`: a negative error number, or 0.
fn acknowledged(body: &[u8]) -> io::Result<()> {
    match i32::from_ne_bytes(*body.first_chunk().ok_or_else(cut)?) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_the_controller_and_none_has_ours() {
        assert!(has_family("nlctrl").expect("an answer"));
        assert!(!has_family("wirecost-none").expect("an answer"));
    }

    #[test]
    fn the_controller_tells_of_every_family_and_of_itself_by_its_number() {
        let mut controller = Generic::open("nlctrl").expect("an answer");
        assert_eq!(controller.family, GENL_ID_CTRL);
        let all = controller.call(Command::Dump(CTRL_CMD_GETFAMILY), GENL_VERSION, &[]);
        let all = all.expect("families");
        let named = |told: &Numbered| told[&CTRL_ATTR_FAMILY_NAME] == b"nlctrl\0";
        assert!(all.iter().any(named), "{all:?}");
    }

    #[test]
    fn a_request_is_padded_and_says_its_length() {
        let name = DefaultNla::new(CTRL_ATTR_FAMILY_NAME, b"abcd\0".to_vec());
        let bytes = request(GENL_ID_CTRL, 7, Command::Do(3), 2, &[name]);
        assert_eq!(bytes.len(), 16 + 4 + 4 + 8);
        assert_eq!((bytes[0], bytes[8], bytes[16]), (32, 7, 3));
        assert_eq!(bytes[20], 9);
        assert_eq!(&bytes[24..], b"abcd\0\0\0\0");
    }

    #[test]
    fn nested_attributes_are_read_as_they_were_written() {
        let inner = DefaultNla::new(5, vec![1, 2, 3]);
        let outer = bytes(&[nested(8, &[inner])]);
        assert_eq!(u16::from_ne_bytes([outer[2], outer[3]]), 8 | 1 << 15);
        assert_eq!(numbered(&numbered(&outer)[&8])[&5], [1, 2, 3]);
    }

    #[test]
    fn an_answer_that_is_cut_is_an_error() {
        assert!(split(&[0; 7]).is_err());
        let header = [20, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert!(split(&header).is_err());
        assert!(split(&[1; 16]).is_err());
        assert!(acknowledged(&[1, 2]).is_err());
    }
}
