//! A record of more samples than are drawn: its result is that of all of them, and every form of it stays small.

mod fixture;

use std::path::Path;

use fixture::{run, write};
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_report::{Format, Formatted, RunResult, Terminal, document, html};

/// More than 4000 samples, no two rounds alike.
fn large() -> Run {
    let rounds = 600;
    let mut large = run(1, Cores::Split);
    let templates = std::mem::take(&mut large.samples);
    large.head.experiment.plan.repeat.rounds = rounds;
    for round in 0..rounds {
        large
            .samples
            .extend(templates.iter().cloned().map(|mut sample| {
                sample.round = round;
                let noise = f64::from((round * 7919 + sample.cell * 104_729) % 1000) * 1e-4;
                let stream = sample.loads[0].stream.as_mut().expect("a stream");
                stream.bytes = (stream.bytes as f64 * (1.0 + noise)) as u64;
                sample
            }));
    }
    large
}

fn format(option: &str) -> &'static dyn Format<RunResult> {
    let mut formats = RunResult::OTHERS.iter();
    let found = formats.find(|format| format.option() == option);
    *found.expect("a format")
}

#[test]
fn a_large_record_is_judged_by_all_of_its_samples_and_drawn_by_some() {
    let large = large();
    let directory = write(&large);
    let result = RunResult::read(directory.path()).expect("a run");
    let whole = document(&large, directory.path(), Vec::new());
    assert_eq!(result.document, whole);
    let drawn = result.reading.run.samples.len();
    assert!(drawn < large.samples.len() && drawn > 1000, "{drawn}");

    let page = html(&result.reading, &result.document).expect("a page");
    assert!(page.len() <= 1_000_000, "{} bytes", page.len());
    assert!(page.contains("of 4800 samples, those of every so many-th round"));
    for format in RunResult::OTHERS {
        let text = format.print(&result, Terminal::default()).expect("a text");
        let rows = text.lines().count();
        match format.option() {
            // Those that are not drawn are read again.
            "csv" => assert_eq!(rows, large.samples.len() + 1),
            option => assert!(text.len() <= 1_000_000, "{option}: {} bytes", text.len()),
        }
    }
}

/// Its lines are parsed in shares, by several threads.
#[test]
fn a_fault_deep_in_a_large_record_is_named_by_its_line() {
    let directory = write(&large());
    let path = directory.path().join("samples.jsonl");
    let text = std::fs::read_to_string(&path).expect("samples");
    let damaged: Vec<&str> = text
        .lines()
        .enumerate()
        .map(|(at, line)| if at == 2999 { "{" } else { line })
        .collect();
    std::fs::write(&path, damaged.join("\n")).expect("written");
    let error = RunResult::read(directory.path()).expect_err("a damaged line");
    assert!(
        error.to_string().contains("samples.jsonl, line 3000: "),
        "{error}"
    );
}

#[test]
fn a_record_of_ordinary_size_is_drawn_as_a_whole() {
    let run = run(10, Cores::Split);
    let directory = write(&run);
    let result = RunResult::read(directory.path()).expect("a run");
    assert_eq!(result.reading.run, run);
    let csv = |result: &RunResult| format("csv").print(result, Terminal::default());
    let rows = csv(&result).expect("rows");
    assert_eq!(rows, wirecost_report::csv(&run).expect("rows"));
    let page = html(&result.reading, &document(&run, Path::new("x"), Vec::new()));
    assert!(!page.expect("a page").contains("so many-th"));
}
