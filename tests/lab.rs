//! Whole runs in labs on this machine: what is printed, what is kept, and that it is true.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    Ended, Record, TestDir, cores_of_mask, lab_can_be_built, lines_written, lock_exclusive, run,
    succeeds, wirecost,
};
use serde_json::Value;
use wirecost_model::cell::Cell;
use wirecost_model::metric::{segments_per_packet, wire_frames_per_second};
use wirecost_model::offload::{Feature, Profile, Role};
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, file};
use wirecost_model::sample::{ProofTime, Sample};

/// Every offload, tunnel and MTU that has to be distinguished, at a rate that any machine reaches.
const SMALL: &str = "\
name: small
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: [1500, 8900]
encapsulation: [none, vxlan]
offload: [none, tunnel]
repeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }
";

/// TCP and IPv4 headers of a segment with timestamps, bytes (RFC 9293, RFC 7323).
const HEADERS: u32 = 52;

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

/// The samples with their cells.
fn with_cells(record: &Record) -> impl Iterator<Item = (&Sample, &Cell)> {
    let cells = &record.head.experiment.cells;
    record
        .samples
        .iter()
        .map(|sample| (sample, &cells[sample.cell as usize]))
}

/// A figure of every sample with that profile, ascending.
///
/// The counters behind a figure are read one after the other: a reader that was preempted in
/// between shifts one window against the other. That is seen in single samples, not in the median.
fn of_profile(record: &Record, profile: Profile, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
    let wanted = with_cells(record).filter(|(_, cell)| cell.offload.profile == profile);
    let mut figures: Vec<f64> = wanted.map(|(sample, _)| figure(sample)).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// Whether two of the ratios are within this factor of 1. Sockets, guests and links are read by several threads, each
/// of which may be preempted in any sample; what is counted wrongly is wrong in each.
fn agree(ratios: &[f64], factor: f64) -> bool {
    let within = |ratio: &&f64| (factor.recip()..factor).contains(*ratio);
    ratios.iter().filter(within).count() >= 2
}

#[test]
fn a_run_prints_one_document_and_keeps_a_record_that_is_true() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_exclusive();
    let place = TestDir::new();
    let plan = place.plan(SMALL);
    let out = place.path().join("out");

    let ended = run(place.run_command(&plan, "out").arg("--json"));

    ended.expect_code(0);
    let result = ended.document();
    the_document_has_what_is_documented(&result, &out);
    let record = Record::read(&out).expect("a record");
    the_directory_is_whole(&out, &record);
    the_path_was_proven(&record);
    offloads_are_as_planned_on_every_device(&record);
    nothing_is_aggregated_where_nothing_is_offloaded(&record);
    frames_on_the_wire_agree_with_the_links_counters(&record);
    no_throughput_is_above_the_lines(&record, &result);
    each_host_keeps_to_its_cores(&record);
    the_cores_were_looked_at_around_every_sample(&record, &result);
    the_report_says_the_same(&out, &ended);
}

fn the_document_has_what_is_documented(result: &Value, out: &Path) {
    assert_eq!(result["run_dir"], out.to_str().expect("text"));
    assert_eq!(result["outcome"], "complete");
    assert_eq!(result["cells"].as_array().expect("cells").len(), 8);
    let effects = result["effects"].as_array().expect("effects");
    // Three factors of two levels, four combinations of the others each.
    let metrics = if result["cores"] == "split" { 3 } else { 2 };
    assert_eq!(effects.len(), 3 * 4 * metrics);
    let wanted = [
        "factor", "from", "to", "where", "load", "metric", "ratio", "low", "high", "verdict",
        "rounds",
    ];
    for effect in effects {
        let keys = keys(effect);
        assert!(wanted.iter().all(|key| keys.contains(key)), "{effect}");
        // CPU of a host that others kept from its cores is added up over rounds.
        let rounds = effect["rounds"].as_u64().expect("rounds");
        let least = if effect["metric"] == "throughput" {
            2
        } else {
            1
        };
        assert!((least..=2).contains(&rounds), "{effect}");
        assert!(effect["ratio"].is_f64(), "{effect}");
        assert_eq!(self::keys(&effect["where"]).len(), 2, "{effect}");
    }
    let factors: BTreeSet<_> = effects
        .iter()
        .map(|effect| effect["factor"].as_str())
        .collect();
    let varied = ["encapsulation", "guest_mtu", "offload"].map(Some);
    assert_eq!(factors, BTreeSet::from(varied));
}

