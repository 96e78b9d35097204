//! Options that show on the wire, at the sockets or in the counts: a plan that sets each, and what it changed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use wirecost_model::load::{Receiving, Sending};
use wirecost_model::metric::Metric;
use wirecost_model::record::file;
use wirecost_model::sample::Socket;

use super::{Measured, measured, record_of};
use crate::common::{TestDir, lab_can_be_built, lock_shared, skip, succeeds};

/// Packets of one sample as a host's underlay received them.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    marked: u64,
    others: u64,
}

/// What `nft list table` counted: packets with DSCP 46, and all others of the same protocol.
fn seen(listing: &str) -> Seen {
    let packets = |line: &str| -> u64 {
        let mut words = line.split_whitespace();
        let number = words.by_ref().skip_while(|word| *word != "packets").nth(1);
        number
            .and_then(|number| number.parse().ok())
            .expect("a counter")
    };
    let mut seen = Seen::default();
    for line in listing.lines().filter(|line| line.contains("packets")) {
        // `ef`, expedited forwarding, is 46 (RFC 3246).
        let marked = line.contains("dscp ef") || line.contains("dscp 0x2e");
        let marked = marked && !line.contains("!=");
        *if marked {
            &mut seen.marked
        } else {
            &mut seen.others
        } += packets(line);
    }
    seen
}

#[test]
fn the_dscp_is_on_every_packet_of_both_ends() {
    if !lab_can_be_built() {
        return;
    }
    if !succeeds(Command::new("nft").arg("--version")) {
        skip("this needs nft, which counts what the underlay receives");
        return;
    }
    let _lock = lock_shared();
    for (workload, protocol) in [("tcp-rr", "tcp"), ("udp-rr", "udp")] {
        let place = TestDir::new();
        // One file for each host and number of a sample; of a sample that is taken again the last one stays.
        let into = place.path().join("seen");
        let samples = place.path().join("out").join(file::SAMPLES);
        let plan = format!(
            "name: marked\nload: {{ {workload}: {{ dscp: [none, 46], limit: 200 }} }}\n\
             repeat: {{ rounds: 2 }}\nvary:\n  counted:\n    - before: >-\n        \
             nft 'add table netdev dscp; add chain netdev dscp c {{ type filter hook ingress device \"underlay\" priority 0; }};\n        \
             add rule netdev dscp c meta l4proto {protocol} ip dscp 46 counter;\n        \
             add rule netdev dscp c meta l4proto {protocol} ip dscp != 46 counter'\n      after: >-\n        \
             nft list table netdev dscp > \"{}, $WIRECOST_PLACE, $(wc -l < {})\" && nft delete table netdev dscp\n      \
             on: hosts\n",
            into.display(),
            samples.display()
        );
        let record = record_of(&place, &plan);
        // Requests at one host, responses at the other.
        for host in ["a", "b"] {
            for (number, sample) in record.samples.iter().enumerate() {
                let listing = format!("{}, host {host}, {number}", into.display());
                let seen = seen(&fs::read_to_string(listing).expect("a listing"));
                let cell = &record.head.experiment.cells[sample.cell as usize];
                let load = sample.loads[0].requests.as_ref().expect("requests");
                let (ours, others) = match cell.levels["dscp"].as_str() {
                    "46" => (seen.marked, seen.others),
                    _ => (seen.others, seen.marked),
                };
                assert!(ours >= load.transactions, "{workload}: {seen:?}");
                // The path is proven by datagrams of its own.
                let proofs = if protocol == "udp" { 64 } else { 0 };
                assert!(others <= proofs, "{workload} {:?}: {seen:?}", cell.levels);
            }
        }
    }
}

const SOCKETS: &str = "\
name: sockets
guest_mtu: 1500
offload: none
load:
  - tcp-stream:
      congestion: [cubic, reno]
      message: [128, 128KiB]
      nodelay: [off, on]
      discard_on_receive: [off, on]
exclude: [{ message: 128, discard_on_receive: on }]
repeat: { rounds: 2, seconds: 0.25, warmup: 0.1 }
";

