//! How a load's threads are best driven: each workload with a thread for each flow, with fewer for all of them, and
//! spinning; interleaved, on two namespaces joined by a veth, the server on the last processor and the client on the
//! first. TCP goes without segmentation offload, datagrams with it. Needs root. `cargo bench -p wirecost-traffic --
//! [PART OF A ROW'S NAME] [ROUNDS] [SECONDS]`.
//!
//! Prints what docs/loads.md has: the median figure of each way; of its ratios to the first way, round by round, the
//! median with their quartiles, and the geometric mean with its 95 % interval's half width; processor seconds of the
//! load's threads per second at both ends; median and 99th percentile of latency.

mod rows;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::end_window::EndWindow;
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::HeldNetns;
use wirecost_sys::process::{allowed_cpus, pin_to};
use wirecost_traffic::{Client, Options, Server, Snapshot, window as window_between};

use rows::{Row, rows};

const WARMUP: Duration = Duration::from_millis(200);
/// Seconds.
const WINDOW: f64 = 0.6;
const PATIENCE: Duration = Duration::from_secs(20);
const ROUNDS: usize = 9;

struct Bed {
    client: HeldNetns,
    server: HeldNetns,
}

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split_whitespace())
        .status()
        .expect("ip(8)");
    assert!(status.success(), "ip {arguments}");
}

fn bed() -> Bed {
    let make = |name| HeldNetns::create(name).expect("a namespace: run as root");
    let (client, server) = (make("drives-client"), make("drives-server"));
    let peer = server.tid();
    client
        .netns()
        .within(|| {
            ip(&format!(
                "link add dr0 type veth peer name dr1 netns {peer}"
            ));
            ip("addr add 10.99.0.1/24 dev dr0");
            ip("link set dr0 up");
        })
        .expect("the client's namespace");
    server
        .netns()
        .within(|| {
            ip("addr add 10.99.0.2/24 dev dr1");
            ip("link set dr1 up");
        })
        .expect("the server's namespace");
    for netns in [&client, &server] {
        // As in the lab: TCP small queues reach across a veth (docs/facts.md).
        let loosen = || {
            for key in ["tcp_pacing_ca_ratio", "tcp_pacing_ss_ratio"] {
                std::fs::write(format!("/proc/sys/net/ipv4/{key}"), "1000").expect("sysctl");
            }
        };
        netns.netns().within(loosen).expect("namespace");
    }
    Bed { client, server }
}

/// Switches segmentation and aggregation of both devices: with them on, throughput over a veth depends on where
/// a virtual machine's cores sit (docs/facts.md).
fn offload(bed: &Bed, on: bool) {
    for (netns, device) in [(&bed.client, "dr0"), (&bed.server, "dr1")] {
        let switch = || -> std::io::Result<()> {
            let ethtool = Ethtool::open()?;
            let features = ethtool.features(device)?;
            let wanted: BTreeMap<String, bool> = features
                .into_keys()
                .filter(|name| name.contains("segmentation") || name == "rx-gro")
                .map(|name| (name, on))
                .collect();
            ethtool.set_features(device, &wanted)
        };
        netns
            .netns()
            .within(switch)
            .expect("namespace")
            .expect("ethtool");
    }
}

/// Both ends' windows: client first.
fn measure(bed: &Bed, options: &Options, cpus: [&[u32]; 2], window: Duration) -> [EndWindow; 2] {
    let listen: SocketAddr = "10.99.0.2:0".parse().expect("an address");
    pin_to(cpus[1]).expect("affinity");
    let within = bed
        .server
        .netns()
        .within(|| Server::listen(listen, options));
    let server = within.expect("namespace").expect("server");
    pin_to(cpus[0]).expect("affinity");
    let within = bed
        .client
        .netns()
        .within(|| Client::connect(server.address(), options, PATIENCE));
    let client = within.expect("namespace").expect("client");
    server.wait_connected(PATIENCE).expect("connected");
    client.start().expect("start");
    thread::sleep(WARMUP);
    let look = || -> [Snapshot; 2] {
        [
            client.snapshot().expect("client"),
            server.snapshot().expect("server"),
        ]
    };
    let before = look();
    let until = Instant::now() + window;
    thread::sleep(until - Instant::now());
    let after = look();
    client.stop(PATIENCE).expect("stop");
    server.finish(PATIENCE).expect("finish");
    [0, 1].map(|end| window_between(&before[end], &after[end]).expect("a window"))
}

