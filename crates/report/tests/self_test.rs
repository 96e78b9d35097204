//! The first cell against itself, as every form of the result tells of it.

mod fixture;

use std::path::Path;

use fixture::run;
use wirecost_model::cell::Cell;
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_model::sample::{Invalid, Mark, Sample};
use wirecost_report::compare::{Compared, FailOn, Strictness, compare};
use wirecost_report::{Detail, Document, Terminal, csv, document, html, markdown, read, terminal};

/// A run whose first cell was measured twice, the second time with `factor` times the throughput.
fn with_twin(factor: f64) -> Run {
    let mut run = run(10, Cores::Split);
    let experiment = &mut run.head.experiment;
    experiment.plan.self_test = true;
    let first = experiment.cells[0].clone();
    experiment.twin = Some(Cell {
        index: 8,
        ..first.clone()
    });
    for round in 0..10 {
        // Another round's jitter, so that the two are not equal.
        let mut sample = Sample {
            round,
            position: 8,
            cell: 8,
            ..fixture::sample(&first, round + 1)
        };
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        stream.bytes = (stream.bytes as f64 * factor) as u64;
        run.samples.push(sample);
    }
    run
}

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/x"), Vec::new())
}

fn forms(run: &Run) -> [String; 3] {
    let dir = fixture::write(run);
    let reading = read(dir.path()).expect("a record");
    let doc = document(&reading.run, dir.path(), Vec::new());
    let options = Terminal {
        width: 2000,
        colour: false,
        detail: Detail::Full,
        ..Terminal::default()
    };
    let plain = markdown(&doc).replace('\\', "");
    [
        terminal(&doc, options),
        plain,
        html(&reading, &doc).expect("a page"),
    ]
}

#[test]
fn a_self_test_that_shows_nothing_is_told_last_and_changes_no_effect() {
    let with = with_twin(1.0);
    for form in forms(&with) {
        let at = |words| form.find(words);
        let told = at("Self-test: the first cell against itself shows no effect: throughput ");
        assert!(
            told.is_some() && told > at("Jumbo frames (8900):"),
            "{form}"
        );
        assert!(!form.contains("Do not rely"), "{form}");
    }
    let (with, without) = (doc(&with), doc(&run(10, Cores::Split)));
    assert_eq!(with.effects, without.effects);
    assert_eq!(with.cells, without.cells);
    assert_eq!(with.factorials, without.factorials);
    assert_eq!((with.rounds_done, with.samples_planned), (10, Some(90)));
}

#[test]
fn an_effect_beyond_the_margin_where_there_is_none_leads_the_result() {
    for form in forms(&with_twin(1.2)) {
        let alarm = form.find("Do not rely on this run: its first cell, measured twice");
        let alarm = alarm.expect("an alarm");
        assert!(form[alarm..].contains("in throughput"), "{form}");
        let first = form.find("Jumbo frames (8900):").expect("a result");
        assert!(alarm < first, "{form}");
    }
}

#[test]
fn a_small_effect_is_told_with_how_often_chance_does_that() {
    for form in forms(&with_twin(1.03)) {
        assert!(
            form.contains("The self-test shows an effect where there is none"),
            "{form}"
        );
        assert!(form.contains("one run in twenty"), "{form}");
    }
}

#[test]
fn the_twin_s_samples_are_read_counted_and_named_as_what_they_are() {
    let mut run = with_twin(1.0);
    let last = run.samples.last_mut().expect("a sample");
    last.invalid = Some(Invalid::Load("it broke".into()));
    let doc = doc(&run);
    let test = doc.self_test.as_ref().expect("a self-test");
    assert_eq!(
        (test.twin.cell, test.twin.samples, test.twin.valid),
        (8, 10, 9)
    );
    assert_eq!(test.metrics.len(), 3);
    for form in forms(&run) {
        let named =
            "guest MTU 1500, no encapsulation, without offloads (self-test), round 10: it broke";
        assert!(form.contains(named), "{form}");
    }
    let table = csv(&run).expect("CSV");
    let row = table.lines().last().expect("a row").to_owned();
    assert!(
        row.starts_with("9,8,8,") && row.contains(",1500,none,none,"),
        "{row}"
    );
}

#[test]
fn a_cell_that_no_experiment_has_is_still_refused() {
    let mut run = with_twin(1.0);
    run.samples.last_mut().expect("a sample").cell = 9;
    let dir = fixture::write(&run);
    let error = read(dir.path()).expect_err("a cell too many").to_string();
    assert!(error.contains("a sample of cell 9"), "{error}");
}

#[test]
fn a_record_without_all_samples_of_the_twin_was_changed_afterwards() {
    let mut run = with_twin(1.0);
    let warnings = |run: &Run| {
        let dir = fixture::write(run);
        read(dir.path()).expect("a record").warnings.join("\n")
    };
    assert_eq!(warnings(&run), "");
    run.samples.pop();
    let cut = warnings(&run);
    assert!(cut.contains("holds 89 of 90 samples"), "{cut}");
}

#[test]
fn a_comparison_counts_the_twin_s_marked_samples_among_all() {
    let before = with_twin(1.0);
    let mut after = before.clone();
    let marked = Mark::ForeignLoad {
        cores: 0.4,
        threshold: 0.1,
    };
    after.samples.last_mut().expect("a sample").marks = vec![marked];
    let docs = [doc(&before), doc(&after)];
    let [one, other] =
        [(&before, &docs[0]), (&after, &docs[1])].map(|(run, document)| Compared { run, document });
    let strictness = Strictness {
        fail_on: FailOn::Costs,
        corrected: false,
    };
    let sides = compare(one, other, strictness);
    let counts = [sides.before, sides.after].map(|side| (side.samples, side.marked));
    assert_eq!(counts, [(90, 0), (90, 1)]);
}
