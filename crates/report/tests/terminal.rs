//! What the terminal shows.

mod fixture;

use std::path::Path;

use fixture::{on_existing_hosts, run};
use wirecost_model::cell::Factor;
use wirecost_model::effect::Verdict;
use wirecost_model::end_window::Schedule;
use wirecost_model::load::Rate;
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, Run};
use wirecost_model::sample::{FailedAttempt, Invalid, Mark};
use wirecost_report::{Detail, Document, Terminal, document, terminal};

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/jumbo-or-not-1"), Vec::new())
}

fn print(run: &Run, width: usize) -> String {
    let options = Terminal {
        width,
        colour: false,
        detail: Detail::Full,
        ..Terminal::default()
    };
    terminal(&doc(run), options)
}

/// As it is printed without an option.
fn usual(run: &Run, width: usize) -> String {
    let options = Terminal {
        width,
        ..Terminal::default()
    };
    terminal(&doc(run), options)
}

#[test]
fn a_complete_run_as_it_is_usually_printed() {
    insta::assert_snapshot!(usual(&run(10, Cores::Split), 100));
}

#[test]
fn what_existing_hosts_lack_is_said_once() {
    let said = |run: &Run, words: &str| {
        [usual(run, 100), print(run, 100)].map(|text| {
            let text: Vec<&str> = text.split_whitespace().collect();
            text.join(" ").matches(words).count()
        })
    };
    let mut run = run(3, Cores::Split);
    assert_eq!(said(&run, "cores are not pinned"), [0; 2], "a lab");
    on_existing_hosts(&mut run);
    assert_eq!(said(&run, "cores are not pinned"), [1; 2]);
    assert_eq!(said(&run, "not captured"), [0; 2], "a tunnel's are");
    for cell in &mut run.head.experiment.cells {
        cell.levels.remove("encapsulation");
    }
    assert_eq!(said(&run, "frames on the path are not captured"), [1; 2]);
}

/// What a user asks after `wirecost run` without arguments.
#[test]
fn five_questions_are_answered_by_the_first_twelve_lines() {
    let first = |rounds: u32| {
        let text = usual(&run(rounds, Cores::Split), 100);
        let lines: Vec<&str> = text.lines().take(12).collect();
        lines.join("\n").replace("\n  ", " ")
    };
    let (known, short) = (first(10), first(4));
    for (question, lines, answer) in [
        (
            "are jumbo frames worth it through VXLAN with offloads?",
            &known,
            "8 % faster through VXLAN with offloads",
        ),
        (
            "what does VXLAN cost at most, and where?",
            &known,
            "VXLAN: 21 % slower at 1500 without offloads",
        ),
        (
            "which single change is best?",
            &known,
            "jumbo frames (8900) alone (6.2 -> 9.8 Gbit/s), the best single change",
        ),
        (
            "what is not known?",
            &short,
            "Of 36 comparisons 6 are not known yet",
        ),
        (
            "can I trust this run?",
            &known,
            "Trust: complete, 80 of 80 samples valid, none disturbed.",
        ),
    ] {
        assert!(lines.contains(answer), "{question}\n{lines}");
    }
}