fn the_directory_is_whole(out: &Path, record: &Record) {
    assert_eq!(
        fs::read_to_string(out.join(file::PLAN)).expect("plan"),
        SMALL
    );
    let files = fs::read_dir(out).expect("directory").count();
    let page = fs::read_to_string(out.join(file::REPORT)).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(files, 5, "{} holds something else too", out.display());
    assert!(!record.cut);
    assert_eq!(lines_written(out), record.samples.len());
    let end = record.end.as_ref().expect("an end");
    assert_eq!((end.outcome, &end.reason), (Outcome::Complete, &None));
    let windows: f64 = record
        .samples
        .iter()
        .flat_map(|s| {
            s.loads
                .iter()
                .chain(s.saturated.iter().flat_map(|window| &window.loads))
        })
        .map(|load| load.seconds)
        .sum();
    assert!(
        (end.measured_s - windows).abs() < 1e-6 && windows < end.seconds,
        "{end:?}"
    );

    let taken: BTreeSet<_> = record.samples.iter().map(|s| (s.round, s.cell)).collect();
    let all: BTreeSet<_> = (0..2)
        .flat_map(|round| (0..8).map(move |cell| (round, cell)))
        .collect();
    assert_eq!(taken, all, "every cell once a round");
    let places: Vec<_> = record
        .samples
        .iter()
        .map(|s| (s.round, s.position))
        .collect();
    let in_turn: Vec<_> = (0..2)
        .flat_map(|round| (0..8).map(move |at| (round, at)))
        .collect();
    assert_eq!(places, in_turn);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None, "{sample:#?}");
    }
}

fn the_path_was_proven(record: &Record) {
    let mut seen = BTreeSet::new();
    for (sample, cell) in with_cells(record) {
        let proofs: BTreeSet<_> = sample
            .proofs
            .iter()
            .map(|p| (p.when == ProofTime::Before, p.from.as_str()))
            .collect();
        let both_ways = [(false, "a"), (false, "b"), (true, "a"), (true, "b")];
        assert_eq!(proofs, BTreeSet::from(both_ways), "{sample:#?}");
        for proof in &sample.proofs {
            assert!(proof.proven && proof.reason.is_none(), "{proof:?}");
            assert_eq!(proof.size, cell.guest_mtu);
        }
        let overhead = if cell.levels["encapsulation"] == "vxlan" {
            50
        } else {
            0
        };
        let key = (cell.levels["encapsulation"].clone(), cell.guest_mtu);
        let first = seen.insert(key);
        for proof in sample
            .proofs
            .iter()
            .filter(|proof| proof.when == ProofTime::Before && first)
        {
            let frame = proof
                .seen
                .as_ref()
                .unwrap_or_else(|| panic!("not looked for: {proof:?}"));
            assert_eq!(frame.outer_ip_bytes, cell.guest_mtu + overhead, "{cell:?}");
            assert_eq!(frame.frame_bytes, frame.outer_ip_bytes + 14);
            assert!(!frame.fragment);
        }
    }
    assert_eq!(seen.len(), 4, "two labs, two guest MTUs");
}

fn offloads_are_as_planned_on_every_device(record: &Record) {
    for (sample, cell) in with_cells(record) {
        let tunnelled = cell.levels["encapsulation"] == "vxlan";
        let mut roles = BTreeSet::from([Role::Underlay, Role::Guest, Role::GuestPort]);
        roles.extend(tunnelled.then_some(Role::Tunnel));
        for host in ["a", "b"] {
            let devices = || sample.devices.iter().filter(|device| device.host == host);
            assert_eq!(
                devices().map(|device| device.role).collect::<BTreeSet<_>>(),
                roles
            );
            for device in devices() {
                let all_on = cell.offload.profile == Profile::Tunnel;
                for (feature, on) in &device.features {
                    let checksum = Feature::Checksum.ethtool().contains(&feature.as_str());
                    // On a wire super-packets arrive whole, and nobody joins any.
                    let wanted = checksum || (all_on && feature != "rx-gro");
                    assert_eq!(*on, wanted, "{feature}: {device:?}, {cell:?}");
                }
                // Each device has these, so that a missing one was not read.
                for name in ["rx-gro", "tx-tcp-segmentation", "tx-generic-segmentation"] {
                    assert!(device.features.contains_key(name), "{name}: {device:?}");
                }
                let mtu = match device.role {
                    Role::Guest | Role::GuestPort => cell.guest_mtu,
                    Role::Tunnel => 8950,
                    _ => 9000,
                };
                assert_eq!(device.mtu, mtu, "{device:?}");
            }
        }
    }
}

fn nothing_is_aggregated_where_nothing_is_offloaded(record: &Record) {
    let per_packet = |profile| {
        of_profile(record, profile, |sample| {
            segments_per_packet(sample).expect("segments")
        })
    };
    let (none, tunnel) = (per_packet(Profile::None), per_packet(Profile::Tunnel));
    assert!(agree(&none, 1.2), "nothing offloaded: {none:?}");
    // Two readers of counters: the windows of one sample may be shifted against each other.
    let usual = tunnel[tunnel.len() / 2];
    assert!(usual > 2.0, "everything offloaded: {tunnel:?}");
    for (sample, cell) in with_cells(record) {
        for flow in &sample.loads[0].flows {
            let sender = flow.sender.as_ref().expect("a socket");
            assert_eq!(sender.snd_mss, cell.guest_mtu - HEADERS, "{cell:?}");
            assert_eq!(sender.pmtu, cell.guest_mtu, "{cell:?}");
            assert_eq!(
                (sender.congestion.as_str(), flow.bytes > 0),
                ("cubic", true)
            );
        }
    }
}

