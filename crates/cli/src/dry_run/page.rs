//! The text of a dry run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use wirecost_answer::names::count;
use wirecost_control::experiment::{Forecast, SeedSource, Traffic};
use wirecost_model::cell::{Experiment, Factor};
use wirecost_model::plan::Hosts;

use super::document::{CellLine, Document, Expansion, is_unknown_mtu};
use super::hosts::{built_on_hosts, hosts};
use super::{adaptive, settings};
use crate::screen::{self, wrap};

/// Rounds whose order is printed; the JSON document has all.
const SHOWN_ROUNDS: usize = 20;

/// The page, in lines of `width` columns.
pub(super) fn page(document: &Document<'_>, experiment: &Experiment, width: usize) -> String {
    let wrapped = |text: &str| wrap(text, "", width);
    let mut parts = vec![
        wrapped(&title(document)),
        String::new(),
        table(experiment),
        wrapped(&constant(experiment)),
        wrapped(&left_out(document.expansion)),
        String::new(),
        wrapped(&format!(
            "Order, from seed {}{}:",
            document.seed,
            whence(document.seed_source)
        )),
    ];
    if let Some(twin) = &document.twin {
        let text = format!(
            "Self-test: cell {} is cell {} once more, in every round.",
            twin.index,
            experiment.repeated().map_or(0, |cell| cell.index)
        );
        parts.insert(5, wrapped(&text));
    }
    if let Some(text) = skipped(&document.cells) {
        parts.insert(parts.len() - 2, wrapped(&text));
    }
    for warning in &document.warnings {
        parts.insert(parts.len() - 2, wrapped(&format!("Warning: {warning}.")));
    }
    if let Some(text) = settings::text(&document.settings, width) {
        let at = parts.len() - 1;
        parts.splice(at..at, [text, String::new()]);
    }
    for (round, order) in document.order.iter().take(SHOWN_ROUNDS).enumerate() {
        let cells: Vec<String> = order.iter().map(ToString::to_string).collect();
        let line = format!("  round {}: {}", round + 1, cells.join(" "));
        parts.push(wrap(&line, "    ", width));
    }
    if document.order.len() > SHOWN_ROUNDS {
        let more = document.order.len() - SHOWN_ROUNDS;
        let more = count(more, "more round");
        parts.push(format!("  and {more}, which --json lists"));
    }
    parts.extend([String::new(), expected(&document.expected, experiment)]);
    if let Some(line) = &document.until {
        parts.extend([String::new(), wrapped(&adaptive::text(line))]);
    }
    parts.extend([String::new(), wrapped(&hosts(document, &experiment.plan))]);
    if experiment.plan.hosts != Hosts::Lab {
        let traffic = Traffic::planned(experiment);
        parts.push(wrapped(&format!("Altogether {traffic}.")));
    }
    for line in built_on_hosts(experiment) {
        parts.push(wrap(&line, "    ", width));
    }
    if let Some(line) = document.line {
        parts.push(wrapped(&format!(
            "As far as is known before the run, {line}."
        )));
    }
    parts.push(wrapped(
        "This was a dry run: nothing was built, measured or written.",
    ));
    parts.join("\n")
}

fn title(document: &Document<'_>) -> String {
    let (name, rounds) = (document.name, document.rounds);
    let again = if document.twin.is_some() { " + 1" } else { "" };
    let cells = match (document.cells.len(), again) {
        (1, "") => "1 cell".to_owned(),
        (cells, again) => format!("{cells}{again} cells"),
    };
    let about = screen::duration(document.expected.total_s);
    match &document.until {
        None => format!(
            "{name}: {cells} x {} = {}, about {about}",
            count(rounds as usize, "round"),
            count(document.expected.samples as usize, "sample")
        ),
        Some(until) => format!(
            "{name}: {cells} x {} to {rounds} rounds, adaptive; about {} rounds, {about}",
            until.min_rounds, document.expected.rounds
        ),
    }
}

