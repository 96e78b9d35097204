//! What a run cannot be relied on for is said before its verdicts, and what is not comparable instead of one.

mod fixture;

use std::path::Path;

use fixture::{run, write};
use wirecost_model::effect::Verdict;
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, Run};
use wirecost_model::sample::{Mark, Sample};
use wirecost_report::compare::{Compared, Comparison, Conclusion, FailOn, Strictness, compare};
use wirecost_report::{
    Detail, Document, Terminal, TrustLevel, comparison_junit, comparison_markdown,
    comparison_terminal, document, html, markdown, read, terminal,
};

const PLAIN: Terminal = Terminal {
    width: 4000,
    colour: false,
    ascii: false,
    detail: Detail::Full,
};

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/x"), Vec::new())
}

/// The first samples of a run beside another program.
fn disturbed(mut run: Run, samples: usize) -> Run {
    for sample in &mut run.samples[..samples] {
        sample.marks.push(Mark::ForeignLoad {
            cores: 0.9,
            threshold: 0.05,
        });
    }
    run
}

/// The receiver of every sample with a tunnel got packets of so many segments.
fn aggregated(mut run: Run, segments: u64) -> Run {
    let tunnel = |sample: &&mut Sample| matches!(sample.cell, 2 | 3 | 6 | 7);
    for sample in run.samples.iter_mut().filter(tunnel) {
        let receiver = sample.receiver.as_mut().expect("host b");
        receiver.guest.tcp_in /= segments;
    }
    run
}

fn first_line(text: &str) -> &str {
    text.lines().next().expect("a line")
}

#[test]
fn a_sound_run_says_nothing_of_it() {
    let doc = doc(&run(4, Cores::Split));
    assert_eq!(doc.trust.level, TrustLevel::Sound);
    let text = terminal(&doc, PLAIN);
    assert!(text.contains("Trust: complete") && !text.contains("Doubtful"));
    assert!(!markdown(&doc).contains("Doubtful"));
}

#[test]
fn more_than_a_fifth_of_the_samples_disturbed_is_said_first() {
    // 32 samples.
    let level = |samples| doc(&disturbed(run(4, Cores::Split), samples)).trust.level;
    assert_eq!(level(6), TrustLevel::Sound);
    assert_eq!(level(7), TrustLevel::Doubtful);
    let run = disturbed(run(4, Cores::Split), 7);
    let doc = doc(&run);
    let why = "7 of 32 samples may have been disturbed (foreign load 7)";
    assert_eq!(doc.trust.reasons, [why]);
    assert_eq!(
        first_line(&terminal(&doc, PLAIN)),
        format!("Doubtful: {why}.")
    );
    assert!(first_line(&markdown(&doc)).starts_with("**Doubtful:** 7 of 32 samples"));
    let reading = read(write(&run).path()).expect("a run");
    let page = html(&reading, &doc).expect("a page");
    assert!(page.contains("<title>Doubtful: jumbo-or-not:"), "{page}");
    let (lead, name) = (page.find(why), page.find("<h1>"));
    assert!(lead < name, "before the name");
    let json = serde_json::to_value(&doc).expect("JSON");
    assert_eq!(json["trust"]["level"], "doubtful");
    assert_eq!(json["trust"]["reasons"][0], why);
}

#[test]
fn a_run_that_stopped_early_says_so_first_and_once() {
    let mut run = run(4, Cores::Split);
    run.samples.truncate(16);
    let end = run.end.as_mut().expect("an end");
    end.outcome = Outcome::Failed;
    end.reason = Some("the agent of host a ended".into());
    let doc = doc(&run);
    let text = terminal(&doc, PLAIN);
    assert_eq!(
        first_line(&text),
        "Doubtful: stopped after 2 of 4 rounds: failed (the agent of host a ended)."
    );
    assert_eq!(text.matches("stopped after").count(), 1, "{text}");
}

