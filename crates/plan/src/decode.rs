//! Decodes the tree of a plan's text: one function per section.

use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::plan::{Cores, Hosts, Plan, Underlay};

use crate::axis::Axis;
use crate::expand::{self, PlanFactors};
use crate::factors::{self, COUNT, Factors};
use crate::hosts;
use crate::keys;
use crate::loads;
use crate::logical;
use crate::node::{Node, Value};
use crate::published;
use crate::read::{Entry, Fields, Reader, value};
use crate::repeat;
use crate::select;
use crate::transit;
use crate::values::{integer, name, number, switch, text, word};
use crate::vary::{self, CustomFactor};

/// Decodes a whole plan; `None` where the reader has faults.
pub(crate) fn root(reader: &mut Reader, node: &Node) -> Option<Experiment> {
    let Some(root) = Fields::open(reader, "", "", node) else {
        not_a_plan(reader, node);
        return None;
    };
    let plan_name = value(reader, &root, &keys::NAME, name);
    let description = value(reader, &root, &keys::DESCRIPTION, text);
    let hosts = hosts::read(reader, &root);
    let cores = value(reader, &root, &keys::CORES, word).map(|word| match word {
        "shared" => Cores::Shared,
        _ => Cores::Split,
    });
    let seed = value(reader, &root, &keys::SEED, integer);
    let self_test = value(reader, &root, &keys::SELF_TEST, switch);
    let underlay = root.section(reader, &keys::UNDERLAY);
    let steering = root.section(reader, &keys::STEERING);
    let mut loads = loads::read(reader, &root);
    let underlay = fields(reader, underlay.as_ref());
    let steering = fields(reader, steering.as_ref());
    let mut factors = factors::read(reader, &root, &underlay, &steering);
    hosts.apply(reader, &mut factors);
    loads.resolve_stream_counts(reader, &factors.guests);
    if !hosts.hosts.is_existing() {
        loads.in_a_lab(reader);
    }
    let release_us = release(reader, &underlay, &factors.rate.values());
    links(reader, &factors);
    let between = transit::read(reader, &underlay);
    let mut varied = vary::read(reader, &root, !hosts.hosts.is_existing());
    hosts.judge(reader, &mut varied, &factors.pairs);
    let repeat = root.section(reader, &keys::REPEAT);
    let repeat = fields(reader, repeat.as_ref());
    let repeat = repeat::read(reader, &repeat);

    let mut axes: Vec<Axis> = factors.axes().into();
    axes.extend(loads.axes());
    axes.extend(varied.iter().map(CustomFactor::axis));
    loads.check_unique_names(reader, &axes);
    let exclude = root.get(reader, &keys::EXCLUDE);
    let exclusions = exclude
        .as_ref()
        .map(|entry| select::exclusions(reader, entry, &axes))
        .unwrap_or_default();
    let published = root
        .section(reader, &keys::PUBLISHED)
        .and_then(|entry| published::read(reader, &entry, &axes));
    let cores = cores.unwrap_or(Cores::Split);
    let cells = expand::cells(
        reader,
        &PlanFactors {
            factors: &factors,
            loads: &loads,
            varied: &varied,
            axes: &axes,
        },
        &exclusions,
        exclude.as_ref(),
        cores,
        &between,
    );

    // With faulty levels there may be more combinations than memory holds.
    if !reader.faults.is_empty() {
        return None;
    }
    let plan = Plan {
        name: plan_name?,
        description,
        hosts: hosts.hosts,
        more_hosts: hosts.more,
        pairs: factors.pairs.values(),
        allow_host_changes: hosts.allow_host_changes,
        max_rate: hosts.max_rate,
        cores,
        underlay: underlay_of(&factors, between, release_us),
        guest_mtu: factors.guest_mtu.values(),
        guest_ip: factors.guest_ip.values(),
        guests: factors.guests.values(),
        encapsulation: factors.encapsulations(),
        udp_checksum: factors.udp_checksum.values(),
        datapath: factors.datapaths(),
        topology: factors.topology.values(),
        acl: factors.acl.values(),
        offload: factors.offload.values(),
        steering: factors.steering(),
        loads: loads.levels(),
        repeat: repeat?,
        self_test: self_test?,
        vary: varied.iter().map(CustomFactor::model).collect(),
        exclude: exclusions
            .iter()
            .flat_map(|one| one.levels(&axes))
            .collect(),
        published: published.as_ref().map(|read| read.published.clone()),
        seed,
    };
    let experiment = experiment(plan, &axes, cells);
    if let Some(read) = &published {
        published::check(reader, read, &experiment);
    }
    reader.faults.is_empty().then_some(experiment)
}

