use super::*;
use crate::encapsulation::Encapsulation;
use crate::encapsulation::description::WIREGUARD;
use crate::ip::IpVersion;
use crate::load::{Load, Segmentation, Workload};
use crate::logical::Logical;
use crate::offload::Profile;
use crate::plan::{Cores, Vxlan};
use crate::steering::Steering;
use crate::transit::{Hop, HopKind, Icmp, Mtus, Transit};

fn network(encapsulation: Encapsulation, hops: usize) -> Network {
    let hop = Hop {
        kind: HopKind::Switch,
        mtu: Mtus::both(9000),
        icmp: Icmp::Sent,
        drop_udp_port: None,
        loss_ppm: 0,
        delay_us: 0,
    };
    Network {
        underlay_mtu: 9000,
        rate: None,
        links: 1,
        underlay_ip: IpVersion::Ipv4,
        encapsulation,
        datapath: Datapath::Kernel,
        logical: Logical::default(),
        guest_ip: IpVersion::Ipv4,
        guests: 1,
        transit: Transit {
            hops: vec![hop; hops],
            paths: Vec::new(),
        },
        cores: Cores::Split,
        steering: Steering::default(),
    }
}

fn level(profile: Profile, set: &[(Feature, bool)]) -> Offload {
    Offload {
        profile,
        set: set.iter().copied().collect(),
    }
}

fn vxlan() -> Encapsulation {
    Encapsulation::Vxlan(Vxlan::default())
}

fn tcp() -> Vec<NamedLoad> {
    named(Load::new(Workload::TcpStream))
}

fn named(load: Load) -> Vec<NamedLoad> {
    let name = load.workload.name().to_owned();
    vec![NamedLoad { name, load }]
}

fn datagrams(send: bool, receive: bool) -> Vec<NamedLoad> {
    let mut load = Load::new(Workload::UdpStream);
    load.segmentation = Segmentation { send, receive };
    named(load)
}

#[test]
fn a_tunnel_changes_nothing_but_where_plain_cuts() {
    for hops in [0, 1] {
        for profile in [Profile::None, Profile::Tunnel] {
            for set in [
                None,
                Some(Feature::Gro),
                Some(Feature::Tso),
                Some(Feature::Gso),
            ] {
                let level = level(
                    profile,
                    &set.map(|one| (one, profile == Profile::None))
                        .into_iter()
                        .collect::<Vec<_>>(),
                );
                let of = |encapsulation| PathOffload::of(&level, &network(encapsulation, hops));
                let (none, vxlan) = (of(Encapsulation::None), of(vxlan()));
                // A NIC that segments what is in no tunnel is what `none` with `tso` makes of it.
                if profile == Profile::None && set.is_some_and(|set| set != Feature::Gro) {
                    continue;
                }
                assert_eq!(none, vxlan, "{level} over {hops} hops");
            }
        }
        let plain = level(Profile::Plain, &[]);
        let cut = PathOffload::of(&plain, &network(vxlan(), hops)).tcp;
        assert_eq!(cut, Some(SegmentationPoint::Underlay));
    }
}

#[test]
fn only_the_receiving_guest_joins_and_only_frames() {
    let tunnel = level(Profile::Tunnel, &[]);
    let roles = [Role::Underlay, Role::Tunnel, Role::GuestPort, Role::Guest];
    for (hops, joins) in [(0, false), (1, true)] {
        for encapsulation in [Encapsulation::None, vxlan()] {
            let network = network(encapsulation, hops);
            let path_offload = PathOffload::of(&tunnel, &network);
            assert_eq!(path_offload.joins, joins);
            for role in roles {
                let wanted = path_offload
                    .device_features(&tunnel, &network, role)
                    .expect("a device");
                assert_eq!(
                    wanted[&Feature::Gro],
                    joins && role == Role::Guest,
                    "{role:?}"
                );
                let whole = !(joins && role == Role::GuestPort);
                assert_eq!(wanted[&Feature::Tso], whole, "{role:?}");
            }
            assert_eq!(
                path_offload.device_features(&tunnel, &network, Role::Bridge),
                None
            );
        }
    }
}

#[test]
fn wireguard_cuts_in_its_device_and_the_receiving_guest_joins() {
    let network = |hops| network((WIREGUARD.usual)(), hops);
    for hops in [0, 1] {
        for (profile, cut, joins) in [
            (Profile::None, SegmentationPoint::Guest, false),
            (Profile::Plain, SegmentationPoint::Tunnel, true),
            (Profile::Tunnel, SegmentationPoint::Tunnel, true),
        ] {
            let level = level(profile, &[]);
            let path_offload = PathOffload::of(&level, &network(hops));
            assert_eq!((path_offload.tcp, path_offload.udp), (Some(cut), Some(cut)));
            assert_eq!(path_offload.joins, joins);
            let gro = |role| {
                path_offload
                    .device_features(&level, &network(hops), role)
                    .expect("a device")[&Feature::Gro]
            };
            assert_eq!((gro(Role::Guest), gro(Role::Tunnel)), (joins, false));
        }
        let whole = level(Profile::Tunnel, &[(Feature::TunnelSegmentation, false)]);
        assert_eq!(refused(&whole, &network(hops), &tcp()), Some(TUNNEL_CUTS));
        let alone = level(Profile::Tunnel, &[(Feature::Gro, false)]);
        assert_eq!(refused(&alone, &network(hops), &tcp()), None);
    }
}

