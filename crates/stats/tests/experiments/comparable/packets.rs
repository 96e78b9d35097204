//! Segments per packet, drops of a backlog, settings that changed nothing.

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::load::Sending;
use wirecost_model::metric::Metric;
use wirecost_model::offload::{Feature, Offload, Profile};
use wirecost_model::plan::{Encapsulation, Vxlan, Wireguard};
use wirecost_model::sample::{Flow, Sample, Socket, ZeroCopyCounts};
use wirecost_model::transit::{Hop, HopKind};
use wirecost_model::usage::LinkDelta;
use wirecost_model::vary::{DeviceSetting, Scope, Setting, Vary};
use wirecost_stats::comparable::{
    BARRING_DROP_SHARE, BARRING_SEGMENTS_RATIO, COPIED_SENDS_SHARE, DIFFERENT_DROPS_RATIO,
    REPORTED_DROP_SHARE, REPORTED_SEGMENTS_RATIO, SAME_SEGMENTS_RATIO,
};

use super::Planted;

/// Whether packets hold so many segments when they leave, and when they arrive.
fn segments(sample: &mut Sample, sent: f64, received: f64) {
    const SEGMENTS: f64 = 1e6;
    let socket = Socket {
        segs_out: SEGMENTS as u64,
        segs_in: SEGMENTS as u64,
        min_rtt_us: 40,
        ..Socket::default()
    };
    sample.loads[0].flows = vec![Flow {
        bytes: 0,
        back_bytes: 0,
        sender: Some(socket.clone()),
        receiver: Some(socket),
    }];
    let link = LinkDelta {
        tx_packets: (SEGMENTS / sent) as u64,
        ..LinkDelta::default()
    };
    let sender = sample.sender.as_mut().expect("host a");
    sender.links = [("guest:eth0".to_owned(), link)].into();
    let host_b = sample.receiver.as_mut().expect("host b");
    host_b.guest.tcp_in = (SEGMENTS / received) as u64;
}

/// Both ends of both cells.
fn planted(key: &str, levels: [&str; 2], [from, to]: [(f64, f64); 2]) -> Planted {
    Planted::of(key, levels)
        .sampled(0, |sample| segments(sample, from.0, from.1))
        .sampled(1, |sample| segments(sample, to.0, to.1))
}

const VXLAN: [&str; 2] = ["none", "vxlan"];

#[test]
fn one_side_that_is_aggregated_bars_every_verdict() {
    let one_sided = planted("encapsulation", VXLAN, [(45.0, 1.0), (45.0, 29.0)]);
    for metric in [Metric::Throughput, Metric::SenderCpu, Metric::ReceiverCpu] {
        assert_eq!(
            one_sided.not_comparable(metric),
            Some(RemarkKind::Aggregation)
        );
    }
    let why = one_sided
        .effect(Metric::Throughput)
        .not_comparable
        .expect("a reason");
    assert_eq!(
        why.text,
        "the receiver got 1.0 with none and 29 with vxlan in segments per packet"
    );
    assert!(!why.advice.is_empty());
}

#[test]
fn the_threshold_at_either_end() {
    let around = |end: fn(f64) -> (f64, f64), ratio: f64| {
        planted("encapsulation", VXLAN, [end(20.0), end(20.0 * ratio)])
    };
    for end in [(|n| (n, 20.0)) as fn(f64) -> (f64, f64), |n| (20.0, n)] {
        let barred = around(end, BARRING_SEGMENTS_RATIO * 1.01);
        assert_eq!(
            barred.not_comparable(Metric::Throughput),
            Some(RemarkKind::Aggregation)
        );
        for ratio in [
            BARRING_SEGMENTS_RATIO * 0.99,
            BARRING_SEGMENTS_RATIO.recip() * 1.01,
            REPORTED_SEGMENTS_RATIO * 1.01,
        ] {
            let told = around(end, ratio);
            assert_eq!(told.effect(Metric::Throughput).verdict, Verdict::Pays);
            assert_eq!(told.remarks(Metric::Throughput), [RemarkKind::Aggregation]);
        }
        assert_eq!(
            around(end, REPORTED_SEGMENTS_RATIO * 0.99).remarks(Metric::Throughput),
            []
        );
    }
}

