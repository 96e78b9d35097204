//! Sizes to probe.

use std::collections::BTreeSet;

/// Number of sizes probed at once between two known ones.
const FAN_OUT: u32 = 16;

/// IP MTUs of common links, bytes: X.25 and the IPv4 default, the IPv6 minimum, PPPoE, Ethernet,
/// baby giants, FDDI, jumbo frames as set by vendors and clouds.
const LINKS: [u32; 12] = [
    576, 1280, 1400, 1492, 1500, 1600, 2000, 4352, 8500, 8950, 9000, 9216,
];

/// Overheads of encapsulations, bytes: VLAN, PPPoE, GRE, WireGuard over IPv4 and IPv6, gretap,
/// NVGRE, VXLAN and Geneve over IPv4, with a VLAN tag, with OVN's option, over IPv6.
const OVERHEADS: [u32; 11] = [4, 8, 24, 60, 80, 38, 42, 50, 54, 58, 70];

/// Sizes that paths often carry, bytes, ascending: the MTUs of links, and 1500 and 9000 less each encapsulation.
pub fn likely_sizes() -> Vec<u32> {
    let inside = [1500, 9000]
        .into_iter()
        .flat_map(|link| OVERHEADS.map(|overhead| link - overhead));
    let sizes: BTreeSet<u32> = LINKS.into_iter().chain(inside).collect();
    sizes.into_iter().collect()
}

/// Up to 16 sizes that cut the open range between `floor` and `ceiling` into equal parts; all of them where they are
/// few.
pub(crate) fn between(floor: u32, ceiling: u32) -> impl Iterator<Item = u32> {
    let gap = ceiling.saturating_sub(floor);
    let parts = gap.clamp(1, FAN_OUT + 1);
    (1..parts).map(move |i| floor + (u64::from(gap) * u64::from(i) / u64::from(parts)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_table_holds_what_tunnels_leave_of_1500_and_9000() {
        let sizes = likely_sizes();
        assert!(sizes.is_sorted() && sizes.len() <= 35, "{}", sizes.len());
        for size in [1442, 1450, 1500, 8942, 8950, 9000] {
            assert!(sizes.contains(&size), "{size}");
        }
    }

    proptest! {
        #[test]
        fn a_range_shrinks_seventeenfold(floor in 0u32..70_000, gap in 0u32..70_000) {
            let sizes: Vec<u32> = between(floor, floor + gap).collect();
            let ends = [&[floor], &sizes[..], &[floor + gap]].concat();
            for pair in ends.windows(2).filter(|_| gap > 0) {
                prop_assert!(pair[0] < pair[1]);
                prop_assert!(pair[1] - pair[0] <= gap.div_ceil(17));
            }
        }
    }
}
