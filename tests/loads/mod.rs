//! Every workload and option of a plan, through the whole program: that each takes effect, by what it changes.

mod killed;
mod limits;
mod migration;
mod mixes;
mod options;
mod path;
mod storage;
mod virtual_machines;

use crate::common::{Ended, Record, TestDir, lab_can_be_built, lock_shared, measured_in, run};
use wirecost_model::cell::Cell;
use wirecost_model::end_window::End;
use wirecost_model::latency::{highest_in, lowest_in};
use wirecost_model::metric::Metric;
use wirecost_model::sample::{LoadResult, Sample};

const EVERYTHING: &str = "\
name: everything
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: 1500
load:
  - tcp-stream:
      streams: 2
      congestion: reno
      socket_buffer: 64KiB
      zero_copy: [off, on]
      rate: [none, 20mbit]
      direction: [a-to-b, b-to-a]
  - tcp-bidirectional: { streams: 2, total_rate: 20mbit }
  - tcp-rr: { depth: [1, 8], spin: [off, on] }
  - tcp-crr
  - udp-stream: { message: 1000, segmentation_offload: [none, both] }
  - udp-rr: { streams: 4, threads: 2, think_time: 10ms }
  - mix:
      bulk: { tcp-stream: { total_rate: 50mbit } }
      ping: { tcp-rr: { request: 200, response: 300, rate: 200 } }
      drip: { udp-stream: { rate: 20mbit, message: 1000 } }
repeat: { rounds: 1, seconds: 1.5, warmup: 0.1 }
";
/// Its warm-up, seconds.
const WARMUP: f64 = 0.1;

/// One load of a cell that was measured.
struct Measured<'a> {
    cell: &'a Cell,
    sample: &'a Sample,
    load: &'a LoadResult,
}

impl Measured<'_> {
    fn level(&self, option: &str) -> &str {
        let key = format!("{}.{option}", self.load.name);
        &self.cell.levels[&key]
    }

    fn value(&self, metric: Metric) -> f64 {
        let value = metric.value(self.sample, &self.load.name);
        value.unwrap_or_else(|| panic!("no {metric:?} of {:?}", self.load))
    }

    /// Fails where more messages became due than a rate has, or more were sent than were due: after a stall those that
    /// waited leave together. `share` allows for edges of the window and for chance.
    #[track_caller]
    fn expect_messages_per_s(&self, rate: f64, share: f64) {
        let schedule = self.load.schedule.expect("a load with a rate");
        let due = schedule.due / self.load.client_seconds;
        assert!(due < rate * share, "{due} a second were due at {rate}");
        let sendable = schedule.due + schedule.backlog_before;
        assert!(schedule.sent < sendable * share, "{schedule:?}");
    }

    /// As [`expect_messages_per_s`](Self::expect_messages_per_s), in bit/s of the end that asks.
    #[track_caller]
    fn expect_bits_per_s(&self, rate: f64) {
        let mut loads = self.cell.loads.iter();
        let asked = loads.find(|asked| asked.name == self.load.name);
        let message = asked.expect("the cell's load").load.request;
        self.expect_messages_per_s(rate / f64::from(message) / 8.0, 1.15);
    }

    /// Fails where more arrived than a rate makes of the window and of the warm-up, of which a part may have waited for
    /// the receiver.
    #[track_caller]
    fn expect_received_below(&self, rate: f64) {
        let bps = self.value(Metric::Throughput);
        let limit = rate * (1.0 + WARMUP / self.load.seconds) * 1.15;
        assert!(bps < limit, "{rate} bit/s made {bps}");
    }
}

/// Runs a plan whose samples are all valid, and reads the record.
fn record_of(place: &TestDir, plan: &str) -> Record {
    let (ended, record) = measured_in(place, plan);
    ended.expect_code(0);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "cell {}", sample.cell);
    }
    record
}

/// Fails the test unless the program's errors have these words, however they are wrapped.
#[track_caller]
fn says(ended: &Ended, words: &str) {
    let said: Vec<&str> = ended.stderr.split_whitespace().collect();
    let said = said.join(" ").replace("│ ", "");
    assert!(said.contains(words), "{}", ended.stderr);
}

fn measured<'a>(record: &'a Record, name: &str) -> Vec<Measured<'a>> {
    let cells = &record.head.experiment.cells;
    let found: Vec<Measured<'_>> = record
        .samples
        .iter()
        .filter_map(|sample| {
            Some(Measured {
                cell: &cells[sample.cell as usize],
                sample,
                load: sample.load(name)?,
            })
        })
        .collect();
    assert!(!found.is_empty(), "{name} was not measured");
    found
}

