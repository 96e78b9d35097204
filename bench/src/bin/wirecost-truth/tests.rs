use std::collections::BTreeSet;

use clap::CommandFactory;
use serde_json::{Value, json};
use wirecost_model::metric::Metric::{ReceiverCpu, Throughput};

use super::*;
use crate::case::{Claim, Direction, Expectation, Kind, RunMethod};
use crate::judge::{PlanOutcome, judge, of_comparison, unmeasured};

fn parsed(words: &[&str]) -> Arguments {
    Arguments::try_parse_from(["bench"].iter().chain(words)).expect("fine")
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn cases_are_chosen_by_their_names_or_parts_of_them() {
    let names = |words: &[&str]| -> Vec<&str> {
        let cases = parsed(words).cases().expect("some");
        cases.iter().map(|case| case.name).collect()
    };
    assert_eq!(names(&["--row", "hop"]), ["hop"]);
    assert_eq!(
        names(&["--row", "udp", "--row", "hop"]),
        ["hop", "udp-segments", "udp-paced"]
    );
    let error = parsed(&["--row", "sctp"]).cases().expect_err("none");
    insta::assert_snapshot!(error, @"no case has `sctp` in its name: --list shows them");
}

#[test]
fn each_case_has_a_name_of_its_own_a_plan_and_claims_of_its_kind() {
    let cases = parsed(&[]).cases().expect("all");
    let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len());
    for case in cases {
        assert!(!case.claims.is_empty(), "{}", case.name);
        let experiment = match wirecost_plan::load(case.name, case.plan) {
            Ok(experiment) => experiment,
            Err(error) => {
                let refused = |claim: &Claim| matches!(claim.expectation, Expectation::Refused(_));
                assert!(case.claims.iter().all(refused), "{}: {error:?}", case.name);
                continue;
            }
        };
        for claim in case.claims {
            let varied = experiment
                .compared()
                .any(|factor| factor.key == claim.factor);
            let whole_run = matches!(case.way, RunMethod::Compare(_)) && claim.factor.is_empty();
            assert!(varied || whole_run, "{}: {}", case.name, claim.factor);
            let finds = matches!(claim.expectation, Expectation::Found(_));
            assert_eq!(finds, case.kind == Kind::Effect, "{}", case.name);
        }
    }
}

/// A result with one effect of two cells, 29 and `packets` segments a packet.
fn result(verdict: &str, ratio: f64, segments: f64) -> Value {
    let cell = |level: &str, segments: f64| {
        json!({ "levels": { "encapsulation": level, "offload": "tunnel" },
                "segments_per_packet": { "median": segments }, "skipped": null })
    };
    json!({
        "cells": [cell("none", 29.0), cell("vxlan", segments)],
        "effects": [{
            "factor": "encapsulation", "from": "none", "to": "vxlan", "where": { "offload": "tunnel" },
            "load": "tcp-stream", "metric": "throughput", "verdict": verdict,
            "ratio": ratio, "low": ratio * 0.9, "high": ratio * 1.1,
        }],
    })
}

fn holds(expectation: Expectation, result: &Value) -> bool {
    let claim = Claim {
        factor: "encapsulation",
        at: &[("encapsulation", "vxlan"), ("offload", "tunnel")],
        metrics: &[Throughput],
        expectation,
    };
    let findings = judge(&claim, &PlanOutcome::Result(result));
    assert_eq!(findings.len(), 1);
    findings[0].holds
}

#[test]
fn what_is_spoken_is_held_against_what_may_be() {
    let costs = result("costs", 0.8, 29.0);
    let pays = result("pays", 1.9, 1.0);
    let same = result("makes_no_difference", 1.0, 29.0);
    let barred = result("not_comparable", 1.9, 1.0);
    let loses = result("loses", 0.93, 29.0);
    for (expectation, holding) in [
        (Expectation::Silent, [false, false, true, true, true]),
        (Expectation::Mute, [false, false, false, true, true]),
        (
            Expectation::Alike(Direction::Worse),
            [true, false, true, true, true],
        ),
        (
            Expectation::Alike(Direction::Better),
            [false, false, true, true, true],
        ),
        (
            Expectation::Within(0.7, 1.0),
            [true, false, true, true, true],
        ),
        (
            Expectation::Neither(Direction::Better),
            [true, false, false, true, true],
        ),
        (
            Expectation::Found(Direction::Worse),
            [true, false, false, false, true],
        ),
        (
            Expectation::Found(Direction::Better),
            [false, true, false, false, false],
        ),
    ] {
        let held = [&costs, &pays, &same, &barred, &loses].map(|result| holds(expectation, result));
        assert_eq!(held, holding, "{expectation:?}");
    }
    let unlike = result("costs", 0.8, 12.0);
    assert!(!holds(Expectation::Alike(Direction::Worse), &unlike));
}

#[test]
fn what_is_not_there_is_not_found_and_a_refusal_is_no_verdict() {
    let claim = |expectation| Claim {
        factor: "encapsulation",
        at: &[],
        metrics: &[ReceiverCpu],
        expectation,
    };
    let result = result("costs", 0.8, 29.0);
    let judged = |expectation, plan_outcome: &PlanOutcome<'_>| {
        judge(&claim(expectation), plan_outcome)[0].holds
    };
    let there = PlanOutcome::Result(&result);
    let refused = PlanOutcome::Refused("\n  add a hop\n");
    for (expectation, absent, when_refused) in [
        (Expectation::Silent, false, false),
        (Expectation::SilentIfThere, true, false),
        (Expectation::Found(Direction::Worse), false, false),
        (Expectation::Refused("hop"), false, true),
        (Expectation::Refused("line"), false, false),
        (Expectation::RefusedOrWithin(0.9, 1.1), false, true),
    ] {
        assert_eq!(judged(expectation, &there), absent, "{expectation:?}");
        assert_eq!(
            judged(expectation, &refused),
            when_refused,
            "{expectation:?}"
        );
    }
}

#[test]
fn a_cell_without_a_valid_sample_is_no_silence() {
    let result = json!({
        "cells": [{ "cell": 0, "valid": 4, "skipped": null }, { "cell": 1, "valid": 0, "skipped": null },
                  { "cell": 2, "valid": 0, "skipped": "no driver" }],
        "invalid": [{ "cell": 1, "round": 0, "reason": "the command failed" }],
    });
    let findings = unmeasured(&result);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].found.as_str(), findings[0].holds),
        ("the command failed", false)
    );
}

#[test]
fn a_comparisons_figures_are_its_effects() {
    let comparison = json!({ "cells": [{ "levels": { "guest_mtu": "1500" }, "figures": [
        { "load": "tcp-stream", "metric": "throughput", "verdict": "costs", "ratio": 0.8 },
    ] }] });
    let result = of_comparison(&comparison);
    let claim = Claim {
        factor: "",
        at: &[("guest_mtu", "1500")],
        metrics: &[],
        expectation: Expectation::Found(Direction::Worse),
    };
    let finding = &judge(&claim, &PlanOutcome::Result(&result))[0];
    assert!(finding.holds);
    assert_eq!(
        format!("{}: {}", finding.what, finding.found),
        "after instead of before, guest_mtu 1500: tcp-stream throughput: x0.800 costs"
    );
}