fn underlay_of(
    factors: &Factors,
    between: transit::TransitSection,
    release_us: Option<u32>,
) -> Underlay {
    Underlay {
        mtu: factors.underlay_mtu.values(),
        rate: factors.rate.values(),
        links: factors.links.values(),
        ip: factors.underlay_ip.values(),
        transit: between.transit,
        oversize: between.takes_oversize,
        release_us,
    }
}

/// The experiment of a plan. Where nothing is built, it has no factors of what is built.
fn experiment(plan: Plan, axes: &[Axis], mut cells: Vec<Cell>) -> Experiment {
    let of_hosts = |axis: &Axis| {
        let path = axis.key.path;
        path.starts_with("underlay.") || path.starts_with("steering.")
    };
    let (network, others) = axes.split_at(COUNT);
    let built = network.iter().filter(|axis| match plan.hosts {
        _ if axis.key.path == keys::PAIRS.path => !plan.pairs.is_empty(),
        Hosts::Lab => true,
        Hosts::Existing(_) => false,
        Hosts::Tunnel(_) => !of_hosts(axis),
    });
    let axes: Vec<&Axis> = built.chain(others).collect();
    for cell in &mut cells {
        cell.levels
            .retain(|key, _| axes.iter().any(|axis| axis.name == *key));
    }
    // Few plans have a logical network; the record of the others does not mention its factors.
    let has_logical = cells.iter().any(|cell| cell.network.datapath.is_ovn());
    let told = axes
        .iter()
        .filter(|axis| has_logical || !logical::has_key(&axis.name));
    let factors = told.map(|axis| Factor {
        key: axis.name.clone().into_owned(),
        levels: axis.labels.clone(),
    });
    let mut experiment = Experiment {
        twin: None,
        chosen: None,
        factors: factors.collect(),
        cells,
        plan,
    };
    experiment.twin = twin(&experiment);
    experiment
}

/// The line's release interval, microseconds. `None` where no cell has a line; the key is then a fault.
fn release(reader: &mut Reader, underlay: &Fields<'_>, rates: &[Option<u64>]) -> Option<u32> {
    let entry = underlay.get(reader, &keys::UNDERLAY_RELEASE)?;
    let seconds = number(reader, &entry)?;
    if rates.iter().any(Option::is_some) {
        return Some((seconds * 1e6).round() as u32);
    }
    if entry.written && !rates.is_empty() {
        let message = format!("`{}` applies to a line, and no cell has one", entry.path);
        let help = "write an `underlay.rate` too, such as `rate: 10gbit`, or leave it out";
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "without a line", help);
    }
    None
}

/// Checks that every cell with several links has a rate: the links are separate lines.
fn links(reader: &mut Reader, factors: &Factors) {
    let several = factors.links.levels.iter().find(|level| level.value > 1);
    let unlimited = factors.rate.values().contains(&None);
    if let (Some(level), true) = (several, unlimited) {
        let message = format!(
            "`{}` divides a line into links, and a cell has no line",
            level.path
        );
        let help = "write an `underlay.rate` too, such as `rate: 2gbit`: without one nothing limits a single link";
        let span = level.span.clone();
        reader.fault(span, &level.path, message, "without a line", help);
    }
}

/// The duplicate of the first cell that can be built, where the plan asks for it (`self_test`).
fn twin(experiment: &Experiment) -> Option<Cell> {
    let mut cells = experiment.cells.iter();
    let first = cells.find(|cell| experiment.skips(cell).is_none());
    let first = first.filter(|_| experiment.plan.self_test)?;
    Some(Cell {
        index: experiment.cells.len() as u32,
        ..first.clone()
    })
}

fn not_a_plan(reader: &mut Reader, node: &Node) {
    if node.value != Value::Refused {
        let message = "a plan is a mapping of keys to values";
        let help = "write one key per line, beginning with `name: my-plan`";
        reader.fault(node.span.clone(), "", message, "not a mapping", help);
    }
}

/// The keys of a section; all are absent if the section is.
fn fields<'a>(reader: &mut Reader, section: Option<&'a Entry<'_>>) -> Fields<'a> {
    section
        .and_then(|entry| Fields::open(reader, entry.key.path, &entry.path, &entry.node))
        .unwrap_or(Fields::absent())
}
