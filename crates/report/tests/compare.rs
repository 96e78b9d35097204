//! One run against another: what is matched, what follows, and every form of it.

mod fixture;

use std::path::Path;

use fixture::loads::moving;
use fixture::{cores_apart, levels, run};
use serde_json::Value;
use wirecost_model::cell::Factor;
use wirecost_model::effect::Verdict;
use wirecost_model::ip::IpVersion;
use wirecost_model::load::{LoadLevel, LoadPart, Workload};
use wirecost_model::metric::Metric;
use wirecost_model::plan::{Cores, GuestMtu};
use wirecost_model::record::{Outcome, Run};
use wirecost_model::sample::Invalid;
use wirecost_model::transit::{Hop, HopKind, Transit};
use wirecost_model::vary::{Scope, Setting};
use wirecost_report::compare::{
    Area, Compared, Comparison, Conclusion, FailOn, NotComparedReason, Strictness, comparable,
    compare,
};
use wirecost_report::{
    Detail, Terminal, comparison_junit, comparison_markdown, comparison_terminal, document, read,
};

const DEFAULT: Strictness = Strictness {
    fail_on: FailOn::Costs,
    corrected: false,
};

fn on(fail_on: FailOn) -> Strictness {
    Strictness { fail_on, ..DEFAULT }
}

fn compared(before: &Run, after: &Run, strictness: Strictness) -> Comparison {
    let docs = [(before, "/runs/before"), (after, "/runs/after")]
        .map(|(run, directory)| document(run, Path::new(directory), Vec::new()));
    let [before, after] =
        [(before, &docs[0]), (after, &docs[1])].map(|(run, document)| Compared { run, document });
    compare(before, after, strictness)
}

/// The fabricated run again, an hour later.
fn later(rounds: u32) -> Run {
    let mut later = run(rounds, Cores::Split);
    later.head.started = "2026-03-01T13:00:00Z".into();
    later.head.seed = 43;
    for sample in &mut later.samples {
        // Not the same noise again.
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        let wobble = f64::from((sample.round * 5 + sample.cell) % 3) * 0.004 - 0.004;
        stream.bytes = (stream.bytes as f64 * (1.0 + wobble)) as u64;
    }
    later
}

/// Throughput of one cell, times this.
fn slower(run: &mut Run, cell: u32, times: f64) {
    for sample in run.samples.iter_mut().filter(|s| s.cell == cell) {
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        stream.bytes = (stream.bytes as f64 * times) as u64;
    }
}

/// Another machine in some respects, one cell slower, one that cannot be measured any more, one of a
/// plan that was cut.
fn changed() -> Run {
    let mut after = later(5);
    slower(&mut after, 2, 0.8);
    for sample in after.samples.iter_mut().filter(|s| s.cell == 5) {
        sample.invalid = Some(Invalid::Proof("8900 bytes did not arrive".into()));
    }
    after.samples.retain(|sample| sample.cell != 7);
    after.head.experiment.cells.retain(|cell| cell.index != 7);
    after.head.program_version = "0.2.0".into();
    let environment = &mut after.head.environment;
    environment.kernel = "6.19.0".into();
    environment.memory_bytes += 4096;
    let ecn = ("net.ipv4.tcp_ecn".to_owned(), "1".to_owned());
    environment.sysctls.extend([ecn]);
    after.head.experiment.plan.repeat.seconds = 0.5;
    after.head.experiment.plan.repeat.rounds = 5;
    after
}

fn print(comparison: &Comparison, width: usize) -> String {
    let colour = false;
    comparison_terminal(
        comparison,
        Terminal {
            width,
            colour,
            detail: Detail::Full,
            ..Terminal::default()
        },
    )
}