#[test]
fn the_built_in_plan_is_answered_on_one_screen() {
    let run = run(10, Cores::Split);
    for (width, most, first) in [(100, 45, 12), (80, 60, 16), (120, 45, 12)] {
        let text = usual(&run, width);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.len() <= most,
            "{width}: {} lines\n{text}",
            lines.len()
        );
        assert!(
            lines[0].starts_with("Offloads: 1.5 to 1.8 times as fast"),
            "{}",
            lines[0]
        );
        let trust = |line: &&str| line.contains("Trust: complete, 80 of 80");
        let end = lines.iter().position(trust);
        assert!(
            end.is_some_and(|end| end <= first),
            "{width}: {end:?}\n{text}"
        );
        for line in lines {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn quiet_prints_the_answer_alone_and_ascii_has_no_other_letters() {
    let doc = doc(&run(10, Cores::Split));
    let print = |detail, ascii| {
        terminal(
            &doc,
            Terminal {
                detail,
                ascii,
                ..Terminal::default()
            },
        )
    };
    let (answer, usual) = (print(Detail::Answer, false), print(Detail::Usual, false));
    assert!(
        usual.starts_with(&answer) && answer.lines().count() <= 12,
        "{answer}"
    );
    assert!(usual.contains('▲') && !usual.is_ascii());
    for detail in [Detail::Answer, Detail::Usual] {
        assert!(print(detail, true).is_ascii(), "{}", print(detail, true));
    }
    assert!(print(Detail::Usual, true).contains("+ x1."));
}

#[test]
fn no_column_is_left_out_on_a_narrow_terminal() {
    let run = run(3, Cores::Split);
    for width in [40, 60, 80] {
        let text = usual(&run, width);
        for head in ["Gbit/s", "sender", "valid"] {
            assert!(text.contains(head), "{width}: {head}\n{text}");
        }
    }
}

#[test]
fn a_complete_run_at_120_columns() {
    insta::assert_snapshot!(print(&run(4, Cores::Split), 120));
}

#[test]
fn a_disturbed_and_interrupted_run_at_70_columns() {
    let mut run = run(4, Cores::Split);
    run.samples.truncate(20);
    for at in [3, 11, 19] {
        run.samples[at].invalid = Some(Invalid::Proof(
            "1500 bytes from a to b were not acknowledged before the window".into(),
        ));
    }
    run.samples[5].marks = vec![
        Mark::ForeignLoad {
            cores: 0.4,
            threshold: 0.1,
        },
        Mark::BacklogDrops {
            host: "b".into(),
            packets: 12,
        },
    ];
    let end = run.end.as_mut().expect("an end");
    end.outcome = Outcome::Interrupted;
    end.reason = Some("SIGINT".into());
    insta::assert_snapshot!(print(&run, 70));
}

#[test]
fn samples_that_were_measured_again_are_named_once_they_are_valid() {
    let mut run = run(4, Cores::Split);
    let failed = |reason: &str| FailedAttempt {
        invalid: Invalid::Load(reason.into()),
        marks: Vec::new(),
        took_s: 1.0,
    };
    let empty = || failed("nothing arrived within the window");
    run.samples[3].failed_attempts = vec![empty(), failed("the server ended")];
    run.samples[11].failed_attempts = vec![empty()];
    // Its reason to be invalid is named already.
    run.samples[12].failed_attempts = vec![empty()];
    run.samples[12].invalid = Some(empty().invalid);
    let text = print(&run, 120);
    let (_, caveats) = text.split_once("Caveats").expect("caveats");
    insta::assert_snapshot!(caveats.split("\n\n").next().unwrap_or_default());
    let again = serde_json::to_value(doc(&run)).expect("JSON")["measured_again"].take();
    assert_eq!(again.as_array().map(Vec::len), Some(3), "{again}");
}

#[test]
fn small_messages_are_counted_beside_their_throughput() {
    let mut run = run(2, Cores::Split);
    let column = "k messages/s";
    assert!(!print(&run, 160).contains(column));
    for cell in &mut run.head.experiment.cells {
        cell.loads[0].load.request = 128;
    }
    let text = print(&run, 160);
    assert!(text.contains(column), "{text}");
    let row = text.lines().find(|line| line.starts_with("1500"));
    let figures = row.unwrap_or_default().split_whitespace();
    let figures: Vec<f64> = figures.filter_map(|one| one.parse().ok()).collect();
    // Behind the guest MTU: Gbit/s, its deviation, messages.
    let [_, gbps, _, messages, ..] = figures[..] else {
        panic!("{text}");
    };
    let expected = gbps * 1e9 / 8.0 / 128.0 / 1e3;
    assert!((messages / expected - 1.0).abs() < 0.01, "{text}");
}

#[test]
fn a_cell_to_which_a_factor_means_nothing_has_a_dash_for_its_level() {
    let mut run = run(2, Cores::Split);
    let experiment = &mut run.head.experiment;
    experiment.factors.insert(
        0,
        Factor {
            key: "underlay.ip".into(),
            levels: vec!["ipv4".into(), "ipv6".into()],
        },
    );
    for cell in &mut experiment.cells {
        if cell.network.encapsulation.is_tunnel() {
            cell.levels.insert("underlay.ip".into(), "ipv6".into());
        }
    }
    let printed = print(&run, 120);
    let table = printed.lines().skip_while(|line| !line.starts_with("- "));
    let first_columns: Vec<_> = table
        .take(8)
        .map(|line| {
            line.split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        first_columns,
        [
            "- 1500 none",
            "- 1500 none",
            "ipv6 1500 vxlan",
            "ipv6 1500 vxlan",
            "- 8900 none",
            "- 8900 none",
            "ipv6 8900 vxlan",
            "ipv6 8900 vxlan"
        ]
    );
    let of_tunnel =
        "VXLAN instead of no encapsulation, IPv6 underlay, guest MTU 1500, without offloads";
    assert!(printed.contains(of_tunnel), "{printed}");
}

#[test]
fn every_line_fits_the_width() {
    for width in [40, 50, 60, 70, 80, 99, 120, 200] {
        for line in print(&run(3, Cores::Split), width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let doc = doc(&run(3, Cores::Split));
    let text = |colour| {
        terminal(
            &doc,
            Terminal {
                width: 80,
                colour,
                detail: Detail::Full,
                ..Terminal::default()
            },
        )
    };
    let coloured = text(true);
    assert!(coloured.contains("\x1b[1;32mpays\x1b[0m"));
    assert!(!text(false).contains('\x1b'));
    let mut plain = String::new();
    for part in coloured.split('\x1b') {
        plain += match part.strip_prefix('[').and_then(|rest| rest.split_once('m')) {
            Some((_, rest)) => rest,
            None => part,
        };
    }
    assert_eq!(plain, text(false));
}

#[test]
fn another_sample_is_another_output() {
    let (before, mut after) = (run(3, Cores::Split), run(3, Cores::Split));
    let stream = after.samples[7].loads[0].stream.as_mut().expect("a stream");
    stream.bytes = stream.bytes / 10 * 9;
    assert_ne!(print(&before, 120), print(&after, 120));
}

#[test]
fn a_cell_without_a_valid_sample_has_no_figures_and_its_effects_cannot_be_told() {
    let mut run = run(3, Cores::Split);
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == 0) {
        sample.invalid = Some(Invalid::Load("the server ended".into()));
        sample.loads.clear();
    }
    let doc = doc(&run);
    assert_eq!((doc.cells[0].valid, doc.cells[0].samples), (0, 3));
    assert_eq!(doc.cells[0].throughput_gbps, None);
    let untold: Vec<_> = doc.effects.iter().filter(|e| e.rounds == 0).collect();
    assert_eq!(untold.len(), 9);
    assert!(untold.iter().all(|e| e.verdict == Verdict::CannotTellYet));
    let text = print(&run, 200);
    assert!(text.contains("0/3"), "{text}");
    assert!(text.contains("(no valid pair)"), "{text}");
    assert!(text.contains("rounds 1, 2, 3: the server ended"), "{text}");
}

#[test]
fn one_round_cannot_tell_yet() {
    let run = run(1, Cores::Split);
    assert!(
        doc(&run)
            .effects
            .iter()
            .all(|e| e.verdict == Verdict::CannotTellYet)
    );
    let text = print(&run, 200);
    assert!(
        // 9.75 / (6.2 * 0.988), by the fixture.
        text.contains("throughput x1.59 - cannot tell yet (an interval needs two rounds)"),
        "{text}"
    );
}

#[test]
fn a_run_without_a_valid_sample_says_so() {
    let mut run = run(1, Cores::Split);
    run.samples.clear();
    run.end = None;
    let text = print(&run, 80);
    assert!(
        text.contains("No sample is valid: there is no result."),
        "{text}"
    );
    assert!(
        text.contains("stopped after 0 of 1 round: the record has no end"),
        "{text}"
    );
}

#[test]
fn shared_cores_have_one_cpu_column() {
    let text = print(&run(3, Cores::Shared), 120);
    assert!(text.contains("both hosts share cores 0-1"), "{text}");
    assert!(text.contains(": CPU per Gbit/s x"), "{text}");
    assert!(!text.contains("sender"), "{text}");
}

#[test]
fn a_published_ratio_stands_beside_the_measured_one() {
    let text = print(&run(3, Cores::Split), 160);
    assert!(
        text.contains(
            "guest MTU 8900 instead of 1500, VXLAN, without offloads                  x2.03  x1.9"
        ),
        "{text}"
    );
}

#[test]
fn warnings_are_shown() {
    let doc = document(
        &run(2, Cores::Split),
        Path::new("/runs/x"),
        vec!["samples.jsonl, line 9 is incomplete".into()],
    );
    let text = terminal(
        &doc,
        Terminal {
            width: 80,
            colour: false,
            detail: Detail::Full,
            ..Terminal::default()
        },
    );
    assert!(
        text.contains("Warning: samples.jsonl, line 9 is incomplete."),
        "{text}"
    );
}

#[test]
fn what_a_record_says_cannot_steer_the_terminal() {
    let mut run = run(2, Cores::Split);
    run.head.experiment.plan.name = "red\u{1b}[31m and \u{9b}2J".into();
    run.samples[0].invalid = Some(Invalid::Load("bell \u{7}, title \u{1b}]0;x".into()));
    for colour in [false, true] {
        let text = terminal(
            &doc(&run),
            Terminal {
                width: 80,
                colour,
                detail: Detail::Full,
                ..Terminal::default()
            },
        );
        assert!(text.contains("red\u{241b}[31m and \u{fffd}2J"), "{text}");
        assert!(text.contains("title \u{241b}]0;x"), "{text}");
        let ours = |rest: &str| {
            ["[0m", "[1m", "[2m", "[1;32m", "[1;31m", "[32m", "[33m"]
                .iter()
                .any(|sequence| rest.starts_with(sequence))
        };
        assert!(text.split('\u{1b}').skip(1).all(ours), "{text}");
        let control = |c: char| c.is_control() && c != '\n' && c != '\u{1b}';
        assert!(!text.contains(control), "{text}");
    }
}

#[test]
fn more_than_the_line_can_carry_is_no_result() {
    let mut run = run(2, Cores::Split);
    assert!(
        doc(&run)
            .warnings
            .iter()
            .all(|warning| !warning.contains("their line can carry"))
    );
    let (cell, rate) = {
        let cell = &mut run.head.experiment.cells[0];
        let rate = cell.network.rate.get_or_insert(10_000_000_000);
        (cell.index, *rate)
    };
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == cell) {
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        stream.bytes = (rate as f64 / 8.0) as u64;
    }
    let warnings = doc(&run).warnings;
    let beyond = warnings
        .iter()
        .find(|warning| warning.contains("their line can carry"));
    let beyond = beyond.expect("a warning");
    assert!(beyond.starts_with("1 of 8 cells measured more"), "{beyond}");
}

#[test]
fn requests_that_do_not_keep_to_their_rate_are_a_warning_of_their_cells() {
    let mut run = fixture::loads::asking(4, Cores::Split);
    let cells = run.head.experiment.cells.len();
    // Between 10,000 and 20,000 a second are answered.
    for (cell, rate) in run.head.experiment.cells.iter_mut().zip([1e5, 1e2, 1e5]) {
        cell.loads[0].load.rate = Some(Rate::RequestsPerSecond(rate));
    }
    let doc = doc(&run);
    let of = |cell: usize| doc.cells[cell].loads[0].missed_schedule;
    assert_eq!([of(0), of(1), of(2), of(3)], [4, 0, 4, 0]);
    let said = format!("requests of ping did not keep their rate in 2 of {cells} cells: ");
    assert!(
        doc.warnings
            .iter()
            .any(|warning| warning.starts_with(&said)),
        "{:?}",
        doc.warnings
    );
}

#[test]
fn a_stream_behind_its_rate_has_messages_and_no_latencies() {
    let mut run = run(4, Cores::Split);
    run.head.experiment.cells[0].loads[0].load.rate = Some(Rate::BitsPerSecond(10_000_000_000));
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == 0) {
        sample.loads[0].schedule = Some(Schedule {
            due: 10_000.0,
            sent: 6_000.0,
            backlog_before: 0.0,
            backlog_after: 4_000.0,
        });
    }
    let warnings = doc(&run).warnings;
    let said = "messages of tcp-stream did not keep their rate in 1 of 8 cells: ";
    assert!(
        warnings.iter().any(|warning| warning.starts_with(said)),
        "{warnings:?}"
    );
    let text = print(&run, 200);
    assert!(text.contains("Behind schedule: tcp-stream at 6."), "{text}");
    assert!(!text.contains("latencies are not compared"), "{text}");
}
