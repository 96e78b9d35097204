//! What probes showed beside what is configured.

use std::net::Ipv6Addr;

use wirecost_audit::snapshot::{Device, Namespace, Remote, RouteException, Tunnel, VethPeer};

use super::*;

fn namespace(label: &str, inode: u64, device: Device) -> Namespace {
    Namespace {
        label: label.into(),
        inode: Some(inode),
        devices: vec![device],
        ..Namespace::default()
    }
}

/// A veth's end in the first namespace of its host; the other end is in the second.
fn veth(mtu: u32, other: usize) -> Device {
    Device {
        name: "eth0".into(),
        index: 2,
        kind: "veth".into(),
        mtu,
        up: true,
        peer: Some(VethPeer {
            namespace: Some(other),
            index: 2,
        }),
        ..Device::default()
    }
}

fn host(name: &str, own: (u64, u32), other: (u64, u32), netns: &str) -> AuditedHost {
    AuditedHost {
        stack: HostStack {
            version: 1,
            host: name.into(),
            namespaces: vec![
                namespace("host", own.0, veth(own.1, 1)),
                namespace("other", other.0, veth(other.1, 0)),
            ],
            ..HostStack::default()
        },
        machine: "one".into(),
        enter: NetnsEntry::Named(netns.into()),
        rules: Vec::new(),
    }
}

#[test]
fn what_both_hosts_of_a_machine_see_is_said_once_by_the_one_that_has_it() {
    let (a, b) = ((11, 9000), (22, 1500));
    let mut hosts = [host("a", a, b, "red"), host("b", b, a, "blue")];
    let findings = assess(&[], None, None, &mut hosts);
    let said: Vec<_> = findings
        .iter()
        .filter(|finding| finding.id == "veth-ends-differ")
        .map(|finding| (finding.host.as_str(), finding.fix[0].as_str()))
        .collect();
    assert_eq!(said, [("b", "ip -n blue link set dev eth0 mtu 9000")]);
    // On two machines they are two.
    hosts[1].machine = "another".into();
    let findings = assess(&[], None, None, &mut hosts);
    let veth = |finding: &&Finding| finding.id == "veth-ends-differ";
    assert_eq!(findings.iter().filter(veth).count(), 2);
}

#[test]
fn the_exception_that_a_probe_left_is_no_finding_and_any_other_is() {
    let exception = |last: u8| RouteException {
        destination: Ipv4Addr::new(10, 0, 0, last).into(),
        device: Some(2),
        mtu: 1400,
        proven: None,
    };
    let signalled = FlowKind::Known(Limit::Signalled {
        by: ROUTER,
        mtu: 1400,
    });
    let by_tunnel = FlowKind::Known(Limit::Signalled {
        by: end("b", 2).address,
        mtu: 1400,
    });
    let device = FlowKind::Known(Limit::Device { mtu: 9000 });
    let nine = RequiredMtu::Device(9000);
    for (last, wanted, kind, found) in [
        (2, nine, signalled, false),
        (2, nine, device, true),
        // As a check before this one may have left it, and no less than is wanted.
        (2, RequiredMtu::Expected(1400), device, false),
        // The other end of a tunnel, and somewhere else.
        (4, nine, device, true),
        (3, nine, device, false),
        // The tunnel's device is in another namespace than its socket, which the router of the underlay told.
        (4, nine, by_tunnel, false),
        (4, nine, signalled, true),
    ] {
        let mut hosts = [host("a", (11, 9000), (22, 9000), "red")];
        let own = &mut hosts[0].stack.namespaces;
        own[0].exceptions.push(exception(last));
        let remote = Remote {
            address: exception(4).destination,
            device: Some(2),
            route_mtu: None,
        };
        own[1].devices[0].tunnel = Some(Tunnel {
            socket: Some(0),
            remotes: vec![remote],
            ..Tunnel::default()
        });
        let carried = if kind == device { 9000 } else { 1400 };
        let path = path(wanted, &[(Some(carried), kind)]);
        let findings = assess(&[path], None, None, &mut hosts);
        let cached = findings.iter().any(|it| it.id == "cached-exception");
        assert_eq!(cached, found, "{last} {wanted:?} {kind:?}");
    }
}

#[test]
fn a_receiver_that_takes_less_is_named_with_what_to_type_there() {
    let routed = path(
        RequiredMtu::Device(9000),
        &[(Some(1504), FlowKind::BLACK_HOLE)],
    );
    let there = PathReport {
        leaving: Some(EgressRoute {
            router: None,
            ..egress_route()
        }),
        ..routed.clone()
    };
    let back = PathReport {
        from: there.to.clone(),
        to: there.from.clone(),
        ..path(
            RequiredMtu::Device(1500),
            &[(Some(1500), FlowKind::Known(Limit::Device { mtu: 1500 }))],
        )
    };
    let back = PathReport {
        leaving: Some(EgressRoute {
            device_mtu: Some(1500),
            ..egress_route()
        }),
        ..back
    };
    let mut hosts = [
        host("a", (11, 9000), (33, 9000), "red"),
        host("b", (22, 1500), (44, 1500), "blue"),
    ];
    let findings = assess(&[there, back.clone()], None, None, &mut hosts);
    assert_eq!(findings[0].id, "path-drops-silently");
    let words = "That is what eth0 of b takes by its own MTU, 1500";
    assert!(findings[0].evidence.ends_with(words), "{findings:#?}");
    assert_eq!(
        findings[0].fix[..2],
        ["# on b:", "ip -n blue link set dev eth0 mtu 9000"]
    );
    // With a router in between it may be the router.
    let findings = assess(&[routed, back], None, None, &mut hosts);
    let named = findings.iter().any(|it| it.evidence.contains("own MTU"));
    assert!(!named, "{findings:#?}");
}