#[test]
fn a_run_later_with_nothing_changed_is_no_regression() {
    let comparison = compared(&run(6, Cores::Split), &later(6), DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::NoRegression);
    assert_eq!(comparison.differences, []);
    assert_eq!(comparison.notes, [""; 0]);
    assert_eq!(comparison.cells.len(), 8);
    let none = |verdict| matches!(verdict, Verdict::MakesNoDifference | Verdict::CannotTellYet);
    for cell in &comparison.cells {
        assert_eq!(cell.before_cell, cell.after_cell);
        assert!(cell.figures.iter().all(|f| none(f.judged.verdict)));
    }
}

#[test]
fn migrations_are_compared_by_their_time() {
    let before = moving(run(6, Cores::Split), 1.0);
    let compared = |times| compared(&before, &moving(later(6), times), DEFAULT);
    let same = compared(1.0);
    assert_eq!(same.cells.len(), 8);
    assert_eq!(same.not_comparable, []);
    assert_eq!(same.conclusion, Conclusion::NoRegression);
    let slower = compared(1.5);
    let figures = slower.cells.iter().flat_map(|cell| &cell.figures);
    let fails = figures.filter(|figure| figure.fails && figure.metric == Metric::MoveTime);
    assert_eq!(fails.count(), 1);
    assert_eq!(slower.conclusion, Conclusion::Regression);
}

#[test]
fn a_percentile_that_one_round_lacks_is_not_compared_over_the_others() {
    let before = fixture::loads::asking(6, Cores::Split);
    let mut after = before.clone();
    let few = after.samples[0].loads[0].requests.as_mut();
    few.expect("requests").latency = fixture::loads::latency(40_000, 900);
    let comparison = compared(&before, &after, DEFAULT);
    let figures = &comparison.cells[0].figures;
    let samples = |metric| {
        let figure = figures.iter().find(|figure| figure.metric == metric);
        figure.expect("a figure").judged.unpaired.to_samples
    };
    assert_eq!(samples(Metric::LatencyMedian), 6);
    assert_eq!(samples(Metric::LatencyP99), 0);
}

#[test]
fn storage_is_told_in_io_and_of_several_loads_each_is_named() {
    let mut storage = fixture::loads::asking(6, Cores::Split);
    for cell in &mut storage.head.experiment.cells {
        cell.loads[0].load.workload = Workload::Storage;
    }
    for sample in &mut storage.samples {
        sample.loads[0].workload = Workload::Storage;
    }
    let comparison = compared(&storage, &storage, DEFAULT);
    let text = print(&comparison, 400);
    assert!(text.contains("- initiator CPU "), "{text}");
    assert!(text.contains(" I/O per second,"), "{text}");
    assert!(!text.contains("transaction"), "{text}");
    let figures = &comparison.cells[0].figures;
    assert_eq!(figures[0].unit, "I/O per second");

    let several = fixture::loads::with_and_without_requests(6);
    let table = comparison_markdown(&compared(&several, &several, DEFAULT));
    assert!(table.contains("| bulk throughput |"), "{table}");
    assert!(table.contains("| ping p99 latency |"), "{table}");
}

#[test]
fn cores_that_were_elsewhere_in_one_run_are_told() {
    let (mut before, mut after) = (run(6, Cores::Split), later(6));
    cores_apart(&mut before, |_| [64.0, 66.0]);
    assert_eq!(compared(&before, &after, DEFAULT).notes, [""; 0]);
    cores_apart(&mut after, |_| [66.0, 67.0]);
    assert_eq!(compared(&before, &after, DEFAULT).notes, [""; 0]);
    cores_apart(&mut after, |_| [300.0, 302.0]);
    let notes = compared(&before, &after, DEFAULT).notes;
    insta::assert_snapshot!(notes.join("\n"), @"the core distance differs: a cache line took 65 ns from one core to the other and back before, 301 ns after (medians); in a virtual machine the hypervisor places virtual CPUs, and that can change every figure");
}

