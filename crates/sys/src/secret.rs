//! Comparing secrets.

use std::hint::black_box;

/// Compares in a time that depends only on the lengths, not on where the first difference is.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).map(|(one, other)| one ^ other);
    let all = differences.fold(0, |all, one| black_box(all | one));
    one.len() == other.len() && all == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_seen_wherever_it_is() {
        let secret = [7u8; 16];
        assert!(same(&secret, &secret));
        for at in 0..16 {
            let mut other = secret;
            other[at] ^= 0x80;
            assert!(!same(&secret, &other), "byte {at}");
        }
        assert!(!same(&secret, &secret[1..]));
        assert!(!same(&[], &secret));
    }
}
