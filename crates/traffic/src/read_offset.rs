//! The offset in its buffer at which a reader receives the bytes of a stream.
//!
//! On AMD Zen 3 and 4 `rep movsb`, with which the kernel copies to user space, is 15 times slower where the
//! destination is 1 to 15 bytes beyond the source, modulo 4096 (glibc bug 30994). The sender's data are in pages at
//! offsets that advance with the stream. Reads to a fixed address meet every distance, and keep a bad one, since a
//! reader that is behind has reads of full length only. Reads whose offset advances with the stream have the distance
//! of a program that fills its buffer block by block. Measurements: docs/loads.md.

/// Addresses that differ by a multiple of this number of bytes alias in the processor.
const PAGE: usize = 4096;

/// Bytes that the buffer needs beyond the length of a read.
pub(crate) const SLACK: usize = PAGE - 1;

/// The part of `buffer` for `length` bytes at `position` of a stream; the buffer holds them and [`SLACK`].
pub(crate) fn at_stream_offset(buffer: &mut [u8], position: u64, length: usize) -> &mut [u8] {
    let begin = (position as usize).wrapping_sub(buffer.as_ptr().addr()) % PAGE;
    &mut buffer[begin..begin + length]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn its_offset_in_a_page_is_the_streams(position: u64, length in 1..20_000_usize, before in 0..PAGE) {
            let mut memory = vec![0; before + length + SLACK];
            let buffer = &mut memory[before..];
            let whole = buffer.as_ptr_range();
            let place = at_stream_offset(buffer, position, length);
            prop_assert_eq!(place.len(), length);
            prop_assert_eq!(place.as_ptr().addr() as u64 % 4096, position % 4096);
            prop_assert!(whole.contains(&place.as_ptr()) && place.as_ptr_range().end <= whole.end);
        }

        #[test]
        fn reads_one_after_the_other_lie_as_one_long_one_would(lengths in prop::collection::vec(1..9_000_usize, 1..20)) {
            let mut buffer = vec![0; 9_000 + SLACK];
            let mut position = 0;
            let begin = at_stream_offset(&mut buffer, 0, 1).as_ptr().addr();
            for length in lengths {
                let place = at_stream_offset(&mut buffer, position as u64, length).as_ptr().addr();
                prop_assert_eq!(place.abs_diff(begin + position) % PAGE, 0);
                position += length;
            }
        }
    }
}
