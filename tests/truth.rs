//! Verdicts are about the network: what once was said of properties of the lab, plan by plan. The plans are the bench's
//! (`make bench-truth`), measured briefly: whether a record and a result have what a verdict must stand on, and never
//! how fast anything is.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};

use crate::common::{
    Record, TestDir, is_root, lab_can_be_built, lacks, lock_exclusive, lock_shared, run, wirecost,
};
use serde_json::Value;
use wirecost_model::metric::segments_per_packet;
use wirecost_model::sample::Sample;

/// A plan of the bench.
macro_rules! plan {
    ($name:literal) => {
        include_str!(concat!("../bench/truth/", $name, ".yaml"))
    };
}

/// Segments per packet from which on frames are joined, however busy the cores are; where none is it is about 1.
const JOINED: f64 = 4.0;
/// What a tail of one segment in each write makes of segments per packet is 1.45.
const TAIL: f64 = 1.3;

/// A plan in short windows. Of a cell with one round a stall of the machine leaves no valid sample: take two.
fn short(plan: &str, rounds: u32) -> String {
    let (keys, _) = plan.split_once("repeat:").expect("a line `repeat:`");
    format!("{keys}repeat: {{ rounds: {rounds}, seconds: 0.4, warmup: 0.1 }}\n")
}

/// What a run says, and its record.
struct Measured {
    result: Value,
    record: Record,
}

impl Measured {
    #[track_caller]
    fn of(plan: &str, rounds: u32) -> Self {
        let place = TestDir::new();
        let file = place.plan(&short(plan, rounds));
        let ended = run(place.run_command(&file, "out").arg("--json"));
        ended.expect_code(0);
        Self {
            result: ended.document(),
            record: Record::read(&place.path().join("out")).expect("a record"),
        }
    }

    /// Effects of a factor on the figures named.
    fn effects<'a>(
        &'a self,
        factor: &'a str,
        metrics: &'a [&str],
    ) -> impl Iterator<Item = &'a Value> {
        let effects: Vec<_> = list(&self.result["effects"])
            .filter(|effect| effect["factor"] == factor)
            .filter(|effect| metrics.iter().any(|metric| effect["metric"] == *metric))
            .collect();
        assert!(
            !effects.is_empty(),
            "{factor}: {:#}",
            self.result["effects"]
        );
        effects.into_iter()
    }

    /// Fails where an effect has a verdict, or another reason for having none.
    #[track_caller]
    fn assert_not_comparable(&self, factor: &str, metrics: &[&str], kind: &str) {
        for effect in self.effects(factor, metrics) {
            assert_eq!(effect["verdict"], "not_comparable", "{effect:#}");
            let why = &effect["not_comparable"];
            let remark = remark(effect, kind).unwrap_or_else(|| panic!("{effect:#}"));
            assert!(
                [kind, "disturbed", "generator"]
                    .map(Into::into)
                    .contains(&why["kind"]),
                "{effect:#}"
            );
            assert_ne!(remark["text"], "", "{effect:#}");
        }
    }

    /// Segments per packet of each cell, by the receiver's counters.
    fn segments(&self) -> Vec<f64> {
        let of = |cell: &Value| cell["segments_per_packet"]["median"].as_f64();
        list(&self.result["cells"]).filter_map(of).collect()
    }

    /// Whether all cells aggregate, or none does. How much they aggregate depends on who else uses the cores:
    /// `make bench-truth` judges that.
    fn aggregates_alike(&self) -> bool {
        let segments = self.segments();
        let joined = segments.iter().filter(|one| **one > JOINED).count();
        assert!(segments.len() > 1, "{:#}", self.result["cells"]);
        println!("segments per packet: {segments:?}");
        joined == 0 || joined == segments.len()
    }

    fn valid(&self) -> impl Iterator<Item = &Sample> {
        let samples = self.record.samples.iter();
        samples.filter(|sample| sample.invalid.is_none())
    }

    fn levels(&self, sample: &Sample) -> &BTreeMap<String, String> {
        &self.record.head.experiment.cells[sample.cell as usize].levels
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// An effect's remark of that kind. Other programs that use the machine, and a generator without a core, are told
/// first, the rest beside it.
fn remark<'a>(effect: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut all = [&effect["not_comparable"]]
        .into_iter()
        .chain(list(&effect["remarks"]));
    all.find(|remark| remark["kind"] == kind)
}

