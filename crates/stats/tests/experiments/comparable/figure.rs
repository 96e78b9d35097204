//! Factors that are the figure itself.

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::load::Rate;
use wirecost_model::metric::Metric;
use wirecost_stats::comparable::LIMITED_RATE_SHARE;

use super::Planted;

const GBIT: f64 = 1e9;

/// Rates of the two cells in Gbit/s, which get 5 and 10.
fn offered(key: &str, rates: [Option<f64>; 2]) -> Planted {
    let rate = |gbps: Option<f64>| gbps.map(|gbps| Rate::BitsPerSecond((gbps * GBIT) as u64));
    Planted::of(key, ["one", "two"])
        .cell(0, |cell| cell.loads[0].load.rate = rate(rates[0]))
        .cell(1, |cell| cell.loads[0].load.rate = rate(rates[1]))
}

#[test]
fn twice_the_rate_is_no_gain() {
    let figure = Some(RemarkKind::FactorIsFigure);
    for key in ["rate", "total_rate", "bulk.rate"] {
        assert_eq!(
            offered(key, [Some(5.0), Some(10.0)]).not_comparable(Metric::Throughput),
            figure
        );
    }
    let why = offered("rate", [Some(5.0), Some(10.0)]).effect(Metric::Throughput);
    assert_eq!(
        why.not_comparable.expect("a reason").text,
        "it is what was offered: 5 Gbit/s with one and 10 Gbit/s with two"
    );
    // One that is not limited, and one that is.
    assert_eq!(
        offered("rate", [Some(5.0), None]).not_comparable(Metric::Throughput),
        figure
    );
    // What it takes of a core is how often that sleeps.
    assert_eq!(
        offered("rate", [Some(5.0), Some(10.0)]).not_comparable(Metric::SenderCpu),
        figure
    );
}

#[test]
fn only_what_was_reached_is_the_figure() {
    let just = offered(
        "rate",
        [Some(5.0 / LIMITED_RATE_SHARE * 0.999), Some(100.0)],
    );
    assert_eq!(
        just.not_comparable(Metric::Throughput),
        Some(RemarkKind::FactorIsFigure)
    );
    let beyond = offered("rate", [Some(5.0 / LIMITED_RATE_SHARE * 1.01), Some(100.0)]);
    assert_eq!(beyond.effect(Metric::Throughput).verdict, Verdict::Pays);
}

#[test]
fn equal_offers_are_no_factor() {
    let same = offered("encapsulation", [Some(5.0), Some(5.0)]);
    assert_eq!(same.not_comparable(Metric::Throughput), None);
}

/// Streams at a rate each are a rate.
#[test]
fn more_flows_at_a_rate_each_are_more_of_it() {
    let streams =
        offered("streams", [Some(5.0), Some(5.0)]).cell(1, |cell| cell.loads[0].load.streams = 2);
    assert_eq!(
        streams.not_comparable(Metric::Throughput),
        Some(RemarkKind::FactorIsFigure)
    );
}

#[test]
fn a_line_that_is_full_is_the_figure() {
    let lines = |rates: [Option<u64>; 2]| {
        Planted::of("underlay.rate", ["one", "two"])
            .cell(0, |cell| cell.network.rate = rates[0])
            .cell(1, |cell| cell.network.rate = rates[1])
            .not_comparable(Metric::Throughput)
    };
    // 5 Gbit/s of payload are 5.31 of frames at an MTU of 1500.
    let full = 5_000_000_000.0 * 1538.0 / 1448.0;
    let figure = Some(RemarkKind::FactorIsFigure);
    assert_eq!(
        lines([Some((full / LIMITED_RATE_SHARE * 0.999) as u64), None]),
        figure
    );
    assert_eq!(
        lines([Some((full / LIMITED_RATE_SHARE * 1.01) as u64), None]),
        None
    );
}
