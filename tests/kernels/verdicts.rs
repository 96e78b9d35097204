//! One question, asked in a lab inside a machine and between that machine and another: the effects have one direction.
//! And `load` between both, compared with iperf3.

use std::fs;
use std::process::Output;

use serde_json::Value;
use wirecost_skips::skip;

use crate::machine::pair::{MTU, Pair};
use crate::machine::{Contents, Kernel, archive};
use crate::steps::OwnMachineStep;
use crate::two_machines::{A, B, INSTALLED, ended, nothing_is_left, program, started};

pub(crate) const STEP: OwnMachineStep = OwnMachineStep {
    name: "two machines: verdicts",
    looks_at: "packets of 1500 and of 9000 bytes, nothing offloaded: in a lab inside one of two machines, by `network: tunnel` and by \
               `network: existing` between them, effects on throughput and CPU of the same direction; `load tcp-stream` agrees with \
               iperf3",
    needs: &[],
    needs_root: true,
    by_name: true,
    run,
};

/// Every packet costs an emulated processor much, and each has six times the bytes where it is large.
const TUNNEL: &str =
    "encapsulation: vxlan\ndatapath: kernel\nguest_mtu: [1500, max]\noffload: none\n";
const REPEAT: &str = "repeat: { rounds: 5, seconds: 1, warmup: 0.5 }\n";
/// Of each, the ratio between large packets and small ones is above 1, or below it.
const METRICS: [(&str, bool); 3] = [
    ("throughput", true),
    ("sender_cpu", false),
    ("receiver_cpu", false),
];
/// Times that `load` and iperf3 are measured, one after the other, and the seconds of each.
const ROUNDS: usize = 3;
const SECONDS: u32 = 3;
/// The medians differ by this factor at most. With offloads `load` has 1.07 times the rate of iperf3
/// (bench/results.md), and the emulated processors share this machine's with other work, of which the two windows of a
/// round have different shares. A wrong unit, window or direction is a larger factor.
const NOISE: f64 = 1.35;

fn run(kernel: &Kernel) {
    let has_iperf3 = archive::is_there("iperf3");
    let mut pair = Pair::boot(kernel, || {
        let mut contents = Contents::new(kernel);
        contents.archive.copy(&program(), INSTALLED);
        contents.archive.link("/usr/bin/wirecost", INSTALLED);
        contents.archive.command("ethtool");
        if has_iperf3 {
            contents.archive.command("iperf3");
        }
        contents
    });
    // As a lab's devices with `offload: none`: `network: tunnel` leaves the cards as they are.
    offloads(&mut pair, "tso off gso off gro off");
    let lab = in_a_lab(&mut pair);
    let tunnel = format!("name: tunnel\nnetwork: tunnel\nmax_rate: none\n{TUNNEL}{REPEAT}");
    let existing = format!(
        "name: existing\nnetwork: existing\nmax_rate: none\nallow_host_changes: on\n\
         vary: {{ mtu: [ {{ label: 1500, mtu: 1500 }}, {{ label: 9000, mtu: {MTU} }} ] }}\n{REPEAT}"
    );
    let networks = [
        ("lab", lab),
        ("tunnel", between(&pair, &tunnel)),
        ("existing", between(&pair, &existing)),
    ];
    // An interval of five rounds on emulated processors, which share this machine's with other work, may include 1.
    for (metric, rises) in METRICS {
        for (network, document) in &networks {
            let ratio = effect(network, document, metric);
            assert_eq!(ratio > 1.0, rises, "{network}, {metric}: {ratio}");
        }
    }
    for machine in &mut pair.machines {
        let mtu = machine.sh(10, "cat /sys/class/net/eth1/mtu").fine();
        assert_eq!(mtu.trim(), MTU.to_string(), "as it was");
    }
    if has_iperf3 {
        offloads(&mut pair, "tso on gso on gro on");
        like_iperf3(&mut pair);
    } else {
        skip(format!("{}: there is no iperf3", STEP.name));
    }
    nothing_is_left(&mut pair);
}

