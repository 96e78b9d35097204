//! What monitoring and benchmark services read of a run.

mod fixture;

use std::collections::{BTreeMap, BTreeSet};

use fixture::run;
use wirecost_model::plan::Cores;
use wirecost_report::{Format, Formatted, RunResult, Terminal};

const ANY: Terminal = Terminal {
    width: 80,
    colour: false,
    ascii: false,
    detail: wirecost_report::Detail::Usual,
};

fn printed(option: &str, result: &RunResult) -> String {
    let mut formats = RunResult::OTHERS.iter();
    let format: &dyn Format<RunResult> = *formats
        .find(|format| format.option() == option)
        .expect("a format");
    format.print(result, ANY).expect("a text")
}

fn result(rounds: u32, cores: Cores) -> RunResult {
    let directory = fixture::write(&run(rounds, cores));
    RunResult::read(directory.path()).expect("a run")
}

#[test]
fn gauges_have_base_units_and_a_cell_ten_series_at_most() {
    let result = result(4, Cores::Split);
    let text = printed("openmetrics", &result);
    insta::assert_snapshot!(text);
    let mut series: BTreeMap<&str, u32> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("cell=\"")) {
        let (_, rest) = line.split_once("cell=\"").expect("a cell");
        *series
            .entry(rest.split('"').next().expect("a number"))
            .or_default() += 1;
    }
    assert_eq!(series.len(), 8);
    assert!(
        series.values().all(|count| (4..=10).contains(count)),
        "{series:?}"
    );
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn labels_of_a_plan_cannot_break_the_format() {
    let mut run = run(2, Cores::Split);
    run.head.experiment.plan.name = "a \"plan\" \\ of mine".into();
    let directory = fixture::write(&run);
    let result = RunResult::read(directory.path()).expect("a run");
    let text = printed("openmetrics", &result);
    let line = text
        .lines()
        .find(|line| line.starts_with("wirecost_run_complete"));
    assert_eq!(
        line,
        Some("wirecost_run_complete{plan=\"a \\\"plan\\\" \\\\ of mine\"} 1")
    );
}

#[test]
fn no_series_has_a_label_twice_whatever_the_factors_are_called() {
    let mut run = fixture::loads::with_and_without_requests(3);
    fixture::also_vary(
        &mut run,
        &["load", "cell", "estimate", "tcp metrics", "tcp-metrics"],
    );
    let directory = fixture::write(&run);
    let text = printed(
        "openmetrics",
        &RunResult::read(directory.path()).expect("a run"),
    );
    for line in text.lines().filter(|line| line.starts_with("wirecost_")) {
        let (_, labels) = line.split_once('{').expect("labels");
        // What stands between the values, none of which has a quote.
        let names: Vec<&str> = labels.split('"').step_by(2).collect();
        let different: BTreeSet<&str> = names.iter().map(|name| name.trim_matches(',')).collect();
        assert_eq!(names.len(), different.len(), "{line}");
    }
    let levels = "factor_load=\"one\",factor_cell=\"one\",factor_estimate=\"one\",tcp_metrics=\"one\",\
                  factor_tcp_metrics=\"one\"";
    assert!(
        text.contains(&format!("{levels},load=\"ping\",estimate=\"mean\"")),
        "{text}"
    );
}

#[test]
fn benchmarks_have_measures_with_bounds_and_a_single_round_none() {
    insta::assert_snapshot!(printed("bencher", &result(4, Cores::Shared)));
    let single = printed("bencher", &result(1, Cores::Split));
    assert!(
        single.contains("\"value\"") && !single.contains("\"lower_value\""),
        "{single}"
    );
}
