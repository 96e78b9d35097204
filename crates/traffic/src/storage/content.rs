//! What blocks contain, so that what is read back can be verified.
//!
//! An I/O begins with a stamp, its offset and what wrote it; the rest is cut from one pseudo-random body at a place
//! that depends on the offset. So bytes that moved, within an I/O or to another one, are found, and sending costs no
//! more than constant bytes do.

use crate::options::Options;

/// Bytes of a stamp.
pub(crate) const STAMP_BYTES: usize = 16;
/// Places at which the rest of an I/O may begin in the body, 8 bytes apart.
const PLACES: u64 = 512;

/// Who wrote a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    /// The target, before the load.
    Target = 1,
    /// The load.
    Client = 2,
}

/// A step of splitmix64 (Steele, Lea, Flood 2014), which is also a mixing function.
pub(crate) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Seed of the contents of a load, from its secret.
pub(crate) fn seed(options: &Options) -> u64 {
    let halves = options.secret.as_chunks::<8>().0;
    halves
        .iter()
        .fold(0, |seed, half| mix(seed ^ u64::from_be_bytes(*half)))
}

/// Seed of one machine of a migration, from the load's seed.
pub(crate) fn of_machine(seed: u64, number: u32) -> u64 {
    mix(seed ^ u64::from(number))
}

/// The pseudo-random body for I/O of the load's size, the same at both ends.
pub(crate) fn body(options: &Options) -> Box<[u8]> {
    let length = options.load.request as usize + PLACES as usize * 8;
    let seed = seed(options);
    let words = (0..length.div_ceil(8) as u64).map(|word| mix(seed.wrapping_add(word)));
    words.flat_map(u64::to_be_bytes).take(length).collect()
}

/// The stamp of the I/O at an offset.
pub(crate) fn stamp(seed: u64, writer: Writer, offset: u64) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    bytes[..8].copy_from_slice(&(seed ^ writer as u64).to_be_bytes());
    bytes[8..].copy_from_slice(&offset.to_be_bytes());
    bytes
}

/// What follows the stamp of an I/O of `length` bytes at an offset.
pub(crate) fn rest(body: &[u8], offset: u64, length: usize) -> &[u8] {
    let place = (mix(offset) % PLACES * 8) as usize;
    &body[place + STAMP_BYTES..place + length]
}

/// Index of the first byte of an I/O that is not what was written; `None`: all bytes are.
pub(crate) fn first_difference(
    found: &[u8],
    body: &[u8],
    stamp: [u8; STAMP_BYTES],
    offset: u64,
) -> Option<usize> {
    let expected = stamp.iter().chain(rest(body, offset, found.len()));
    found
        .iter()
        .zip(expected)
        .position(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Workload;

    #[test]
    fn every_displaced_byte_is_found() {
        let options = Options::new(Workload::Storage, [3; 16]);
        let (seed, body) = (seed(&options), body(&options));
        let length = options.load.request as usize;
        let written = |offset: u64| {
            let mut bytes = stamp(seed, Writer::Client, offset).to_vec();
            bytes.extend(rest(&body, offset, length));
            bytes
        };
        let differs = |bytes: &[u8], offset| {
            let stamp = stamp(seed, Writer::Client, offset);
            first_difference(bytes, &body, stamp, offset)
        };
        let mut block = written(8192);
        assert_eq!(differs(&block, 8192), None);
        // Another offset, another writer, halves of two I/Os, shifted bytes, a flipped bit.
        assert_eq!(differs(&block, 4096), Some(14));
        let target = stamp(seed, Writer::Target, 8192);
        assert_eq!(first_difference(&block, &body, target, 8192), Some(7));
        let half = length / 2;
        let mixed = [&block[..half], &written(0)[half..]].concat();
        assert!(differs(&mixed, 8192).is_some_and(|at| at >= half));
        let shifted = [&block[..STAMP_BYTES], &block[STAMP_BYTES + 8..], &[0; 8]].concat();
        assert!(differs(&shifted, 8192).is_some());
        block[length - 1] ^= 1;
        assert_eq!(differs(&block, 8192), Some(length - 1));
    }
}