#[test]
fn a_regression_at_60_columns() {
    let comparison = compared(&run(6, Cores::Split), &changed(), DEFAULT);
    let text = print(&comparison, 60);
    insta::assert_snapshot!(text);
    for line in text.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn a_regression_as_markdown() {
    let comparison = compared(&run(6, Cores::Split), &changed(), DEFAULT);
    insta::assert_snapshot!(comparison_markdown(&comparison));
}

#[test]
fn a_regression_as_junit() {
    let comparison = compared(&run(6, Cores::Split), &changed(), DEFAULT);
    insta::assert_snapshot!(comparison_junit(&comparison).expect("XML"));
}

/// Leaves six digits: the last ones are the mathematical library's.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.5e}", number.as_f64().expect("a float"));
            *value = text.parse::<f64>().expect("a float").into();
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}

#[test]
fn the_json_comparison_has_these_names() {
    let comparison = compared(&run(6, Cores::Split), &changed(), DEFAULT);
    let mut json = serde_json::to_value(&comparison).expect("JSON");
    for list in ["cells", "shifts"] {
        json[list].as_array_mut().expect("a list").truncate(1);
    }
    let figures = json["cells"][0]["figures"].as_array_mut();
    figures.expect("a list").truncate(1);
    round(&mut json);
    insta::assert_json_snapshot!(json);
}

#[test]
fn less_cpu_for_a_gbit_pays_and_more_costs() {
    let (before, mut after) = (run(6, Cores::Split), later(6));
    for sample in after.samples.iter_mut().filter(|s| s.cell == 0) {
        let busy = |usage: &mut Option<wirecost_model::usage::HostUsage>, times: f64| {
            usage.as_mut().expect("usage").cores[0].busy_s *= times;
        };
        busy(&mut sample.sender, 0.7);
        busy(&mut sample.receiver, 1.3);
    }
    let comparison = compared(&before, &after, DEFAULT);
    let verdict = |metric| {
        let figures = &comparison.cells[0].figures;
        let figure = figures.iter().find(|figure| figure.metric == metric);
        figure.expect("a figure").judged.verdict
    };
    assert_eq!(verdict(Metric::SenderCpu), Verdict::Pays);
    assert_eq!(verdict(Metric::ReceiverCpu), Verdict::Costs);
    assert_eq!(comparison.conclusion, Conclusion::Regression);
    assert_eq!(comparison.failures, 1);
}

#[test]
fn what_fails_is_what_was_asked_for() {
    let before = run(6, Cores::Split);
    let conclusion = |after: &Run, fail_on| compared(&before, after, on(fail_on)).conclusion;
    let regression = Conclusion::Regression;
    let fine = Conclusion::NoRegression;

    let mut costs = later(6);
    slower(&mut costs, 0, 0.8);
    assert_eq!(conclusion(&costs, FailOn::Never), fine);
    assert_eq!(conclusion(&costs, FailOn::Costs), regression);

    // Beyond 1 for certain, and some of the interval within the margin.
    let mut loses = later(6);
    slower(&mut loses, 0, 0.955);
    assert_eq!(conclusion(&loses, FailOn::Costs), fine);
    assert_eq!(conclusion(&loses, FailOn::Loses), regression);

    // A single round leaves everything open.
    let single = later(1);
    assert_eq!(conclusion(&single, FailOn::Loses), fine);
    assert_eq!(conclusion(&single, FailOn::CannotTell), regression);

    let mut fewer = later(6);
    fewer.samples.retain(|sample| sample.cell != 7);
    fewer.head.experiment.cells.pop();
    assert_eq!(conclusion(&fewer, FailOn::Costs), fine);
    let open = compared(&before, &fewer, on(FailOn::CannotTell));
    assert!(open.failures > 0 && open.only_before.len() == 1);
}