#[test]
fn none_leaves_nothing_on_any_device_of_the_path() {
    let none = level(Profile::None, &[]);
    let network = network(vxlan(), 1);
    for role in [Role::Underlay, Role::Tunnel, Role::Guest, Role::GuestPort] {
        let wanted = PathOffload::of(&none, &network).device_features(&none, &network, role);
        for (feature, on) in wanted.expect("a device") {
            assert_eq!(on, feature == Feature::Checksum, "{feature:?} on {role:?}");
        }
    }
}

#[test]
fn a_switch_that_changes_nothing_is_refused_with_the_reason() {
    use Feature::{Checksum, Gro, Gso, Tso, TunnelSegmentation};
    use Profile::{None as Nothing, Plain, Tunnel};
    let (direct, far) = (0, 1);
    for (profile, set, encapsulation, hops, loads, refused_for) in [
        (
            Tunnel,
            (Gro, false),
            vxlan(),
            direct,
            tcp(),
            Some(NOTHING_TO_JOIN),
        ),
        (Tunnel, (Gro, false), vxlan(), far, tcp(), None),
        (Plain, (Gro, false), vxlan(), direct, tcp(), None),
        (
            Plain,
            (Gro, false),
            Encapsulation::None,
            direct,
            tcp(),
            Some(NOTHING_TO_JOIN),
        ),
        (Nothing, (Gro, true), vxlan(), direct, tcp(), None),
        (
            Nothing,
            (Gro, true),
            vxlan(),
            direct,
            datagrams(true, false),
            Some(NOBODY_JOINS),
        ),
        (
            Nothing,
            (Gro, true),
            vxlan(),
            direct,
            datagrams(false, true),
            None,
        ),
        (
            Tunnel,
            (Gso, false),
            vxlan(),
            direct,
            tcp(),
            Some(TCP_ALWAYS_BATCHES),
        ),
        (
            Tunnel,
            (Gso, false),
            vxlan(),
            direct,
            datagrams(true, true),
            None,
        ),
        (Tunnel, (Tso, false), vxlan(), direct, tcp(), None),
        (
            Tunnel,
            (Tso, false),
            vxlan(),
            direct,
            datagrams(true, false),
            Some(NO_TCP),
        ),
        (Tunnel, (Checksum, false), vxlan(), direct, tcp(), None),
        (Nothing, (Checksum, false), vxlan(), far, tcp(), None),
        (
            Nothing,
            (TunnelSegmentation, true),
            vxlan(),
            direct,
            tcp(),
            Some(CUT_BEFORE),
        ),
        (
            Tunnel,
            (TunnelSegmentation, false),
            vxlan(),
            direct,
            tcp(),
            None,
        ),
        (
            Tunnel,
            (TunnelSegmentation, false),
            Encapsulation::None,
            direct,
            tcp(),
            None,
        ),
        // Written out, a profile's own switch is no change, and no fault.
        (Tunnel, (Gro, true), vxlan(), direct, tcp(), None),
    ] {
        let level = level(profile, &[set]);
        let network = network(encapsulation, hops);
        assert_eq!(
            refused(&level, &network, &loads),
            refused_for,
            "{level} on {network}"
        );
    }
}

#[test]
fn open_vswitch_in_userspace_is_refused_no_switch() {
    let level = level(Profile::Tunnel, &[(Feature::Gro, false)]);
    let network = Network {
        datapath: Datapath::Ovs,
        ..network(vxlan(), 0)
    };
    assert_eq!(refused(&level, &network, &tcp()), None);
}

#[test]
fn datagrams_that_ebpf_cannot_join_behind_its_tunnel_are_not_held_against_those_without_one() {
    let tunnel = level(Profile::Tunnel, &[]);
    let network = |encapsulation, hops| Network {
        datapath: Datapath::Ebpf,
        ..network(encapsulation, hops)
    };
    let both = datagrams(true, true);
    assert_eq!(
        unlike(&tunnel, &network(vxlan(), 1), &both),
        Some(MARK_STAYS)
    );
    assert_eq!(
        unlike(&tunnel, &network(vxlan(), 0), &both),
        Some(MARK_STAYS)
    );
    assert_eq!(
        unlike(&level(Profile::None, &[]), &network(vxlan(), 0), &both),
        None
    );
    assert_eq!(
        unlike(&tunnel, &network(vxlan(), 1), &datagrams(true, false)),
        None
    );
    assert_eq!(
        unlike(&tunnel, &network(Encapsulation::None, 1), &both),
        None
    );
    assert_eq!(unlike(&tunnel, &network(vxlan(), 1), &tcp()), None);
}
