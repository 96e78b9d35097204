//! The experiments, what they came to, and whether that is as it should be.

use std::collections::BTreeMap;

use serde_json::Value;
use wirecost_bench::program::Wirecost;

/// A bulk stream whose every segment is handled alone: bound by the cores, and steady.
const CELL: &str = "encapsulation: none\nguest_mtu: 1500\noffload: none\n";
/// Bytes of payload a frame of 1500 with TCP timestamps carries, and bytes it takes of a line.
const PAYLOAD: f64 = 1448.0;
const ON_THE_LINE: f64 = 1538.0;

/// How often something was found in so many tries.
#[derive(Default)]
struct Tally {
    shown: u32,
    logs: Vec<f64>,
    half_widths: Vec<f64>,
}

/// One cell measured twice in every round. An interval of 95 % may miss one in twenty times.
pub(crate) fn same(wirecost: &Wirecost, runs: u32) -> Result<bool, String> {
    let plan = format!(
        "name: same\n{CELL}self_test: on\nrepeat: {{ rounds: 8, seconds: 0.5, warmup: 0.2 }}\n"
    );
    let mut tallies = BTreeMap::<String, Tally>::new();
    let mut beyond = 0;
    for run in 1..=runs {
        let result = wirecost.run(&plan)?;
        for metric in list(&result["self_test"]["metrics"])? {
            let tally = tallies.entry(word(&metric["metric"])?).or_default();
            tally.shown += u32::from(flag(&metric["shows_effect"])?);
            beyond += u32::from(flag(&metric["shows_effect"])? && flag(&metric["beyond_worth"])?);
            let ratio = &metric["ratio"];
            tally.logs.push(number(&ratio["ratio"])?.ln());
            tally
                .half_widths
                .push((number(&ratio["high"])? / number(&ratio["low"])?).ln() / 2.0);
        }
        eprintln!("the same cell twice: run {run} of {runs}");
    }
    let allowed = allowed(runs, 0.05);
    println!(
        "The same cell twice, {runs} runs of 8 rounds: runs whose 95 % interval leaves out no difference\n\
         (5 % may; more than {allowed} has a chance below 1 % where the intervals are right)"
    );
    let mut good = true;
    for (metric, tally) in &tallies {
        let verdict = if tally.shown > allowed {
            "too many"
        } else {
            "as it should be"
        };
        good &= tally.shown <= allowed;
        println!(
            "  {metric:<13} {:>2} of {runs}, {verdict}; ratios spread by {:.1} % (sd), half an interval is {:.1} % (median)",
            tally.shown,
            deviation(&tally.logs) * 100.0,
            median(&mut tally.half_widths.clone()) * 100.0,
        );
    }
    println!("  beyond what is worth it (5 %): {beyond} figures");
    Ok(good)
}

/// A line of nine tenths of what the cell came to just before: has to be found every time.
pub(crate) fn slower(wirecost: &Wirecost, runs: u32) -> Result<bool, String> {
    let before =
        format!("name: before\n{CELL}repeat: {{ rounds: 5, seconds: 0.5, warmup: 0.2 }}\n");
    let mut found = 0;
    println!(
        "A line of nine tenths of the throughput just measured, {runs} runs until it is known:"
    );
    for run in 1..=runs {
        let result = wirecost.run(&before)?;
        let gbps = number(&result["cells"][0]["throughput_gbps"]["median"])?;
        let line = (gbps * 0.9 / PAYLOAD * ON_THE_LINE * 1e3).round();
        let plan = format!(
            "name: slower\n{CELL}underlay: {{ rate: [none, {line}mbit] }}\n\
             repeat: {{ precision: 4%, min_rounds: 6, max_rounds: 60, budget: 3min, ask: throughput, \
             seconds: 0.5, warmup: 0.2 }}\n"
        );
        let result = wirecost.run(&plan)?;
        let effect = list(&result["effects"])?
            .iter()
            .find(|effect| effect["metric"] == "throughput")
            .ok_or("the result has no effect on throughput")?;
        let verdict = word(&effect["verdict"])?;
        found += u32::from(matches!(verdict.as_str(), "costs" | "loses"));
        println!(
            "  run {run:>2}: {gbps:.2} Gbit/s before, line {line} Mbit/s: {verdict}, {:.3} [{:.3}, {:.3}] after {} rounds, {:.0} s",
            number(&effect["ratio"])?,
            number(&effect["low"])?,
            number(&effect["high"])?,
            number(&effect["rounds"])?,
            number(&result["seconds"])?,
        );
    }
    println!("  found in {found} of {runs}");
    Ok(found == runs)
}

/// The built-in plan, until every verdict is known.
pub(crate) fn until_known(wirecost: &Wirecost) -> Result<(), String> {
    let built_in = wirecost.plan("jumbo-or-not")?;
    let fixed = built_in
        .lines()
        .find(|line| line.starts_with("repeat:"))
        .ok_or("the built-in plan has no line `repeat:`")?;
    let until = "repeat: { precision: 2%, budget: 10min, seconds: 0.8, warmup: 0.2, worth: 5% }\nself_test: on";
    let plan = built_in.replace(fixed, until);
    let result = wirecost.run(&plan)?;
    let mut verdicts = BTreeMap::<String, u32>::new();
    for effect in list(&result["effects"])? {
        *verdicts.entry(word(&effect["verdict"])?).or_default() += 1;
    }
    let counted: Vec<String> = verdicts
        .iter()
        .map(|(verdict, count)| format!("{verdict} {count}"))
        .collect();
    let spread: Vec<String> = list(&result["self_test"]["metrics"])?
        .iter()
        .map(|metric| {
            let ratio = &metric["ratio"];
            let half = (number(&ratio["high"])? / number(&ratio["low"])?).ln() * 50.0;
            Ok(format!(
                "{} {:.3} +-{half:.1} %",
                word(&metric["metric"])?,
                number(&ratio["ratio"])?
            ))
        })
        .collect::<Result<_, String>>()?;
    println!(
        "The built-in plan, {} cells and a twin, until it is known to 2 % or decided: {:.0} s, {} rounds, {}",
        list(&result["cells"])?.len(),
        number(&result["seconds"])?,
        number(&result["rounds_done"])?,
        result["until"],
    );
    println!("  verdicts: {}", counted.join(", "));
    println!("  the twin: {}", spread.join(", "));
    Ok(())
}

/// The largest count that a chance of `p` in `n` tries passes with at most 1 %.
fn allowed(n: u32, p: f64) -> u32 {
    let mut term = (1.0 - p).powi(n as i32);
    let mut below = term;
    let mut count = 0;
    while below < 0.99 && count < n {
        term *= f64::from(n - count) / f64::from(count + 1) * p / (1.0 - p);
        below += term;
        count += 1;
    }
    count
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let upper = values.len() / 2;
    let lower = (values.len() - 1) / 2;
    f64::midpoint(values[lower], values[upper])
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| odd(value))
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| odd(value))
}

fn word(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| odd(value))
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| odd(value))
}

fn odd(value: &Value) -> String {
    format!("the result is not what was expected: {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_twenty_may_come_several_times_in_thirty() {
        // Cumulated binomial: 0.9844 at 4 of 30, 0.9967 at 5; 0.9885 at 2 of 10, 0.9990 at 3.
        assert_eq!(allowed(30, 0.05), 5);
        assert_eq!(allowed(10, 0.05), 3);
    }
}
