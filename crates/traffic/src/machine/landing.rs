//! Where in a reader's room the kernel copies the bytes of a stream.
//!
//! On AMD's Zen 3 and 4 `rep movsb`, by which the kernel copies to a user, carries a fifteenth where the destination lies
//! 1 to 15 bytes beyond the source, modulo 4096 (glibc's bug 30994). What a local sender wrote lies in pages at offsets
//! that run on with its stream. Reads to one fixed address meet it at any distance, and a bad one seems to last: a
//! reader that is behind has reads of full length only, which keep it. Reads whose place runs on with the stream have the
//! distance of a program that fills blocks. docs/loads.md has the measurements, and what of this is a guess.

/// Addresses that differ by a multiple of it look alike to the processor.
const PAGE: usize = 4096;

/// Room that reads have to have beside their length, bytes.
pub(crate) const SLACK: usize = PAGE - 1;

/// The place for `length` bytes of a stream of which `position` came before: `room` holds them and [`SLACK`].
pub(crate) fn landing(room: &mut [u8], position: u64, length: usize) -> &mut [u8] {
    let begin = (position as usize).wrapping_sub(room.as_ptr().addr()) % PAGE;
    &mut room[begin..begin + length]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn its_offset_in_a_page_is_the_streams(position: u64, length in 1..20_000_usize, before in 0..PAGE) {
            let mut memory = vec![0; before + length + SLACK];
            let room = &mut memory[before..];
            let whole = room.as_ptr_range();
            let place = landing(room, position, length);
            prop_assert_eq!(place.len(), length);
            prop_assert_eq!(place.as_ptr().addr() as u64 % 4096, position % 4096);
            prop_assert!(whole.contains(&place.as_ptr()) && place.as_ptr_range().end <= whole.end);
        }

        #[test]
        fn reads_one_after_the_other_lie_as_one_long_one_would(lengths in prop::collection::vec(1..9_000_usize, 1..20)) {
            let mut room = vec![0; 9_000 + SLACK];
            let mut position = 0;
            let begin = landing(&mut room, 0, 1).as_ptr().addr();
            for length in lengths {
                let place = landing(&mut room, position as u64, length).as_ptr().addr();
                prop_assert_eq!(place.abs_diff(begin + position) % PAGE, 0);
                position += length;
            }
        }
    }
}
