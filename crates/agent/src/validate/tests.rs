use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use wirecost_check::PathEnd;
use wirecost_model::fixtures;
use wirecost_model::load::{Load, MAX_STREAMS, Workload};
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::transit::{Icmp, Member};
use wirecost_model::vary::{Scope, Setting};

use super::*;
use crate::execute::Agent;
use crate::guards::SettingsGuards;
use crate::protocol::{
    EndSecret, HostNetns, Limits, PathDirection, Secret, Side, SurveyOrder, TraceOrder,
};
use crate::role::AgentRole;

const SECRET: Secret = Secret {
    probe: [7; 16],
    acknowledgement: [8; 8],
};

fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn prepare(change: impl FnOnce(&mut HostSpec)) -> Request {
    let mut spec = HostSpec {
        side: Side::A,
        network: fixtures::network(),
        receive_cpus: Some(vec![0, 1]),
        release_us: 0,
        several_links: false,
        line_core: None,
        secrets: [EndSecret([0; 32]), EndSecret([1; 32])],
        existing_underlay: None,
    };
    change(&mut spec);
    Request::Prepare(Box::new(spec))
}

fn build(socket: &str) -> Request {
    Request::Build {
        secret: SECRET,
        ovn: Some(PathBuf::from(socket)),
    }
}

fn apply(sysctl: &str) -> Request {
    Request::ApplySettings(vec![Setting {
        factor: "f".into(),
        label: "l".into(),
        sysctl: [(sysctl.into(), "1".into())].into(),
        ethtool: [].into(),
        device: [].into(),
        device_name: None,
        command: None,
        on: Scope::Hosts,
    }])
}

fn load_end(address: Address, change: impl FnOnce(&mut Load)) -> LoadEnd {
    let mut load = Load::new(Workload::TcpStream);
    change(&mut load);
    LoadEnd {
        name: "x".into(),
        place: HostNetns::Host,
        address,
        source: None,
        cpus: Vec::new(),
        load,
        secret: [7; 16],
    }
}

fn way() -> PathDirection {
    let end = PathEnd {
        host: "a".into(),
        address: here(0).ip(),
    };
    PathDirection {
        from: end.clone(),
        to: end,
        port: 1,
        secret: SECRET,
    }
}

fn survey(flows: u32, expect: Option<u32>) -> Request {
    let order = SurveyOrder {
        way: way(),
        expect,
        flows,
        limits: Limits {
            datagrams_per_second: 1.0,
            bytes_per_second: 1.0,
            far: false,
            most: Duration::ZERO,
        },
        count: false,
    };
    Request::Path(Box::new(PathRequest::Survey(order)))
}

fn trace(sizes: Vec<u32>) -> Request {
    let PathDirection { from, to, .. } = way();
    let order = TraceOrder {
        from,
        to,
        responder: None,
        sizes,
    };
    Request::Path(Box::new(PathRequest::Trace(order)))
}

#[test]
fn what_plans_and_commands_ask_for_is_allowed() {
    let socket = Address::Path("/run/nbd".into());
    for request in [
        prepare(|spec| spec.network.guests = MAX_GUESTS),
        prepare(|spec| spec.network.steering.rps = Rps::Cores(vec![1023])),
        build("/proc/12/fd/9/ovn.sock"),
        apply("net.ipv4.tcp_sack"),
        Request::Prove {
            targets: vec![here(1); MAX_GUESTS as usize],
            size: 65_535,
            exact: true,
        },
        Request::OpenServers(vec![
            load_end(here(0).into(), |load| load.streams = MAX_STREAMS),
            load_end(Address::Abstract("wirecost".into()), |_| ()),
        ]),
        survey(MAX_FLOWS, Some(65_535)),
        trace(vec![65_536; MAX_FLOWS as usize + 1]),
    ] {
        assert_eq!(check(&request), Ok(()), "{request:?}");
    }
    let mut storage = load_end(socket, |load| {
        *load = Load::new(Workload::Storage);
        load.path = Some("/run/nbd".into());
    });
    assert_eq!(client(&storage), Ok(()));
    storage.load.path = None;
    assert!(client(&storage).is_err(), "not its path");
}