fn is_datagrams(row: &Row) -> bool {
    row.name.starts_with("udp-stream")
}

/// What a way did in a round.
#[derive(Debug, Clone, Copy)]
struct Sample {
    figure: f64,
    /// Processor seconds of the load's threads per second at both ends.
    busy: f64,
    /// Microseconds; 0 without transactions.
    latency: [f64; 2],
}

fn sample(row: &Row, [client, server]: &[EndWindow; 2]) -> Sample {
    let busy = |window: &EndWindow| window.threads.iter().map(|thread| thread.busy).sum::<f64>();
    let figure = if is_datagrams(row) {
        server.counts().received as f64 / server.seconds
    } else if row.counts {
        client.counts().received as f64 / client.seconds
    } else {
        let read = server.counts().read_bytes as f64 / server.seconds;
        (read + client.counts().read_bytes as f64 / client.seconds) * 8.0
    };
    Sample {
        figure,
        busy: busy(client) + busy(server),
        latency: [50.0, 99.0].map(|percent| {
            let latency = client.latency.percentile(percent);
            latency.map_or(0.0, |latency| latency.as_secs_f64() * 1e6)
        }),
    }
}

fn quartile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// The geometric mean of ratios and half of its 95 % interval, by Student's t of some ten of them.
fn mean(ratios: &[f64]) -> (f64, f64) {
    let count = ratios.len() as f64;
    let logs = ratios.iter().map(|ratio| ratio.ln());
    let mean = logs.clone().sum::<f64>() / count;
    let variance = logs.map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean.exp(), mean.exp() * 2.2 * (variance / count).sqrt())
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let wanted = arguments.next().unwrap_or_default();
    let rounds = arguments
        .next()
        .map_or(ROUNDS, |rounds| rounds.parse().expect("rounds: a number"));
    let window = Duration::from_secs_f64(arguments.next().map_or(WINDOW, |seconds| {
        seconds.parse().expect("seconds: a number")
    }));
    let all = allowed_cpus().expect("affinity");
    let apart = [&all[..1], &all[all.len() - 1..]];
    let bed = bed();
    println!(
        "| load | way | median | ratio (quartiles) | mean ratio | threads' CPU | p50 / p99 µs |"
    );
    println!("|---|---|---|---|---|---|---|");
    for row in rows().iter().filter(|row| row.name.contains(&wanted)) {
        offload(&bed, row.offloads);
        let cpus = if row.anywhere { [&all[..]; 2] } else { apart };
        let mut figures: Vec<Vec<Sample>> = row.ways.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            for turn in 0..row.ways.len() {
                let at = (turn + round) % row.ways.len();
                let windows = measure(&bed, &row.ways[at].options, cpus, window);
                figures[at].push(sample(row, &windows));
            }
        }
        let unit = if row.counts {
            (1e3, "k/s")
        } else {
            (1e9, "Gbit/s")
        };
        for (way, values) in row.ways.iter().zip(&figures) {
            let median =
                |of: fn(&Sample) -> f64| quartile(&sorted(values.iter().map(of).collect()), 0.5);
            let ratios = sorted(
                values
                    .iter()
                    .zip(&figures[0])
                    .map(|(one, first)| one.figure / first.figure)
                    .collect(),
            );
            let (mean, half) = mean(&ratios);
            println!(
                "| {} | {} | {:.2} {} | {:.2} ({:.2} to {:.2}) | {mean:.3} ±{half:.3} | {:.2} | {:.0} / {:.0} |",
                row.name,
                way.name,
                median(|value| value.figure) / unit.0,
                unit.1,
                quartile(&ratios, 0.5),
                quartile(&ratios, 0.25),
                quartile(&ratios, 0.75),
                median(|value| value.busy),
                median(|value| value.latency[0]),
                median(|value| value.latency[1]),
            );
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    eprintln!("both ends' peak memory: {}", peak.unwrap_or("unknown"));
}
