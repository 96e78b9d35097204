//! The JSON document of a dry run, from which the text is made too.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use wirecost_control::experiment::{Forecast, Preview, SeedSource};
use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::line::LineRelease;
use wirecost_model::plan::{Cores, Hosts, Levels};

use super::{adaptive, settings};
use crate::plan::Loaded;

/// What a run would do.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    pub(super) name: &'a str,
    /// The file, `<standard input>`, or the built-in plan's name.
    plan: &'a str,
    run_dir: Option<&'a Path>,
    factors: &'a [Factor],
    pub(super) cells: Vec<CellLine<'a>>,
    #[serde(flatten)]
    pub(super) expansion: Expansion,
    /// The settings that levels of the plan's own factors (`vary`) apply, and the commands they run.
    pub(super) settings: Vec<settings::Line<'a>>,
    /// The repeated cell, where the plan asks for a self-test.
    pub(super) twin: Option<CellLine<'a>>,
    /// Rounds; the largest number in an adaptive run.
    pub(super) rounds: u32,
    /// The stopping rule of an adaptive run.
    pub(super) until: Option<adaptive::Line>,
    pub(super) seed: u64,
    pub(super) seed_source: SeedSource,
    /// Indices of the cells for each round, in the order of measurement.
    pub(super) order: Vec<Vec<usize>>,
    pub(super) cores: Cores,
    /// Cores of each host, by `a` and `b`.
    pub(super) cpus: BTreeMap<&'static str, &'a [u32]>,
    /// How rate-limited lines would most likely release packets; `null` where no cell has one, or where that is
    /// unknown.
    pub(super) line: Option<&'a LineRelease>,
    pub(super) expected: Forecast,
    /// Warnings about the result that are known before the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct CellLine<'a> {
    pub(super) index: u32,
    levels: &'a Levels,
    network: String,
    /// Guest MTU in bytes, resolved where the plan says `max`; `null` where it depends on the hosts' network.
    guest_mtu: Option<u32>,
    /// Why the cell will be skipped, where its datapath cannot build it on any machine.
    pub(super) skipped: Option<&'static str>,
}

/// How many combinations of levels there are, and how many of them are not cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Expansion {
    pub(super) combinations: usize,
    /// Combinations that `exclude` drops.
    pub(super) excluded: usize,
    /// Combinations that are the same cell as another one.
    pub(super) collapsed: usize,
}

pub(super) fn document<'a>(
    loaded: &'a Loaded,
    preview: &'a Preview,
    out: Option<&'a Path>,
) -> Document<'a> {
    let experiment = &loaded.experiment;
    let line = |cell| cell_line(experiment, cell);
    Document {
        name: &experiment.plan.name,
        plan: &loaded.source,
        run_dir: out,
        factors: &experiment.factors,
        cells: experiment.cells.iter().map(line).collect(),
        expansion: expansion(experiment),
        settings: settings::lines(experiment),
        twin: experiment.twin.as_ref().map(line),
        rounds: experiment.plan.repeat.rounds,
        until: adaptive::line(experiment),
        seed: preview.seed,
        seed_source: preview.seed_source,
        order: preview.orders().collect(),
        cores: preview.placement.cores,
        cpus: [("a", &preview.placement.a[..]), ("b", &preview.placement.b)].into(),
        line: preview.line.as_ref(),
        expected: preview.forecast,
        warnings: warnings(preview),
    }
}

fn warnings(preview: &Preview) -> Vec<String> {
    let left_out = preview.left_out.iter().map(|one| {
        let (encapsulation, reason) = (&one.encapsulation, &one.reason);
        format!("cells of {encapsulation} will be left out: {reason}")
    });
    let chosen = preview.chosen.iter().map(ToString::to_string);
    chosen.chain(left_out).collect()
}

fn cell_line<'a>(experiment: &Experiment, cell: &'a Cell) -> CellLine<'a> {
    CellLine {
        index: cell.index,
        levels: &cell.levels,
        network: match experiment.plan.hosts {
            Hosts::Lab => cell.network.to_string(),
            Hosts::Existing(_) => "the existing network".to_owned(),
            Hosts::Tunnel(_) => format!("{} over the hosts' network", cell.network.encapsulation),
        },
        guest_mtu: (!is_unknown_mtu(experiment, cell)).then_some(cell.guest_mtu),
        skipped: experiment.skips(cell),
    }
}

/// Whether the guest MTU depends on devices that are not known before the run.
pub(super) fn is_unknown_mtu(experiment: &Experiment, cell: &Cell) -> bool {
    let is_max = cell
        .levels
        .get("guest_mtu")
        .is_some_and(|label| label == "max");
    experiment.plan.hosts.is_tunnel() && is_max
}

fn expansion(experiment: &Experiment) -> Expansion {
    let mut all = vec![Levels::new()];
    for factor in &experiment.factors {
        let longer = |known: &Levels| {
            let known = known.clone();
            factor.levels.iter().map(move |level| {
                let mut longer = known.clone();
                longer.insert(factor.key.clone(), level.clone());
                longer
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    let drops = |cell: &Levels, entry: &Levels| {
        entry
            .iter()
            .all(|(factor, level)| cell.get(factor) == Some(level))
    };
    let exclude = &experiment.plan.exclude;
    let is_excluded = |cell: &&Levels| exclude.iter().any(|entry| drops(cell, entry));
    let excluded = all.iter().filter(is_excluded).count();
    Expansion {
        combinations: all.len(),
        excluded,
        collapsed: all.len() - excluded - experiment.cells.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_cells_or_excluded() {
        let text = "name: x\nunderlay: { mtu: 9000 }\nguest_mtu: [1500, 9000]\nencapsulation: [none, vxlan]\n\
                    exclude: [{ encapsulation: vxlan, guest_mtu: 9000 }]\n";
        let experiment = wirecost_plan::load("plan.yaml", text).expect("a plan");
        let expected = Expansion {
            combinations: 4,
            excluded: 1,
            collapsed: 0,
        };
        assert_eq!(expansion(&experiment), expected);
    }
}
