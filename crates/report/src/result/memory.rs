//! Whether a record's result fits into memory. Checked before the record is read: a failed allocation ends the program
//! without saying what to do.

/// Upper bound of the memory for a result, bytes, for a record with `samples` bytes of samples. A sample of 1.9 kB
/// takes 0.4 kB as figures, one of 11 kB takes 1 kB (docs/record-format.md); the samples to be drawn take up to 50 MB,
/// and the program 14 MB.
pub(crate) fn needed(samples: u64) -> u64 {
    let drawn = samples.saturating_mul(4).min(50_000_000);
    samples / 4 + drawn + 14_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_samples_fit_into_a_gigabyte() {
        assert!(needed(1_900_000_000) < 1_000_000_000);
        assert!(needed(10_000) < 15_000_000, "little for a small record");
    }
}