/// The table of cells, with a column for each varied factor.
fn table(experiment: &Experiment) -> String {
    let varied: Vec<&Factor> = experiment.varied().collect();
    let head = varied.iter().map(|factor| factor.key.replace('_', " "));
    let mut rows = vec![
        std::iter::once("cell".to_owned())
            .chain(head)
            .collect::<Vec<_>>(),
    ];
    for cell in &experiment.cells {
        let level = |factor: &&Factor| {
            let label = cell.levels.get(&factor.key).map_or("-", String::as_str);
            let known = !is_unknown_mtu(experiment, cell);
            if factor.key == "guest_mtu" && label == "max" && known {
                return format!("max ({})", cell.guest_mtu);
            }
            label.to_owned()
        };
        let index = std::iter::once(cell.index.to_string());
        rows.push(index.chain(varied.iter().map(level)).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..=varied.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut table = String::new();
    for row in &rows {
        let mut text = format!("{:>width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            // Writing to a string does not fail.
            let _ = write!(text, "  {cell:<width$}");
        }
        table.push_str(text.trim_end());
        table.push('\n');
    }
    table
}

fn constant(experiment: &Experiment) -> String {
    let constant = experiment
        .factors
        .iter()
        .filter(|factor| factor.levels.len() == 1);
    let levels =
        constant.map(|factor| format!("{} {}", factor.key.replace('_', " "), factor.levels[0]));
    match &levels.collect::<Vec<_>>()[..] {
        [] => "Everything varies.".to_owned(),
        levels => format!("The same in every cell: {}.", levels.join(", ")),
    }
}

fn left_out(expansion: Expansion) -> String {
    let Expansion {
        combinations,
        excluded,
        collapsed,
    } = expansion;
    let same = match collapsed {
        0 => None,
        1 => Some("1 is the same cell as another one".to_owned()),
        more => Some(format!("{more} are the same cell as another one")),
    };
    match (excluded, same) {
        (0, None) => format!("Combinations of levels: {combinations}, each a cell."),
        (0, Some(same)) => format!("Of {combinations} combinations {same}."),
        (dropped, None) => format!("`exclude` drops {dropped} of {combinations} combinations."),
        (dropped, Some(same)) => {
            format!("`exclude` drops {dropped} of {combinations} combinations, and {same}.")
        }
    }
}

/// `Skipped: cell 3 (REASON); cells 4, 5 (REASON).`
fn skipped(cells: &[CellLine<'_>]) -> Option<String> {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for cell in cells {
        if let Some(reason) = cell.skipped {
            reasons
                .entry(reason)
                .or_default()
                .push(cell.index.to_string());
        }
    }
    let of = |(reason, cells): (&&str, &Vec<String>)| {
        let noun = if cells.len() == 1 { "cell" } else { "cells" };
        format!("{noun} {} ({reason})", cells.join(", "))
    };
    let texts: Vec<String> = reasons.iter().map(of).collect();
    (!texts.is_empty()).then(|| format!("Skipped: {}.", texts.join("; ")))
}

fn whence(source: SeedSource) -> &'static str {
    match source {
        SeedSource::Option => " (--seed)",
        SeedSource::Plan => " (the plan's)",
        SeedSource::Random => {
            " (an example: each run draws its own unless --seed or the plan sets one)"
        }
    }
}

fn expected(forecast: &Forecast, experiment: &Experiment) -> String {
    let repeat = &experiment.plan.repeat;
    let (samples, labs) = (forecast.samples - forecast.skipped, forecast.labs);
    let what = if experiment.plan.hosts.is_tunnel() {
        "tunnel"
    } else {
        "lab"
    };
    // Where every cell is skipped there is no sample.
    let around_ms = 1e3 * forecast.around_s / f64::from(samples.max(1));
    let around = if around_ms < 999.5 {
        format!("{around_ms:.0} ms")
    } else {
        format!("{:.0} s", around_ms / 1e3)
    };
    let parts = [
        (
            format!(
                "{} of {} s",
                count(samples as usize, "window"),
                repeat.seconds
            ),
            forecast.windows_s,
        ),
        (
            format!(
                "{} of {} s",
                count(samples as usize, "warm-up"),
                repeat.warmup
            ),
            forecast.warmups_s,
        ),
        (
            format!("around them, about {around} each"),
            forecast.around_s,
        ),
        (count(labs as usize, what), forecast.labs_s),
    ];
    let built = !experiment.plan.hosts.is_existing();
    let parts = &parts[..if built { parts.len() } else { parts.len() - 1 }];
    let width = parts.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    let mut text = format!(
        "Expected time: about {}",
        screen::duration(forecast.total_s)
    );
    for (what, seconds) in parts {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {what:<width$}  {}", screen::duration(*seconds));
    }
    text
}

#[cfg(test)]
mod tests {
    use wirecost_control::experiment;

    use super::*;
    use crate::plan;

    #[test]
    fn a_plan_whose_cells_are_all_skipped_takes_no_time() {
        let text = "name: x\ndatapath: ebpf\nencapsulation: vxlan\noffload: plain\n\
                    load: { udp-stream: { segmentation_offload: receive, message: 1300 } }\n";
        let experiment = plan::experiment("<test>", text).expect("a plan");
        let forecast = experiment::forecast(&experiment, 1);
        assert_eq!(forecast.skipped, forecast.samples);
        insta::assert_snapshot!(expected(&forecast, &experiment), @r"
        Expected time: about 0.0 s
          0 windows of 1 s              0.0 s
          0 warm-ups of 0.2 s           0.0 s
          around them, about 0 ms each  0.0 s
          0 labs                        0.0 s
        ");
    }
}
