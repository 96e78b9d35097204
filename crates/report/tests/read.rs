//! What is read back from a run directory, and what is refused.

mod fixture;

use std::fs;
use std::path::Path;
use std::process::Command;

use fixture::{edit, run, write};
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::Cores;
use wirecost_model::record::{VERSION, file};
use wirecost_model::sample::Sample;
use wirecost_report::{ReadError, document, read};

fn error(dir: &Path) -> String {
    let error: ReadError = read(dir).expect_err("an error");
    error.to_string().replace(&dir.display().to_string(), "DIR")
}

#[test]
fn a_run_reads_back_as_it_was_written() {
    let run = run(2, Cores::Split);
    let reading = read(write(&run).path()).expect("a run");
    assert_eq!(reading.run, run);
    assert!(reading.warnings.is_empty());
}

#[test]
fn a_record_of_a_newer_version_is_refused_even_if_its_shape_is_unknown() {
    let dir = write(&run(1, Cores::Split));
    let newer = r#"{"record_version": 7, "program_version": "3.1.0", "all": "else is new"}"#;
    fs::write(dir.path().join(file::RUN), newer).expect("written");
    insta::assert_snapshot!(error(dir.path()), @"DIR/run.json has record version 7, and this program reads up to version 6: use the program that made the run (it says 3.1.0) or a newer one");
}

#[test]
fn a_pipe_in_place_of_the_record_is_an_error_and_not_waited_for() {
    let dir = write(&run(1, Cores::Split));
    let path = dir.path().join(file::RUN);
    fs::remove_file(&path).expect("gone");
    let made = Command::new("mkfifo").arg(&path).status().expect("run");
    assert!(made.success());
    insta::assert_snapshot!(error(dir.path()), @"cannot read DIR/run.json: it is no regular file");
}

/// A run that a program before version 2 wrote, as it wrote it.
#[test]
fn a_record_of_version_1_reads_as_the_ipv4_that_it_was() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/v1");
    let reading = read(&dir).expect("a run");
    assert_eq!(reading.warnings, Vec::<String>::new());
    let head = &reading.run.head;
    assert_eq!(head.record_version, 1);
    let plan = &head.experiment.plan;
    assert_eq!(plan.underlay.ip, [IpVersion::Ipv4]);
    assert_eq!(plan.guest_ip, [IpVersion::Ipv4]);
    for cell in &head.experiment.cells {
        let network = &cell.network;
        assert_eq!(
            (network.underlay_ip, network.guest_ip),
            (IpVersion::Ipv4, IpVersion::Ipv4)
        );
    }

    let doc = document(&reading.run, &dir, reading.warnings);
    assert_eq!(
        (doc.record_version, doc.samples, doc.rounds_done),
        (1, 4, 2)
    );
    assert!(doc.invalid.is_empty());
    // One factor of two levels, three metrics.
    assert_eq!(doc.effects.len(), 3);
    let limits: Vec<_> = doc.cells.iter().filter_map(|c| c.line_limit_gbps).collect();
    let expected = [1448.0 / 1538.0, 1448.0 / 1588.0];
    for (limit, expected) in limits.iter().zip(expected) {
        assert!((limit - expected).abs() < 1e-9, "{limit}: {expected}");
    }
    assert_eq!(limits.len(), 2);
}

