//! Generic netlink: commands to one family of the kernel (Documentation/userspace-api/netlink/intro.rst).

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED, NlasIterator};

use crate::raw::{Raw, truncated};

// include/uapi/linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GENL_VERSION: u8 = 2;
const ENOENT: i32 = 2;

/// A connection to one family, in the network namespace that it was opened in.
#[derive(Debug)]
pub struct Generic {
    netlink: Raw,
    family: u16,
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
pub type AttributeMap = BTreeMap<u16, Vec<u8>>;

impl Generic {
    /// Opens a connection to the family of that name. The kernel loads a module that provides it.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no such family; otherwise errors of socket(2).
    pub fn open(name: &str) -> io::Result<Self> {
        let mut generic = Self {
            netlink: Raw::generic()?,
            family: GENL_ID_CTRL,
        };
        let name = [name.as_bytes(), &[0]].concat();
        let asked = [DefaultNla::new(CTRL_ATTR_FAMILY_NAME, name)];
        let told = generic.call(Command::Do(CTRL_CMD_GETFAMILY), GENL_VERSION, &asked)?;
        let id = told
            .first()
            .and_then(|told| told.get(&CTRL_ATTR_FAMILY_ID)?[..].try_into().ok());
        generic.family = u16::from_ne_bytes(id.ok_or_else(truncated)?);
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
    ) -> io::Result<Vec<AttributeMap>> {
        let (Command::Do(number) | Command::Dump(number)) = command;
        let body = [&[number, version, 0, 0], &bytes(attributes)[..]].concat();
        let answers = match command {
            Command::Do(_) => self.netlink.call(self.family, &body),
            Command::Dump(_) => self.netlink.dump(self.family, &body),
        };
        // The generic netlink header of 4 bytes (command, version) comes first.
        let attributes =
            |answer: &Vec<u8>| Ok(parse_attributes(answer.get(4..).ok_or_else(truncated)?));
        answers?.iter().map(attributes).collect()
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
pub fn parse_attributes(bytes: &[u8]) -> AttributeMap {
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
        let named = |told: &AttributeMap| told[&CTRL_ATTR_FAMILY_NAME] == b"nlctrl\0";
        assert!(all.iter().any(named), "{all:?}");
    }

    #[test]
    fn attributes_are_padded_and_say_their_length() {
        let name = DefaultNla::new(CTRL_ATTR_FAMILY_NAME, b"abcd\0".to_vec());
        let bytes = bytes(&[name]);
        assert_eq!((bytes.len(), bytes[0]), (4 + 8, 9));
        assert_eq!(&bytes[4..], b"abcd\0\0\0\0");
    }

    #[test]
    fn nested_attributes_are_read_as_they_were_written() {
        let inner = DefaultNla::new(5, vec![1, 2, 3]);
        let outer = bytes(&[nested(8, &[inner])]);
        assert_eq!(u16::from_ne_bytes([outer[2], outer[3]]), 8 | 1 << 15);
        assert_eq!(
            parse_attributes(&parse_attributes(&outer)[&8])[&5],
            [1, 2, 3]
        );
    }
}
