use std::collections::BTreeMap;

use super::*;
use crate::cell::Network;
use crate::datapath::Datapath;
use crate::fixtures;
use crate::ip::IpVersion;
use crate::load::{Limit, Load, NamedLoad, Rate};
use crate::logical::Logical;
use crate::metric::Metric;
use crate::offload::{Offload, Profile};
use crate::plan::{Cores, Encapsulation};
use crate::steering::Steering;
use crate::transit::Transit;
use crate::usage::Wakeups;

fn host(busy_s: f64, timer: u64, step_s: f64) -> HostUsage {
    HostUsage {
        idle_step_s: step_s,
        wakeups: Some(Wakeups {
            timer,
            function_call: 100,
            ..Wakeups::default()
        }),
        ..fixtures::usage(0.4, busy_s)
    }
}

/// A stream that was read at so many Gbit/s for 0.4 s.
fn stream(gbps: f64) -> LoadResult {
    LoadResult {
        seconds: 0.4,
        client_seconds: 0.4,
        ..fixtures::stream((gbps * 0.4e9 / 8.0) as u64)
    }
}

/// 70 % of the sender's core at a line of 10 Gbit/s, all of it at 40 Gbit/s without.
fn sample() -> Sample {
    Sample {
        loads: vec![stream(10.0)],
        sender: Some(host(0.28, 8_000, 1e-6)),
        receiver: Some(host(0.2, 4_000, 1e-6)),
        saturated: Some(Saturated {
            loads: vec![stream(40.0)],
            sender: host(0.4, 100, 1e-6),
            receiver: host(0.32, 100, 1e-6),
            marks: Vec::new(),
        }),
        ..fixtures::sample(0, 0)
    }
}

const COST: WakeupCost = WakeupCost {
    timer_ns: 17_000,
    other_core_ns: 20_000,
};

fn close(one: Option<f64>, other: f64) {
    assert!(
        one.is_some_and(|one| (one - other).abs() < 1e-6),
        "{one:?}, {other}"
    );
}

#[test]
fn cpu_is_of_the_window_without_the_line_and_throughput_of_the_one_with_it() {
    let sample = sample();
    let value = |metric: Metric| metric.value(&sample, "tcp-stream");
    close(value(Metric::Throughput), 10e9);
    close(value(Metric::SenderCpu), 2.5);
    close(value(Metric::ReceiverCpu), 2.0);
    let older = Sample {
        saturated: None,
        ..sample
    };
    close(Metric::SenderCpu.value(&older, "tcp-stream"), 7.0);
}

#[test]
fn where_nothing_arrived_without_the_line_there_is_no_figure_of_the_other_window_instead() {
    let mut sample = sample();
    if let Some(saturated) = &mut sample.saturated {
        saturated.loads = vec![stream(0.0)];
    }
    assert_eq!(Metric::SenderCpu.value(&sample, "tcp-stream"), None);
}

#[test]
fn core_time_and_what_it_was_for_can_be_added_up() {
    let sample = sample();
    let time = Metric::SenderCpu
        .cpu_parts(&sample, "tcp-stream")
        .expect("a time");
    close(Some(time.busy_s), 0.4);
    close(Some(time.units), 16.0);
    assert!(time.step_s < 1e-5);
    assert_eq!(Metric::Throughput.cpu_parts(&sample, "tcp-stream"), None);
}

#[test]
fn a_window_need_be_long_only_where_time_comes_in_coarse_steps() {
    for (step_s, has) in [(0.01, false), (1e-6, true)] {
        let mut short = Sample {
            saturated: None,
            sender: Some(host(0.02, 0, step_s)),
            ..sample()
        };
        short.loads[0].client_seconds = 0.03;
        assert_eq!(Metric::SenderCpu.value(&short, "tcp-stream").is_some(), has);
    }
}

#[test]
fn the_lines_window_tells_how_much_of_it_were_wakeups() {
    let sample = sample();
    let at = stream_cpu(&sample, "tcp-stream", End::Client, Some(COST)).expect("with the line");
    close(Some(at.cores), 0.7);
    close(Some(at.percent_per_gbps()), 7.0);
    close(at.wakeups_per_gbit, 8_100.0 / 4.0);
    close(at.wakeup_share, (8_000.0 * 17e-6 + 100.0 * 10e-6) / 0.28);
    let without = saturated_cpu(&sample, "tcp-stream", End::Client, None).expect("without");
    close(without.wakeups_per_gbit, 200.0 / 16.0);
    assert_eq!(without.wakeup_share, None, "nobody knows what one costs");
}

#[test]
fn a_cell_has_two_windows_where_its_only_load_would_fill_its_line() {
    let cell = |rate, loads: &[Load]| Cell {
        index: 0,
        levels: BTreeMap::new(),
        network: Network {
            underlay_mtu: 9000,
            rate,
            links: 1,
            underlay_ip: IpVersion::Ipv4,
            encapsulation: Encapsulation::None,
            datapath: Datapath::Kernel,
            logical: Logical::default(),
            guest_ip: IpVersion::Ipv4,
            guests: 1,
            transit: Transit::wire(),
            cores: Cores::Split,
            steering: Steering::default(),
        },
        guest_mtu: 1500,
        offload: Offload::profile(Profile::None),
        loads: loads.iter().cloned().map(NamedLoad::alone).collect(),
        settings: Vec::new(),
    };
    let stream = Load::new(Workload::TcpStream);
    let line = Some(10_000_000_000);
    assert_eq!(cell(line, std::slice::from_ref(&stream)).windows(), 2);
    assert_eq!(cell(None, std::slice::from_ref(&stream)).windows(), 1);
    let paced = Load {
        rate: Some(Rate::BitsPerSecond(1)),
        ..stream.clone()
    };
    let limited = Load {
        limit: Some(Limit::Bytes(1)),
        ..stream.clone()
    };
    let asking = Load::new(Workload::TcpRr);
    for loads in [
        vec![paced],
        vec![limited],
        vec![asking.clone()],
        vec![stream, asking],
    ] {
        assert!(!cell(line, &loads).has_saturated_window(), "{loads:?}");
    }
}