#[test]
fn a_cell_that_cannot_be_measured_any_more_is_a_regression() {
    let (before, mut after) = (run(6, Cores::Split), later(6));
    for sample in &mut after.samples {
        sample.invalid = Some(Invalid::Proof("lost".into()));
    }
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::Regression);
    assert!(comparison.cells.is_empty());
    assert!(comparison.not_comparable.iter().all(|c| c.fails));
    assert_eq!(
        comparison.not_comparable[0].why,
        NotComparedReason::NoLongerMeasured
    );
    // An interrupted run just did not come to it.
    after.samples.clear();
    after.end.as_mut().expect("an end").outcome = Outcome::Interrupted;
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::NothingComparable);
    assert_eq!(
        comparison.not_comparable[0].why,
        NotComparedReason::NotMeasured
    );
}

#[test]
fn another_line_is_not_compared_and_the_rates_are_named() {
    let (before, mut after) = (run(4, Cores::Split), later(4));
    for cell in &mut after.head.experiment.cells {
        cell.network.rate = Some(1_000_000_000);
        let rate = cell.levels.get_mut("underlay.rate").expect("a level");
        *rate = "1gbit".into();
    }
    after.head.experiment.factors[1].levels = vec!["1gbit".into()];
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::NothingComparable);
    assert_eq!(comparison.not_comparable.len(), 8);
    let first = &comparison.not_comparable[0];
    assert_eq!(first.why, NotComparedReason::LineRate);
    assert_eq!(first.reason, "the line differs: 10gbit before, 1gbit after");
    assert!(comparison.only_before.is_empty() && comparison.only_after.is_empty());
    let document = document(&before, Path::new("/runs/before"), Vec::new());
    let run = &before;
    let before = Compared {
        run,
        document: &document,
    };
    assert!(comparable(before, &after.head.experiment).is_err());
}

#[test]
fn what_lies_between_the_hosts_is_told_before_the_cells_and_keeps_them_apart() {
    let (before, mut after) = (run(4, Cores::Split), later(4));
    let transit = Transit {
        hops: vec![Hop::new(HopKind::Switch, 8950)],
        paths: Vec::new(),
    };
    let experiment = &mut after.head.experiment;
    experiment.plan.underlay.transit = transit.clone();
    for cell in &mut experiment.cells {
        cell.network.transit = transit.clone();
    }
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::NothingComparable);
    let told = &comparison.differences[0];
    assert_eq!(told.before.as_deref(), Some("over one wire"));
    assert_eq!(told.after.as_deref(), Some("through a switch of MTU 8950"));
    assert_eq!(
        comparison.not_comparable[0].reason,
        "what lies between the hosts differs: over one wire before, through a switch of MTU 8950 after"
    );
}

fn setting() -> Setting {
    Setting {
        factor: "sack".into(),
        label: "off".into(),
        sysctl: [("net.ipv4.tcp_sack".into(), "0".into())].into(),
        ethtool: [].into(),
        device: [].into(),
        device_name: None,
        command: None,
        on: Scope::Guests,
    }
}

#[test]
fn a_run_from_before_steering_and_settings_is_compared_with_the_cells_that_have_none() {
    let (before, mut after) = (run(4, Cores::Split), later(4));
    let experiment = &mut after.head.experiment;
    for (key, level) in [
        ("steering.queues", "1"),
        ("steering.rps", "own"),
        ("sack", "on"),
    ] {
        experiment.factors.push(Factor {
            key: key.into(),
            levels: vec![level.into()],
        });
        for cell in &mut experiment.cells {
            cell.levels.insert(key.into(), level.into());
        }
    }
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.cells.len(), 8);
    assert!(comparison.not_comparable.is_empty() && comparison.only_after.is_empty());
    // With two queues there is nothing to compare it with.
    for cell in &mut after.head.experiment.cells {
        cell.levels.insert("steering.queues".into(), "2".into());
        cell.network.steering.queues = 2;
    }
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(
        (comparison.cells.len(), comparison.only_after.len()),
        (0, 8)
    );
}