#[test]
fn congestion_message_nodelay_and_discarding_are_what_the_plan_says() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, SOCKETS);
    // Every combination but the two that are excluded, of each congestion control.
    assert_eq!(record.samples.len(), 2 * 2 * (8 - 2));
    let mut bytes_per_segment: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for one in measured(&record, "tcp-stream") {
        let level = |option: &str| one.cell.levels[option].as_str();
        let flow = &one.load.flows[0];
        let (sender, receiver) = (flow.sender.as_ref(), flow.receiver.as_ref());
        for socket in [sender, receiver] {
            let socket: &Socket = socket.expect("a socket");
            assert_eq!(socket.congestion, level("congestion"));
        }
        let load = &one.cell.loads[0].load;
        let discards = load.receiving == Receiving::Discard;
        assert_eq!(discards, level("discard_on_receive") == "on");
        // What is thrown away is counted like what is read.
        let stream = one.load.stream.as_ref().expect("a stream");
        assert_eq!(stream.bytes, flow.bytes);
        assert!(one.value(Metric::Throughput) > 0.0);
        let sender = sender.expect("a socket");
        let sent = sender.data_segs_out - sender.retransmits;
        let each = flow.bytes as f64 / sent as f64 / f64::from(sender.snd_mss);
        bytes_per_segment
            .entry(format!("{} {}", level("message"), level("nodelay")))
            .or_default()
            .push(each);
    }
    // One of all: a preempted reader of counters shifts one window against the other.
    for message in ["128B", "128KiB"] {
        let all = &bytes_per_segment[&format!("{message} off")];
        assert!(all.iter().any(|each| *each > 0.95), "{message}: {all:?}");
    }
    // Small messages that leave at once fill no segments, unless what is beside the test keeps
    // the receiver from its core: what then waits for the window leaves in full segments.
    let at_once = &bytes_per_segment["128B on"];
    assert!(at_once.iter().any(|each| *each < 0.5), "{at_once:?}");
}

const ZERO_COPY: &str = "\
name: pinned
load: { tcp-stream: { zero_copy: on } }
repeat: { rounds: 2, seconds: 1, warmup: 0.1 }
vary:
  room for notes:
    - label: the kernel's
    - { label: none, sysctl: { net.core.optmem_max: 0 }, on: guests }
";

#[test]
fn zero_copy_counts_completions_and_falls_back_where_the_kernel_takes_no_more_pages() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, ZERO_COPY);
    for one in measured(&record, "tcp-stream") {
        assert_eq!(one.cell.loads[0].load.sending, Sending::ZeroCopy);
        let counts = one.load.zero_copy.expect("counts");
        assert!(one.value(Metric::Throughput) > 0.0);
        if one.cell.levels["room for notes"] == "none" {
            assert!(counts.fallbacks > 0, "{counts:?}");
            assert_eq!(counts.sends, 0, "{counts:?}");
        } else {
            assert!(counts.sends > 0 && counts.completed > 0, "{counts:?}");
            // Whoever receives on this machine has a copy made (Documentation/networking/msg_zerocopy.rst).
            assert_eq!(counts.copied, counts.completed, "{counts:?}");
        }
    }
}

// More would lose all probes of one of the 16 proofs of the path once in some hundred runs.
const LOSSY: &str = "\
name: lossy
underlay: { hops: [{ switch: { mtu: 1500, loss: 3% } }] }
load: { udp-rr: { reply_timeout: [20ms, 100ms], direction: [a-to-b, b-to-a] } }
repeat: { rounds: 1, seconds: 1.5, warmup: 0.05 }
";

