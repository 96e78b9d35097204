//! The drivers on real paths: namespaces joined by a bridge or a router that drops, signals or spreads. The paths are
//! made with `ip` and `nft` in a child process, and go with it.

use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use wirecost_pmtu::{
    Config, FAR_PATIENCE, ForwardMtu, Limit, PathPoint, RateLimit, SurveyRequest, likely_sizes,
};
use wirecost_probe::message::Secret;
use wirecost_probe::{Endpoints, Responder, SurveyOutcome, locate, one_sided, survey};
use wirecost_sys::namespace::{HeldNetns, UserNamespace, isolate};

const SECRET: Secret = Secret {
    probe: [3; 16],
    acknowledgement: [4; 8],
};

/// Three namespaces: a, m in the middle, b; what is done in each, after devices `ea` (in a), `pa`, `pb` (in m) and `eb`
/// (in b) were made with MTU 9000.
struct Path {
    a: HeldNetns,
    b: HeldNetns,
    _m: HeldNetns,
}

impl Path {
    /// `None`, with a word about it, where this machine does not let us.
    fn new(script: &str) -> Option<Self> {
        let made = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                if !nix::unistd::geteuid().is_root() {
                    return Err("network namespaces of a test's threads need root".to_owned());
                }
                isolate(UserNamespace::Keep).map_err(|error| error.to_string())?;
                let held = |name| HeldNetns::create(name).map_err(|error| error.to_string());
                let (a, m, b) = (held("a")?, held("m")?, held("b")?);
                let start = "set -e; export PATH=$PATH:/usr/sbin:/sbin; A=\"nsenter --net=/proc/$1/ns/net\"; \
                    M=\"nsenter --net=/proc/$2/ns/net\"; B=\"nsenter --net=/proc/$3/ns/net\"; \
                    $M ip link add name pa mtu 9000 type veth peer name ea mtu 9000; \
                    $M ip link set ea netns $1; \
                    $M ip link add name pb mtu 9000 type veth peer name eb mtu 9000; $M ip link set eb netns $3; \
                    $A ip link set ea up; $B ip link set eb up; $M ip link set pa up; $M ip link set pb up; \
                    for n in \"$A\" \"$M\" \"$B\"; do $n ip link set lo up; done; ";
                let output = Command::new("sh")
                    .arg("-c")
                    .arg(format!("{start}{script}"))
                    .arg("sh")
                    .args([a.tid(), m.tid(), b.tid()].map(|tid| tid.to_string()))
                    .stdin(Stdio::null())
                    .output()
                    .map_err(|error| error.to_string())?;
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "`{script}`: {said}");
                Ok(Path { a, b, _m: m })
            });
            inside.join().expect("the thread")
        });
        made.map_err(|why| {
            wirecost_skips::skip(why);
        })
        .ok()
    }

    fn survey(&self, ends: (&str, &str), question: SurveyRequest) -> SurveyOutcome {
        Self::between((&self.a, &self.b), ends, question)
    }

    fn between(
        (here, there): (&HeldNetns, &HeldNetns),
        (from, to): (&str, &str),
        question: SurveyRequest,
    ) -> SurveyOutcome {
        let ends = [from, to].map(|address| address.parse::<IpAddr>().expect("an address"));
        std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let responder = there
                    .netns()
                    .within(|| Responder::start(SocketAddr::new(ends[1], 0), SECRET))
                    .expect("the namespace")
                    .expect("a responder");
                let endpoints = Endpoints {
                    from: ends[0],
                    first_port: 40_000,
                    to: responder.addresses()[0],
                };
                let within = here.netns().within(|| survey(endpoints, question, &SECRET));
                within.expect("the namespace").expect("a survey")
            });
            run.join().expect("the thread")
        })
    }
}

/// One subnet; the middle is a switch.
fn switch(more: &str) -> Option<Path> {
    Path::new(&format!(
        "$M ip link add br0 type bridge; $M ip link set br0 mtu 9000; $M ip link set br0 up; \
         $M ip link set pa master br0; $M ip link set pb master br0; \
         $A ip addr add 10.0.0.1/24 dev ea; $B ip addr add 10.0.0.2/24 dev eb; \
         $A ip addr add 3fff::1/64 dev ea nodad; $B ip addr add 3fff::2/64 dev eb nodad; {more}"
    ))
}

/// A switch that drops IP packets above `mtu` without a word, towards b.
fn silent_above(mtu: u32) -> String {
    format!(
        "$M nft 'add table netdev t; add chain netdev t c {{ type filter hook ingress device \"pa\" priority 0; }}; \
         add rule netdev t c meta length > {mtu} drop'"
    )
}

