//! Paths as they may be, and what is said of them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;
use wirecost_pmtu::Limit;

use super::*;

mod tcp_and_mtu;
mod together;

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 254));

fn end(host: &str, last: u8) -> PathEnd {
    PathEnd {
        host: host.into(),
        address: Ipv4Addr::new(10, 0, 0, last).into(),
    }
}

fn path(wanted: RequiredMtu, flows: &[(Option<u32>, FlowKind)]) -> PathReport {
    let flows = (40_000..).zip(flows);
    let flows = flows.map(|(port, &(mtu, kind))| FlowReport {
        port,
        mtu,
        kind,
        probes: 10,
        seconds: 0.02,
    });
    PathReport {
        leaving: Some(egress_route()),
        seconds: 0.08,
        probes: 150,
        paths_met: (2, 1),
        ..PathReport::of((end("a", 1), end("b", 2)), 50_000, wanted, flows.collect())
    }
}

fn egress_route() -> EgressRoute {
    EgressRoute {
        device: "eth0".into(),
        router: Some(ROUTER),
        mtu: None,
        route: Some(IpRoute {
            destination: "default".into(),
            hops: format!("via {ROUTER} dev eth0"),
            ..IpRoute::default()
        }),
        ..EgressRoute::default()
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
        (
            RequiredMtu::Expected(9000),
            FlowKind::Known(Limit::NotSought),
        ),
        (
            RequiredMtu::Device(9000),
            FlowKind::Known(Limit::Device { mtu: 9000 }),
        ),
        (
            RequiredMtu::Expected(8900),
            FlowKind::Known(Limit::Device { mtu: 9000 }),
        ),
    ] {
        assert!(ids(&[path(wanted, &[(Some(9000), kind); 64])]).is_empty());
    }
}

#[test]
fn a_silent_drop_is_named_with_its_place_and_what_to_type_meanwhile() {
    let mut report = path(
        RequiredMtu::Device(9000),
        &[(Some(8950), FlowKind::BLACK_HOLE)],
    );
    report.loss_location = Some(LossLocation {
        after: Some((1, ROUTER)),
        before: None,
    });
    let findings = judge(&[report]);
    assert_eq!(findings[0].id, "path-drops-silently");
    assert_eq!(
        findings[0].evidence,
        "a (10.0.0.1) to b (10.0.0.2): 8950 bytes pass, larger packets are dropped without ICMP, and 9000 are \
         required. They are lost between 10.0.1.254 (hop 1) and the destination"
    );
    assert_eq!(
        findings[0].fix[1..],
        [
            "# until then, have this host send no more than 8950 to that address:",
            "ip route replace 10.0.0.2 via 10.0.1.254 dev eth0 mtu 8950"
        ]
    );
}

#[test]
fn a_signal_is_a_warning_and_an_error_only_where_more_was_expected() {
    let kind = FlowKind::Known(Limit::Signalled {
        by: ROUTER,
        mtu: 1400,
    });
    assert_eq!(
        ids(&[path(RequiredMtu::Device(1500), &[(Some(1400), kind)])]),
        ["path-signals"]
    );
    assert_eq!(
        ids(&[path(RequiredMtu::Expected(1500), &[(Some(1400), kind)])]),
        ["expected-size-fails", "path-signals"]
    );
    assert_eq!(
        ids(&[path(RequiredMtu::Device(1500), &[(Some(1300), kind)])]),
        ["signal-names-wrong-size"]
    );
}

#[test]
fn what_is_said_in_the_destinations_name_is_a_tunnels() {
    let there: IpAddr = Ipv4Addr::new(10, 0, 0, 2).into();
    let kind = FlowKind::Known(Limit::Signalled {
        by: there,
        mtu: 1450,
    });
    let findings = judge(&[path(RequiredMtu::Device(1500), &[(Some(1450), kind)])]);
    assert_eq!(findings[0].id, "path-signals");
    let words =
        "a tunnel on the way reports 1450 by ICMP, with the destination's address as source";
    assert!(findings[0].evidence.contains(words), "{findings:#?}");
    assert!(findings[0].fix[0].starts_with("# raise that tunnel and its underlay to 1500"));
}

