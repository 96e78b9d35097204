//! The GRE header (RFC 2784, section 2.1), with the optional checksum, key and sequence number (RFC 2890, section 2).

/// Length of a header without optional fields, bytes.
pub const HEADER_BYTES: usize = 4;
/// Length of each optional field, bytes.
const FIELD_BYTES: usize = 4;
/// Ethernet type for Ethernet frames as payload ("transparent Ethernet bridging").
pub const ETHERNET: u16 = 0x6558;

const CHECKSUM: u16 = 0x8000;
/// Flag of routing (RFC 1701), which RFC 2784 abolished.
const ROUTING: u16 = 0x4000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
const VERSION: u16 = 0x0007;

/// Identifies one tunnel on an underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GreId {
    /// Key of the tunnel's packets; `None` if they have none.
    pub key: Option<u32>,
    /// Whether the tunnel carries Ethernet frames instead of IP packets.
    pub frames: bool,
}

/// A parsed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gre<'a> {
    /// Ethernet type of the payload.
    pub protocol: u16,
    /// The key; `None` if the header has none.
    pub key: Option<u32>,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// Why bytes are not a GRE header that a receiver accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    /// The packet ends within the header.
    Short {
        /// Length of the header, as far as known, bytes.
        needed: usize,
    },
    /// The header has a version other than 0, or routing.
    Unknown,
}

/// Parses the header at the beginning of `packet`.
///
/// # Errors
/// The packet ends within the header, or RFC 2784 tells a receiver to discard it.
pub fn read(packet: &[u8]) -> Result<Gre<'_>, ReadError> {
    let Some(&[a, b, c, d]) = packet.first_chunk() else {
        return Err(ReadError::Short {
            needed: HEADER_BYTES,
        });
    };
    let flags = u16::from_be_bytes([a, b]);
    if flags & (ROUTING | VERSION) != 0 {
        return Err(ReadError::Unknown);
    }
    let mut at = HEADER_BYTES;
    let mut key = None;
    for flag in [CHECKSUM, KEY, SEQUENCE] {
        if flags & flag == 0 {
            continue;
        }
        let needed = at + FIELD_BYTES;
        let field = packet.get(at..).and_then(<[u8]>::first_chunk);
        let field = *field.ok_or(ReadError::Short { needed })?;
        if flag == KEY {
            key = Some(u32::from_be_bytes(field));
        }
        at = needed;
    }
    Ok(Gre {
        protocol: u16::from_be_bytes([c, d]),
        key,
        payload: &packet[at..],
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A header in front of a packet.
    pub(crate) fn with_header(protocol: u16, key: Option<u32>, payload: &[u8]) -> Vec<u8> {
        let flags = if key.is_some() { KEY } else { 0 };
        let mut packet = [flags.to_be_bytes(), protocol.to_be_bytes()].concat();
        packet.extend(key.into_iter().flat_map(u32::to_be_bytes));
        packet.extend(payload);
        packet
    }

    #[test]
    fn the_header_is_the_figure_of_rfc_2890() {
        let all = [
            0xb0, 0, 8, 0, 0xaa, 0xbb, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0x45,
        ];
        let read = read(&all).expect("a header");
        assert_eq!(
            (read.protocol, read.key, read.payload),
            (0x0800, Some(7), &[0x45][..])
        );
        assert_eq!(
            super::read(&[0, 0, 0x65, 0x58]).map(|gre| (gre.protocol, gre.key)),
            Ok((ETHERNET, None))
        );
    }

    #[test]
    fn what_a_receiver_discards_is_refused() {
        assert_eq!(read(&[0x40, 0, 8, 0]), Err(ReadError::Unknown));
        // PPTP's (RFC 2637).
        assert_eq!(read(&[0x20, 1, 8, 0]), Err(ReadError::Unknown));
        assert_eq!(read(&[0, 0, 8]), Err(ReadError::Short { needed: 4 }));
        assert_eq!(
            read(&[0xa0, 0, 8, 0, 1, 2, 3, 4, 5]),
            Err(ReadError::Short { needed: 12 })
        );
    }

    proptest! {
        #[test]
        fn a_header_reads_back(protocol: u16, key: Option<u32>, payload: Vec<u8>) {
            let packet = with_header(protocol, key, &payload);
            let read = read(&packet).expect("a header");
            prop_assert_eq!(read, Gre { protocol, key, payload: &payload });
        }

        #[test]
        fn no_bytes_break_it(packet: Vec<u8>) {
            if let Ok(read) = read(&packet) {
                prop_assert!(packet.len() >= read.payload.len() + HEADER_BYTES);
            }
        }
    }
}
