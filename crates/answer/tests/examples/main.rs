//! Worked examples: from figures to sentences. What they come to is examples.md, which is compared word by word;
//! `UPDATE_DOCS=1 cargo test -p wirecost-answer` writes it anew.

mod cases;
mod question;

use std::fmt::Write as _;
use std::{env, fs};

use wirecost_answer::{Question, answer};
use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;
use wirecost_model::plan::Levels;

use question::{At, Case};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples/examples.md");

fn levels(levels: &Levels) -> String {
    let each: Vec<String> = levels
        .iter()
        .map(|(key, level)| format!("{key} {level}"))
        .collect();
    each.join(", ")
}

/// The figures that a question is made of, and what is answered.
fn example(name: &str, question: &Question) -> String {
    let mut text = format!("## {name}\n\n");
    for cell in &question.cells {
        let figures = cell.figures.iter().map(|(figure, reading)| {
            let median = reading.median;
            format!("{} {} {median:.4}", figure.load, figure.metric.words())
        });
        let figures: Vec<String> = figures.collect();
        writeln!(text, "    {}: {}", levels(&cell.levels), figures.join("; ")).expect("a string");
    }
    let not_comparable = question
        .effects
        .iter()
        .filter(|judged| judged.verdict == Verdict::NotComparable)
        .count();
    let undecided = question
        .effects
        .iter()
        .filter(|judged| judged.verdict == Verdict::CannotTellYet)
        .count();
    let all = question.effects.len();
    writeln!(
        text,
        "\n{all} effects, of which {undecided} are not known and {not_comparable} are not comparable.\n"
    )
    .expect("a string");
    for sentence in answer(question).sentences() {
        writeln!(text, "- {sentence}").expect("a string");
    }
    text.push('\n');
    text
}

#[test]
fn the_examples_are_answered_so() {
    let cases = cases::all();
    assert!(cases.len() >= 30, "{}", cases.len());
    let mut text = String::from("# Worked examples\n\nMade by the tests of this crate.\n\n");
    for (name, question) in &cases {
        text.push_str(&example(name, question));
    }
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(FILE, &text).expect("written");
    }
    let known = fs::read_to_string(FILE).unwrap_or_default();
    for (ours, theirs) in text.lines().zip(known.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(text.lines().count(), known.lines().count());
}

fn says(question: &Question, words: &str) -> bool {
    answer(question)
        .sentences()
        .any(|sentence| sentence.contains(words))
}

#[test]
fn the_time_of_a_move_is_told_where_the_limit_of_the_dirty_rate_pays() {
    let with = |large: f64| {
        move |at: At| {
            Some(if at.is("guest_mtu", "9000") {
                large
            } else {
                1.0
            })
        }
    };
    let moves = Case::of(&[("guest_mtu", &["1500", "9000"])])
        .runs("migration", Workload::Migration)
        .load("migration", Metric::DirtyLimit, with(1.5))
        .load("migration", Metric::MoveTime, with(1.2));
    assert!(says(&moves.ask(), "time of the move 20 % higher"));
}

#[test]
fn the_median_is_told_where_the_rate_was_kept_although_it_was_not_elsewhere() {
    let is_tunnel = |at: At| at.is("encapsulation", "vxlan");
    let paced = Case::of(&[
        ("encapsulation", &["none", "vxlan"]),
        ("guest_mtu", &["1500", "8900"]),
    ])
    .load("ping", Metric::Transactions, move |at| {
        let is_behind = is_tunnel(at) && at.is("guest_mtu", "1500");
        Some(if is_behind { 5000.0 } else { 10_000.0 })
    })
    .load("ping", Metric::LatencyMedian, move |at| {
        Some(if is_tunnel(at) { 80.0 } else { 50.0 })
    })
    .not_comparable(RemarkKind::Schedule, |effect| {
        effect.metric == Metric::LatencyMedian
            && effect.where_.values().any(|level| level == "1500")
    });
    assert!(says(&paced.ask(), "median latency"));
}

#[test]
fn of_a_paced_load_that_keeps_its_rate_the_cell_with_the_shortest_tail_is_best() {
    let paced = Case::of(&[("guest_mtu", &["1500", "8900"])])
        .load("ping", Metric::Transactions, |_| Some(10_000.0))
        .load("ping", Metric::LatencyP99, |at| {
            Some(if at.is("guest_mtu", "8900") {
                45.0
            } else {
                90.0
            })
        });
    assert!(says(
        &paced.ask(),
        "Best: p99 latency of 45.0 us at 8900. Cheapest change to within 5 % of it: jumbo frames (8900) alone"
    ));
}

#[test]
fn what_costs_elsewhere_is_told_behind_what_pays_in_the_same_place() {
    let at = |small: f64, large: f64| {
        move |at: At| {
            let of = if at.is("guest_mtu", "8900") {
                large
            } else {
                small
            };
            if at.is("encapsulation", "vxlan") {
                of
            } else {
                10.0
            }
        }
    };
    let opposed = Case::of(&[
        ("encapsulation", &["none", "vxlan"]),
        ("guest_mtu", &["1500", "8900"]),
    ])
    .figure(Metric::Throughput, at(5.0, 10.0))
    .figure(Metric::SenderCpu, at(15.0, 8.0));
    assert!(says(
        &opposed.ask(),
        "CPU per Gbit/s 1.5 times as high there, 20 % lower at 8900"
    ));
}

/// Lines of a text at so many columns, the second and further ones indented.
fn lines(text: &str, columns: usize) -> usize {
    let (mut lines, mut column) = (1, 0);
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > columns {
            lines += 1;
            column = 2 + width;
        } else {
            column += usize::from(column > 0) + width;
        }
    }
    lines
}

#[test]
fn the_answer_of_every_built_in_plan_is_within_eleven_lines_of_a_hundred_columns() {
    for (name, question) in cases::plans() {
        let answer = answer(&question);
        let sentences = answer.sentences();
        let lines: usize = sentences.map(|sentence| lines(&sentence, 100)).sum();
        assert!(lines <= 11, "{name}: {lines} lines");
    }
}

#[test]
fn every_built_in_plan_is_among_the_examples() {
    let plans = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans");
    let names: Vec<&str> = cases::plans().into_iter().map(|(name, _)| name).collect();
    for plan in fs::read_dir(plans).expect("the plans") {
        let path = plan.expect("a plan").path();
        // Published studies are not ours to answer.
        if path.is_dir() {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        assert!(names.contains(&&*name), "no example of {name}");
    }
}

#[test]
fn every_sentence_ends_and_names_no_level_as_the_plan_spells_it() {
    for (name, question) in cases::all() {
        for sentence in answer(&question).sentences() {
            assert!(sentence.ends_with('.'), "{name}: {sentence}");
            for raw in [
                "vxlan",
                "offload none",
                "instead of none, ",
                "  ",
                " ,",
                "()",
            ] {
                assert!(!sentence.contains(raw), "{name}: {raw}: {sentence}");
            }
        }
    }
}

#[test]
fn what_cannot_be_told_is_never_given_a_size() {
    for (name, mut question) in cases::all() {
        for judged in &mut question.effects {
            judged.verdict = Verdict::CannotTellYet;
        }
        for one in answer(&question).factors {
            let claims = [
                "faster",
                "slower",
                "higher",
                "lower",
                "no difference",
                " times ",
            ];
            assert!(
                claims.iter().all(|claim| !one.says.contains(claim)),
                "{name}: {}",
                one.says
            );
        }
    }
}
