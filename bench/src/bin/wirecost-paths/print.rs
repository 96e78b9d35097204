//! What came of it, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::run::{Measured, ToolResult, median};

fn range(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let middle = median(values.to_vec());
    format!(
        "{middle:7.3} s ({least:.3} to {most:.3}, {} runs)",
        values.len()
    )
}

fn mtu(mtu: Option<u32>) -> String {
    mtu.map_or_else(|| "-".to_owned(), |mtu| mtu.to_string())
}

/// What the file expects: by direction.
fn expected(network: &Measured) -> Vec<Option<u32>> {
    network
        .fault
        .expect
        .paths
        .iter()
        .map(|path| path.mtu)
        .collect()
}

fn together(mtus: impl Iterator<Item = Option<u32>>) -> String {
    mtus.map(mtu).collect::<Vec<_>>().join(" / ")
}

fn is_right(network: &Measured, result: &[ToolResult; 2]) -> bool {
    result.iter().map(|result| result.mtu).eq(expected(network))
}

/// A table for each network.
pub(crate) fn text(measured: &[Measured], bound: f64) -> String {
    let mut text = String::new();
    for network in measured {
        let wanted = together(expected(network).into_iter());
        let _ = writeln!(text, "{}: {wanted}", network.fault.name);
        let seconds: Vec<f64> = network.checks.iter().map(|check| check.seconds).collect();
        let last = network.checks.last();
        let answer = last.map_or_else(String::new, |check| {
            together(check.answer.paths.iter().map(|path| path.mtu))
        });
        let right = match (network.wrong(), &network.fault.not_yet) {
            (0, None) => "right".to_owned(),
            (0, Some(_)) => "not named yet".to_owned(),
            (wrong, _) => format!("WRONG {wrong} times"),
        };
        let held = if network.median() <= bound {
            "within"
        } else {
            "NOT within"
        };
        let _ = writeln!(
            text,
            "  {:14} {answer:13} {right:6} {}, {held} {bound} s",
            "wirecost check",
            range(&seconds)
        );
        for (tool, rounds) in &network.others {
            let seconds: Vec<f64> = rounds
                .iter()
                .flatten()
                .map(|result| result.seconds)
                .collect();
            let right = rounds
                .iter()
                .filter(|result| is_right(network, result))
                .count();
            let right = match right {
                0 => "wrong".to_owned(),
                all if all == rounds.len() => "right".to_owned(),
                some => format!("right {some} times"),
            };
            let Some(last) = rounds.last() else { continue };
            let answers = together(last.iter().map(|result| result.mtu));
            let exits = last.each_ref().map(|result| result.exit.unwrap_or(-1));
            let _ = writeln!(
                text,
                "  {:14} {answers:13} {right:6} {}, exit {} / {}",
                tool.name(),
                range(&seconds),
                exits[0],
                exits[1]
            );
        }
    }
    text
}

/// One document with every run.
pub(crate) fn document(measured: &[Measured], bound: f64) -> Value {
    let networks = measured.iter().map(|network| {
        let checks = network.checks.iter().map(|check| {
            let mtus: Vec<_> = check.answer.paths.iter().map(|path| path.mtu).collect();
            json!({
                "seconds": check.seconds,
                "own_seconds": check.answer.seconds,
                "mtus": mtus,
                "exit": check.answer.exit,
                "differences": check.answer.differs_from(&network.fault),
            })
        });
        let others = network.others.iter().map(|(tool, rounds)| {
            let runs = rounds.iter().map(|round| {
                json!({
                    "mtus": round.each_ref().map(|result| result.mtu),
                    "seconds": round.each_ref().map(|result| result.seconds),
                    "exits": round.each_ref().map(|result| result.exit),
                    "right": is_right(network, round),
                })
            });
            (tool.name().to_owned(), Value::Array(runs.collect()))
        });
        json!({
            "network": network.fault.name,
            "about": network.fault.about,
            "expected_mtus": expected(network),
            "bound_seconds": bound,
            "good": network.is_good(bound),
            "wirecost": checks.collect::<Vec<_>>(),
            "others": others.collect::<serde_json::Map<_, _>>(),
        })
    });
    json!({ "format": 1, "networks": networks.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests;