/// A run that a program before version 3 wrote: its one TCP stream is the first of the loads.
#[test]
fn a_record_of_version_2_reads_with_its_stream_as_the_only_load() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/v2");
    let reading = read(&dir).expect("a run");
    assert_eq!(reading.warnings, Vec::<String>::new());
    let experiment = &reading.run.head.experiment;
    assert_eq!(reading.run.head.record_version, 2);
    let options = &experiment.plan.loads[0].parts[0].options;
    assert_eq!(options["streams"], ["2"]);
    assert_eq!(options["message"], ["128KiB"]);
    assert_eq!(options["socket_buffer"], ["auto"]);
    for cell in experiment.measured() {
        assert_eq!(cell.loads.len(), 1);
        assert_eq!(
            (cell.loads[0].name.as_str(), cell.loads[0].load.streams),
            ("tcp-stream", 2)
        );
    }
    for sample in &reading.run.samples {
        let [load] = &sample.loads[..] else {
            panic!("{:?}", sample.loads)
        };
        assert_eq!((load.name.as_str(), load.flows.len()), ("tcp-stream", 2));
        let bytes: u64 = load.flows.iter().map(|flow| flow.bytes).sum();
        assert_eq!(load.stream.as_ref().expect("a stream").bytes, bytes);
    }
    // What `wirecost report` of the program that made it said.
    let doc = document(&reading.run, &dir, reading.warnings);
    let said: Vec<(f64, f64)> = doc
        .cells
        .iter()
        .filter_map(|cell| {
            let cpu = cell.sender_cpu_percent_per_gbps?;
            Some((cell.throughput_gbps?.median, cpu.median))
        })
        .collect();
    let expected = [
        (1.272_779_265_605_812_8, 78.627_317_831_185_45),
        (2.813_556_576_205_976_5, 36.665_423_631_755_836),
    ];
    let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-12;
    for (said, expected) in said.iter().zip(expected) {
        assert!(
            close(said.0, expected.0) && close(said.1, expected.1),
            "{said:?}"
        );
    }
    assert_eq!(said.len(), 2);
    assert_eq!(
        (doc.effects.len(), doc.effects[0].load.as_str()),
        (3, "tcp-stream")
    );
}

#[test]
fn a_last_line_cut_short_is_left_out_with_a_warning() {
    let whole = run(2, Cores::Split);
    let dir = write(&whole);
    edit(dir.path(), file::SAMPLES, |text| {
        text[..text.len() - 40].into()
    });
    fs::remove_file(dir.path().join(file::END)).expect("removed");
    let reading = read(dir.path()).expect("a run");
    assert_eq!(reading.run.samples, whole.samples[..15]);
    insta::assert_snapshot!(reading.warnings.join("\n"), @"samples.jsonl, line 16 is incomplete: the run was killed, or its disk was full, while it was written; left out");
}

#[test]
fn a_last_line_that_lacks_only_its_end_counts() {
    let whole = run(1, Cores::Split);
    let dir = write(&whole);
    edit(dir.path(), file::SAMPLES, |text| text.trim_end().into());
    assert_eq!(read(dir.path()).expect("a run").run, whole);
}

