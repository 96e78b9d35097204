//! A small experiment: two guest MTUs, two encapsulations, a constant offload.

use wirecost_model::cell::{Cell, Experiment, Factor, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::load::{Direction, Load, NamedLoad, Workload};
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{
    Cores, Encapsulation, GuestMtu, Hosts, Plan, Repeat, SteeringPlan, Underlay, Vxlan,
};
use wirecost_model::sample::{LoadResult, Sample, StreamResult};
use wirecost_model::steering::Steering;
use wirecost_model::transit::Transit;
use wirecost_model::usage::{ClassShares, CoreUsage, HostUsage, ProtocolDelta};

/// The load of every cell.
fn stream() -> NamedLoad {
    NamedLoad::alone(Load {
        congestion: Some("cubic".into()),
        ..Load::new(Workload::TcpStream)
    })
}

pub(crate) fn experiment(cores: Cores) -> Experiment {
    let encapsulations = [Encapsulation::None, Encapsulation::Vxlan(Vxlan::default())];
    let offload = Offload::profile(Profile::None);
    let mut cells = Vec::new();
    for mtu in [1500, 8900] {
        for encapsulation in &encapsulations {
            cells.push(Cell {
                index: cells.len() as u32,
                levels: [
                    ("guest_mtu".into(), mtu.to_string()),
                    ("encapsulation".into(), encapsulation.to_string()),
                    ("offload".into(), offload.to_string()),
                ]
                .into(),
                network: Network {
                    underlay_mtu: 9000,
                    rate: None,
                    underlay_ip: IpVersion::Ipv4,
                    datapath: Datapath::Kernel,
                    guest_ip: IpVersion::Ipv4,
                    guests: 1,
                    transit: Transit::wire(),
                    encapsulation: encapsulation.clone(),
                    cores,
                    steering: Steering::default(),
                },
                guest_mtu: mtu,
                offload: offload.clone(),
                settings: Vec::new(),
                loads: vec![stream()],
            });
        }
    }
    let factor = |key: &str, levels: &[&str]| Factor {
        key: key.into(),
        levels: levels.iter().map(ToString::to_string).collect(),
    };
    Experiment {
        twin: None,
        chosen: None,
        plan: Plan {
            name: "small".into(),
            description: None,
            hosts: Hosts::Lab,
            cores,
            underlay: Underlay {
                mtu: vec![9000],
                rate: vec![None],
                ip: vec![IpVersion::Ipv4],
                transit: Transit::wire(),
                oversize: false,
                release_us: None,
            },
            guests: vec![1],
            guest_ip: vec![IpVersion::Ipv4],
            udp_checksum: vec![false],
            datapath: vec![Datapath::Kernel],
            guest_mtu: vec![GuestMtu::Bytes(1500), GuestMtu::Bytes(8900)],
            encapsulation: encapsulations.into(),
            offload: vec![offload],
            steering: SteeringPlan::default(),
            loads: Vec::new(),
            repeat: Repeat {
                until: None,
                rounds: 3,
                seconds: 1.0,
                warmup: 0.2,
                worth: 0.05,
            },
            self_test: false,
            vary: Vec::new(),
            exclude: Vec::new(),
            published: None,
            seed: Some(1),
        },
        factors: vec![
            factor("guest_mtu", &["1500", "8900"]),
            factor("encapsulation", &["none", "vxlan"]),
            factor("offload", &["none"]),
        ],
        cells,
    }
}

/// One second in which `gbps` arrived and each host was busy for `busy` seconds.
pub(crate) fn sample(round: u32, cell: u32, gbps: f64, busy: f64) -> Sample {
    let host = HostUsage {
        window_s: 1.0,
        cores: vec![CoreUsage {
            cpu: 0,
            busy_s: busy,
            idle_s: 1.0 - busy,
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
        transit_cores: None,
        wakeups: None,
    };
    Sample {
        round,
        position: 0,
        cell,
        started_s: 0.0,
        took_s: 1.4,
        invalid: None,
        marks: Vec::new(),
        proofs: Vec::new(),
        devices: Vec::new(),
        open_vswitch: None,
        not_steered: false,
        cores_apart: Vec::new(),
        loads: vec![LoadResult {
            name: "tcp-stream".into(),
            workload: Workload::TcpStream,
            direction: Direction::AToB,
            seconds: 1.0,
            client_seconds: 1.0,
            stream: Some(StreamResult {
                bytes: (gbps * 1e9 / 8.0) as u64,
                back_bytes: 0,
                fairness: None,
                intervals: Vec::new(),
            }),
            requests: None,
            datagrams: None,
            zero_copy: None,
            flows: Vec::new(),
            strays: 0,
            generator: Vec::new(),
            io: Vec::new(),
            schedule: None,
        }],
        sender: Some(host.clone()),
        receiver: Some(host),
        saturated: None,
    }
}

/// Three rounds in which 8900 doubles the throughput at equal busy time and vxlan changes nothing.
pub(crate) fn samples() -> Vec<Sample> {
    let mut samples = Vec::new();
    for round in 0..3 {
        let drift = 1.0 + f64::from(round) * 0.1;
        for cell in 0..4 {
            let mtu_gain = if cell >= 2 { 2.0 } else { 1.0 };
            let jitter = 1.0 + f64::from((round + cell) % 3) * 0.002;
            samples.push(sample(round, cell, 2.0 * drift * mtu_gain * jitter, 0.5));
        }
    }
    samples
}