/// Two subnets; the middle is a router.
fn router(more: &str) -> Option<Path> {
    Path::new(&format!(
        "$A ip addr add 10.0.1.1/24 dev ea; $M ip addr add 10.0.1.254/24 dev pa; \
         $M ip addr add 10.0.2.254/24 dev pb; $B ip addr add 10.0.2.2/24 dev eb; \
         $M sysctl -qw net.ipv4.ip_forward=1; $A ip route add default via 10.0.1.254; \
         $B ip route add default via 10.0.2.254; {more}"
    ))
}

fn question(flows: u32) -> SurveyRequest {
    SurveyRequest {
        low: 576,
        high: 9216,
        expect: None,
        likely_sizes: likely_sizes(),
        flows,
        config: Config {
            patience: FAR_PATIENCE,
            // The responder's thread may wait for a core.
            wait: Duration::from_millis(200),
            ..Config::default()
        },
        pace: RateLimit::default(),
        count: false,
    }
}

#[test]
fn a_switch_that_drops_silently_is_measured_exactly_over_both_ip_versions() {
    for mtu in [8950, 1450, 1477] {
        // At the netdev ingress hook a packet is as long as its IP packet.
        let Some(path) = switch(&silent_above(mtu)) else {
            return;
        };
        for ends in [("10.0.0.1", "10.0.0.2"), ("3fff::1", "3fff::2")] {
            let surveyed = path.survey(ends, question(1));
            let groups = surveyed.result.groups();
            assert_eq!(
                (groups[0].mtu, groups[0].limit),
                (mtu, Limit::BlackHole),
                "{ends:?}"
            );
            assert_eq!(surveyed.ports, [40_000]);
            println!(
                "{mtu} {ends:?}: {:?}, {} probes",
                surveyed.took, surveyed.result.probes
            );
        }
    }
}

#[test]
fn a_path_without_a_fault_ends_at_this_hosts_device() {
    let Some(path) = switch("") else { return };
    let surveyed = path.survey(("10.0.0.1", "10.0.0.2"), question(1));
    let group = &surveyed.result.groups()[0];
    assert_eq!(
        (group.mtu, group.limit),
        (9000, Limit::Device { mtu: 9000 })
    );
    // Its flows keep their ports as long as it lives.
    drop(surveyed);
    let expected = SurveyRequest {
        expect: Some(9000),
        ..question(64)
    };
    let surveyed = path.survey(("10.0.0.1", "10.0.0.2"), expected);
    assert!(surveyed.result.failing().is_empty(), "{surveyed:?}");
    assert_eq!(surveyed.ports.len(), 64);
    println!(
        "64 flows: {:?}, {} probes",
        surveyed.took, surveyed.result.probes
    );
}

#[test]
fn each_direction_has_its_own_answer_at_the_same_time() {
    let Some(path) = switch(&silent_above(1450)) else {
        return;
    };
    let [there, back] = std::thread::scope(|scope| {
        let there = scope.spawn(|| path.survey(("10.0.0.1", "10.0.0.2"), question(1)));
        let ends = (&path.b, &path.a);
        let back = scope.spawn(move || Path::between(ends, ("10.0.0.2", "10.0.0.1"), question(1)));
        [there, back].map(|run| run.join().expect("a survey"))
    });
    assert_eq!(there.result.mtu(), Some(1450));
    assert_eq!(back.result.mtu(), Some(9000));
}

#[test]
fn a_router_that_signals_is_named() {
    let Some(path) = router("$M ip link set pb mtu 1400; $B ip link set eb mtu 1400") else {
        return;
    };
    let surveyed = path.survey(("10.0.1.1", "10.0.2.2"), question(1));
    let group = &surveyed.result.groups()[0];
    let by = "10.0.1.254".parse().expect("an address");
    assert_eq!(
        (group.mtu, group.limit),
        (1400, Limit::Signalled { by, mtu: 1400 })
    );
}

#[test]
fn a_router_that_fragments_what_forbids_it_is_found_out() {
    // It takes DF away, as some tunnel ends do.
    let more = "$M ip link set pb mtu 1400; $B ip link set eb mtu 1400; \
        $M nft 'add table netdev t; add chain netdev t c { type filter hook ingress device \"pa\" priority 0; }; \
        add rule netdev t c ip frag-off set 0'";
    let Some(path) = router(more) else { return };
    let surveyed = path.survey(("10.0.1.1", "10.0.2.2"), question(1));
    let group = &surveyed.result.groups()[0];
    assert_eq!(group.mtu, 1400);
    // A fragment's payload is a multiple of 8 bytes: 20 + 1376.
    assert_eq!(group.limit, Limit::Fragmented { largest: 1396 });
}

