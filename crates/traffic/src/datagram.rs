//! What every datagram of a load begins with: whose it is, which one, and when it left.

use crate::sequence::Stamp;

/// Bytes of an encoded [`Datagram`], and so the smallest message over UDP.
pub(crate) const DATAGRAM_BYTES: usize = 16;

/// The highest bit of the number's six bytes: see [`Datagram::counted`].
const COUNTED: u64 = 1 << 47;

/// The run's tag 4, flow 2, number 6 of which one bit is apart, time stamp 4; big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// See [`tag`].
    pub(crate) tag: u32,
    /// The flow, from 0.
    pub(crate) flow: u16,
    /// Whether it was sent while its sender was being counted. By it and not by the time of its arrival a receiver knows
    /// of which window it is, so that what never comes is missing there, however much follows it.
    pub(crate) counted: bool,
    /// Its place in the flow, from 0; modulo 2^47, which lasts for years.
    pub(crate) number: u64,
    /// When it left, by the sender's clock.
    pub(crate) sent: Stamp,
}

impl Datagram {
    /// Writes it over the first bytes of a message.
    pub(crate) fn put(&self, message: &mut [u8]) {
        message[..4].copy_from_slice(&self.tag.to_be_bytes());
        message[4..6].copy_from_slice(&self.flow.to_be_bytes());
        let counted = if self.counted { COUNTED } else { 0 };
        let number = self.number & (COUNTED - 1) | counted;
        message[6..12].copy_from_slice(&number.to_be_bytes()[2..]);
        message[12..16].copy_from_slice(&self.sent.0.to_be_bytes());
    }

    /// Reads it; `None` where the message is too short.
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
            sent: Stamp(u32::from_be_bytes([s0, s1, s2, s3])),
        })
    }
}

/// Four bytes in which a run's secret differs from others': enough to keep strays out, too few to tell the secret.
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
            let datagram = Datagram { tag, flow, counted, number, sent: Stamp(sent) };
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
