//! CPU at the line and without it, and wake-ups, in every form.

mod fixture;

use std::path::Path;

use fixture::run;
use scraper::{Html, Selector};
use wirecost_model::plan::Cores;
use wirecost_model::record::{Run, WakeupCost};
use wirecost_model::sample::{AtTarget, Saturated};
use wirecost_model::usage::{HostUsage, Wakeups};
use wirecost_report::{Detail, RecordedRun, Terminal, document, html, terminal};

/// At the line timers wake the sender 20,000 times a second; without it four times as much gets through in as much core
/// time.
fn with_two_windows(cost: Option<WakeupCost>) -> Run {
    let mut run = run(2, Cores::Split);
    run.head.environment.wakeup_cost = cost;
    for sample in &mut run.samples {
        let (Some(sender), Some(receiver)) = (&mut sample.sender, &mut sample.receiver) else {
            continue;
        };
        let woken = |usage: &mut HostUsage, timer, function_call| {
            usage.wakeups = Some(Wakeups {
                timer,
                function_call,
                ..Wakeups::default()
            });
        };
        let mut loads = sample.loads.clone();
        for stream in loads.iter_mut().filter_map(|load| load.stream.as_mut()) {
            stream.bytes *= 4;
        }
        woken(sender, 20_000, 1_000);
        woken(receiver, 100, 5_000);
        let mut saturated = Saturated {
            loads,
            sender: sender.clone(),
            receiver: receiver.clone(),
            marks: Vec::new(),
        };
        woken(&mut saturated.sender, 250, 1_000);
        woken(&mut saturated.receiver, 250, 1_000);
        sample.saturated = Some(saturated);
    }
    run
}

const COST: Option<WakeupCost> = Some(WakeupCost {
    timer_ns: 17_000,
    other_core_ns: 13_000,
});

fn print(run: &Run, width: usize) -> String {
    let doc = document(run, Path::new("/runs/x"), Vec::new());
    let colour = false;
    terminal(
        &doc,
        Terminal {
            width,
            colour,
            detail: Detail::Full,
            ..Terminal::default()
        },
    )
}

#[test]
fn the_terminal_has_a_table_of_both_windows() {
    let text = print(&with_two_windows(COST), 120);
    let from = text.find("CPU at the line").expect("the heading");
    let section: Vec<&str> = text[from..].lines().take(17).collect();
    insta::assert_snapshot!(section.join("\n"));
}

#[test]
fn without_a_second_window_and_without_wakeups_there_is_no_such_table() {
    let text = print(&run(2, Cores::Split), 120);
    assert!(!text.contains("wake-up"), "{text}");
}

#[test]
fn a_short_window_is_told_with_the_seconds_that_two_windows_need() {
    let mut run = with_two_windows(COST);
    run.head.experiment.plan.repeat.seconds = 0.5;
    let doc = document(&run, Path::new("/runs/x"), Vec::new());
    let said = "windows of 0.25 s hold 25 of the 10 ms steps that CPU time is read in: do not rely on CPU verdicts, \
                measure 0.4 s or longer for these (two share `seconds`: 0.8)";
    assert!(
        doc.warnings.iter().any(|warning| warning == said),
        "{:#?}",
        doc.warnings
    );
    // A window at the storage target takes as much of the time.
    for sample in &mut run.samples {
        let loads = sample.loads.clone();
        sample.saturated = None;
        sample.at_target = Some(AtTarget { loads });
    }
    let doc = document(&run, Path::new("/runs/x"), Vec::new());
    assert!(doc.warnings.iter().any(|warning| warning == said));
}

#[test]
fn what_a_wakeup_costs_may_be_unknown() {
    let text = print(&with_two_windows(None), 300);
    assert!(
        text.contains("The cost of a wake-up here is not known."),
        "{text}"
    );
    assert!(!text.contains("50%"), "no share without it: {text}");
}

#[test]
fn the_page_and_the_json_document_have_the_same_figures() {
    let run = with_two_windows(COST);
    let doc = document(&run, Path::new("/runs/x"), Vec::new());
    let found = doc.wakeups.as_ref().expect("wake-ups");
    assert_eq!(found.cells.len(), doc.cells.len());
    let sender = &found.cells[0].hosts[0];
    let without = sender.without_line.expect("two windows");
    assert!((sender.usual.percent_per_gbps / without.percent_per_gbps - 4.0).abs() < 1e-6);
    // Verdicts and the table of cells are about the window without the line.
    let summary = doc.cells[0].sender_cpu_percent_per_gbps.expect("CPU");
    assert!((summary.median - without.percent_per_gbps).abs() < 1e-9);

    let reading = RecordedRun {
        run,
        warnings: Vec::new(),
        plan_text: None,
    };
    let page = Html::parse_document(&html(&reading, &doc).expect("a page"));
    let row = Selector::parse("#wakeups tbody tr").expect("a selector");
    let rows: Vec<String> = page
        .select(&row)
        .map(|row| row.text().collect::<Vec<_>>().join("|"))
        .collect();
    assert_eq!(rows.len(), 2 * doc.cells.len());
    insta::assert_snapshot!(rows[0]);
}