#[test]
fn flows_that_a_bad_member_drops_are_told_by_their_ports() {
    // One port in eight, as a hash over ports would have it.
    let rule = "$M nft 'add table netdev t; add chain netdev t c { type filter hook ingress device \"pa\" priority 0; }; \
        add rule netdev t c udp sport & 7 == 5 meta length > 1500 drop'";
    let Some(path) = switch(rule) else { return };
    let surveyed = path.survey(("10.0.0.1", "10.0.0.2"), question(64));
    let bad: Vec<u16> = surveyed
        .result
        .failing()
        .iter()
        .map(|&flow| surveyed.ports[flow as usize])
        .collect();
    let expected: Vec<u16> = (40_000..40_064).filter(|port| port & 7 == 5).collect();
    assert_eq!(bad, expected);
    assert_eq!(surveyed.result.mtu(), Some(1500));
    println!(
        "64 flows, one in eight bad: {:?}, {} probes",
        surveyed.took, surveyed.result.probes
    );
}

#[test]
fn random_loss_is_told_from_size() {
    let rule = "$M nft 'add table netdev t; add chain netdev t c { type filter hook ingress device \"pa\" priority 0; }; \
        add rule netdev t c numgen random mod 100 < 20 drop; add rule netdev t c meta length > 1450 drop'";
    let Some(path) = switch(rule) else { return };
    // A busy machine adds losses of its own: then it may say that it cannot tell, and never a wrong size.
    for _ in 0..5 {
        let surveyed = path.survey(("10.0.0.1", "10.0.0.2"), question(4));
        let groups = surveyed.result.groups();
        assert!(
            groups.iter().all(|group| group.mtu == 1450),
            "{:?}",
            surveyed.result
        );
        if groups
            .first()
            .is_some_and(|group| group.flows == [0, 1, 2, 3])
        {
            return;
        }
    }
    panic!("five times no answer for every flow");
}

#[test]
fn the_place_of_a_drop_is_behind_the_router_or_before_it() {
    for (at, after, before) in [("pb", Some(1), None), ("pa", None, Some(1))] {
        let hook = if at == "pa" { "ingress" } else { "egress" };
        let rule = format!(
            "$M nft 'add table netdev t; add chain netdev t c {{ type filter hook {hook} device \"{at}\" priority 0; }}; \
             add rule netdev t c meta length > 1550 drop'"
        );
        let Some(path) = router(&rule) else { return };
        let located = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let to = "10.0.2.2:0".parse().expect("an address");
                let responder = path
                    .b
                    .netns()
                    .within(|| Responder::start(to, SECRET))
                    .expect("the namespace")
                    .expect("a responder");
                let endpoints = Endpoints {
                    from: "10.0.1.1".parse().expect("an address"),
                    first_port: 0,
                    to: responder.addresses()[0],
                };
                let wait = (Duration::from_millis(50), 40e6);
                let within = path
                    .a
                    .netns()
                    .within(|| locate(endpoints, 9000, wait, &SECRET));
                within.expect("the namespace").expect("sockets")
            });
            run.join().expect("the thread")
        });
        let located = located.expect("located");
        let router = |ttl| PathPoint::Router {
            ttl,
            address: "10.0.1.254".parse().expect("an address"),
        };
        assert_eq!(
            located.after,
            after.map_or(PathPoint::Sender, router),
            "{at}: {located:?}"
        );
        assert_eq!(
            located.before,
            before.map_or(PathPoint::Destination, router),
            "{at}: {located:?}"
        );
    }
}

#[test]
fn one_side_tells_a_narrow_way_there_from_a_narrow_way_back() {
    let back = "$M nft 'add table netdev t; add chain netdev t c { type filter hook ingress device \"pb\" priority 0; }; \
        add rule netdev t c meta length > 1450 drop'";
    for (script, forward) in [
        (silent_above(1450), ForwardMtu::SameAsEcho),
        (back.to_owned(), ForwardMtu::AtLeast(1451)),
    ] {
        let Some(path) = switch(&format!(
            "{script}; $A sysctl -qw 'net.ipv4.ping_group_range=0 2147483647'"
        )) else {
            return;
        };
        let (result, _) = std::thread::scope(|scope| {
            let run = scope.spawn(|| {
                let ends = ["10.0.0.1", "10.0.0.2"].map(|end| end.parse().expect("an address"));
                let within = path.a.netns().within(|| {
                    one_sided(
                        ends[0],
                        ends[1],
                        (576, 9216),
                        Config::default(),
                        RateLimit::default(),
                    )
                });
                within.expect("the namespace").expect("sockets")
            });
            run.join().expect("the thread")
        });
        assert_eq!(result.both_ways.mtu(), Some(1450), "{result:?}");
        assert_eq!(result.forward, forward, "{result:?}");
    }
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let endpoints = Endpoints {
        from: "127.0.0.1".parse().expect("an address"),
        first_port: 65_500,
        to: "127.0.0.1:9".parse().expect("an address"),
    };
    let error = survey(endpoints, question(64), &SECRET).expect_err("too many ports");
    assert!(error.to_string().contains("above 65535"), "{error}");
    let mixed = Endpoints {
        from: "::1".parse().expect("an address"),
        ..endpoints
    };
    let error = survey(mixed, question(1), &SECRET).expect_err("two versions");
    assert!(
        error.to_string().contains("different IP versions"),
        "{error}"
    );
}