#[test]
fn packets_that_vanish_bring_up_what_tcp_makes_of_it_on_the_sending_host() {
    let mut hosts = [
        host("a", (11, 9000), (33, 9000), "red"),
        host("b", (22, 9000), (44, 9000), "blue"),
    ];
    for host in &mut hosts {
        let probing = ("ipv4.tcp_mtu_probing".to_owned(), "0".to_owned());
        host.stack.namespaces[0].sysctls.extend([probing]);
    }
    let path = path(
        RequiredMtu::Device(9000),
        &[(Some(8950), FlowKind::BLACK_HOLE)],
    );
    let findings = assess(&[path], None, None, &mut hosts);
    let told = findings.iter().filter(|it| it.id == "tcp-mtu-probing-off");
    assert_eq!(told.map(|it| it.host.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn rules_of_the_other_ip_version_do_not_explain_a_dead_path() {
    let rules = [
        "iptables -t filter -A INPUT -p udp -j DROP",
        "iptables: the policy of INPUT is DROP",
        "ip6tables -t filter -A INPUT -p udp -j DROP",
        "ip6tables: the policy of INPUT is DROP",
        "nft inet f i: drop",
        "nft: the policy of inet f i is drop",
        "nft ip f i: drop",
        "nft: the policy of ip f i is drop",
        "nft ip6 f i: drop",
        "nft: the policy of ip6 f i is drop",
        "nft arp f i: drop",
        "nft inet f i: meta nfproto ipv6 fib saddr . iif oif missing drop",
        "nft inet f i: ip saddr 10.0.0.0/8 drop",
        "nft inet f i: meta protocol != ip drop",
    ];
    for (six, named) in [
        (false, [0, 1, 4, 5, 6, 7, 12, 13].map(|at| rules[at])),
        (true, [2, 3, 4, 5, 8, 9, 11, 13].map(|at| rules[at])),
    ] {
        let mut hosts = [host("a", (11, 9000), (22, 9000), "red")];
        hosts[0].rules.extend(rules.map(|rule| DropRule {
            rule: rule.to_owned(),
            hook: "input".to_owned(),
            ..DropRule::default()
        }));
        let mut path = path(RequiredMtu::Device(9000), &[(None, FlowKind::Dead)]);
        path.observations.acknowledged = Some(3);
        if six {
            path.from.address = Ipv6Addr::LOCALHOST.into();
            path.to.address = Ipv6Addr::LOCALHOST.into();
        }
        let findings = assess(&[path], None, None, &mut hosts);
        let dead = findings.iter().find(|it| it.id == "path-dead");
        let evidence = dead.map_or("", |it| it.evidence.as_str());
        let told = rules.into_iter();
        let told = told.filter(|rule| evidence.contains(&format!("`{rule}`")));
        assert_eq!(told.collect::<Vec<_>>(), named, "{evidence}");
    }
}

/// Ids of the findings of a host's path that name one of these rules, at `hook`, each for another protocol.
fn blamed(path: PathReport, hook: &str) -> Vec<(&'static str, String)> {
    let mut hosts = [host("a", (11, 9000), (22, 9000), "red")];
    hosts[0]
        .rules
        .extend(["udp", "icmp"].map(|protocol| DropRule {
            rule: format!("iptables of {protocol}"),
            hook: hook.to_owned(),
            protocols: vec![protocol.to_owned()],
            ..DropRule::default()
        }));
    let findings = assess(&[path], None, None, &mut hosts).into_iter();
    findings
        .filter_map(|it| Some((it.id, it.evidence.split_once("`iptables of ")?.1.to_owned())))
        .collect()
}

#[test]
fn a_rule_does_not_explain_that_one_of_several_paths_is_dead() {
    let mut path = path(
        RequiredMtu::Device(9000),
        &[(None, FlowKind::Dead), (Some(1500), FlowKind::BLACK_HOLE)],
    );
    path.observations.acknowledged = Some(3);
    path.observations.too_big = Some((ROUTER, 1500));
    let named = [("too-big-dropped-here", "icmp`".to_owned())];
    assert_eq!(blamed(path, "input"), named);
}

#[test]
fn a_rule_of_the_sender_does_not_explain_what_a_router_refuses() {
    let mut path = path(RequiredMtu::Device(9000), &[(None, FlowKind::Dead)]);
    path.observations.arrived = Some(0);
    let named = [("path-dead", "udp`".to_owned())];
    assert_eq!(blamed(path.clone(), "output"), named);
    path.observations.unreachable = Some(Unreachable {
        by: ROUTER,
        code: 13,
    });
    assert!(blamed(path.clone(), "output").is_empty());
    // REJECT in a host's own output is told to that host.
    let mut by_itself = |code| {
        let by = path.from.address;
        path.observations.unreachable = Some(Unreachable { by, code });
        blamed(path.clone(), "output")
    };
    assert_eq!(by_itself(3), named);
    assert!(by_itself(1).is_empty(), "no neighbour answers");
}

#[test]
fn commands_are_as_they_are_typed_here() {
    let mut hosts = [host("a", (11, 9000), (22, 9000), "red")];
    let path = path(
        RequiredMtu::Device(9000),
        &[(Some(8950), FlowKind::BLACK_HOLE)],
    );
    let findings = assess(&[path], None, None, &mut hosts);
    assert_eq!(
        findings[0].fix[2],
        "ip -n red route replace 10.0.0.2 via 10.0.1.254 dev eth0 mtu 8950"
    );
}
