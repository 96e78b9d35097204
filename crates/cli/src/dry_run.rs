//! `wirecost run --dry-run`: cells, order and expected time, from the plan alone.

pub(crate) mod settings;
mod until;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use wirecost_control::experiment::{Forecast, PORTS, Preview, SeedSource, guest_addresses};
use wirecost_model::cell::{Cell, Experiment, Factor, Network};
use wirecost_model::line::LineRelease;
use wirecost_model::plan::{Cores, Encapsulation, HostPair, Hosts, Levels, NamedPair, Plan};

use crate::failure::Done;
use crate::plan::Loaded;
use crate::screen::{self, wrap};

/// Rounds whose order is shown to people; the JSON document has all.
const SHOWN_ROUNDS: usize = 20;

/// What a run would do.
#[derive(Debug, Serialize)]
struct Document<'a> {
    name: &'a str,
    /// The file, `<standard input>`, or the built-in plan's name.
    plan: &'a str,
    run_dir: Option<&'a Path>,
    factors: &'a [Factor],
    cells: Vec<CellLine<'a>>,
    #[serde(flatten)]
    expansion: Expansion,
    /// What levels of the plan's own factors change, where, and which commands they run.
    settings: Vec<settings::Line<'a>>,
    /// The first cell once more, where the plan asks for a self-test.
    twin: Option<CellLine<'a>>,
    /// Rounds; of an adaptive run the most.
    rounds: u32,
    /// The stopping rule of an adaptive run.
    until: Option<until::Line>,
    seed: u64,
    seed_source: SeedSource,
    /// Per round the cells' numbers, in the order of measurement.
    order: Vec<Vec<usize>>,
    cores: Cores,
    /// Cores of each host.
    cpus: BTreeMap<&'static str, &'a [u32]>,
    /// How lines would most likely let packets out; `null` where no cell has one, and where that is unknown.
    line: Option<&'a LineRelease>,
    expected: Forecast,
    /// What the result would warn of, as far as it is known before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CellLine<'a> {
    index: u32,
    levels: &'a Levels,
    network: String,
    /// In bytes, resolved where the plan says `max`; `null` where only the hosts' network decides that.
    guest_mtu: Option<u32>,
    /// Why it will be skipped, where its datapath cannot build it on whatever machine.
    skipped: Option<&'static str>,
}

/// How many combinations of levels are not cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Expansion {
    combinations: usize,
    /// Dropped by `exclude`.
    excluded: usize,
    /// The same cell as another one.
    collapsed: usize,
}