fn is_spoken(effect: &Value) -> bool {
    effect["verdict"] == "pays" || effect["verdict"] == "costs"
}

/// Fails unless the highest figures of the cells, in the rounds of up to three runs, are right. Other programs lower a
/// figure in some of these, what the lab does wrongly lowers it in all.
#[track_caller]
fn expect_of_the_best(
    plan: &str,
    figure: impl Fn(&Sample) -> f64,
    is_right: impl Fn(&BTreeMap<u32, f64>) -> bool,
) {
    let mut best = BTreeMap::<u32, f64>::new();
    for _ in 0..3 {
        for sample in Measured::of(plan, 3).valid() {
            let cell = best.entry(sample.cell).or_default();
            *cell = figure(sample).max(*cell);
        }
        if is_right(&best) {
            return;
        }
    }
    panic!("{best:?}");
}

/// A program on every core that this process may use.
struct Loops(Vec<Child>);

impl Loops {
    fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let start = |core: usize| {
            Command::new("taskset")
                .args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .expect("taskset")
        };
        Self((0..cores).map(start).collect())
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn behind_a_hop_and_of_small_messages_the_receiver_aggregates_alike_in_every_cell() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();
    for plan in [plan!("hop"), plan!("small")] {
        // Of two rounds a verdict may be chance: `make bench-truth` judges these. A receiver that other programs keep
        // from its core for most of one cell aggregates there; what the lab does wrongly it does in each run.
        assert!((0..3).any(|_| Measured::of(plan, 2).aggregates_alike()));
    }
}

#[test]
fn where_there_is_nothing_to_aggregate_gro_is_no_factor() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let place = TestDir::new();
    let plan = place.plan(&short(plan!("gro-direct"), 1));
    let ended = run(&mut place.run_command(&plan, "out"));
    ended.expect_code(2);
    assert!(ended.stderr.contains("`underlay.hops`"), "{ended:#?}");
}

#[test]
fn gro_switched_off_by_hand_in_one_cell_bars_the_verdict() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("gro-by-hand"), 2);
    measured.assert_not_comparable("encapsulation", &["throughput"], "aggregation");
    let measured = Measured::of(plan!("gro-by-command"), 2);
    measured.assert_not_comparable("tuning", &["throughput"], "aggregation");
}

#[test]
fn cpu_of_a_cell_with_a_line_comes_from_windows_without_it() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("line-cpu"), 2);
    for sample in measured.valid() {
        let saturated = sample
            .saturated
            .as_ref()
            .expect("a window without the line");
        assert!(saturated.sender.window_s > 0.0, "{saturated:#?}");
        for host in [&sample.sender, &sample.receiver] {
            let host = host.as_ref().expect("its cores");
            let wakeups = host.wakeups.expect("counted");
            assert!(wakeups.interrupts() > 0, "{wakeups:?}");
        }
    }
}

#[test]
fn a_load_reads_and_writes_in_one_way_in_every_cell() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("line-streams"), 2);
    let ways: Vec<_> = measured.valid().map(|sample| &sample.loads[0].io).collect();
    assert_eq!(ways[0].len(), 2, "client and server");
    assert!(ways.iter().all(|way| *way == ways[0]), "{ways:#?}");
}

