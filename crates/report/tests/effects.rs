//! What stands beside the verdicts: other methods, the whole family, dependences, findings.

mod fixture;

use std::path::Path;

use fixture::run;
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_model::sample::Invalid;
use wirecost_report::{Detail, Document, Terminal, document, html, markdown, read, terminal};
use wirecost_stats::validity::Finding;

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/x"), Vec::new())
}

/// The result in its three forms for people, without line breaks that come from a width.
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
    let page = html(&reading, &doc).expect("a page");
    // Markdown escapes what it would take for markup.
    let plain = markdown(&doc).replace('\\', "");
    [terminal(&doc, options), plain, page]
}

#[track_caller]
fn all_say(run: &Run, words: &str) {
    for form in forms(run) {
        assert!(form.contains(words), "{words}: {form}");
    }
}

/// Multiplies the throughput of one cell's samples, by round.
fn scale(run: &mut Run, cell: u32, by: impl Fn(u32) -> f64) {
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == cell) {
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        stream.bytes = (stream.bytes as f64 * by(sample.round)) as u64;
    }
}

#[test]
fn a_steady_run_has_opinions_and_no_dissent() {
    let doc = doc(&run(12, Cores::Split));
    for effect in &doc.effects {
        assert_eq!(effect.second_opinions.len(), 2);
        let corrected = effect.corrected.expect("corrected");
        assert!(corrected.adjusted_p >= corrected.p);
    }
    let clear = &doc.effects[0];
    assert!(!clear.disagreement);
    assert_eq!(clear.corrected.map(|c| c.verdict), Some(clear.verdict));
}

#[test]
fn one_wild_round_is_a_dissent_and_an_outlier_in_every_form() {
    let mut run = run(12, Cores::Split);
    scale(&mut run, 4, |round| if round == 4 { 0.3 } else { 1.0 });
    assert!(doc(&run).effects.iter().any(|effect| effect.disagreement));
    all_say(&run, "signed rank says it makes no difference (x1.00 ");
    let outlier = "throughput, guest MTU 8900, no encapsulation, without offloads, round 5 x0.3";
    all_say(&run, outlier);
}

#[test]
fn what_is_far_from_the_others_within_the_margin_is_in_the_document_alone() {
    let run = run(12, Cores::Split);
    let found = |wanted: fn(&Finding) -> bool| doc(&run).findings.iter().any(wanted);
    assert!(found(|finding| matches!(finding, Finding::Outliers { .. })));
    assert!(found(|finding| matches!(finding, Finding::TwoModes { .. })));
    for form in forms(&run) {
        assert!(
            !form.contains("Outliers:") && !form.contains("Two modes:"),
            "{form}"
        );
    }
}

#[test]
fn few_rounds_have_no_other_opinion() {
    let doc = doc(&run(5, Cores::Split));
    assert!(
        doc.effects
            .iter()
            .all(|effect| effect.second_opinions.is_empty())
    );
}

#[test]
fn a_verdict_that_does_not_stand_among_all_effects_says_so() {
    // Barely beyond the margin, with a spread that leaves room for doubt.
    let mut run = run(6, Cores::Split);
    scale(&mut run, 7, |round| {
        [1.08, 1.10, 1.14, 1.06, 1.16, 1.09][round as usize] * 0.99
    });
    let doc = doc(&run);
    let weak = doc.effects.iter().find(|effect| {
        effect
            .corrected
            .is_some_and(|corrected| corrected.verdict != effect.verdict)
    });
    assert!(weak.is_some(), "{:#?}", doc.effects);
    all_say(&run, "corrected for all 36 effects, it ");
}

#[test]
fn what_pays_with_one_level_only_is_said_in_words() {
    let run = run(12, Cores::Split);
    all_say(
        &run,
        "throughput: offloads instead of none pays only at 1500 (x1.67 ",
    );
    let doc = doc(&run);
    let metrics: Vec<_> = doc
        .factorials
        .iter()
        .map(|factorial| factorial.metric)
        .collect();
    assert_eq!(metrics.len(), 3);
    assert!(doc.factorials[0].interactions.iter().any(|i| i.matters));
}

#[test]
fn a_drift_is_named_with_its_size() {
    let mut run = run(12, Cores::Split);
    for cell in 0..8 {
        scale(&mut run, cell, |round| 1.0 - 0.02 * f64::from(round));
    }
    all_say(&run, "Drift: throughput fell over the rounds, x0.7");
}

#[test]
fn foreign_load_is_told_for_what_was_seen_of_it() {
    // Thousandths of a core, which would be a factor of millions for a whole one.
    let disturbed = |by: f64| {
        let mut run = run(16, Cores::Split);
        for cell in 0..8 {
            scale(&mut run, cell, |round| 1.0 - by * f64::from(round % 4));
        }
        for sample in &mut run.samples {
            let cores = f64::from(sample.round % 4) * 1e-3;
            sample.sender.as_mut().expect("host").foreign_cores = Some(cores);
        }
        run
    };
    all_say(
        &disturbed(0.05),
        "Foreign load: throughput correlates with the CPU that other programs used, x0.85 from 0.000 to 0.003 cores (p below 0.001)",
    );
    // Within the margin it matters to nobody.
    for form in forms(&disturbed(0.005)) {
        assert!(!form.contains("Foreign load: throughput"), "{form}");
    }
}

#[test]
fn two_modes_are_named_with_their_shares() {
    let mut run = run(24, Cores::Split);
    scale(&mut run, 2, |round| if round % 2 == 0 { 0.5 } else { 1.0 });
    all_say(
        &run,
        "Two modes: throughput of guest MTU 1500, VXLAN, without offloads falls into two groups, x2.0",
    );
    all_say(&run, "50% of 24 samples in the lower one");
}

#[test]
fn what_else_differs_between_migrations_is_told_with_their_time() {
    let mut run = fixture::loads::moving(run(6, Cores::Split), 1.0);
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == 0) {
        // One of a thousand packets.
        let receiver = sample.receiver.as_mut().expect("host");
        receiver.backlog_drops = receiver.guest.tcp_in / 1000;
    }
    all_say(&run, "backlog dropped");
}

#[test]
fn samples_are_counted_against_the_plan() {
    let mut run = run(4, Cores::Split);
    run.samples.truncate(20);
    run.samples[3].invalid = Some(Invalid::Load("it broke".into()));
    all_say(
        &run,
        "Of 32 samples in the plan 20 were taken, and 19 are valid.",
    );
    let whole = fixture::run(4, Cores::Split);
    for form in forms(&whole) {
        assert!(!form.contains("samples in the plan"), "{form}");
    }
}

#[test]
fn what_is_read_again_is_judged_the_same() {
    let run = run(12, Cores::Split);
    assert_eq!(doc(&run), doc(&run));
}

#[test]
fn a_sample_whose_processors_counted_nothing_has_no_cpu_and_spoils_no_other() {
    let whole = doc(&run(8, Cores::Split));
    let mut run = run(8, Cores::Split);
    let sample = &mut run.samples[0];
    for usage in sample.sender.iter_mut().chain(&mut sample.receiver) {
        for core in &mut usage.cores {
            core.busy_s = 0.0;
        }
    }
    let cell = run.samples[0].cell;
    for (before, after) in whole.effects.iter().zip(&doc(&run).effects) {
        assert!(after.ratio.is_some_and(|ratio| ratio > 0.0), "{after:?}");
        let lost = before.rounds - after.rounds;
        assert!(
            lost <= u32::from(after.metric.is_cpu()),
            "cell {cell}: {after:?}"
        );
    }
}