pub(crate) fn print(loaded: &Loaded, preview: &Preview, out: Option<&Path>, json: bool) -> Done {
    let experiment = &loaded.experiment;
    let line = |cell| cell_line(experiment, cell);
    let document = Document {
        name: &experiment.plan.name,
        plan: &loaded.source,
        run_dir: out,
        factors: &experiment.factors,
        cells: experiment.cells.iter().map(line).collect(),
        expansion: expansion(experiment),
        settings: settings::lines(experiment),
        twin: experiment.twin.as_ref().map(line),
        rounds: experiment.plan.repeat.rounds,
        until: until::line(experiment),
        seed: preview.seed,
        seed_source: preview.seed_source,
        order: preview.orders().collect(),
        cores: preview.placement.cores,
        cpus: [("a", &preview.placement.a[..]), ("b", &preview.placement.b)].into(),
        line: preview.line.as_ref(),
        expected: preview.forecast,
        warnings: warnings(preview),
    };
    if json {
        screen::print_json(&document)
    } else {
        let page = page(&document, experiment, screen::terminal().width);
        screen::print(&page)
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

/// Whether the guests' MTU follows from devices that are not known yet.
fn is_unknown_mtu(experiment: &Experiment, cell: &Cell) -> bool {
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

fn page(document: &Document<'_>, experiment: &Experiment, width: usize) -> String {
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
        let more = count(more as u32, "more round");
        parts.push(format!("  and {more}, which --json lists"));
    }
    parts.extend([String::new(), expected(&document.expected, experiment)]);
    if let Some(line) = &document.until {
        parts.extend([String::new(), wrapped(&until::text(line))]);
    }
    parts.extend([String::new(), wrapped(&hosts(document, &experiment.plan))]);
    for line in built_on_hosts(experiment) {
        parts.push(wrap(&line, "    ", width));
    }
    if let Some(line) = document.line {
        parts.push(wrapped(&format!("As far as is known before, {line}.")));
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
            count(rounds, "round"),
            count(document.expected.samples, "sample")
        ),
        Some(until) => format!(
            "{name}: {cells} x {} to {rounds} rounds, adaptive; about {} rounds, {about}",
            until.min_rounds, document.expected.rounds
        ),
    }
}

/// `1 round`, `8 rounds`.
fn count(n: u32, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// The cells by what varies between them.
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
            // To memory, which takes everything.
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
    let around_ms = 1e3 * forecast.around_s / f64::from(samples);
    let parts = [
        (
            format!("{} of {} s", count(samples, "window"), repeat.seconds),
            forecast.windows_s,
        ),
        (
            format!("{} of {} s", count(samples, "warm-up"), repeat.warmup),
            forecast.warmups_s,
        ),
        (
            format!("around them, about {around_ms:.0} ms each"),
            forecast.around_s,
        ),
        (count(labs, what), forecast.labs_s),
    ];
    let built = !experiment.plan.hosts.is_existing();
    let parts = &parts[..if built { parts.len() } else { parts.len() - 1 }];
    let width = parts.iter().map(|(what, _)| what.len()).max().unwrap_or(0);
    let mut text = format!(
        "Expected time: about {}",
        screen::duration(forecast.total_s)
    );
    for (what, seconds) in parts {
        // To memory, which takes everything.
        let _ = write!(text, "\n  {what:<width$}  {}", screen::duration(*seconds));
    }
    text
}

fn hosts(document: &Document<'_>, plan: &Plan) -> String {
    if plan.hosts != Hosts::Lab {
        return match plan.host_pairs() {
            Some(pairs) if plan.pairs.is_empty() => {
                let HostPair { a, b } = &pairs[0].hosts;
                format!("Between {a} and {b}, on all of their cores.")
            }
            Some(pairs) => {
                let mut text = "Between hosts, on all of their cores:".to_owned();
                for NamedPair { names, hosts } in pairs {
                    // To memory, which takes everything.
                    let _ = write!(text, "\n  {names}: {} and {}", hosts.a, hosts.b);
                }
                text
            }
            None => "Between the hosts of --hosts.".to_owned(),
        };
    }
    let list = |host: &str| {
        let cpus = document.cpus.get(host).copied().unwrap_or_default();
        cpus.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (document.cores, plan.cores) {
        (Cores::Split, _) => format!(
            "Host a on core {}, host b on core {}.",
            list("a"),
            list("b")
        ),
        (Cores::Shared, Cores::Split) => format!(
            "Both hosts on core {}: with a single core the hosts cannot be separated, and sender and receiver CPU \
             cannot be separated.",
            list("a")
        ),
        (Cores::Shared, Cores::Shared) => format!("Both hosts on core {}.", list("a")),
    }
}

/// What tunnels between hosts build there, a line for each network.
fn built_on_hosts(experiment: &Experiment) -> Vec<String> {
    if !experiment.plan.hosts.is_tunnel() {
        return Vec::new();
    }
    let mut networks: Vec<&Network> = experiment.cells.iter().map(|cell| &cell.network).collect();
    networks.sort_unstable();
    networks.dedup();
    let head = "Built on each, in a network namespace that goes with the run; devices, addresses and routes of the hosts \
                themselves stay as they are:";
    let lines = networks.into_iter().map(|network| {
        let [a, b] = guest_addresses(network).map(|addresses| {
            let first = addresses
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            match addresses.len() {
                0 | 1 => first,
                more => format!("{first} and {} more", more - 1),
            }
        });
        let between = if network.encapsulation.is_routed() {
            "routes to them"
        } else {
            "a bridge"
        };
        format!(
            "  guests {a} (host a), {b} (host b); {between}; {}{}",
            network.encapsulation,
            ways_out(network)
        )
    });
    std::iter::once(head.to_owned()).chain(lines).collect()
}

/// What tells a tunnel's packets from others on the hosts' network.
fn ways_out(network: &Network) -> String {
    let else_first = format!("or the first free of {} to {}", PORTS.start(), PORTS.end());
    match (&network.encapsulation, network.encapsulation.udp()) {
        (Encapsulation::Wireguard(tunnel), _) => format!(", UDP port {} {else_first}", tunnel.port),
        (_, Some(udp)) => format!(", VNI {}, UDP port {} {else_first}", udp.vni, udp.port),
        (Encapsulation::Ipip(_), _) => ", IP protocol 4 or 41".to_owned(),
        _ => ", IP protocol 47".to_owned(),
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