#[test]
fn every_workload_runs_and_every_option_takes_effect() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let (ended, record) = measured_in(&place, EVERYTHING);
    ended.expect_code(0);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "cell {}", sample.cell);
    }
    assert_eq!(record.samples.len(), 8 + 1 + 4 + 1 + 2 + 1 + 1);
    streams(&record);
    both_ways(&record);
    requests(&record);
    datagrams(&record);
    a_mix(&record);

    let result = ended.document();
    // Loads are never compared with each other; the options of one are.
    let effects = result["effects"].as_array().expect("effects");
    assert!(effects.iter().all(|effect| effect["factor"] != "load"));
    let of = |factor: &str| {
        effects
            .iter()
            .filter(|effect| effect["factor"] == factor)
            .count()
    };
    assert!(of("tcp-rr.depth") > 0 && of("tcp-stream.rate") > 0);
    let cells = result["cells"].as_array().expect("cells");
    let mix = cells.last().expect("a cell");
    assert_eq!(mix["all_levels"]["load"], "bulk+ping+drip");
    assert!(
        mix["loads"][0]["throughput_gbps"]["median"].is_f64(),
        "{mix}"
    );
    assert!(mix["loads"][1]["latency"]["p50_us"].is_f64(), "{mix}");
    // What both took of the processors is neither's.
    assert!(
        mix["loads"][0]["sender_cpu_percent_per_gbps"].is_null(),
        "{mix}"
    );
    assert!(mix["busy_cores"][0]["median"].is_f64(), "{mix}");

    for format in ["--csv", "--markdown"] {
        let report =
            run(crate::common::wirecost(["report", "out", format]).current_dir(place.path()));
        report.expect_code(0);
        assert!(
            report.stdout.contains("ping"),
            "{format}: {}",
            report.stdout
        );
    }
}

fn streams(record: &Record) {
    for one in measured(record, "tcp-stream") {
        let load = one.load;
        assert_eq!(load.flows.len(), 2);
        for flow in &load.flows {
            let sender = flow.sender.as_ref().expect("a socket");
            assert_eq!(
                (sender.congestion.as_str(), sender.sndbuf),
                ("reno", 128 << 10)
            );
        }
        match one.level("zero_copy") {
            "on" => assert!(load.zero_copy.expect("counts").sends > 0),
            _ => assert_eq!(load.zero_copy, None),
        }
        if one.level("rate") == "20mbit" {
            // Two flows.
            one.expect_bits_per_s(2.0 * 20e6);
            one.expect_received_below(2.0 * 20e6);
        }
        let (from, to) = match one.level("direction") {
            "a-to-b" => ("a", "b"),
            _ => ("b", "a"),
        };
        let host = |end| {
            load.generator
                .iter()
                .find(|one| one.end == end)
                .expect("an end")
        };
        assert_eq!(
            (
                host(End::Client).host.as_str(),
                host(End::Server).host.as_str()
            ),
            (from, to)
        );
        let link = |host: &str| {
            let usage = one.sample.host(host).expect("a host");
            usage.links["guest:eth0"]
        };
        assert!(
            link(from).tx_bytes > 5 * link(from).rx_bytes,
            "{:?}",
            link(from)
        );
        assert!(link(to).rx_bytes > 5 * link(to).tx_bytes, "{:?}", link(to));
    }
}

fn both_ways(record: &Record) {
    for one in measured(record, "tcp-bidirectional") {
        let stream = one.load.stream.as_ref().expect("a stream");
        assert!(stream.bytes > 0 && stream.back_bytes > 0, "{stream:?}");
        // Either end keeps to the rate.
        one.expect_bits_per_s(20e6);
        one.expect_received_below(2.0 * 20e6);
    }
}