fn frames_on_the_wire_agree_with_the_links_counters(record: &Record) {
    let ratios = of_profile(record, Profile::None, |sample| {
        let sender = sample.sender.as_ref().expect("host a");
        let link = &sender.links["underlay"];
        let counted = (link.rx_packets + link.tx_packets) as f64 / sender.window_s;
        wire_frames_per_second(sample).expect("frames") / counted
    });
    println!("frames by TCP_INFO to frames by the link: {ratios:?}");
    // What is counted wrongly, such as no ACKs, is off by a third.
    assert!(agree(&ratios, 1.1), "{ratios:?}");
}

fn no_throughput_is_above_the_lines(record: &Record, result: &Value) {
    let mut cells = BTreeMap::<u32, Vec<f64>>::new();
    for (sample, _) in with_cells(record) {
        let gbps = sample.throughput().expect("throughput") / 1e9;
        cells.entry(sample.cell).or_default().push(gbps);
    }
    for (cell, mut gbps) in cells {
        let limit = &result["cells"][cell as usize]["line_limit_gbps"];
        gbps.sort_by(f64::total_cmp);
        // Who is preempted just before a window reads within it what had come before, and not in most windows.
        let usual = gbps[(gbps.len() - 1) / 2];
        assert!(
            usual <= limit.as_f64().expect("a rate") * 1.02,
            "cell {cell}: {gbps:?} of {limit}"
        );
    }
}

fn each_host_keeps_to_its_cores(record: &Record) {
    let environment = &record.head.environment;
    let of = |host: &str| environment.hosts[host].cpus.clone();
    let all: BTreeSet<u32> = [of("a"), of("b")].concat().into_iter().collect();
    assert_eq!(
        environment.cpus,
        all.into_iter().collect::<Vec<_>>(),
        "cores of the run"
    );
    if record.head.experiment.plan.cores == Cores::Shared {
        println!("one core: nothing is steered");
        return;
    }
    let own_sysfs = "mount -t sysfs sysfs /sys";
    let flags = ["--map-root-user", "--net", "--mount", "sh", "-c", own_sysfs];
    let readable = succeeds(Command::new("unshare").args(flags));
    for (sample, _) in with_cells(record) {
        for device in sample
            .devices
            .iter()
            .filter(|device| device.role == Role::Underlay)
        {
            let Some(mask) = &device.rps_cpus else {
                assert!(!readable, "the steering mask was not read: {device:?}");
                continue;
            };
            assert_eq!(cores_of_mask(mask), of(&device.host), "{device:?}");
        }
        let usage = [("a", &sample.sender), ("b", &sample.receiver)];
        for (host, usage) in usage {
            let counted: Vec<u32> = usage
                .as_ref()
                .expect("usage")
                .cores
                .iter()
                .map(|core| core.cpu)
                .collect();
            assert_eq!(counted, of(host), "cores that were counted for {host}");
        }
    }
}

fn the_cores_were_looked_at_around_every_sample(record: &Record, result: &Value) {
    let hosts = &record.head.environment.hosts;
    if record.head.environment.cpus.len() < 2 {
        assert_eq!(result.get("cores_apart"), None);
        return;
    }
    let mut known = 0;
    for (sample, _) in with_cells(record) {
        let pair = sample.cores_apart.first().expect("a pair");
        assert!(hosts["a"].cpus.contains(&pair.cpus[0]), "{pair:?}");
        assert!(hosts["b"].cpus.contains(&pair.cpus[1]), "{pair:?}");
        for ns in [pair.before_ns, pair.after_ns].into_iter().flatten() {
            // Light comes 30 cm far in one; what takes a millisecond was not the line.
            assert!((1.0..1e6).contains(&ns), "{pair:?}");
        }
        known += u32::from(pair.before_ns.and(pair.after_ns).is_some());
        let marked = sample.marks.iter().any(|mark| mark.kind() == "cores-moved");
        let moved = sample.cores_apart.iter().any(|pair| pair.moved().is_some());
        assert_eq!(marked, moved, "{sample:?}");
    }
    // Others may have had a core at one look, hardly at all.
    assert!(known > 0);
    let told = &result["cores_apart"];
    assert!(told["nearest_ns"].as_f64() <= told["median_ns"].as_f64());
    assert!(told["median_ns"].as_f64() <= told["farthest_ns"].as_f64());
}

fn the_report_says_the_same(out: &Path, ended: &Ended) {
    let again = run(wirecost(["report", "--json"]).arg(out));
    again.expect_code(0);
    assert_eq!(again.stdout, ended.stdout);

    let words = run(wirecost(["report"]).arg(out));
    words.expect_code(0);
    for part in [
        "Gbit/s",
        "change               where",
        "jumbo frames (8900)",
    ] {
        assert!(words.stdout.contains(part), "{part}: {words:#?}");
    }
    assert!(
        !words.stdout.contains('\x1b'),
        "no colour without a terminal"
    );
}