#[test]
fn the_same_names_of_different_settings_are_not_compared() {
    let (before, mut after) = (run(4, Cores::Split), later(4));
    after.head.experiment.cells[0].loads[0].load.request = 65536;
    after.head.experiment.cells[1].guest_mtu = 1450;
    after.head.experiment.cells[2].settings.push(setting());
    let comparison = compared(&before, &after, DEFAULT);
    let whys: Vec<NotComparedReason> = comparison.not_comparable.iter().map(|c| c.why).collect();
    assert_eq!(whys, [NotComparedReason::BuiltDifferently; 3]);
    assert_eq!(comparison.cells.len(), 5);
}

#[test]
fn cells_are_matched_by_levels_and_not_by_number() {
    let (before, mut after) = (run(4, Cores::Split), later(4));
    after.head.experiment.cells.reverse();
    let turn = |index: u32| 7 - index;
    for cell in &mut after.head.experiment.cells {
        cell.index = turn(cell.index);
    }
    for sample in &mut after.samples {
        sample.cell = turn(sample.cell);
    }
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.cells.len(), 8);
    for cell in &comparison.cells {
        assert_eq!(cell.before_cell, turn(cell.after_cell));
    }
    assert_eq!(comparison.conclusion, Conclusion::NoRegression);
}

/// As a later version of the program records it: a factor more, in every cell.
fn with_factor(mut run: Run, key: &str, all: &[&str]) -> Run {
    let levels = all.iter().map(ToString::to_string).collect();
    let factor = wirecost_model::cell::Factor {
        key: key.into(),
        levels,
    };
    run.head.experiment.factors.push(factor);
    for (cell, level) in run.head.experiment.cells.iter_mut().zip(all.iter().cycle()) {
        cell.levels.insert(key.into(), (*level).into());
    }
    run
}

#[test]
fn a_factor_that_an_older_record_does_not_know_counts_as_what_was_built() {
    let before = run(4, Cores::Split);
    let after = with_factor(later(4), "guest_ip", &["ipv4"]);
    let comparison = compared(&before, &after, DEFAULT);
    assert_eq!(comparison.cells.len(), 8);
    assert_eq!(comparison.differences, []);
    insta::assert_snapshot!(comparison.notes.join("\n"), @"the record of the run before lacks the factor guest IP: its cells count as ipv4, which is what was built");

    let mut six = with_factor(later(4), "guest_ip", &["ipv6"]);
    for cell in &mut six.head.experiment.cells {
        cell.network.guest_ip = IpVersion::Ipv6;
    }
    let comparison = compared(&before, &six, DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::NothingComparable);
    let ip = comparison.differences.iter().find(|d| d.key == "guest_ip");
    let ip = ip.expect("told");
    assert_eq!(ip.area, Area::Plan);
    assert_eq!(ip.before.as_deref(), Some("ipv4"));
    assert_eq!(ip.after.as_deref(), Some("ipv6"));
}

#[test]
fn levels_of_a_load_s_option_are_told_once_as_a_factor_s() {
    let with_messages = |run: Run, levels: &[&str]| {
        let mut run = with_factor(run, "message", levels);
        let owned = levels.iter().map(ToString::to_string).collect();
        run.head.experiment.plan.loads = vec![LoadLevel {
            label: "tcp-stream".into(),
            parts: vec![LoadPart {
                name: "tcp-stream".into(),
                workload: Workload::TcpStream,
                levels: Vec::new(),
                options: [("message".to_owned(), owned)].into(),
            }],
        }];
        run
    };
    let before = with_messages(run(4, Cores::Split), &["1KiB", "128KiB"]);
    let after = with_messages(later(4), &["1KiB", "64KiB"]);
    let comparison = compared(&before, &after, DEFAULT);
    let different: Vec<&str> = comparison.differences.iter().map(|d| &*d.key).collect();
    assert_eq!(different, ["message"]);
}

