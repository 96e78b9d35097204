//! A published study beside a run: what agrees, what differs, and that every form says so.

mod fixture;

use fixture::levels;
use wirecost_model::metric::Metric;
use wirecost_model::plan::{AwaitedEffects, Cores, StoppingRule};
use wirecost_model::published::{
    Outcome, Published, PublishedChart, PublishedComparison, PublishedValue, Rule, Unmeasured,
};
use wirecost_model::record::{AdaptiveEnd, Run, RunEnd, StopReason};
use wirecost_report::{Document, Terminal, document, html, markdown, terminal};
use wirecost_stats::published::Agreement;

const SHARED: [(&str, &str); 2] = [("offload", "none"), ("streams", "1")];

fn comparison(
    what: &str,
    metric: Outcome,
    levels_of: [[&str; 2]; 2],
    value: Option<PublishedValue>,
) -> PublishedComparison {
    PublishedComparison {
        what: what.into(),
        metric,
        cells: levels_of.map(|[mtu, encapsulation]| {
            let own = [("guest_mtu", mtu), ("encapsulation", encapsulation)];
            levels(&[&own[..], &SHARED[..]].concat())
        }),
        value,
        inferred: false,
        note: None,
    }
}

/// A run whose plan has comparisons of VXLAN at 1500 and 8900 without offloads.
fn run() -> Run {
    let mut run = fixture::run(6, Cores::Split);
    let throughput = Outcome::Of(Metric::Throughput);
    let sender = Outcome::Of(Metric::SenderCpu);
    let larger = [["1500", "vxlan"], ["8900", "vxlan"]];
    run.head.experiment.plan.published = Some(Published {
        source: "somebody".into(),
        title: Some("Frames".into()),
        environment: Some("a switch of theirs".into()),
        scaled: Some("nothing".into()),
        rule: Some(Rule::Trimmed),
        comparisons: vec![
            comparison(
                "larger frames",
                throughput,
                larger,
                Some(PublishedValue::Values([4.6, 9.33])),
            ),
            comparison(
                "smaller frames",
                throughput,
                larger,
                Some(PublishedValue::Ratio(0.5)),
            ),
            comparison(
                "CPU",
                sender,
                larger,
                Some(PublishedValue::Difference(-3.0)),
            ),
            comparison("CPU of both", Outcome::HostsCpu, larger, None),
        ],
        unmeasured: vec![Unmeasured {
            what: "a second testbed".into(),
            why: "it has disks".into(),
        }],
        charts: vec![PublishedChart {
            title: "Throughput".into(),
            metric: throughput,
            by: "guest_mtu".into(),
            series: Some("encapsulation".into()),
            levels: levels(&SHARED[..1]),
        }],
        ..Published::default()
    });
    run
}

fn worked_out(run: &Run) -> Document {
    let dir = fixture::write(run);
    document(run, dir.path(), Vec::new())
}

#[test]
fn each_comparison_is_told_by_its_interval() {
    let doc = worked_out(&run());
    let published = doc.published.expect("published");
    let told: Vec<Option<Agreement>> = published
        .comparisons
        .iter()
        .map(|one| one.agreement)
        .collect();
    assert_eq!(
        told,
        [
            Some(Agreement::Agrees),
            Some(Agreement::Differs),
            Some(Agreement::Agrees),
            None
        ]
    );
    let [larger, _, cpu, both] = &published.comparisons[..] else {
        panic!("four");
    };
    assert!(larger.here.is_some_and(|ratio| (1.5..2.5).contains(&ratio)));
    assert!(
        larger
            .ruled()
            .is_some_and(|ratio| (1.5..2.5).contains(&ratio))
    );
    assert!(cpu.is_difference && cpu.high.is_some_and(|high| high < 0.0));
    assert!(both.here.is_some() && both.figures[0].is_some());
    assert_eq!(
        published.sentence.as_deref(),
        Some(
            "Reproduced in part: 2 of 4 published comparisons agree, 1 differs, 1 is not comparable"
        )
    );
}

#[test]
fn an_adaptive_run_has_its_own_intervals_of_what_gets_no_verdict_too() {
    let until = |why: Option<StopReason>| {
        let mut run = run();
        let repeat = &mut run.head.experiment.plan.repeat;
        repeat.rounds = 60;
        repeat.until = Some(StoppingRule {
            precision: 0.02,
            min_rounds: 6,
            budget_s: 300.0,
            ask: AwaitedEffects::All,
        });
        let until = why.map(|why| AdaptiveEnd { why, ends_at: 6 });
        run.end = run.end.filter(|_| until.is_some());
        run.end = run.end.map(|end| RunEnd { until, ..end });
        let published = worked_out(&run).published.expect("published");
        published.comparisons
    };
    let fixed = worked_out(&run()).published.expect("published").comparisons;
    let ended = until(Some(StopReason::MaxRounds));
    let looking = until(None);
    let [difference, busy] = [2, 3];
    for one in [difference, busy] {
        let (fixed, ended) = (&fixed[one], &ended[one]);
        assert_eq!(fixed.here, ended.here);
        assert!(ended.low.is_some() && ended.low < fixed.low, "{ended:?}");
        assert!(ended.high > fixed.high, "{ended:?}");
    }
    // No interval of a difference holds at any stopping time.
    assert!(looking[difference].here.is_some());
    assert_eq!(
        (looking[difference].low, looking[difference].high),
        (None, None)
    );
    assert_eq!(looking[difference].agreement, Some(Agreement::CannotTell));
    assert!(looking[busy].low < ended[busy].low, "{:?}", looking[busy]);
}

