//! Which I/O a connection makes next.

use wirecost_model::load::Storage;

use super::content::mix;

/// The I/Os of one connection, at multiples of their size.
#[derive(Debug)]
pub(crate) struct Access {
    /// I/Os that the export has room for.
    places: u64,
    size: u64,
    random: bool,
    /// How many of 2^32 I/Os are reads.
    reads: u64,
    next: u64,
    state: u64,
}

impl Access {
    /// The I/Os of flow `flow` of `flows`; sequential flows start at equal distances. `size` and `export` are the bytes
    /// of an I/O and of the export, which has room for at least one I/O.
    pub(crate) fn new(
        storage: &Storage,
        size: u32,
        export: u64,
        flow: u32,
        flows: u32,
        seed: u64,
    ) -> Self {
        let places = (export / u64::from(size)).max(1);
        Self {
            places,
            size: size.into(),
            random: storage.pattern.is_random(),
            reads: (u64::from(storage.reads_percent()) << 32) / 100,
            next: places * u64::from(flow) / u64::from(flows.max(1)),
            state: mix(seed ^ u64::from(flow)),
        }
    }

    /// Offset of the next I/O, and whether it reads.
    pub(crate) fn next(&mut self) -> (u64, bool) {
        self.state = self.state.wrapping_add(1);
        let random = mix(self.state);
        let place = if self.random {
            // The upper half of the product (Lemire 2019).
            ((u128::from(mix(random)) * u128::from(self.places)) >> 64) as u64
        } else {
            let place = self.next;
            self.next = (place + 1) % self.places;
            place
        };
        (place * self.size, random >> 32 < self.reads)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wirecost_model::load::Pattern;

    use super::*;

    fn all(pattern: Pattern, flow: u32, count: usize) -> Vec<(u64, bool)> {
        let storage = Storage {
            pattern,
            reads: 25,
            ..Storage::USUAL
        };
        let mut access = Access::new(&storage, 4096, 10 * 4096 + 512, flow, 2, 7);
        (0..count).map(|_| access.next()).collect()
    }

    #[test]
    fn in_order_from_each_flows_part_and_round() {
        let offsets = |flow| {
            all(Pattern::SequentialRead, flow, 12)
                .into_iter()
                .map(|(offset, reads)| {
                    assert!(reads);
                    offset / 4096
                })
        };
        assert!(offsets(0).eq([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]));
        assert!(offsets(1).eq([5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn random_ones_are_everywhere_and_a_mix_has_its_share_of_reads() {
        let mixed = all(Pattern::RandomMix, 0, 10_000);
        let offsets: BTreeSet<u64> = mixed.iter().map(|(offset, _)| *offset).collect();
        assert!(offsets.into_iter().eq((0..10).map(|place| place * 4096)));
        let reads = mixed.iter().filter(|(_, reads)| *reads).count();
        assert!((2_300..2_700).contains(&reads), "{reads}");
        assert!(
            all(Pattern::RandomWrite, 1, 99)
                .iter()
                .all(|(_, reads)| !reads)
        );
    }
}
