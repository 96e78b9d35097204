use super::*;
use crate::bound::Bound;
use crate::comparison::tests::{comparison, sample};
use crate::peer::BARE;
use crate::report::{CountedBy, Outcome, PeerReport, RowResult};

fn report() -> Report {
    let beside = |bound, figures: &[f64]| {
        OutcomeKind::Compared(Box::new(comparison(bound, figures, &[0.8, 0.81, 0.8])))
    };
    let twice = |figures: &[f64]| beside(Bound::AtLeast(2.0), figures);
    let compared = |figures: &[f64], cpu: &[f64]| {
        OutcomeKind::Compared(Box::new(comparison(Bound::AtLeast(0.97), figures, cpu)))
    };
    let outcome = |opponent, what| Outcome {
        opponent,
        what,
        broken: Vec::new(),
    };
    let mut alone = sample(1.0, 1.0);
    alone.peak_bytes = Some(23 << 20);
    let mut missed = comparison(Bound::AtLeast(2.0), &[11.0, 12.0, 13.0], &[1.2, 1.21, 1.2]);
    missed.moved_pairs = 1;
    missed.disturbed_pairs = 2;
    missed.pairs_without_cpu = 1;
    Report {
        peers: vec![
            PeerReport {
                name: "iperf3",
                presence: Presence::Version("iperf 3.12".to_owned()),
            },
            PeerReport {
                name: "neper",
                presence: Presence::Absent("no tcp_stream on PATH".to_owned()),
            },
        ],
        kernel: "6.18".to_owned(),
        cpu_model: "a CPU".to_owned(),
        cores: Cores::Split,
        cpus_a: vec![0],
        cpus_b: vec![1],
        guest_mtu: 1500,
        hooked: false,
        pairs: 3,
        most: 9,
        seconds: 1.0,
        warmup: 0.4,
        seed: 7,
        cpu: CountedBy::Looper,
        rows: vec![
            RowResult {
                name: "tcp-stream 1, vxlan, offload none".to_owned(),
                unit: "Gbit/s",
                bound: "at least 0.97".to_owned(),
                cpu: CountedBy::Looper,
                outcomes: vec![
                    outcome("iperf3", compared(&[0.99, 1.0, 1.01], &[0.8, 0.81, 0.8])),
                    Outcome {
                        broken: vec!["nuttcp client: it said nothing".to_owned()],
                        ..outcome("nuttcp", compared(&[0.9, 0.91, 0.9], &[1.2, 1.21, 1.2]))
                    },
                    outcome("neper", OutcomeKind::Absent("no tcp_stream on PATH".into())),
                    outcome(
                        "sockperf",
                        OutcomeKind::Cannot("its largest message is 65507 bytes".to_owned()),
                    ),
                    outcome(
                        "netperf",
                        OutcomeKind::Failed("netperf client: it said nothing".to_owned()),
                    ),
                ],
            },
            RowResult {
                name: "udp-stream 1 of 64 B, vxlan, offload none".to_owned(),
                unit: "k datagrams/s",
                bound: "at least 2".to_owned(),
                cpu: CountedBy::Looper,
                outcomes: vec![outcome("iperf3", OutcomeKind::Compared(Box::new(missed)))],
            },
            RowResult {
                name: "udp-stream 1 of 64 B, none, offload none".to_owned(),
                unit: "k datagrams/s",
                bound: "at least 2".to_owned(),
                cpu: CountedBy::Looper,
                outcomes: vec![
                    outcome("iperf3", twice(&[1.6, 1.61, 1.6])),
                    outcome("iperf3-new", twice(&[1.95, 1.96, 1.95])),
                    outcome(BARE, beside(Bound::Shown, &[0.96, 0.96, 0.97])),
                ],
            },
            RowResult {
                name: "tcp-stream 1024, none, offload none".to_owned(),
                unit: "Gbit/s",
                bound: "below 64 MiB at each end".to_owned(),
                cpu: CountedBy::Idle,
                outcomes: vec![outcome(
                    "-",
                    OutcomeKind::Alone {
                        sample: alone,
                        holds: true,
                    },
                )],
            },
        ],
    }
}

#[test]
fn the_table_fits_into_a_hundred_columns() {
    let text = text(&report());
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn markdown_has_a_line_for_each_comparison() {
    insta::assert_snapshot!(markdown(&report()));
}

#[test]
fn the_document_holds_every_sample() {
    let json = json(&report()).expect("plain figures");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let outcome = &value["rows"][0]["outcomes"][0];
    assert_eq!(outcome["opponent"], "iperf3");
    assert_eq!(
        outcome["compared"]["pairs"].as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(outcome["compared"]["judgement"]["reached"], true);
    assert_eq!(value["peers"][1]["absent"], "no tcp_stream on PATH");
}
