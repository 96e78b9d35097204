//! Adaptive runs, as every form of the result tells of them.

mod fixture;

use std::path::Path;

use fixture::{adaptive, run};
use wirecost_model::effect::Verdict;
use wirecost_model::plan::{AwaitedEffects, Cores};
use wirecost_model::record::{Run, StopReason};
use wirecost_model::sample::Invalid;
use wirecost_report::{
    Detail, Document, Intervals, Terminal, document, html, markdown, read, terminal,
};

/// A run of so many rounds that ended for that reason, of at most 60.
fn until(rounds: u32, why: Option<StopReason>) -> Run {
    adaptive(run(rounds, Cores::Split), why)
}

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/x"), Vec::new())
}

fn print(run: &Run) -> String {
    let options = Terminal {
        width: 120,
        colour: false,
        detail: Detail::Full,
        ..Terminal::default()
    };
    terminal(&doc(run), options)
}

#[test]
fn a_run_that_knows_everything_says_so_first() {
    insta::assert_snapshot!(print(&until(12, Some(StopReason::Known))));
}

#[test]
fn every_form_says_how_many_rounds_and_why_it_stopped() {
    for (why, words) in [
        (
            StopReason::Known,
            "because every effect asked for is known; 36 of 36 effects known",
        ),
        (
            StopReason::MaxRounds,
            "because the plan allows no more rounds; 36 of 36",
        ),
        (
            StopReason::Budget,
            "because another round did not fit into the budget of 300 s; 36 of 36",
        ),
    ] {
        let run = until(12, Some(why));
        let dir = fixture::write(&run);
        let reading = read(dir.path()).expect("a record");
        let doc = document(&reading.run, dir.path(), Vec::new());
        let one_line = terminal(
            &doc,
            Terminal {
                width: 1000,
                colour: false,
                detail: Detail::Full,
                ..Terminal::default()
            },
        );
        let page = html(&reading, &doc).expect("a page");
        for text in [one_line, markdown(&doc), page] {
            assert!(text.contains("stopped after 12 rounds"), "{text}");
            assert!(text.contains(words), "{text}");
        }
    }
}

#[test]
fn percentiles_that_samples_have_too_few_requests_for_are_named() {
    let text = |count: u64, invalid: Option<Invalid>| {
        let mut run = fixture::loads::asking(6, Cores::Split);
        for sample in &mut run.samples {
            let requests = sample.loads[0].requests.as_mut().expect("requests");
            requests.latency = fixture::loads::latency(50_000, count);
            sample.invalid = invalid.clone().filter(|_| sample.cell != 0);
        }
        let mut run = adaptive(run, Some(StopReason::Known));
        let until = run.head.experiment.plan.repeat.until.as_mut();
        until.expect("adaptive").ask = AwaitedEffects::Latency;
        markdown(&doc(&run))
    };
    let words = "because no effect asked for can become known: samples have too few transactions";
    let sparse = text(19, None);
    assert!(sparse.contains(words), "{sparse}");
    // p99.9 lacks transactions, which is not the reason.
    let invalid = text(5000, Some(Invalid::Build("no".into())));
    assert!(
        invalid.contains("no effect asked for can become known;"),
        "{invalid}"
    );
}

#[test]
fn its_intervals_are_a_little_wider_than_those_of_a_fixed_number_of_rounds() {
    let (fixed, until) = (
        doc(&run(8, Cores::Split)),
        doc(&until(8, Some(StopReason::Known))),
    );
    assert_eq!(until.rounds_planned, 8);
    assert_eq!(
        until.until.as_ref().map(|u| u.intervals),
        Some(Intervals::Reported)
    );
    for (fixed, until) in fixed.effects.iter().zip(&until.effects) {
        let width =
            |low: Option<f64>, high: Option<f64>| (high.expect("high") / low.expect("low")).ln();
        let wider = width(until.low, until.high) / width(fixed.low, fixed.high);
        // t of 7 degrees at 95.7 % and at 95 %.
        assert!((1.01..1.08).contains(&wider), "{wider}");
    }
}

#[test]
fn what_something_else_stopped_has_the_intervals_that_may_be_looked_at_at_any_time() {
    let stopped = doc(&until(8, None));
    let ended = doc(&until(8, Some(StopReason::Known)));
    let result = stopped.until.as_ref().expect("until");
    assert_eq!(
        (result.intervals, result.stopped),
        (Intervals::Lasting, None)
    );
    assert_eq!(stopped.rounds_planned, 60);
    for (lasting, reported) in stopped.effects.iter().zip(&ended.effects) {
        assert_eq!(lasting.ratio, reported.ratio);
        assert!(lasting.low <= reported.low, "{lasting:?} {reported:?}");
        assert!(lasting.high.is_none() || lasting.high >= reported.high);
    }
    let text = markdown(&stopped);
    assert!(
        text.contains("stopped after 8 of at most 60 rounds:"),
        "{text}"
    );
    assert!(text.contains("hold at any stopping time"), "{text}");
}

#[test]
fn too_few_rounds_have_no_lasting_interval_and_no_verdict() {
    let mut run = until(3, None);
    run.end = None;
    let doc = doc(&run);
    for effect in &doc.effects {
        assert!(effect.ratio.is_some());
        assert_eq!((effect.low, effect.high), (None, None));
        assert_eq!(effect.verdict, Verdict::CannotTellYet);
    }
}

#[test]
fn a_record_of_such_a_run_reads_back_as_it_was() {
    let run = until(7, Some(StopReason::Budget));
    let dir = fixture::write(&run);
    assert_eq!(read(dir.path()).expect("a record").run, run);
}

#[test]
fn only_a_record_that_was_cut_lacks_samples() {
    let warnings = |run: &Run| {
        let dir = fixture::write(run);
        read(dir.path()).expect("a record").warnings.join("\n")
    };
    for why in [StopReason::Known, StopReason::Budget, StopReason::MaxRounds] {
        let mut run = until(12, Some(why));
        assert_eq!(warnings(&run), "", "{why:?}");
        run.samples.pop();
        let cut = warnings(&run);
        assert!(cut.contains("holds 95 of 96 samples"), "{why:?}: {cut}");
    }
    // Whole rounds: more than there can be without.
    for (why, left, words) in [
        (StopReason::Budget, 88, "88 of 96"),
        (StopReason::Known, 40, "40 of 48"),
    ] {
        let mut run = until(12, Some(why));
        run.samples.truncate(left);
        let cut = warnings(&run);
        assert!(cut.contains(words), "{why:?}: {cut}");
    }
}