#[test]
fn an_unknown_factor_is_left_out_of_the_matching_only_where_it_is_constant() {
    let before = run(4, Cores::Split);
    let constant = with_factor(later(4), "steering", &["none"]);
    for (before, after) in [(&before, &constant), (&constant, &before)] {
        let comparison = compared(before, after, DEFAULT);
        assert_eq!(comparison.cells.len(), 8);
        assert!(comparison.notes[0].contains("cells are matched without it"));
        assert_eq!(comparison.differences[0].key, "steering");
    }
    let varied = with_factor(later(4), "steering", &["none", "rps"]);
    let comparison = compared(&before, &varied, DEFAULT);
    assert_eq!(comparison.conclusion, Conclusion::NothingComparable);
    assert_eq!(
        (comparison.only_before.len(), comparison.only_after.len()),
        (8, 8)
    );
}

#[test]
fn a_record_of_version_1_is_compared_with_a_new_one() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/v1");
    let old = read(&dir).expect("a run").run;
    let mut new = old.clone();
    new.head.record_version = 2;
    new.head.started = "2027-01-01T00:00:00Z".into();
    let plan = &mut new.head.experiment.plan;
    plan.guest_mtu = vec![GuestMtu::Bytes(1500)];
    let mut new = with_factor(new, "guest_ip", &["ipv4"]);
    new.head
        .experiment
        .factors
        .push(wirecost_model::cell::Factor {
            key: "underlay.ip".into(),
            levels: vec!["ipv4".into()],
        });
    for cell in &mut new.head.experiment.cells {
        if cell.network.encapsulation.is_tunnel() {
            let level = levels(&[("underlay.ip", "ipv4")]);
            cell.levels.extend(level);
        }
    }
    let comparison = compared(&old, &new, DEFAULT);
    assert_eq!(comparison.cells.len(), 2);
    assert_eq!(comparison.before.record_version, 1);
    let different: Vec<&str> = comparison.differences.iter().map(|d| &*d.key).collect();
    assert_eq!(different, ["record_version"]);
    let notes = comparison.notes.iter();
    let unknown: Vec<&String> = notes.filter(|n| n.contains("lacks the factor")).collect();
    assert_eq!(unknown.len(), 2, "{:#?}", comparison.notes);
    assert!(unknown.iter().all(|note| note.contains("count as ipv4")));
}

#[test]
fn where_the_cores_are_shared_in_one_run_only_throughput_is_compared() {
    let comparison = compared(&run(4, Cores::Split), &run(4, Cores::Shared), DEFAULT);
    assert_eq!(comparison.cells.len(), 8);
    for cell in &comparison.cells {
        let metrics: Vec<Metric> = cell.figures.iter().map(|f| f.metric).collect();
        assert_eq!(metrics, [Metric::Throughput]);
    }
    assert!(comparison.notes[0].contains("CPU is the machine's"));
}

#[test]
fn what_all_cells_share_is_told_as_the_machine_s() {
    let (before, mut after) = (run(6, Cores::Split), later(6));
    for cell in 0..8 {
        slower(&mut after, cell, 0.5);
    }
    let comparison = compared(&before, &after, DEFAULT);
    let shift = &comparison.shifts[0];
    assert_eq!((shift.metric, shift.cells), (Metric::Throughput, 8));
    assert!((shift.median - 0.5).abs() < 0.01 && shift.min <= shift.median);
    let text = print(&comparison, 200);
    let words: Vec<&str> = text.split_whitespace().collect();
    let said = "as if the whole machine were x0.50 as fast";
    assert!(words.join(" ").contains(said), "{text}");
}

#[test]
fn slow_streams_have_digits_too() {
    let mut slow = run(4, Cores::Split);
    slower(&mut slow, 0, 1e-4);
    let text = print(&compared(&slow, &slow, DEFAULT), 400);
    assert!(text.contains("- throughput 0.00062 -> 0.00062 "), "{text}");
}