#[test]
fn the_reason_stands_in_the_verdicts_place_in_every_form() {
    let run = aggregated(run(4, Cores::Split), 29);
    let doc = doc(&run);
    let why = "the receiver got 1.0 with none and 29 with vxlan in segments per packet";
    let barred: Vec<_> = doc
        .effects
        .iter()
        .filter(|effect| effect.verdict == Verdict::NotComparable)
        .collect();
    assert!(!barred.is_empty());
    for effect in &barred {
        assert_eq!(effect.factor, "encapsulation");
        assert!(effect.not_comparable.is_some() && effect.corrected.is_none());
        assert!(effect.second_opinions.is_empty());
    }
    let text = terminal(&doc, PLAIN);
    assert!(
        text.contains(&format!("- not comparable: {why}: put a switch")),
        "{text}"
    );
    let sentence = format!("{} are not comparable (aggregation).", barred.len());
    assert!(text.contains(&sentence), "{text}");
    assert!(
        !text.contains("VXLAN instead of no encapsulation costs"),
        "{text}"
    );
    // What is not said is not in the family.
    let family = doc.effects.iter().filter(|one| one.corrected.is_some());
    assert_eq!(family.count(), doc.effects.len() - barred.len());
    assert!(!text.contains("among all 36 effects"), "{text}");
    assert!(markdown(&doc).contains(&format!("<br>{why}")));
    let reading = read(write(&run).path()).expect("a run");
    let page = html(&reading, &doc).expect("a page");
    assert!(page.contains("data-verdict=\"barred\"><span class=\"badge\">≠ not comparable</span>"));
    assert!(page.contains(why));
    let json = serde_json::to_value(&doc).expect("JSON");
    let effects = json["effects"].as_array().expect("effects");
    let one = effects
        .iter()
        .find(|effect| effect["verdict"] == "not_comparable");
    assert_eq!(one.expect("one")["not_comparable"]["kind"], "aggregation");
}

#[test]
fn core_time_below_its_resolution_is_less_than_something() {
    let mut run = run(2, Cores::Split);
    for sample in &mut run.samples {
        sample.sender.as_mut().expect("host a").cores[0].busy_s = 0.04;
    }
    let doc = doc(&run);
    let cell = &doc.cells[0];
    assert_eq!(cell.sender_cpu_percent_per_gbps, None);
    // 0.2 s for some 12.4 Gbit.
    let below = cell.loads[0].cpu_below.values().next().expect("a bound");
    assert!((1.5..1.8).contains(below), "{below}");
    for text in [terminal(&doc, PLAIN), markdown(&doc)] {
        assert!(
            text.contains(&format!("<{below:.1}")) || text.contains(&format!("&lt;{below:.1}")),
            "{text}"
        );
    }
    for effect in doc
        .effects
        .iter()
        .filter(|effect| effect.metric.words() == "sender CPU per Gbit/s")
    {
        assert_eq!(effect.verdict, Verdict::NotComparable);
    }
}

fn compared(before: &Run, after: &Run, fail_on: FailOn) -> Comparison {
    let docs = [before, after].map(doc);
    let strictness = Strictness {
        fail_on,
        corrected: false,
    };
    let of = |run, document| Compared { run, document };
    compare(of(before, &docs[0]), of(after, &docs[1]), strictness)
}

#[test]
fn a_comparison_with_a_disturbed_run_cannot_tell_and_says_why_first() {
    let before = run(4, Cores::Split);
    let mut after = disturbed(run(4, Cores::Split), 32);
    for sample in &mut after.samples {
        sample.loads[0].stream.as_mut().expect("a stream").bytes /= 2;
    }
    let why = "32 of 32 samples may have been disturbed (foreign load 32)";
    for (first, second, which) in [(&before, &after, "after"), (&after, &before, "before")] {
        let comparison = compared(first, second, FailOn::Costs);
        assert_eq!(comparison.conclusion, Conclusion::CannotTell);
        assert_eq!(comparison.failures, 0);
        let line = format!("Cannot tell: {which}, {why}.");
        assert_eq!(first_line(&comparison_terminal(&comparison, PLAIN)), line);
        assert!(first_line(&comparison_markdown(&comparison)).contains("Cannot tell: "));
        let mut figures = comparison.cells.iter().flat_map(|cell| &cell.figures);
        assert!(figures.all(|figure| figure.judged.verdict == Verdict::NotComparable));
        let junit = comparison_junit(&comparison).expect("XML");
        assert!(
            !junit.contains("<failure") && junit.contains(why),
            "{junit}"
        );
        assert!(junit.contains(" type=\"not_comparable\"/>"), "{junit}");
    }
    let strict = compared(&before, &after, FailOn::CannotTell);
    assert_eq!(strict.conclusion, Conclusion::Regression);
}

#[test]
fn between_two_runs_aggregation_is_told_and_may_be_the_regression() {
    let before = run(4, Cores::Split);
    let after = aggregated(run(4, Cores::Split), 29);
    let comparison = compared(&before, &after, FailOn::Costs);
    assert_eq!(comparison.conclusion, Conclusion::NoRegression);
    let text = comparison_terminal(&comparison, PLAIN);
    let beside = "note: the receiver got 1.0 before and 29 after in segments per packet";
    assert!(text.contains(beside), "{text}");
}
