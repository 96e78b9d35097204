//! The header of every datagram of a load: tag of the load, flow, number and sending time.

use crate::sequence::Timestamp;

/// Length of an encoded [`Datagram`], bytes: the smallest message over UDP.
pub(crate) const DATAGRAM_BYTES: usize = 16;

/// The mark of [`Datagram::counted`]: the highest bit of the 48-bit number.
const COUNTED: u64 = 1 << 47;

/// Layout in bytes, big-endian: tag 4, flow 2, number 6 (the highest bit is the mark), time stamp 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// See [`tag`].
    pub(crate) tag: u32,
    /// The flow, from 0.
    pub(crate) flow: u16,
    /// Whether the datagram was sent within the measured window ([`crate::Client::set_counted`]). The receiver assigns
    /// it to a window by this mark and not by its arrival, so that a lost datagram is missing from its own window.
    pub(crate) counted: bool,
    /// Number within the flow, from 0, modulo 2^47 (years at any rate).
    pub(crate) number: u64,
    /// Sending time by the sender's clock.
    pub(crate) sent: Timestamp,
}

impl Datagram {
    /// Writes the header over the first bytes of a message.
    pub(crate) fn put(&self, message: &mut [u8]) {
        message[..4].copy_from_slice(&self.tag.to_be_bytes());
        message[4..6].copy_from_slice(&self.flow.to_be_bytes());
        let counted = if self.counted { COUNTED } else { 0 };
        let number = self.number & (COUNTED - 1) | counted;
        message[6..12].copy_from_slice(&number.to_be_bytes()[2..]);
        message[12..16].copy_from_slice(&self.sent.0.to_be_bytes());
    }

    /// Reads the header; `None` where the message is too short.
    pub(crate) fn get(message: &[u8]) -> Option<Self> {
        let head: &[u8; DATAGRAM_BYTES] = message.first_chunk()?;
        let [t0, t1, t2, t3, f0, f1, number @ .., s0, s1, s2, s3] = *head;
        let [n0, n1, n2, n3, n4, n5] = number;
        let number = u64::from_be_bytes([0, 0, n0, n1, n2, n3, n4, n5]);
        Some(Self {
            tag: u32::from_be_bytes([t0, t1, t2, t3]),
            flow: u16::from_be_bytes([f0, f1]),
            counted: number & COUNTED != 0,
            number: number & (COUNTED - 1),
            sent: Timestamp(u32::from_be_bytes([s0, s1, s2, s3])),
        })
    }
}

/// A 32-bit hash of a load's secret: enough to recognise strays, too little to reveal the secret.
pub(crate) fn tag(secret: &[u8; 16]) -> u32 {
    // FNV-1a over 64 bits, folded.
    let hash = secret.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            tag: u32, flow: u16, counted: bool, number in 0u64..1 << 47, sent: u32, rest in 0usize..50,
        ) {
            let datagram = Datagram { tag, flow, counted, number, sent: Timestamp(sent) };
            let mut message = vec![0; DATAGRAM_BYTES + rest];
            datagram.put(&mut message);
            prop_assert_eq!(Datagram::get(&message), Some(datagram));
        }

        #[test]
        fn what_is_too_short_is_none(message in prop::collection::vec(any::<u8>(), 0..DATAGRAM_BYTES)) {
            prop_assert_eq!(Datagram::get(&message), None);
        }

        #[test]
        fn secrets_that_differ_in_a_byte_have_tags_that_differ(secret: [u8; 16], at in 0usize..16, change in 1u8..) {
            let mut other = secret;
            other[at] ^= change;
            prop_assert_ne!(tag(&secret), tag(&other));
        }
    }
}
