//! Attributes of netlink messages by number. Decoded by hand rather than into typed messages: an audit must not fail on
//! a kind of device that a library does not know yet.

/// Clears the flags for nested attributes and network byte order (include/uapi/linux/netlink.h).
const TYPE_MASK: u16 = 0x3fff;

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

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_run_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Attributes(&bytes).all().count() <= 50);
        }
    }
}