#[test]
fn a_load_that_is_behind_its_schedule_has_no_latency_verdict() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("mix-behind"), 2);
    measured.assert_not_comparable("bulk", &["latency_median"], "schedule");
    for effect in measured.effects("bulk", &["latency_median", "transactions"]) {
        let ends = [&effect["low"], &effect["ratio"], &effect["high"]].map(Value::as_f64);
        if let [Some(low), Some(ratio), Some(high)] = ends {
            assert!(low <= ratio && ratio <= high, "{effect:#}");
        }
    }
    let measured = Measured::of(plan!("unreachable"), 2);
    for effect in measured.effects("encapsulation", &["latency_median"]) {
        assert!(!is_spoken(effect), "{effect:#}");
        assert_ne!(effect["verdict"], "makes_no_difference", "{effect:#}");
    }
}

#[test]
fn a_second_run_beside_another_program_is_no_regression() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();
    let place = TestDir::new();
    let plan = place.plan(&short(plan!("same"), 3));
    run(place.run_command(&plan, "before").arg("-q")).expect_code(0);
    let loops = Loops::start();
    let after = run(place.run_command(&plan, "after").arg("--json"));
    drop(loops);
    let trust = &after.document()["trust"];
    assert_eq!(trust["level"], "doubtful", "{trust:#}");
    assert!(list(&trust["reasons"]).next().is_some(), "{trust:#}");

    let compare = |strict: &[&str]| {
        let mut command = wirecost(["compare"]);
        command.args(["before", "after"].map(|name| place.path().join(name)));
        run(command.arg("--json").args(strict))
    };
    let ended = compare(&[]);
    ended.expect_code(0);
    for cell in list(&ended.document()["cells"]) {
        for figure in list(&cell["figures"]) {
            assert!(!is_spoken(figure), "{figure:#}");
        }
    }
    compare(&["--strict"]).expect_code(1);
}

#[test]
fn no_tail_of_a_write_depends_on_mtu_ip_or_encapsulation() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();
    for plan in [plan!("defaults"), plan!("write-ip"), plan!("write-mtu")] {
        // Larger writes fill more super-packets, so each size by itself: the plans' first is the default.
        let keys = plan.split_once("\nload:").expect("a load").0;
        let default = format!("{keys}\nload: tcp-stream\nrepeat:");
        // A tail makes packets smaller in all rounds, other programs in some.
        let segments = |sample: &Sample| segments_per_packet(sample).expect("a TCP load");
        expect_of_the_best(&default, segments, |best| {
            let most = best.values().copied().fold(0.0, f64::max);
            let least = best.values().copied().fold(f64::INFINITY, f64::min);
            best.len() > 1 && most / least < TAIL
        });
    }
}

#[test]
fn throughput_is_nearly_flat_in_bytes_of_geneve_options() {
    if !is_root() {
        return;
    }
    let _lock = lock_exclusive();
    let bytes = |sample: &Sample| {
        let stream = sample.loads.first().and_then(|load| load.stream.as_ref());
        stream.map_or(0.0, |stream| stream.bytes as f64)
    };
    // What else runs on the cores slows all rounds, which take turns, and none by so much.
    expect_of_the_best(plan!("geneve-options"), bytes, |best| {
        // A kernel warning for each packet made it 0.15; sizes that are refused carry nothing.
        let carried = || best.values().filter(|bytes| **bytes > 0.0);
        let without = best.get(&0).copied().unwrap_or_default();
        carried().count() > 1 && without > 0.0 && carried().all(|bytes| bytes / without > 0.4)
    });
}

#[test]
fn zero_copy_that_is_copied_has_no_verdict() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("zero-copy"), 2);
    let metrics = ["throughput", "sender_cpu", "receiver_cpu", "cpu"];
    measured.assert_not_comparable("zero_copy", &metrics, "not-in-effect");
}