#[test]
fn the_corrected_verdicts_count_where_that_is_asked_for() {
    let (before, mut after) = (run(3, Cores::Split), later(3));
    slower(&mut after, 0, 0.92);
    let raw = compared(&before, &after, DEFAULT);
    let corrected = Strictness {
        corrected: true,
        ..DEFAULT
    };
    let corrected = compared(&before, &after, corrected);
    let figure = &corrected.cells[0].figures[0];
    assert_eq!(raw.cells[0].figures[0].judged, figure.judged);
    assert_eq!(figure.judged.verdict, Verdict::Costs);
    assert_ne!(figure.judged.corrected.verdict, Verdict::Costs);
    assert!(raw.cells[0].figures[0].fails && !figure.fails);
}

#[test]
fn a_run_with_itself_says_so() {
    let run = run(3, Cores::Split);
    let comparison = compared(&run, &run, DEFAULT);
    assert_eq!(comparison.notes, ["both are the same run"]);
    for figure in comparison.cells.iter().flat_map(|cell| &cell.figures) {
        assert_eq!(figure.judged.unpaired.ratio, Some(1.0));
    }
}

const HOSTILE: &str = "\u{1b}[2J]]><script>&\"'@x</failure>|`*\n# \u{202e}\u{0}\u{1f}\u{fffe}";

/// The same run with a name, levels, an environment and reasons that are none.
fn hostile(mut run: Run) -> Run {
    run.head.experiment.plan.name = HOSTILE.into();
    run.head.started = HOSTILE.into();
    run.head.program_version = HOSTILE.into();
    run.head.environment.kernel = format!("{HOSTILE}{}", run.samples.len());
    let sysctl = (HOSTILE.to_owned(), HOSTILE.to_owned());
    run.head.environment.sysctls.extend([sysctl]);
    let factor = run.head.experiment.factors.iter_mut();
    for factor in factor.filter(|factor| factor.key == "offload") {
        factor.levels[0] = HOSTILE.into();
    }
    for cell in &mut run.head.experiment.cells {
        let level = cell.levels.get_mut("offload").expect("a level");
        if level == "none" {
            *level = HOSTILE.into();
        }
    }
    run.samples[0].invalid = Some(Invalid::Load(HOSTILE.into()));
    run
}

fn hostile_comparison() -> Comparison {
    let before = hostile(run(4, Cores::Split));
    let mut after = hostile(changed());
    after.head.environment.sysctls.clear();
    for sample in after.samples.iter_mut().filter(|s| s.cell == 5) {
        sample.invalid = Some(Invalid::Proof(HOSTILE.into()));
    }
    compared(&before, &after, DEFAULT)
}

#[test]
fn no_name_steers_a_terminal() {
    let text = print(&hostile_comparison(), 60);
    let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.contains(steers), "{text:?}");
    assert!(text.contains("␛[2J"));
}

#[test]
fn no_name_is_markup() {
    let text = comparison_markdown(&hostile_comparison());
    assert!(!text.contains("<script>") && !text.contains("@x"), "{text}");
    let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
    let tables = text.lines().filter(|line| line.starts_with('|'));
    let lines: Vec<&str> = tables.collect();
    assert!(lines.len() > 20);
    assert!(lines.iter().all(|line| matches!(bars(line), 4 | 8)));
}

#[test]
fn no_name_breaks_the_xml() {
    let xml = comparison_junit(&hostile_comparison()).expect("XML");
    let allowed = |c: char| c == '\n' || c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}');
    assert!(xml.chars().all(allowed), "{xml:?}");
    let report = quick_junit::Report::deserialize_from_str(&xml).expect("JUnit");
    let suite = &report.test_suites[0];
    assert_eq!(suite.tests, suite.test_cases.len());
    assert_eq!(report.failures, hostile_comparison().failures as usize);
    assert!(suite.test_cases[0].name.as_str().contains("<script>&\"'@x"));
}