fn offloads(pair: &mut Pair, features: &str) {
    for machine in &mut pair.machines {
        let set = format!("ethtool -K eth1 {features}");
        machine.sh(10, &set).fine();
    }
}

/// The document of a run inside the first machine.
fn in_a_lab(pair: &mut Pair) -> Value {
    let script = format!(
        "cat >/tmp/plan.yaml <<'END'\nname: lab\nunderlay: {{ mtu: {MTU} }}\n{TUNNEL}{REPEAT}END\n\
         wirecost run /tmp/plan.yaml --json --out /tmp/run 2>/tmp/errors || {{ tail -n 40 /tmp/errors; exit 1; }}\n\
         rm -r /tmp/plan.yaml /tmp/run /tmp/errors"
    );
    let told = pair.machines[0].sh(300, &script).fine();
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// The document of a run between both machines.
#[track_caller]
fn between(pair: &Pair, plan: &str) -> Value {
    let place = tempfile::tempdir().expect("a directory");
    let (written, out) = (place.path().join("plan.yaml"), place.path().join("run"));
    fs::write(&written, plan).expect("a plan");
    let [written, out] = [&written, &out].map(|path| path.to_str().expect("a plain path"));
    let hosts = format!("{A},{B}");
    let arguments = [
        "run", written, "--hosts", &hosts, "--yes", "--json", "--out", out,
    ];
    document(&ended(started(pair, &arguments)))
}

#[track_caller]
fn document((code, output): &(i32, Output)) -> Value {
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(*code, 0, "{told}{errors}");
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}{errors}"))
}

/// The ratio of the only effect on a metric.
#[track_caller]
fn effect(network: &str, document: &Value, metric: &str) -> f64 {
    let effects = document["effects"].as_array().expect("effects");
    let of_metric: Vec<&Value> = effects
        .iter()
        .filter(|effect| effect["metric"] == metric)
        .collect();
    let [effect] = of_metric[..] else {
        panic!("{network}: not one effect on {metric}: {effects:?}");
    };
    let figure = |key: &str| {
        let figure = effect[key].as_f64();
        figure.unwrap_or_else(|| panic!("{network}: no {key}: {effect}"))
    };
    let [low, ratio, high] = ["low", "ratio", "high"].map(figure);
    let verdict = &effect["verdict"];
    println!("{network}: {metric} {ratio:.2} ({low:.2} to {high:.2}), {verdict}");
    ratio
}

/// One TCP stream by either, in turn.
fn like_iperf3(pair: &mut Pair) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(by_load(pair));
        theirs.push(by_iperf3(pair));
    }
    println!("Gbit/s by load: {ours:?}, by iperf3: {theirs:?}");
    let (ours, theirs) = (median(ours), median(theirs));
    assert!(
        ours < theirs * NOISE && theirs < ours * NOISE,
        "load: {ours} Gbit/s, iperf3: {theirs} Gbit/s"
    );
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn by_load(pair: &Pair) -> f64 {
    let time = format!("{SECONDS}s");
    let arguments = [
        "load",
        A,
        B,
        "tcp-stream",
        "--streams",
        "1",
        "--warmup",
        "1s",
        "--time",
        &time,
        "--json",
        "-q",
    ];
    let document = document(&ended(started(pair, &arguments)));
    let gbps = document["loads"][0]["stream"]["gbps"].as_f64();
    gbps.unwrap_or_else(|| panic!("{document}"))
}

fn by_iperf3(pair: &mut Pair) -> f64 {
    pair.machines[1].sh(10, "iperf3 -s -1 -D").fine();
    // The server does not say when it listens.
    let script = format!(
        "for try in $(seq 20); do timeout 30 iperf3 -c 10.50.0.2 -O 1 -t {SECONDS} -J >/run/iperf3 && break; sleep 0.2; done\n\
         cat /run/iperf3; rm /run/iperf3"
    );
    let told = pair.machines[0].sh(60, &script).fine();
    let document: Value =
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let received = document["end"]["sum_received"]["bits_per_second"].as_f64();
    received.unwrap_or_else(|| panic!("{document}")) / 1e9
}