#[test]
fn a_factor_that_is_about_it_keeps_its_verdict() {
    let ends = [(1.0, 1.0), (40.0, 40.0)];
    for key in [
        "streams",
        "message",
        "nodelay",
        "bulk.depth",
        "steering.rps",
    ] {
        let about = planted(key, ["1", "2"], ends);
        assert_eq!(about.not_comparable(Metric::Throughput), None, "{key}");
        assert!(
            about
                .remarks(Metric::Throughput)
                .contains(&RemarkKind::Aggregation)
        );
    }
    assert_eq!(
        planted("offload", ["none", "tunnel"], ends).not_comparable(Metric::Throughput),
        None
    );
    for key in [
        "guest_ip",
        "underlay.ip",
        "datapath",
        "udp_checksum",
        "guests",
        "underlay.mtu",
    ] {
        let other = planted(key, ["1", "2"], ends);
        assert_eq!(
            other.not_comparable(Metric::Throughput),
            Some(RemarkKind::Aggregation),
            "{key}"
        );
    }
}

/// A command may be anything: one that turns off aggregation by hand is seen.
#[test]
fn of_a_plans_own_factor_what_it_sets_counts() {
    let vary = |setting: Setting| {
        let mut planted = planted("mine", ["off", "on"], [(45.0, 45.0), (45.0, 1.0)]);
        planted.experiment.plan.vary = vec![Vary {
            name: "mine".into(),
            levels: vec![setting],
        }];
        planted.not_comparable(Metric::Throughput)
    };
    let setting = Setting {
        factor: "mine".into(),
        label: "on".into(),
        sysctl: [].into(),
        ethtool: [].into(),
        device: [].into(),
        device_name: None,
        command: None,
        on: Scope::Both,
    };
    assert_eq!(vary(setting.clone()), Some(RemarkKind::Aggregation));
    let declared = Setting {
        sysctl: [("net.ipv4.tcp_rmem".to_owned(), "4096 8192 16384".to_owned())].into(),
        ..setting.clone()
    };
    assert_eq!(vary(declared), None);
    // Of existing hosts, whose cells do not tell their MTU.
    let larger = Setting {
        device: [(DeviceSetting::Mtu, "9000".to_owned())].into(),
        ..setting
    };
    assert_eq!(vary(larger), None);
}

#[test]
fn larger_frames_have_fewer_segments_to_aggregate() {
    let mtus = |ends| {
        planted("guest_mtu", ["1500", "8900"], ends)
            .cell(0, |cell| cell.guest_mtu = 1500)
            .cell(1, |cell| cell.guest_mtu = 8900)
    };
    for explained in [[(1.0, 1.0), (1.0, 1.0)], [(45.0, 45.0), (7.4, 7.4)]] {
        assert_eq!(
            mtus(explained).not_comparable(Metric::Throughput),
            None,
            "{explained:?}"
        );
    }
    let one_sided = mtus([(45.0, 1.0), (7.4, 7.4)]);
    assert_eq!(
        one_sided.not_comparable(Metric::Throughput),
        Some(RemarkKind::Aggregation)
    );
}

#[test]
fn behind_a_hop_a_tunnel_is_taken_off_before_frames_are_joined_and_a_verdict_says_so() {
    let behind = |hops: &[Hop], received: f64| {
        let hops = hops.to_vec();
        planted("encapsulation", VXLAN, [(45.0, received), (45.0, received)])
            .cell(1, |cell| {
                cell.network.encapsulation = Encapsulation::Vxlan(Vxlan::default());
            })
            .cells(move |cell| cell.network.transit.hops.clone_from(&hops))
    };
    let switch = [Hop::new(HopKind::Switch, 9000)];
    let joined = behind(&switch, 20.0);
    for metric in [Metric::Throughput, Metric::ReceiverCpu] {
        assert!(joined.remarks(metric).contains(&RemarkKind::JoinedInside));
        let not = [behind(&switch, 1.0), behind(&[], 20.0)];
        for other in not {
            assert!(!other.remarks(metric).contains(&RemarkKind::JoinedInside));
        }
    }
    assert!(
        !joined
            .remarks(Metric::SenderCpu)
            .contains(&RemarkKind::JoinedInside)
    );
}

