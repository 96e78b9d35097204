//! Paths as they may be, and what is said of them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 254));

fn end(host: &str, last: u8) -> End {
    End {
        host: host.into(),
        address: Ipv4Addr::new(10, 0, 0, last).into(),
    }
}

fn path(wanted: Wanted, flows: &[(Option<u32>, Kind)]) -> PathReport {
    let flows = (40_000..).zip(flows);
    PathReport {
        from: end("a", 1),
        to: end("b", 2),
        port: 50_000,
        wanted,
        flows: flows
            .map(|(port, &(mtu, kind))| FlowReport {
                port,
                mtu,
                kind,
                probes: 10,
                seconds: 0.02,
            })
            .collect(),
        stretch: None,
        hint: None,
        bad_checksums: 0,
        seconds: 0.08,
        probes: 150,
        paths_met: (2, 1),
    }
}

fn ids(paths: &[PathReport]) -> Vec<&'static str> {
    let findings = judge(paths);
    assert!(findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity)));
    findings.into_iter().map(|finding| finding.id).collect()
}

#[test]
fn a_path_that_carries_what_its_senders_send_has_no_finding() {
    for (wanted, kind) in [
        (Wanted::Expected(9000), Kind::NotSought),
        (Wanted::Device(9000), Kind::Device { mtu: 9000 }),
        (Wanted::Expected(8900), Kind::Device { mtu: 9000 }),
    ] {
        assert!(ids(&[path(wanted, &[(Some(9000), kind); 64])]).is_empty());
    }
}

#[test]
fn a_silent_drop_is_named_with_its_place_and_what_to_type_meanwhile() {
    let mut report = path(Wanted::Device(9000), &[(Some(8950), Kind::Silent)]);
    report.stretch = Some(Stretch {
        after: Some((1, ROUTER)),
        before: None,
    });
    let findings = judge(&[report]);
    assert_eq!(findings[0].id, "path-drops-silently");
    assert_eq!(
        findings[0].evidence,
        "a (10.0.0.1) to b (10.0.0.2): 8950 bytes pass and no more, 9000 vanish without a message. They are lost \
         between 10.0.1.254 (hop 1) and the destination"
    );
    assert!(
        findings[0].fix[1].contains("mtu 8950"),
        "{:?}",
        findings[0].fix
    );
}

#[test]
fn a_signal_is_a_warning_and_an_error_only_where_more_was_expected() {
    let kind = Kind::Signalled {
        by: ROUTER,
        mtu: 1400,
    };
    assert_eq!(
        ids(&[path(Wanted::Device(1500), &[(Some(1400), kind)])]),
        ["path-signals"]
    );
    assert_eq!(
        ids(&[path(Wanted::Expected(1500), &[(Some(1400), kind)])]),
        ["expected-size-fails", "path-signals"]
    );
    assert_eq!(
        ids(&[path(Wanted::Device(1500), &[(Some(1300), kind)])]),
        ["signal-names-wrong-size"]
    );
}

#[test]
fn a_device_below_what_was_expected_is_the_hosts_own() {
    let report = path(
        Wanted::Expected(9000),
        &[(Some(1500), Kind::Device { mtu: 1500 })],
    );
    let findings = judge(&[report]);
    assert_eq!(findings[0].id, "expected-size-fails");
    assert!(
        findings[0]
            .evidence
            .ends_with("this host's own device takes 1500")
    );
}

#[test]
fn fragments_are_named() {
    let kind = Kind::Fragmented { largest: 1396 };
    assert_eq!(
        ids(&[path(Wanted::Device(1500), &[(Some(1400), kind)])]),
        ["path-fragments"]
    );
}

#[test]
fn one_bad_member_is_named_with_its_ports_and_its_share() {
    let good = (Some(9000), Kind::Device { mtu: 9000 });
    let flows: Vec<_> = (0..64)
        .map(|flow| {
            if flow % 8 == 5 {
                (Some(1500), Kind::Silent)
            } else {
                good
            }
        })
        .collect();
    let findings = judge(&[path(Wanted::Device(9000), &flows)]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "one-path-of-several");
    assert_eq!(
        findings[0].evidence,
        "a (10.0.0.1) to b (10.0.0.2): 8 of 64 flows carry 1500, the others 9000: one bad member of about 8 (12 % of the \
         flows, 95 % interval 6 to 23). Source ports 40005, 40013, 40021, 40029, 40037, 40045, 40053, 40061"
    );
    // With as few flows as this, other members may be bad as well.
    let few = [good, good, good, good, (Some(1500), Kind::Silent)];
    assert_eq!(
        ids(&[path(Wanted::Device(9000), &few)]),
        ["one-path-of-several", "few-flows"]
    );
}

#[test]
fn directions_are_compared() {
    let there = path(Wanted::Device(9000), &[(Some(1450), Kind::Silent)]);
    let back = PathReport {
        from: there.to.clone(),
        to: there.from.clone(),
        ..path(
            Wanted::Device(9000),
            &[(Some(9000), Kind::Device { mtu: 9000 })],
        )
    };
    assert_eq!(
        ids(&[there, back]),
        ["path-drops-silently", "directions-differ"]
    );
}

#[test]
fn silence_and_doubt_are_no_verdict_about_sizes() {
    assert_eq!(
        ids(&[path(Wanted::Device(1500), &[(None, Kind::Dead); 3])]),
        ["path-dead"]
    );
    assert_eq!(
        ids(&[path(Wanted::Device(1500), &[(Some(1400), Kind::Undecided)])]),
        ["path-undecided"]
    );
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::NotSought),
        (68u32..9217).prop_map(|mtu| Kind::Device { mtu }),
        (68u32..9217).prop_map(|mtu| Kind::Signalled { by: ROUTER, mtu }),
        (68u32..9217).prop_map(|largest| Kind::Fragmented { largest }),
        Just(Kind::Silent),
        Just(Kind::Dead),
        Just(Kind::Undecided),
    ]
}

proptest! {
    #[test]
    fn whatever_is_reported_ids_are_known_and_told_once_a_path_and_reports_read_back(
        flows in prop::collection::vec((prop::option::of(68u32..9217), any_kind()), 0..70),
        wanted in 68u32..9217,
        expected: bool,
    ) {
        let wanted = if expected { Wanted::Expected(wanted) } else { Wanted::Device(wanted) };
        let report = path(wanted, &flows);
        let ids = ids(std::slice::from_ref(&report));
        let distinct: BTreeSet<_> = ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len());
        prop_assert!(ids.iter().all(|id| PATH_FINDINGS.iter().any(|kind| kind.id == *id)));
        let fails = report.failing().count() > 0;
        let about_sizes = ids.iter().any(|id| !["path-dead", "path-undecided"].contains(id));
        // A device that takes less than a device takes is no finding by itself.
        prop_assert!(fails || !about_sizes, "{:?}", ids);
        let text = serde_json::to_string(&report).expect("written");
        prop_assert_eq!(serde_json::from_str::<PathReport>(&text).expect("read"), report);
    }
}
