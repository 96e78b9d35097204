//! Whether what was said may be said. From the program's JSON alone: what a user has.

use serde::Serialize;
use serde_json::Value;

use crate::case::{Claim, Expectation};

/// Segments per packet differ by less between cells that aggregate in one place: 27 and 19 were seen of one receiver
/// without and with a tunnel, 29 and 1 of one that does and one that does not.
const ALIKE: f64 = 1.5;

/// One effect that a claim is about, or a claim without one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Finding {
    /// What it is of.
    pub(crate) what: String,
    /// What has to be so.
    pub(crate) expected: String,
    /// What was said.
    pub(crate) found: String,
    pub(crate) holds: bool,
}

/// What was said of a plan.
#[derive(Debug)]
pub(crate) enum PlanOutcome<'a> {
    /// A result, of a run or a comparison.
    Result(&'a Value),
    /// Nothing was measured, for this reason.
    Refused(&'a str),
}

/// Judges a claim: one finding for each effect that it is about, one where there is none.
pub(crate) fn judge(claim: &Claim, plan_outcome: &PlanOutcome<'_>) -> Vec<Finding> {
    let refusal = |reason: &str, holds| {
        vec![Finding {
            what: "the plan".into(),
            expected: claim.expectation.words(),
            found: format!("refused: {}", first_line(reason)),
            holds,
        }]
    };
    let result = match plan_outcome {
        PlanOutcome::Refused(reason) => {
            let holds = match claim.expectation {
                Expectation::Refused(word) => reason.contains(word),
                Expectation::RefusedOrWithin(..) => true,
                _ => false,
            };
            return refusal(reason, holds);
        }
        PlanOutcome::Result(result) => result,
    };
    if let (Expectation::Refused(word), Some(reason)) = (claim.expectation, skipped(result)) {
        return refusal(reason, reason.contains(word));
    }
    let effects: Vec<&Value> = list(&result["effects"])
        .filter(|effect| about(claim, effect))
        .collect();
    if effects.is_empty() {
        return vec![Finding {
            what: claim.factor.into(),
            expected: claim.expectation.words(),
            found: "no such effect".into(),
            holds: claim.expectation == Expectation::SilentIfThere,
        }];
    }
    let found = |effect| Finding {
        what: name(effect),
        expected: claim.expectation.words(),
        found: figures(effect),
        holds: holds(claim.expectation, effect, result),
    };
    effects.into_iter().map(found).collect()
}

/// Cells of which nothing was measured, so that nothing can be said of them either.
pub(crate) fn unmeasured(result: &Value) -> Vec<Finding> {
    let cells = list(&result["cells"])
        .filter(|cell| cell["valid"] == 0 && cell["skipped"].is_null())
        .map(|cell| Finding {
            what: format!("cell {}", cell["cell"]),
            expected: "valid samples".into(),
            found: list(&result["invalid"])
                .find(|sample| sample["cell"] == cell["cell"])
                .and_then(|sample| sample["reason"].as_str())
                .map_or("none".into(), |reason| first_line(reason).into()),
            holds: false,
        });
    cells.collect()
}

/// A comparison of two runs as a document with effects: each figure of each cell.
pub(crate) fn of_comparison(comparison: &Value) -> Value {
    let figures = list(&comparison["cells"]).flat_map(|cell| {
        list(&cell["figures"]).map(|figure| {
            let mut effect = figure.clone();
            effect["where"] = cell["levels"].clone();
            effect["factor"] = "".into();
            effect["from"] = "before".into();
            effect["to"] = "after".into();
            effect
        })
    });
    let effects: Vec<Value> = figures.collect();
    serde_json::json!({ "effects": effects })
}

fn about(claim: &Claim, effect: &Value) -> bool {
    let level = |(key, level): &(&str, &str)| {
        if *key == claim.factor {
            effect["to"] == *level
        } else {
            effect["where"][*key] == *level
        }
    };
    let on = |metric| serde_json::to_value(metric).is_ok_and(|name| effect["metric"] == name);
    effect["factor"] == claim.factor
        && claim.at.iter().all(level)
        && (claim.metrics.is_empty() || claim.metrics.iter().any(on))
}

fn holds(expectation: Expectation, effect: &Value, result: &Value) -> bool {
    let verdict = effect["verdict"].as_str().unwrap_or_default();
    let spoken = matches!(verdict, "pays" | "costs");
    let same = verdict == "makes_no_difference";
    let within = |low: f64, high: f64| {
        effect["ratio"]
            .as_f64()
            .is_some_and(|ratio| (low..=high).contains(&ratio))
    };
    match expectation {
        Expectation::Silent | Expectation::SilentIfThere => !spoken,
        Expectation::Mute => !spoken && !same,
        Expectation::Alike(direction) => {
            !spoken || verdict == direction.verdicts()[0] && alike(effect, result) == Some(true)
        }
        Expectation::Within(low, high) | Expectation::RefusedOrWithin(low, high) => {
            !spoken || within(low, high)
        }
        Expectation::Never(direction) => !direction.verdicts().contains(&verdict),
        Expectation::Neither(direction) => !same && verdict != direction.verdicts()[0],
        Expectation::Found(direction) => direction.verdicts().contains(&verdict),
        Expectation::Refused(_) => false,
    }
}

/// Whether both cells of an effect aggregate alike; `None` where the result does not know.
fn alike(effect: &Value, result: &Value) -> Option<bool> {
    let of = |level: &Value| {
        let cell = list(&result["cells"]).find(|cell| {
            let levels = cell["levels"].as_object();
            levels.is_some_and(|levels| {
                levels.iter().all(|(key, is)| {
                    let wanted = if effect["factor"] == **key {
                        level
                    } else {
                        &effect["where"][key]
                    };
                    is == wanted
                })
            })
        })?;
        cell["segments_per_packet"]["median"].as_f64()
    };
    let [from, to] = [of(&effect["from"])?, of(&effect["to"])?];
    Some(from / to < ALIKE && to / from < ALIKE)
}

/// Why a cell was skipped, where one was.
fn skipped(result: &Value) -> Option<&str> {
    list(&result["cells"]).find_map(|cell| cell["skipped"].as_str())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn name(effect: &Value) -> String {
    let word = |key: &str| effect[key].as_str().unwrap_or_default().to_owned();
    let mut text = format!(
        "{} {} instead of {}",
        word("factor"),
        word("to"),
        word("from")
    );
    for (key, level) in effect["where"].as_object().into_iter().flatten() {
        text = format!("{text}, {key} {}", level.as_str().unwrap_or_default());
    }
    format!("{}: {} {}", text.trim(), word("load"), word("metric"))
}

fn figures(effect: &Value) -> String {
    let number = |key: &str| effect[key].as_f64();
    let mut text = match (number("ratio"), number("low"), number("high")) {
        (Some(ratio), Some(low), Some(high)) => format!("x{ratio:.3} [{low:.3}, {high:.3}] "),
        (Some(ratio), ..) => format!("x{ratio:.3} "),
        _ => String::new(),
    };
    text.push_str(effect["verdict"].as_str().unwrap_or("no verdict"));
    let remark = &effect["not_comparable"];
    if let Some(kind) = remark["kind"].as_str() {
        let why = remark["text"].as_str().unwrap_or_default();
        text = format!("{text} ({kind}: {why})");
    }
    text
}

fn first_line(text: &str) -> &str {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}