#[test]
fn a_record_that_does_not_know_is_not_judged() {
    let planted = planted("encapsulation", VXLAN, [(45.0, 1.0), (45.0, 29.0)]);
    let unknown = planted.sampled(0, |sample| sample.loads[0].flows[0].receiver = None);
    assert_eq!(unknown.not_comparable(Metric::Throughput), None);
}

#[test]
fn an_offload_that_changed_nothing_makes_no_difference_to_nobody() {
    let gro = |of_second: f64, gbps: f64| {
        planted(
            "offload",
            ["tunnel", "tunnel gro=off"],
            [(45.0, 33.0), (45.0, of_second)],
        )
        .cell(0, |cell| cell.offload = Offload::profile(Profile::Tunnel))
        .cell(1, |cell| {
            cell.offload = Offload {
                profile: Profile::Tunnel,
                set: [(Feature::Gro, false)].into(),
            };
        })
        .sampled(1, move |sample| {
            let stream = sample.loads[0].stream.as_mut().expect("a stream");
            stream.bytes = (gbps * 1e9 / 8.0) as u64;
        })
    };
    let same = gro(33.0, 5.0);
    assert_eq!(
        same.not_comparable(Metric::Throughput),
        Some(RemarkKind::NotInEffect)
    );
    let why = same
        .effect(Metric::Throughput)
        .not_comparable
        .expect("a reason");
    assert_eq!(
        why.text,
        "the setting changed nothing here: 45 segments per packet sent and 33 received in both"
    );
    assert_eq!(
        gro(33.0 * SAME_SEGMENTS_RATIO * 0.99, 5.0).not_comparable(Metric::Throughput),
        Some(RemarkKind::NotInEffect)
    );
    // It did something, which makes no difference; and whatever it did, it costs.
    let changed = gro(33.0 * SAME_SEGMENTS_RATIO * 1.01, 5.0);
    assert_eq!(
        changed.effect(Metric::Throughput).verdict,
        Verdict::MakesNoDifference
    );
    assert_eq!(
        gro(33.0, 2.0).effect(Metric::Throughput).verdict,
        Verdict::Costs
    );
}

#[test]
fn checksums_are_another_matter_than_aggregation() {
    let planted = planted(
        "offload",
        ["none", "none checksum=software"],
        [(1.0, 1.0); 2],
    )
    .cell(1, |cell| {
        cell.offload.set = [(Feature::Checksum, false)].into();
    })
    .sampled(1, |sample| {
        sample.loads[0].stream.as_mut().expect("a stream").bytes /= 2;
    });
    assert_eq!(
        planted.effect(Metric::Throughput).verdict,
        Verdict::MakesNoDifference
    );
}

#[test]
fn zero_copy_that_was_copied_is_not_in_effect() {
    let copied = |share: f64| {
        Planted::of("zero_copy", ["off", "on"])
            .cell(1, |cell| cell.loads[0].load.sending = Sending::ZeroCopy)
            .sampled(1, |sample| {
                sample.loads[0].zero_copy = Some(ZeroCopyCounts {
                    sends: 2000,
                    completed: 1000,
                    copied: (1000.0 * share) as u64,
                    fallbacks: 0,
                });
            })
    };
    for metric in [Metric::Throughput, Metric::SenderCpu, Metric::ReceiverCpu] {
        assert_eq!(
            copied(COPIED_SENDS_SHARE).not_comparable(metric),
            Some(RemarkKind::NotInEffect)
        );
    }
    assert_eq!(
        copied(COPIED_SENDS_SHARE - 0.01).not_comparable(Metric::Throughput),
        None
    );
    let elsewhere = copied(1.0)
        .effect(Metric::Throughput)
        .not_comparable
        .expect("a reason");
    assert!(
        elsewhere
            .text
            .contains("100% of the sends were copied: between namespaces"),
        "{elsewhere:?}"
    );
}

