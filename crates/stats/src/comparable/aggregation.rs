//! Checks of how many segments travel as one packet at either end: most of a stream's cost is per packet.

use wirecost_model::effect::RemarkKind;

use super::{Objection, Pair, encapsulation, remark};

/// Ratio of segments per packet between the cells above which aggregation, not the factor, decides the figure.
pub const BARRING_SEGMENTS_RATIO: f64 = 1.5;
/// Ratio of segments per packet between the cells above which the difference is reported.
pub const REPORTED_SEGMENTS_RATIO: f64 = 1.1;

pub(super) fn at_receiver(pair: &Pair<'_>) -> Option<Objection> {
    check(
        pair,
        pair.both(|cell| cell.received)?,
        encapsulation::cuts(pair).as_deref(),
        "the receiver got",
        "put a switch between the hosts (underlay.hops), or turn off aggregation in both (offload: none)",
    )
}

pub(super) fn at_sender(pair: &Pair<'_>) -> Option<Objection> {
    check(
        pair,
        pair.both(|cell| cell.sent)?,
        None,
        "the sender handed over",
        "write larger messages, or turn off segmentation in both (offload: none)",
    )
}

/// Compares segments per packet of the two cells. `inherent` says why the compared levels differ in
/// them by their nature: then a verdict is given all the same.
fn check(
    pair: &Pair<'_>,
    segments: (f64, f64),
    inherent: Option<&str>,
    verb: &str,
    advice: &str,
) -> Option<Objection> {
    // With the factor `offload`, aggregation is what the plan varies.
    if pair.subject.is_offload() {
        return None;
    }
    let excess = excess(segments, (pair.from.cell.guest_mtu, pair.to.cell.guest_mtu));
    if excess <= REPORTED_SEGMENTS_RATIO {
        return None;
    }
    let resized = if pair.from.cell.guest_mtu == pair.to.cell.guest_mtu {
        ""
    } else {
        ", which the frames' sizes do not explain"
    };
    let because = inherent.unwrap_or_default();
    let text = format!(
        "{verb} {} in segments per packet{resized}{because}",
        pair.figures(segments)
    );
    if excess > BARRING_SEGMENTS_RATIO && inherent.is_none() {
        let about = pair.subject.is_about_aggregation();
        let advice = if about { "" } else { advice };
        Some(Objection::unless(
            about,
            remark(RemarkKind::Aggregation, text, advice),
        ))
    } else {
        Some(Objection::Remarks(remark(
            RemarkKind::Aggregation,
            text,
            "",
        )))
    }
}

/// Factor, at least 1, by which one end's packets differ in size beyond what the change of MTU
/// explains. With frames k times as large, a packet holds as many segments as before (where nothing
/// is aggregated) to as many bytes as before (where packets are aggregated to the largest size): a
/// difference between these two is the MTU's.
fn excess((from, to): (f64, f64), (mtu_from, mtu_to): (u32, u32)) -> f64 {
    let segments = (to / from).ln();
    let bytes = segments + (f64::from(mtu_to) / f64::from(mtu_from)).ln();
    if segments * bytes <= 0.0 {
        1.0
    } else {
        segments.abs().min(bytes.abs()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_frames_are_compared_by_segments() {
        assert!((excess((1.0, 29.0), (1450, 1450)) - 29.0).abs() < 1e-9);
        assert!((excess((29.0, 1.0), (1450, 1450)) - 29.0).abs() < 1e-9);
        assert!((excess((45.0, 40.0), (1450, 1450)) - 1.125).abs() < 1e-9);
    }

    #[test]
    fn larger_frames_explain_fewer_segments_and_no_more() {
        let mtus = (1500, 8900);
        for explained in [(1.0, 1.0), (45.0, 7.5), (45.0, 45.0), (10.0, 5.0)] {
            assert!(
                excess(explained, mtus) < REPORTED_SEGMENTS_RATIO,
                "{explained:?}"
            );
        }
        // One side is aggregated and the other is not.
        assert!(excess((45.0, 1.0), mtus) > BARRING_SEGMENTS_RATIO);
        assert!(excess((1.0, 7.0), mtus) > BARRING_SEGMENTS_RATIO);
    }

    proptest! {
        #[test]
        fn it_is_the_same_either_way_round(
            from in 1.0f64..60.0, to in 1.0f64..60.0, mtu_from in 576u32..65_000, mtu_to in 576u32..65_000,
        ) {
            let there = excess((from, to), (mtu_from, mtu_to));
            let back = excess((to, from), (mtu_to, mtu_from));
            prop_assert!((there / back - 1.0).abs() < 1e-9 && there >= 1.0);
        }
    }
}