fn requests(record: &Record) {
    for one in measured(record, "tcp-rr") {
        let requests = one.load.requests.as_ref().expect("requests");
        // Little's law: what is outstanding is transactions a second times the mean time that each takes.
        let mean_s = requests
            .latency
            .buckets()
            .iter()
            .map(|(bucket, count)| {
                let middle = u64::midpoint(lowest_in(*bucket), highest_in(*bucket));
                middle as f64 / 1e9 * *count as f64
            })
            .sum::<f64>()
            / requests.latency.count() as f64;
        let outstanding = one.value(Metric::Transactions) * mean_s;
        let depth: f64 = one.level("depth").parse().expect("a number");
        // What was asked before the window counts with all of its time, and what is answered after it with none.
        let longest = requests.latency.buckets().iter().map(|(at, _)| *at).max();
        let longest = highest_in(longest.expect("a latency")) as f64 / 1e9;
        let edge = longest / one.load.client_seconds;
        // Between an answer and the next request a client without a core has nothing outstanding.
        let client = &one.load.generator[0];
        let without_core = client.threads.iter().map(|thread| thread.runnable);
        let without_core = without_core.fold(0.0, f64::max);
        let least = depth * (0.6 * (1.0 - edge) - without_core);
        assert!(
            outstanding > least && outstanding < depth * 1.07 * (1.0 + edge),
            "{outstanding} outstanding at depth {depth}, the longest took {longest} s: {client:?}"
        );
        let spins = client
            .threads
            .iter()
            .all(|thread| thread.idle_looks.is_some());
        assert_eq!(spins, one.level("spin") == "on", "{client:?}");
    }
    for one in measured(record, "tcp-crr") {
        assert!(one.value(Metric::Transactions) > 0.0);
        assert_eq!(one.load.flows[0].sender, None, "a flow is many connections");
    }
    for one in measured(record, "udp-rr") {
        assert_eq!(one.load.flows.len(), 4);
        assert!(one.load.generator.iter().all(|end| end.threads.len() == 2));
        let each = one.value(Metric::Transactions) / 4.0;
        assert!(
            each < 100.0 * 1.1,
            "{each} a second with 10 ms between them"
        );
    }
}

fn datagrams(record: &Record) {
    for one in measured(record, "udp-stream") {
        let (stream, datagrams) = (one.load.stream.as_ref(), one.load.datagrams);
        let (stream, datagrams) = (stream.expect("a stream"), datagrams.expect("datagrams"));
        assert_eq!(stream.bytes, datagrams.received * 1000);
        let counted = one.sample.host("a").expect("host a").guest.udp_out;
        let together = counted * 2 < datagrams.sent;
        assert_eq!(
            together,
            one.level("segmentation_offload") == "both",
            "{counted}: {datagrams:?}"
        );
    }
}

fn a_mix(record: &Record) {
    let (bulk, ping) = (measured(record, "bulk"), measured(record, "ping"));
    assert_eq!(bulk[0].sample.cell, ping[0].sample.cell);
    assert_eq!(bulk[0].sample.loads.len(), 3);
    bulk[0].expect_bits_per_s(50e6);
    bulk[0].expect_received_below(50e6);
    // 160 at random, with a standard deviation of 13.
    ping[0].expect_messages_per_s(200.0, 1.4);
    assert!(ping[0].load.flows[0].bytes > 0);
    let drip = &measured(record, "drip")[0];
    drip.expect_bits_per_s(20e6);
    drip.expect_received_below(20e6);
}

#[test]
fn loads_with_a_limit_end_by_themselves_and_are_counted_to_the_last() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(
        "name: limits\nunderlay: { rate: 1gbit }\nguest_mtu: 1500\nguests: 2\nload:\n\
         \x20 - tcp-stream: { limit: [1000001, 20MB] }\n\
         \x20 - udp-rr: { limit: 301 }\n\
         \x20 - mix:\n\
         \x20     up: { tcp-bidirectional: { limit: 3MB } }\n\
         \x20     drip: { udp-stream: { limit: 101, rate: 1mbit } }\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0 }\n",
    );
    run(&mut place.run_command(&plan, "out")).expect_code(0);
    let record = Record::read(&place.path().join("out")).expect("a record");
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
    }
    let bytes = |name| -> Vec<(u64, u64)> {
        let loads = measured(&record, name).into_iter();
        let streams = loads.map(|one| one.load.stream.clone().expect("a stream"));
        streams
            .map(|stream| (stream.bytes, stream.back_bytes))
            .collect()
    };
    let mut one_way = bytes("tcp-stream");
    one_way.sort_unstable();
    assert_eq!(one_way, [(1_000_001, 0), (20_000_000, 0)]);
    // The other direction ends with the one that the limit is for.
    let (up, back) = bytes("up")[0];
    assert!(up == 3_000_000 && back > 0, "{up} {back}");
    let asked = &measured(&record, "udp-rr")[0];
    let requests = asked.load.requests.as_ref().expect("requests");
    assert_eq!(requests.transactions + requests.timeouts, 301);
    let sent = &measured(&record, "drip")[0];
    let datagrams = sent.load.datagrams.as_ref().expect("datagrams");
    assert_eq!(datagrams.sent, 101);
}