/// So many packets of a million dropped.
fn dropping(sample: &mut Sample, drops: u64) {
    let receiver = sample.receiver.as_mut().expect("host b");
    receiver.guest.tcp_in = 1_000_000 - drops;
    receiver.backlog_drops = drops;
}

#[test]
fn a_backlog_that_overflows_in_one_cell_only() {
    let of = |key, drops: [u64; 2]| {
        Planted::of(key, ["none", "vxlan"])
            .sampled(0, |sample| dropping(sample, drops[0]))
            .sampled(1, |sample| dropping(sample, drops[1]))
    };
    let planted = |key, drops| of(key, drops).not_comparable(Metric::Throughput);
    let beside = |drops| of("encapsulation", drops).remarks(Metric::Throughput);
    let few = (BARRING_DROP_SHARE * 1e6) as u64;
    let bars = Some(RemarkKind::BacklogDrops);
    assert_eq!(planted("encapsulation", [0, few]), bars);
    assert_eq!(planted("encapsulation", [few, 0]), bars);
    assert_eq!(planted("encapsulation", [0, few - 1]), None);
    assert_eq!(beside([0, few - 1]), [RemarkKind::BacklogDrops]);
    let told = (REPORTED_DROP_SHARE * 1e6) as u64;
    assert_eq!(beside([0, told]), [RemarkKind::BacklogDrops]);
    assert_eq!(beside([0, told - 1]), []);
    let tenth = (10_000.0 * DIFFERENT_DROPS_RATIO) as u64;
    assert_eq!(planted("encapsulation", [tenth, 10_000]), bars);
    assert_eq!(planted("encapsulation", [tenth + 1, 10_000]), None);
    assert_eq!(planted("streams", [0, 10_000]), None);
}

/// A level of `encapsulation` beside WireGuard, with so many segments per packet at each receiver.
fn beside_wireguard(of: &Encapsulation, received: (f64, f64)) -> Planted {
    let label = of.to_string();
    planted(
        "encapsulation",
        [label.as_str(), "wireguard"],
        [(45.0, received.0), (45.0, received.1)],
    )
    .cell(0, |cell| cell.network.encapsulation = of.clone())
    .cell(1, |cell| {
        cell.network.encapsulation = Encapsulation::Wireguard(Wireguard::default());
    })
}

#[test]
fn frames_that_wireguard_cuts_by_itself_do_not_bar_what_it_carries() {
    let whole = beside_wireguard(&Encapsulation::None, (45.0, 20.0));
    assert_eq!(whole.not_comparable(Metric::Throughput), None);
    let said = whole.effect(Metric::Throughput).remarks;
    let cut = said
        .iter()
        .find(|remark| remark.kind == RemarkKind::Aggregation);
    let text = &cut.expect("a remark").text;
    assert!(
        text.ends_with("wireguard cuts super-packets into frames before it sends them"),
        "{text}"
    );
    // What it does not do by itself.
    let sent = beside_wireguard(&Encapsulation::None, (20.0, 20.0))
        .sampled(0, |sample| segments(sample, 1.0, 20.0));
    assert_eq!(
        sent.not_comparable(Metric::Throughput),
        Some(RemarkKind::Aggregation)
    );
}

#[test]
fn what_wireguard_does_on_all_cores_bars_the_cpu_of_a_host_beside_another_encapsulation() {
    let vxlan = || Encapsulation::Vxlan(Vxlan::default());
    let split = beside_wireguard(&vxlan(), (20.0, 20.0));
    for metric in [Metric::SenderCpu, Metric::ReceiverCpu] {
        assert_eq!(split.not_comparable(metric), Some(RemarkKind::AllCores));
    }
    assert_eq!(split.not_comparable(Metric::Throughput), None);
    let both = beside_wireguard(
        &Encapsulation::Wireguard(Wireguard { port: 51821 }),
        (20.0, 20.0),
    );
    assert_eq!(both.not_comparable(Metric::SenderCpu), None);
    assert_eq!(both.remarks(Metric::SenderCpu), [RemarkKind::AllCores]);
}