#[test]
fn a_device_below_what_was_expected_is_the_hosts_own() {
    let report = path(
        RequiredMtu::Expected(9000),
        &[(Some(1500), FlowKind::Known(Limit::Device { mtu: 1500 }))],
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
fn what_a_route_allows_is_what_the_path_has_to_carry_unless_more_is_expected() {
    let carried = [(Some(1400), FlowKind::Known(Limit::NotSought))];
    let routed = |wanted, mtu| PathReport {
        leaving: Some(EgressRoute {
            mtu: Some(mtu),
            ..egress_route()
        }),
        ..path(wanted, &carried)
    };
    assert!(ids(&[routed(RequiredMtu::Route(1400), 1400)]).is_empty());
    assert!(ids(&[routed(RequiredMtu::Expected(1400), 1400)]).is_empty());
    let findings = judge(&[routed(RequiredMtu::Expected(1400), 1300)]);
    assert_eq!(findings[0].id, "expected-size-fails");
    assert_eq!(findings[0].device.as_deref(), Some("eth0"));
    assert_eq!(
        findings[0].fix,
        ["ip route change default via 10.0.1.254 dev eth0"]
    );
}

#[test]
fn where_every_flow_fails_and_not_alike_the_narrowest_is_told_first() {
    let flows = [
        (Some(8950), FlowKind::BLACK_HOLE),
        (Some(1450), FlowKind::BLACK_HOLE),
        (Some(8950), FlowKind::BLACK_HOLE),
    ];
    let findings = judge(&[path(RequiredMtu::Device(9000), &flows)]);
    assert_eq!(findings[0].id, "path-drops-silently");
    let words =
        "1450 to 8950 bytes, depending on the flow, pass, larger packets are dropped without ICMP";
    assert!(findings[0].evidence.contains(words), "{findings:#?}");
    assert!(findings[0].fix[2].ends_with("mtu 1450"), "{findings:#?}");
}

#[test]
fn who_fell_silent_after_an_answer_is_not_called_dead() {
    use wirecost_pmtu::{CannotTellReason, Outcome};
    for (at_least, kind) in [(None, FlowKind::Dead), (Some(61), FlowKind::Undecided)] {
        let silent = Outcome::CannotTell {
            reason: CannotTellReason::NoAnswer,
            at_least,
        };
        assert_eq!(report::kind_of(&silent), kind);
    }
}

#[test]
fn fragments_are_named() {
    let kind = FlowKind::Known(Limit::Fragmented { largest: 1396 });
    assert_eq!(
        ids(&[path(RequiredMtu::Device(1500), &[(Some(1400), kind)])]),
        ["path-fragments"]
    );
}

#[test]
fn one_bad_member_is_named_with_its_ports_and_its_share() {
    let good = (Some(9000), FlowKind::Known(Limit::Device { mtu: 9000 }));
    let flows: Vec<_> = (0..64)
        .map(|flow| {
            if flow % 8 == 5 {
                (Some(1500), FlowKind::BLACK_HOLE)
            } else {
                good
            }
        })
        .collect();
    let findings = judge(&[path(RequiredMtu::Device(9000), &flows)]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "one-path-of-several");
    assert_eq!(
        findings[0].evidence,
        "a (10.0.0.1) to b (10.0.0.2): 8 of 64 flows carry 1500, the others 9000: one bad member of about 8 (12 % of the \
         flows, 95 % interval 6 to 23). Source ports 40005, 40013, 40021, 40029, 40037, 40045, 40053, 40061"
    );
    let bad = (Some(1500), FlowKind::BLACK_HOLE);
    let findings = judge(&[path(
        RequiredMtu::Device(9000),
        &[bad, good, bad, good, bad],
    )]);
    let words = "so few flows do not tell how many members are bad";
    assert!(findings[0].evidence.contains(words), "{findings:#?}");
    assert_eq!(findings[1].fix, ["# probe again with --flows 7 or more"]);
    // With as few flows as this, other members may be bad as well.
    let few = [good, good, good, good, (Some(1500), FlowKind::BLACK_HOLE)];
    assert_eq!(
        ids(&[path(RequiredMtu::Device(9000), &few)]),
        ["one-path-of-several", "few-flows"]
    );
}

#[test]
fn directions_are_compared() {
    let there = path(
        RequiredMtu::Device(9000),
        &[(Some(1450), FlowKind::BLACK_HOLE)],
    );
    let back = PathReport {
        from: there.to.clone(),
        to: there.from.clone(),
        ..path(
            RequiredMtu::Device(9000),
            &[(Some(9000), FlowKind::Known(Limit::Device { mtu: 9000 }))],
        )
    };
    assert_eq!(
        ids(&[there, back]),
        ["path-drops-silently", "directions-differ"]
    );
}

#[test]
fn a_direction_that_is_narrow_by_its_senders_own_will_is_no_fault_of_the_path() {
    let wide = path(
        RequiredMtu::Device(9000),
        &[(Some(9000), FlowKind::Known(Limit::Device { mtu: 9000 }))],
    );
    let back = |wanted, kind| PathReport {
        from: wide.to.clone(),
        to: wide.from.clone(),
        ..path(wanted, &[(Some(1500), kind)])
    };
    let routed = back(RequiredMtu::Route(1500), FlowKind::Known(Limit::NotSought));
    assert!(ids(&[wide.clone(), routed]).is_empty());
    let device = back(
        RequiredMtu::Device(1500),
        FlowKind::Known(Limit::Device { mtu: 1500 }),
    );
    let findings = judge(&[wide.clone(), device]);
    assert_eq!(findings[0].id, "directions-differ");
    assert_eq!(findings[0].host, "b");
    assert_eq!(findings[0].fix, ["ip link set dev eth0 mtu 9000"]);
}

#[test]
fn loss_of_any_size_is_a_finding_where_it_is_much_and_a_note_where_it_is_some() {
    for (missing, of, found, noted) in [
        (0, 200, false, false),
        (20, 200, false, true),
        (80, 200, true, false),
        // As many may be bad luck.
        (12, 20, false, true),
    ] {
        let mut report = path(
            RequiredMtu::Device(9000),
            &[(Some(9000), FlowKind::Known(Limit::Device { mtu: 9000 }))],
        );
        (report.awaited, report.missing) = (of, missing);
        assert_eq!(loss_note(&report).is_some(), noted, "{missing}");
        let expected: &[&str] = if found { &["path-loses-packets"] } else { &[] };
        assert_eq!(ids(&[report.clone()]), expected, "{missing}");
        // Who answers echo requests may limit how many.
        report.port = 0;
        assert!(ids(&[report]).is_empty());
    }
}

#[test]
fn answers_that_cannot_leave_are_said_to_be_the_reason() {
    let dead = [(None, FlowKind::Dead); 2];
    let there = path(RequiredMtu::Device(9000), &dead);
    let back = PathReport {
        from: there.to.clone(),
        to: there.from.clone(),
        hint: Some(ReachabilityHint::NoNeighbour(there.from.address)),
        ..path(RequiredMtu::Device(9000), &dead)
    };
    let findings = judge(&[there, back]);
    assert!(
        findings[0].evidence.contains("b cannot send any"),
        "{findings:#?}"
    );
    assert!(
        findings[1].evidence.contains("no host answers ARP"),
        "{findings:#?}"
    );
}

#[test]
fn silence_and_doubt_are_no_verdict_about_sizes() {
    assert_eq!(
        ids(&[path(
            RequiredMtu::Device(1500),
            &[(None, FlowKind::Dead); 3]
        )]),
        ["path-dead"]
    );
    assert_eq!(
        ids(&[path(
            RequiredMtu::Device(1500),
            &[(Some(1400), FlowKind::Undecided)]
        )]),
        ["path-undecided"]
    );
}

fn any_kind() -> impl Strategy<Value = FlowKind> {
    prop_oneof![
        Just(FlowKind::Known(Limit::NotSought)),
        (68u32..9217).prop_map(|mtu| FlowKind::Known(Limit::Device { mtu })),
        (68u32..9217).prop_map(|mtu| FlowKind::Known(Limit::Signalled { by: ROUTER, mtu })),
        (68u32..9217).prop_map(|largest| FlowKind::Known(Limit::Fragmented { largest })),
        Just(FlowKind::BLACK_HOLE),
        Just(FlowKind::Dead),
        Just(FlowKind::Undecided),
    ]
}

proptest! {
    #[test]
    fn whatever_is_reported_ids_are_known_and_told_once_a_path_and_reports_read_back(
        flows in prop::collection::vec((prop::option::of(68u32..9217), any_kind()), 0..70),
        wanted in 68u32..9217,
        expected: bool,
    ) {
        let wanted = if expected { RequiredMtu::Expected(wanted) } else { RequiredMtu::Device(wanted) };
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

#[test]
fn wrong_checksums_are_no_size_where_there_are_as_many_as_lost_probes() {
    let mut report = path(
        RequiredMtu::Device(9000),
        &[(Some(1400), FlowKind::BLACK_HOLE)],
    );
    report.bad_checksums = 6;
    assert_eq!(ids(&[report.clone()]), ["path-drops-silently"]);
    report.bad_checksums = 7;
    assert_eq!(ids(&[report]), ["bad-checksums"]);
}

#[test]
fn four_bytes_are_no_difference_between_directions() {
    for (back, differ) in [(1504, false), (1505, true)] {
        let there = path(
            RequiredMtu::Device(1500),
            &[(Some(1500), FlowKind::Known(Limit::Device { mtu: 1500 }))],
        );
        let mut other = path(
            RequiredMtu::Device(1500),
            &[(Some(back), FlowKind::Known(Limit::Device { mtu: back }))],
        );
        (other.from, other.to) = (there.to.clone(), there.from.clone());
        let differs = ids(&[there, other]).contains(&"directions-differ");
        assert_eq!(differs, differ, "{back}");
    }
}

#[test]
fn a_dead_path_says_what_is_answered_instead() {
    for (hint, words) in [
        (Some(ReachabilityHint::NoRoute), "no route to 10.0.0.2"),
        (
            Some(ReachabilityHint::OtherPort(40_001)),
            "something drops UDP to port 50000",
        ),
        (Some(ReachabilityHint::Echo), "something drops UDP"),
        (
            Some(ReachabilityHint::NoNeighbour(ROUTER)),
            "no host answers ARP requests for 10.0.1.254 on eth0",
        ),
        (None, "nor to echo requests"),
    ] {
        let mut report = path(RequiredMtu::Device(9000), &[(None, FlowKind::Dead); 4]);
        report.hint = hint;
        report.vrf = Some("red".to_owned());
        let findings = judge(&[report]);
        assert_eq!(findings[0].id, "path-dead");
        let fix = findings[0].fix.join("\n");
        let route = "ip route get 10.0.0.2 from 10.0.0.1 vrf red";
        assert!(
            hint.is_some_and(|hint| hint != ReachabilityHint::NoRoute) || fix.contains(route),
            "{fix}"
        );
        assert!(
            findings[0].evidence.contains(words),
            "{}",
            findings[0].evidence
        );
    }
}

#[test]
fn one_side_says_which_way_is_narrow_as_far_as_it_knows() {
    for (narrow, words) in [
        (
            NarrowDirection::Back(9000),
            "so the way back is the narrow one",
        ),
        (NarrowDirection::There, "the way there carries no more"),
        (
            NarrowDirection::CannotTell,
            "too seldom to determine which direction",
        ),
    ] {
        let report = OneSidedReport {
            path: path(
                RequiredMtu::Device(9000),
                &[(Some(1500), FlowKind::BLACK_HOLE)],
            ),
            narrow,
        };
        let findings = judge_one_sided(&report);
        assert_eq!(findings[0].id, "path-drops-silently");
        assert!(
            findings[0].evidence.contains(words),
            "{}",
            findings[0].evidence
        );
    }
    for (narrow, id, words) in [
        (
            NarrowDirection::CannotTell,
            "path-undecided",
            "nor from closed ports",
        ),
        (
            NarrowDirection::NoReply(9000),
            "path-undecided",
            "the way there carries as much",
        ),
        (
            NarrowDirection::There,
            "path-drops-silently",
            "the way there carries less",
        ),
    ] {
        let silent = OneSidedReport {
            path: path(RequiredMtu::Device(9000), &[(None, FlowKind::Dead)]),
            narrow,
        };
        let findings = judge_one_sided(&silent);
        assert_eq!(findings[0].id, id);
        assert!(findings[0].evidence.contains(words), "{findings:#?}");
    }
    let right = OneSidedReport {
        path: path(
            RequiredMtu::Device(9000),
            &[(Some(9000), FlowKind::Known(Limit::Device { mtu: 9000 }))],
        ),
        narrow: NarrowDirection::Neither,
    };
    assert!(judge_one_sided(&right).is_empty());
}

#[test]
fn every_key_of_the_document_is_in_its_schema() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).expect("JSON");
    let document = Document {
        format: FORMAT,
        program_version: "0",
        started: String::new(),
        seconds: 0.0,
        asked: CheckParameters {
            expect: None,
            flows: 1,
            port: None,
            datagrams_per_s: 1.0,
            bytes_per_s: 1.0,
        },
        hosts: Vec::new(),
        paths: Vec::new(),
        directions: Vec::new(),
        encapsulation: None,
        recommendation: None,
        tcp: Vec::new(),
        traces: Vec::new(),
        findings: Vec::new(),
        simulations: Vec::new(),
        checklist: Vec::new(),
        unread: Vec::new(),
        notes: Vec::new(),
    };
    let document = serde_json::to_value(document).expect("JSON");
    let keys: BTreeSet<&String> = document.as_object().expect("an object").keys().collect();
    let properties = schema["properties"].as_object().expect("properties");
    assert_eq!(keys, properties.keys().collect());
    assert_eq!(schema["properties"]["format"]["const"], FORMAT);
}