#[test]
fn a_cell_without_a_valid_sample_is_not_comparable() {
    let mut run = run();
    let cells = &run.head.experiment.cells;
    let gone = cells.iter().find(|cell| {
        cell.guest_mtu == 8900
            && cell.levels["encapsulation"] == "vxlan"
            && cell.levels["offload"] == "none"
    });
    let gone = gone.expect("a cell").index;
    run.samples.retain(|sample| sample.cell != gone);
    let published = worked_out(&run).published.expect("published");
    assert_eq!(published.tally.not_comparable, 4);
    assert!(published.comparisons[0].reason.is_some());
}

#[test]
fn a_percentile_that_one_round_lacks_is_not_comparable() {
    let mut run = fixture::loads::asking(6, Cores::Split);
    run.head.experiment.plan.published = Some(Published {
        source: "somebody".into(),
        comparisons: vec![comparison(
            "larger frames",
            Outcome::Of(Metric::LatencyP99),
            [["1500", "vxlan"], ["8900", "vxlan"]],
            Some(PublishedValue::Ratio(0.5)),
        )],
        ..Published::default()
    });
    let few = run.samples.iter_mut().find(|sample| sample.cell == 2);
    let requests = few.expect("a sample").loads[0].requests.as_mut();
    requests.expect("requests").latency = fixture::loads::latency(50_000, 900);
    let published = worked_out(&run).published.expect("published");
    let one = &published.comparisons[0];
    assert_eq!((one.here, one.figures[0]), (None, None));
    assert_eq!(
        one.reason.as_deref(),
        Some("too few transactions for this percentile")
    );
}

#[test]
fn a_share_of_responses_that_cannot_rise_is_not_compared_with_one_that_rose() {
    let within = |value| {
        let mut run = fixture::loads::asking(6, Cores::Split);
        run.head.experiment.plan.published = Some(Published {
            source: "somebody".into(),
            comparisons: vec![comparison(
                "larger frames",
                Outcome::Within500us,
                [["1500", "vxlan"], ["8900", "vxlan"]],
                Some(PublishedValue::Values(value)),
            )],
            ..Published::default()
        });
        let published = worked_out(&run).published.expect("published");
        let [one] = &published.comparisons[..] else {
            panic!("one comparison");
        };
        assert!(one.figures.iter().all(|share| *share > Some(98.0)));
        (one.agreement, one.reason.clone())
    };
    let full = "nearly all responses are within 500 us in both cells";
    assert_eq!(
        within([65.0, 85.0]),
        (Some(Agreement::NotComparable), Some(full.into()))
    );
    assert_eq!(within([85.0, 65.0]), (Some(Agreement::Differs), None));
}

#[test]
fn a_chart_has_a_group_for_each_level_and_what_was_published_of_its_cells() {
    let published = worked_out(&run()).published.expect("published");
    let [chart] = &published.charts[..] else {
        panic!("one chart");
    };
    let of = |group: usize, bar: usize| {
        let bar = &chart.groups[group].bars[bar];
        (bar.label.as_str(), bar.published)
    };
    assert_eq!(of(0, 0), ("none", None));
    assert_eq!(of(0, 1), ("vxlan", Some(4.6)));
    assert_eq!(of(1, 1), ("vxlan", Some(9.33)));
    assert!(chart.groups[0].bars[0].here.is_some());
}

#[test]
fn every_form_begins_with_whether_it_was_reproduced() {
    let run = run();
    let dir = fixture::write(&run);
    let doc = document(&run, dir.path(), Vec::new());
    let text = terminal(&doc, Terminal::default());
    assert!(text.starts_with("Reproduced in part: 2 of 4"), "{text}");
    assert!(text.contains("differs         smaller frames"), "{text}");
    assert!(text.contains("theirs was a switch of theirs"), "{text}");
    assert!(markdown(&doc).contains("larger frames (throughput)"));
    let reading = wirecost_report::read(dir.path()).expect("a record");
    let page = html(&reading, &doc).expect("a page");
    assert!(page.contains("id=\"study-0\"") && page.contains("measured here"));
    assert!(doc.answer.to_do.is_empty(), "a study asks for no advice");
}