#[test]
fn paced_datagrams_leave_in_super_packets_where_segmentation_is_on() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("udp-segments"), 2);
    for sample in measured.valid() {
        let datagrams = sample.loads[0].datagrams.as_ref().expect("datagrams");
        let handed_over = sample.sender.as_ref().expect("a host").guest.udp_out;
        let each = datagrams.sent as f64 / handed_over as f64;
        let levels = measured.levels(sample);
        if levels["segmentation_offload"] == "both" {
            assert!(each > 8.0, "{levels:?}: {each} datagrams at once");
        } else {
            assert!(each < 1.5, "{levels:?}: {each} datagrams at once");
        }
    }
}

#[test]
fn a_rate_that_is_reached_is_not_the_result_of_itself() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();
    for (plan, factor, metric) in [
        (plan!("idle-steps"), "rate", "transactions"),
        (plan!("offered"), "rate", "throughput"),
        (plan!("line-factor"), "underlay.rate", "throughput"),
    ] {
        // A rate is reached where the load has the cores to itself for that. Programs that keep it from them for most
        // of a window do so in few runs, or in all, which then say so. The rule is tested on samples (`stats`).
        let (metrics, mut disturbed) = ([metric], false);
        let reached = (0..3).map(|_| Measured::of(plan, 2)).find(|measured| {
            disturbed |= measured.result["trust"]["level"] != "sound";
            let mut effects = measured.effects(factor, &metrics);
            effects.all(|effect| remark(effect, "factor-is-figure").is_some())
        });
        match reached {
            Some(measured) => measured.assert_not_comparable(factor, &metrics, "factor-is-figure"),
            None if disturbed => {
                lacks(format!("other programs kept a load from its {factor}"));
            }
            None => panic!("{factor} was not reached in three runs"),
        }
    }
}

#[test]
fn lateness_is_told_apart_from_latency() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("late-timer"), 2);
    for sample in measured.valid() {
        let requests = sample.loads[0].requests.as_ref().expect("requests");
        let scheduled = measured.levels(sample)["rate"] != "none";
        assert_eq!(
            requests.lateness.count() > 0,
            scheduled,
            "{:?}",
            measured.levels(sample)
        );
        assert_eq!(sample.loads[0].schedule.is_some(), scheduled);
        assert!(requests.latency.count() > 0);
    }
}

#[test]
fn what_hops_take_of_the_cores_is_told() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("hops-two"), 2);
    let measured_apart = |sample: &Sample| {
        let host = sample.sender.as_ref().expect("a host");
        host.transit_cores.is_some()
    };
    if measured.valid().all(measured_apart) {
        return;
    }
    let remarks = list(&measured.result["effects"]).flat_map(|effect| list(&effect["remarks"]));
    let warnings = list(&measured.result["warnings"]).filter_map(Value::as_str);
    let told = remarks
        .map(|remark| &remark["kind"])
        .any(|kind| kind == "transit-cpu")
        || warnings
            .into_iter()
            .any(|text| text.contains("between the hosts"));
    assert!(told, "{:#}", measured.result);
}

#[test]
fn pacing_by_a_round_trip_of_microseconds_has_no_verdict() {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let has_bbr = available.is_ok_and(|names| names.split_whitespace().any(|name| name == "bbr"));
    if !has_bbr {
        lacks("this kernel has no bbr");
        return;
    }
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("congestion"), 2);
    measured.assert_not_comparable("congestion", &["throughput"], "pacing");
}

#[test]
fn a_datapath_that_the_kernel_lacks_a_driver_for_is_warned_of() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let measured = Measured::of(plan!("auto"), 2);
    let by_ebpf = measured.record.head.experiment.cells.iter().any(|cell| {
        cell.levels["encapsulation"] == "geneve"
            && serde_json::to_value(cell.network.datapath).is_ok_and(|name| name == "ebpf")
    });
    let warned = list(&measured.result["warnings"])
        .filter_map(Value::as_str)
        .any(|text| text.contains("eBPF"));
    assert_eq!(warned, by_ebpf, "{:#}", measured.result["warnings"]);
}