#[test]
fn any_other_bad_line_is_an_error_that_names_it() {
    let dir = write(&run(1, Cores::Split));
    edit(dir.path(), file::SAMPLES, |text| {
        text.replacen("\"cell\":1,", "\"cell\":\"one\",", 1)
    });
    insta::assert_snapshot!(error(dir.path()), @r#"DIR/samples.jsonl, line 2: invalid type: string "one", expected u32 (column 36): the record was changed or damaged after it was written"#);
}

#[test]
fn a_sample_of_no_cell_is_an_error() {
    let dir = write(&run(1, Cores::Split));
    edit(dir.path(), file::SAMPLES, |text| {
        text.replacen("\"cell\":2,", "\"cell\":8,", 1)
    });
    insta::assert_snapshot!(error(dir.path()), @"DIR/samples.jsonl, line 3: a sample of cell 8, which the experiment of 8 cells does not have: the record was changed or damaged after it was written");
}

#[test]
fn a_negative_time_is_an_error() {
    for place in ["started_s", "took_s", "seconds", "client_seconds"] {
        let dir = write(&run(1, Cores::Split));
        edit(dir.path(), file::SAMPLES, |text| {
            // Also within `loads`, the last one of the name in the first line.
            let end = text.find('\n').expect("a line");
            let name = format!("\"{place}\":");
            let at = text[..end].rfind(&name).expect("a time") + name.len();
            format!("{}-1{}", &text[..at], &text[at..])
        });
        let error = error(dir.path());
        assert!(
            error.contains(&format!("samples.jsonl, line 1: {place} is -")),
            "{error}"
        );
    }
}

#[test]
fn a_cell_twice_in_a_round_is_an_error() {
    let dir = write(&run(1, Cores::Split));
    edit(dir.path(), file::SAMPLES, |text| {
        text.replacen("\"cell\":2,", "\"cell\":1,", 1)
    });
    insta::assert_snapshot!(error(dir.path()), @"DIR/samples.jsonl, line 3: a second sample of cell 1 in round 0: the record was changed or damaged after it was written");
}

#[test]
fn what_is_no_run_directory_says_what_to_give() {
    let dir = tempfile::tempdir().expect("a directory");
    insta::assert_snapshot!(error(dir.path()), @"DIR is not a run directory, because it has no run.json: give the directory that `wirecost run` named at its end");
    insta::assert_snapshot!(error(&dir.path().join("nowhere")), @"there is no directory DIR: give the run directory that `wirecost run` named at its end");
}

#[test]
fn a_run_killed_before_its_first_sample_reads_without_samples() {
    let mut killed = run(1, Cores::Split);
    killed.end = None;
    let dir = write(&killed);
    fs::remove_file(dir.path().join(file::SAMPLES)).expect("removed");
    let reading = read(dir.path()).expect("a run");
    assert!(reading.run.samples.is_empty() && reading.warnings.len() == 1);
}

#[test]
fn a_run_that_ended_and_has_no_samples_file_was_not_copied_whole() {
    let dir = write(&run(1, Cores::Split));
    fs::remove_file(dir.path().join(file::SAMPLES)).expect("removed");
    insta::assert_snapshot!(error(dir.path()), @"DIR/samples.jsonl is missing although the run came to its end: the directory was not copied whole");
}

#[test]
fn an_end_cut_short_is_no_end() {
    let dir = write(&run(1, Cores::Split));
    edit(dir.path(), file::END, |text| text[..10].into());
    let reading = read(dir.path()).expect("a run");
    assert_eq!(reading.run.end, None);
    assert_eq!(reading.warnings.len(), 1);
}

#[test]
fn a_complete_run_without_all_its_samples_was_changed_afterwards() {
    let dir = write(&run(2, Cores::Split));
    let path = dir.path().join(file::SAMPLES);
    fs::write(&path, "").expect("written");
    let reading = read(dir.path()).expect("a run");
    insta::assert_snapshot!(reading.warnings.join("\n"), @"samples.jsonl holds 0 of 16 samples although the run came to its end: the record was changed, or not copied whole");
}

#[test]
fn a_record_of_no_version_there_ever_was_is_refused() {
    let dir = write(&run(1, Cores::Split));
    let path = dir.path().join(file::RUN);
    let text = fs::read_to_string(&path).expect("run.json");
    let none = text.replacen(
        &format!("\"record_version\": {VERSION}"),
        "\"record_version\": 0",
        1,
    );
    assert_ne!(none, text);
    fs::write(&path, none).expect("written");
    insta::assert_snapshot!(error(dir.path()), @"DIR/run.json has record version 0, which no program has written: the record was changed or damaged after it was written");
}

#[test]
fn the_documents_example_is_a_sample() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/record-format.md");
    let text = fs::read_to_string(path).expect("docs/record-format.md");
    let example = text
        .split("```json")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let sample: Sample = serde_json::from_str(example.expect("an example")).expect("a sample");
    assert_eq!(sample.invalid, None);
    // What the text beneath it says of it.
    let seconds = sample.loads[0].seconds;
    let stream = sample.loads[0].stream.as_ref().expect("a stream");
    let gbps = stream.bytes as f64 * 8.0 / seconds / 1e9;
    assert!(text.contains(&format!(
        "{} x 8 / {} = {gbps:.2} Gbit/s",
        stream.bytes, seconds
    )));
}