#[test]
fn a_reply_that_is_lost_is_given_up_after_its_time_and_is_no_latency() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, LOSSY);
    let mut given_up: BTreeMap<&str, u64> = BTreeMap::new();
    for one in measured(&record, "udp-rr") {
        let timeout = one.cell.levels["reply_timeout"].as_str();
        let seconds = if timeout == "20ms" { 0.02 } else { 0.1 };
        let requests = one.load.requests.as_ref().expect("requests");
        assert!(
            requests.timeouts > 0 && requests.transactions > 0,
            "{requests:?}"
        );
        let longest = requests.latency.max().expect("latencies").as_secs_f64();
        assert!(
            longest <= seconds * 1.001,
            "{timeout}: a latency of {longest} s"
        );
        // One request is outstanding: each that was given up took its time of the window.
        let took = requests.timeouts as f64 * seconds;
        assert!(
            took <= one.load.client_seconds + seconds,
            "{took}: {timeout}"
        );
        *given_up.entry(timeout).or_default() += requests.timeouts;
        let asking = &one.load.generator[0];
        let host = if one.cell.levels["direction"] == "a-to-b" {
            "a"
        } else {
            "b"
        };
        assert_eq!(asking.host, host);
    }
    assert!(given_up["20ms"] > given_up["100ms"], "{given_up:?}");
}

const PACED: &str = "\
name: paced
load:
  - tcp-rr: { think_time: [0, 5ms], streams: 2, depth: [1, 4], request: [1, 300], response: 300 }
  - tcp-crr: { think_time: 5ms, direction: b-to-a }
exclude: [{ tcp-rr.think_time: 5ms, tcp-rr.depth: 4 }]
repeat: { rounds: 1, seconds: 1.5, warmup: 0.05 }
";

#[test]
fn thinking_takes_its_time_between_a_response_and_the_next_request() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, PACED);
    let of = |one: &Measured<'_>| one.value(Metric::Transactions);
    for one in measured(&record, "tcp-rr") {
        let (thinks, request) = (one.level("think_time"), one.level("request"));
        let each = of(&one) / 2.0;
        if thinks == "5ms" {
            assert!(
                each <= 200.0 * 1.1,
                "{each} a second with 5 ms between them"
            );
        }
        // The server's application read requests, the client's responses, of their own sizes.
        let flow = &one.load.flows[0];
        let bytes: u64 = request.trim_end_matches('B').parse().expect("bytes");
        assert!(
            flow.bytes > 0 && flow.bytes.is_multiple_of(bytes),
            "{flow:?}"
        );
    }
    for one in measured(&record, "tcp-crr") {
        let each = of(&one);
        assert!(
            each <= 200.0 * 1.1,
            "{each} a second with 5 ms between them"
        );
        assert_eq!(one.load.generator[0].host, "b");
    }
}

const TOGETHER: &str = "\
name: together
underlay: { mtu: 9000, hops: [{ switch: { mtu: 8000 } }] }
encapsulation: vxlan
guests: [1, 2]
steering: { queues: 2, rps: [own, all] }
load: { tcp-stream: { streams_per_guest: 3, message: 128, socket_buffer: 8KiB } }
vary:
  tcp metrics:
    - label: kept
    - { label: not kept, sysctl: { net.ipv4.tcp_no_metrics_save: 1 }, on: guests }
repeat: { rounds: 1, seconds: 2, warmup: 0.05 }
";

#[test]
fn guests_queues_hops_and_settings_of_a_cell_go_together() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let record = record_of(&place, TOGETHER);
    assert_eq!(record.samples.len(), 8);
    for one in measured(&record, "tcp-stream") {
        let guests: usize = one.cell.levels["guests"].parse().expect("guests");
        assert_eq!(one.load.flows.len(), guests * 3);
        assert!(
            one.load.flows.iter().all(|flow| flow.bytes > 0),
            "{:?}",
            one.load.flows
        );
        // What the switch carries less 50 bytes of VXLAN.
        assert_eq!(one.cell.guest_mtu, 7950);
        let proofs = &one.sample.proofs;
        assert!(!proofs.is_empty() && proofs.iter().all(|proof| proof.size == 7950));
        for device in &one.sample.devices {
            let name = &device.name;
            if name.starts_with("underlay") || name.starts_with("eth0") {
                assert_eq!(device.tx_queues, Some(2), "{name}");
            }
        }
        for flow in &one.load.flows {
            let sender = flow.sender.as_ref().expect("a socket");
            // The kernel doubles what is asked for (socket(7)).
            assert_eq!(sender.sndbuf, 16 << 10);
        }
    }
}
