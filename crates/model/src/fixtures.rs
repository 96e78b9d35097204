//! Plain values for tests, to be changed where a test is about something: a sample that is valid, a load that measured
//! nothing, a host with one core. Compiled with the feature `fixtures` only.

use crate::cell::Network;
use crate::datapath::Datapath;
use crate::ip::IpVersion;
use crate::load::{Direction, Workload};
use crate::plan::{Cores, Encapsulation, GuestMtu, Hosts, Plan, Repeat, SteeringPlan, Underlay};
use crate::sample::{LoadResult, Sample, StreamResult};
use crate::steering::Steering;
use crate::transit::Transit;
use crate::usage::{ClassShares, CoreUsage, HostUsage, ProtocolDelta};

/// One guest on each host, over an IPv4 underlay of 9000 bytes, by the kernel, without encapsulation or line.
pub fn network() -> Network {
    Network {
        underlay_mtu: 9000,
        rate: None,
        underlay_ip: IpVersion::Ipv4,
        encapsulation: Encapsulation::None,
        datapath: Datapath::Kernel,
        guest_ip: IpVersion::Ipv4,
        guests: 1,
        transit: Transit::wire(),
        cores: Cores::Shared,
        steering: Steering::default(),
    }
}

/// Three rounds of one second in a lab with that network, at a guest MTU of 1500; no offload is named, and no load.
pub fn plan(name: &str) -> Plan {
    let network = network();
    Plan {
        name: name.to_owned(),
        description: None,
        hosts: Hosts::Lab,
        cores: network.cores,
        underlay: Underlay {
            mtu: vec![network.underlay_mtu],
            rate: vec![network.rate],
            ip: vec![network.underlay_ip],
            transit: network.transit,
            oversize: false,
            release_us: None,
        },
        guests: vec![network.guests],
        guest_mtu: vec![GuestMtu::Bytes(1500)],
        guest_ip: vec![network.guest_ip],
        udp_checksum: vec![false],
        datapath: vec![network.datapath],
        encapsulation: vec![network.encapsulation],
        offload: Vec::new(),
        steering: SteeringPlan::default(),
        loads: Vec::new(),
        repeat: Repeat {
            rounds: 3,
            seconds: 1.0,
            warmup: 0.2,
            worth: 0.05,
            until: None,
        },
        self_test: false,
        vary: Vec::new(),
        exclude: Vec::new(),
        published: None,
        seed: None,
    }
}

/// A valid sample without loads and hosts.
pub fn sample(round: u32, cell: u32) -> Sample {
    Sample {
        round,
        position: cell,
        cell,
        started_s: 0.0,
        took_s: 1.0,
        invalid: None,
        marks: Vec::new(),
        proofs: Vec::new(),
        devices: Vec::new(),
        open_vswitch: None,
        not_steered: false,
        cores_apart: Vec::new(),
        loads: Vec::new(),
        sender: None,
        receiver: None,
        saturated: None,
    }
}

/// A load from host a to host b whose ends counted nothing for a second each.
pub fn load(name: &str, workload: Workload) -> LoadResult {
    LoadResult {
        name: name.to_owned(),
        workload,
        direction: Direction::AToB,
        seconds: 1.0,
        client_seconds: 1.0,
        stream: None,
        requests: None,
        datagrams: None,
        zero_copy: None,
        flows: Vec::new(),
        strays: 0,
        generator: Vec::new(),
        io: Vec::new(),
        schedule: None,
    }
}

/// A TCP stream of so many bytes.
pub fn stream(bytes: u64) -> LoadResult {
    LoadResult {
        stream: Some(StreamResult {
            bytes,
            back_bytes: 0,
            fairness: None,
            intervals: Vec::new(),
        }),
        ..load("tcp-stream", Workload::TcpStream)
    }
}

/// Core 0 for a window in seconds, busy for a part of it, read from /proc/stat.
pub fn usage(window_s: f64, busy_s: f64) -> HostUsage {
    HostUsage {
        window_s,
        cores: vec![CoreUsage {
            cpu: 0,
            busy_s,
            idle_s: window_s - busy_s,
            iowait_s: 0.0,
            steal_s: 0.0,
            shares: ClassShares::default(),
        }],
        foreign_cores: None,
        backlog_drops: 0,
        budget_exhausted: 0,
        links: [].into(),
        guest: ProtocolDelta::default(),
        idle_step_s: 0.01,
        wakeups: None,
        transit_cores: None,
    }
}
