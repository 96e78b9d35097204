//! Plain values for tests, which a test changes where it matters: a valid sample, a load that measured nothing, a host
//! with one core. Compiled with the feature `fixtures` only.

use crate::cell::{Cell, Factor, Network};
use crate::datapath::Datapath;
use crate::ip::IpVersion;
use crate::load::{Direction, NamedLoad, Workload};
use crate::logical::Logical;
use crate::offload::Offload;
use crate::plan::{
    Cores, Encapsulation, GuestMtu, Hosts, MaxRate, Plan, Repeat, SteeringPlan, Underlay,
};
use crate::sample::{LoadResult, Sample, StreamResult};
use crate::steering::Steering;
use crate::transit::Transit;
use crate::usage::{ClassShares, CoreUsage, HostUsage, ProtocolDelta};

/// One guest per host, over an IPv4 underlay of MTU 9000, the kernel's datapath, no encapsulation and no line rate.
pub fn network() -> Network {
    Network {
        underlay_mtu: 9000,
        rate: None,
        links: 1,
        underlay_ip: IpVersion::Ipv4,
        encapsulation: Encapsulation::None,
        datapath: Datapath::Kernel,
        logical: Logical::default(),
        guest_ip: IpVersion::Ipv4,
        guests: 1,
        transit: Transit::wire(),
        cores: Cores::Shared,
        steering: Steering::default(),
    }
}

/// Three rounds of one second in a lab with [`network`], at a guest MTU of 1500, without offload levels and loads.
pub fn plan(name: &str) -> Plan {
    let network = network();
    Plan {
        name: name.to_owned(),
        description: None,
        hosts: Hosts::Lab,
        more_hosts: [].into(),
        pairs: Vec::new(),
        allow_host_changes: false,
        max_rate: MaxRate::Auto,
        cores: network.cores,
        underlay: Underlay {
            mtu: vec![network.underlay_mtu],
            rate: vec![network.rate],
            links: vec![network.links],
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
        topology: vec![network.logical.topology],
        acl: vec![network.logical.acl],
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

/// A cell of one load.
pub fn cell(
    index: u32,
    levels: &[(&str, &str)],
    network: Network,
    guest_mtu: u32,
    offload: Offload,
    load: NamedLoad,
) -> Cell {
    let owned = |(key, level): &(&str, &str)| ((*key).to_owned(), (*level).to_owned());
    Cell {
        index,
        levels: levels.iter().map(owned).collect(),
        network,
        guest_mtu,
        offload,
        settings: Vec::new(),
        loads: vec![load],
    }
}

/// A factor and its levels.
pub fn factor(key: &str, levels: &[&str]) -> Factor {
    Factor {
        key: key.to_owned(),
        levels: levels.iter().map(ToString::to_string).collect(),
    }
}

/// A valid sample of one second, without loads and hosts.
pub fn sample(round: u32, cell: u32) -> Sample {
    Sample {
        took_s: 1.0,
        ..Sample::begun(round, cell, cell, 0.0)
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
        moves: Vec::new(),
        path: None,
        schedule: None,
    }
}

/// A TCP stream of this many bytes in a window of one second.
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

/// A host with core 0 only, busy for `busy_s` of a window of `window_s` seconds, read from /proc/stat.
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
