//! Other people's rules beside ours.

mod fixture;

use std::path::Path;

use fixture::run;
use wirecost_model::machine_move::{MachineMove, MoveOutcome};
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_model::sample::Invalid;
use wirecost_report::{Detail, Document, Terminal, document, html, read, rules};
use wirecost_stats::rules::PbenchOutcome;

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/x"), Vec::new())
}

/// Six sets of rounds, cell 2 of which is wild, and of cell 3 all but two samples are invalid.
fn wild() -> Run {
    let mut run = run(36, Cores::Split);
    for sample in &mut run.samples {
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        match sample.cell {
            2 if sample.round % 2 == 0 => stream.bytes /= 2,
            3 if sample.round > 1 => sample.invalid = Some(Invalid::Load("it broke".into())),
            _ => {}
        }
    }
    run
}

#[test]
fn they_are_shown_by_name_with_their_meaning_and_time() {
    let options = Terminal {
        width: 120,
        colour: false,
        detail: Detail::Full,
        ..Terminal::default()
    };
    insta::assert_snapshot!(rules(&doc(&wild()), options));
}

#[test]
fn a_set_that_never_settles_is_a_failure_of_that_rule_and_of_none_of_ours() {
    let doc = doc(&wild());
    let [_, _, wild, few, ..] = &doc.other_rules.cells[..] else {
        panic!("{:?}", doc.other_rules)
    };
    assert_eq!(wild.pbench.outcome, PbenchOutcome::NeverSettled);
    assert_eq!(wild.netperf.map(|netperf| netperf.met), Some(Some(false)));
    assert_eq!(
        (few.samples, few.trimmed_gbps, few.netperf),
        (2, None, None)
    );
    assert_eq!(few.pbench.outcome, PbenchOutcome::RanOut);
    assert_eq!(doc.cells[2].valid, 36);
}

#[test]
fn steady_cells_take_pbench_one_set_each() {
    let doc = doc(&run(10, Cores::Split));
    let rules = &doc.other_rules;
    let settled = |rule: &PbenchOutcome| matches!(rule, PbenchOutcome::Settled { .. });
    assert!(rules.cells.iter().all(|cell| settled(&cell.pbench.outcome)));
    // Samples take 1.3 s each.
    let pbench_s = rules.pbench_s.expect("a time");
    assert!((pbench_s - 8.0 * 5.0 * 1.3).abs() < 0.1, "{pbench_s}");
    assert!((rules.ours_s - 8.0 * 10.0 * 1.3).abs() < 1e-6);
    for (cell, rules) in doc.cells.iter().zip(&rules.cells) {
        let throughput = cell.throughput_gbps.expect("figures");
        assert_eq!(rules.worst_of_gbps, Some(throughput.min));
    }
}

#[test]
fn the_page_has_them_in_a_table() {
    let run = wild();
    let dir = fixture::write(&run);
    let reading = read(dir.path()).expect("a record");
    let page = html(&reading, &document(&reading.run, dir.path(), Vec::new())).expect("a page");
    assert!(
        page.contains("<td>a failure: none of 6 sets settled</td>"),
        "{page}"
    );
}

#[test]
fn the_time_of_moves_has_the_rules_that_make_one_figure_of_several() {
    let mut run = run(5, Cores::Split);
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == 1) {
        // 1 s to 5 s, of which the last one did not converge.
        let total_s = f64::from(sample.round + 1);
        sample.loads[0].client_seconds = total_s;
        sample.loads[0].moves = vec![MachineMove {
            outcome: if total_s < 5.0 {
                MoveOutcome::Moved
            } else {
                MoveOutcome::NotConverged
            },
            total_s,
            downtime_s: 0.01,
            ..MachineMove::default()
        }];
    }
    let doc = doc(&run);
    let [none, moves, ..] = &doc.other_rules.cells[..] else {
        panic!("{:?}", doc.other_rules)
    };
    assert_eq!((none.trimmed_move_s, none.worst_of_move_s), (None, None));
    assert_eq!(moves.trimmed_move_s, Some(2.5));
    assert_eq!(moves.worst_of_move_s, Some(4.0));
    let page = rules(&doc, Terminal::default());
    assert!(
        page.contains("trimmed move s") && page.contains("2.50"),
        "{page}"
    );
}