/// Each request is refused with these words, also by an agent, before it does anything.
#[track_caller]
fn refused<const N: usize>(requests: [(Request, &str); N]) {
    for (request, words) in requests {
        assert_eq!(check(&request).expect_err("refused").to_string(), words);
        let mut agent = Agent::new(SettingsGuards::new("a test"), AgentRole::Commands);
        let told = agent.execute(request).expect_err("refused").to_string();
        assert_eq!(told, words);
    }
}

#[test]
fn no_lab_is_larger_than_a_plan_can_have_it_and_none_uses_a_socket_of_the_host() {
    refused([
        (
            prepare(|spec| spec.network.guests = u32::MAX),
            "4294967295 guests: at most 64",
        ),
        (prepare(|spec| spec.network.links = 9), "9 links: at most 8"),
        (
            prepare(|spec| {
                let member = Member {
                    mtu: None,
                    icmp: Icmp::Sent,
                };
                spec.network.transit.paths = vec![member; 65];
            }),
            "65 paths: at most 64",
        ),
        (
            prepare(|spec| spec.network.steering.queues = 65),
            "65 queues: at most 64",
        ),
        (
            prepare(|spec| spec.receive_cpus = Some(vec![0, u32::MAX])),
            "there is no core 4294967295",
        ),
        (
            prepare(|spec| spec.network.steering.rps = Rps::Cores(vec![8192])),
            "there is no core 8192",
        ),
        (
            prepare(|spec| spec.line_core = Some(9000)),
            "there is no core 9000",
        ),
        (
            build("/run/openvswitch/db.sock"),
            "`/run/openvswitch/db.sock` is no socket of OVN's databases",
        ),
        (
            build("/proc/1/fd/../root/x"),
            "`/proc/1/fd/../root/x` is no socket of OVN's databases",
        ),
        (
            build("proc/proc/1/fd/2/x"),
            "`proc/proc/1/fd/2/x` is no socket of OVN's databases",
        ),
    ]);
}

#[test]
fn what_no_plan_or_command_asks_for_is_refused_before_anything_is_done() {
    let too_large = MAX_PACKET + 1;
    let offload = Offload::profile(Profile::None);
    let usual = |_: &mut Load| ();
    refused([
        (
            Request::Adapt {
                guest_mtu: too_large,
                offload,
            },
            "131073 bytes of a packet: at most 131072",
        ),
        (
            apply("net/../../../etc/x"),
            "the level `l` of `f`: \"net/../../../etc/x\" is not the name of a sysctl",
        ),
        (
            Request::ReadCapture { size: u32::MAX },
            "4294967295 bytes of a packet: at most 131072",
        ),
        (
            Request::Prove {
                targets: vec![here(1); 65],
                size: 1500,
                exact: true,
            },
            "65 targets: at most 64",
        ),
        (
            Request::OpenServers(vec![load_end(here(0).into(), |load| {
                load.streams = u32::MAX;
            })]),
            "load x: streams is 4294967295: 1 to 1024",
        ),
        (
            Request::OpenServers(vec![load_end(Address::Path("/etc/x".into()), usual)]),
            "load x: none listens at Unix socket /etc/x",
        ),
        (
            Request::OpenServers(vec![load_end(
                SocketAddr::from(([0, 0, 0, 0], 0)).into(),
                usual,
            )]),
            "load x: none listens at 0.0.0.0:0",
        ),
        (
            Request::OpenClients(vec![load_end(Address::Path("/run/x".into()), usual)]),
            "load x: \"/run/x\" is not its path",
        ),
        (survey(1025, None), "1025 flows: at most 1024"),
        (
            survey(1, Some(too_large)),
            "131073 bytes of a packet: at most 131072",
        ),
        (trace(vec![1500; 1026]), "1026 sizes: at most 1025"),
        (
            trace(vec![too_large]),
            "131073 bytes of a packet: at most 131072",
        ),
    ]);
}
