//! TCP to an open port, and the MTU to set.

use super::*;
use crate::report::RequiredMtu;
use crate::{
    Recommendation, Segments, TcpMeasurements, TcpReport, judge_tcp, recommend, tcp_notes,
};

fn shown(passes: Option<u32>, fails: Option<u32>) -> TcpMeasurements {
    TcpMeasurements {
        failed: None,
        full: 1500,
        segments: Segments { passes, fails },
        acknowledged: 1448,
        retransmits: 0,
        snd_mss: 1448,
        adv_mss: 1460,
        pmtu: (1500, 1500),
    }
}

fn tcp(wanted: RequiredMtu, shown: TcpMeasurements) -> TcpReport {
    let path = path(wanted, &[]);
    TcpReport::new((path.from, path.to), 443, wanted, shown, 0.1)
}

fn ids(report: &TcpReport) -> Vec<&'static str> {
    judge_tcp(report).iter().map(|found| found.id).collect()
}

#[test]
fn a_full_segment_that_is_acknowledged_has_no_finding() {
    let right = tcp(RequiredMtu::Device(1500), shown(Some(1500), None));
    assert_eq!(ids(&right), [""; 0]);
    assert_eq!(right.path.mtu(), Some(1500));
    let expected = tcp(RequiredMtu::Expected(1400), shown(Some(1400), None));
    assert_eq!(ids(&expected), [""; 0]);
}

#[test]
fn what_tcp_shows_has_the_finding_of_its_kind() {
    let hole = tcp(RequiredMtu::Device(1500), shown(Some(1400), Some(1401)));
    assert_eq!(ids(&hole), ["path-drops-silently"]);
    let mute = tcp(RequiredMtu::Device(1500), shown(None, Some(1500)));
    assert_eq!(ids(&mute), ["path-undecided"]);
    for (failed, id) in [
        (Stream::Refused, "path-undecided"),
        (Stream::NotConnected, "path-dead"),
    ] {
        let failed = Some(failed);
        let report = tcp(
            RequiredMtu::Device(1500),
            TcpMeasurements {
                failed,
                ..shown(None, None)
            },
        );
        assert_eq!(ids(&report), [id]);
        assert!(tcp_notes(&report).is_empty());
    }
}

#[test]
fn a_far_end_that_announces_less_is_told_and_is_no_fault() {
    let less = tcp(
        RequiredMtu::Device(9000),
        TcpMeasurements {
            pmtu: (9000, 9000),
            ..shown(Some(1500), None)
        },
    );
    assert_eq!(ids(&less), [""; 0]);
    let notes = tcp_notes(&less);
    assert!(notes[1].contains("to 1500 bytes"), "{notes:?}");
    let expected = tcp(RequiredMtu::Expected(9000), shown(Some(1500), None));
    assert_eq!(ids(&expected), ["expected-size-fails"]);
    let told = tcp(
        RequiredMtu::Device(1500),
        TcpMeasurements {
            pmtu: (1500, 1400),
            ..shown(Some(1400), None)
        },
    );
    let notes = tcp_notes(&told);
    assert!(
        notes
            .iter()
            .any(|note| note.contains("lowered its path MTU to 1400")),
        "{notes:?}"
    );
}

fn mtus(of: &Recommendation) -> Vec<(&str, Option<u32>)> {
    let guests = of.guests.iter();
    guests
        .map(|it| (it.encapsulation.as_str(), it.mtu))
        .collect()
}

#[test]
fn the_narrowest_path_of_all_pairs_decides() {
    let wide = path(
        RequiredMtu::Device(9000),
        &[(Some(9000), FlowKind::Known(Limit::Device { mtu: 9000 }))],
    );
    let narrow = path(
        RequiredMtu::Device(9000),
        &[(Some(8950), FlowKind::BLACK_HOLE)],
    );
    let vxlan = "vxlan".parse().expect("a stack");
    let one = recommend(&[&wide], &[], Some(&vxlan)).expect("a path");
    assert_eq!(mtus(&one), [("none", Some(9000)), ("vxlan", Some(8950))]);
    let other = recommend(&[&narrow], &[], None).expect("a path");
    assert_eq!(mtus(&other), [("none", Some(8950))]);
    let both = crate::recommend::join(Some(one.clone()), Some(other)).expect("both");
    assert_eq!(mtus(&both), [("none", Some(8950)), ("vxlan", Some(8900))]);
    assert!(
        both.limits[0].why.contains("dropped without ICMP"),
        "{both:?}"
    );
    let dead = path(RequiredMtu::Device(9000), &[(None, FlowKind::Dead)]);
    let unknown = recommend(&[&dead], &[], None);
    let none = crate::recommend::join(Some(one), unknown).expect("both");
    assert!(mtus(&none).iter().all(|(_, mtu)| mtu.is_none()), "{none:?}");
}

#[test]
fn a_router_that_names_another_size_has_an_interim_command_like_others() {
    for (said, words) in [
        (0, "an invalid MTU"),
        (68, "reports an MTU of 68, which is too small"),
        (1600, "reports an MTU of 1600, which is too large"),
    ] {
        let kind = FlowKind::Known(Limit::Signalled {
            by: ROUTER,
            mtu: said,
        });
        let mut path = path(RequiredMtu::Device(1500), &[(Some(1400), kind)]);
        path.leaving = Some(crate::EgressRoute {
            device: "eth0".into(),
            route: Some(crate::IpRoute {
                hops: "via 10.0.0.254 dev eth0".into(),
                ..crate::IpRoute::default()
            }),
            ..crate::EgressRoute::default()
        });
        let found = judge(&[path]);
        assert_eq!(found[0].id, "signal-names-wrong-size");
        assert!(found[0].evidence.contains(words), "{}", found[0].evidence);
        let interim = found[0].fix.iter().any(|line| line.ends_with("mtu 1400"));
        assert!(interim, "{:?}", found[0].fix);
    }
}
