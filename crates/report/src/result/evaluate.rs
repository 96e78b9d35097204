//! Evaluates the samples of a run into its result: one [`Document`].

use std::path::Path;

use wirecost_answer::Answer;
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::load::Workload;
use wirecost_model::record::{Outcome, Run, RunEnd, RunHead};
use wirecost_model::sample::Mark;
use wirecost_stats::validity::findings;
use wirecost_stats::{Summary, contrasts, summary};
use wirecost_wire::line::tcp_goodput_bps;

use crate::result::document::{CellLoad, CellResult, Document, Ending, MarkCount, Trust};
use crate::result::gathered::Gathered;
use crate::result::{
    adaptive, answer, core_distance, curves, effects, loads, network_share, published, rules,
    self_test, skipped, trust, wakeups, warnings,
};

/// Evaluates a run that was read with `result::read`; the `warnings` of reading are passed on.
pub fn document(run: &Run, run_dir: &Path, warnings: Vec<String>) -> Document {
    let gathered = Gathered::of(&run.head, &run.samples);
    result(&run.head, run.end.as_ref(), gathered, run_dir, warnings)
}

/// Evaluates a run from the sums and columns of its samples.
pub(crate) fn result(
    head: &RunHead,
    end: Option<&RunEnd>,
    gathered: Gathered,
    run_dir: &Path,
    warnings: Vec<String>,
) -> Document {
    let observed = &gathered.observed;
    let experiment = &head.experiment;
    let plan = &experiment.plan;
    let contrasts = contrasts(experiment, observed);
    let rounds_done = gathered.rounds_done(experiment);
    let elapsed_s = gathered.elapsed_s;
    let (until, basis) = adaptive::judge(head, end, &contrasts, rounds_done, elapsed_s);
    let mut effects = effects::judge(head, observed, &contrasts, basis);
    let rounds_planned = match &until {
        Some(until) if until.stopped.is_some() => rounds_done,
        _ => plan.repeat.rounds,
    };
    let cells: Vec<CellResult> = experiment
        .cells
        .iter()
        .map(|cell| cell_result(experiment, cell, &gathered))
        .collect();
    let told = warnings::of(head, &gathered, &cells);
    // Before effects of skipped cells are removed: what was published of such cells is reported as not measured here.
    let published = published::result(experiment, &gathered, &effects, basis);
    effects.retain(|effect| !skipped::is_of_one(&cells, effect));
    let mut document = Document {
        record_version: head.record_version,
        program_version: head.program_version.clone(),
        run_dir: run_dir.display().to_string(),
        name: plan.name.clone(),
        description: plan.description.clone(),
        started: head.started.clone(),
        outcome: end.map_or(Ending::NoEnd, |end| match end.outcome {
            Outcome::Complete => Ending::Complete,
            Outcome::Interrupted => Ending::Interrupted,
            Outcome::Failed => Ending::Failed,
        }),
        reason: end.and_then(|end| end.reason.clone()),
        rounds_done,
        rounds_planned,
        samples_planned: (until.is_none() || rounds_planned == rounds_done)
            .then_some(rounds_planned * experiment.samples_a_round()),
        until,
        repeat: plan.repeat.clone(),
        samples: gathered.samples,
        invalid: gathered.invalid.clone(),
        measured_again: gathered.measured_again.clone(),
        marks: marks(&gathered),
        factors: experiment.varied().cloned().collect(),
        vary: plan.vary.clone(),
        figures: experiment.figures(),
        other_rules: rules::apply(&experiment.cells, &gathered),
        cells,
        published,
        effects,
        self_test: experiment.twin.as_ref().map(|twin| {
            let twin = cell_result(experiment, twin, &gathered);
            self_test::judge(experiment, observed, twin, basis)
        }),
        curves: curves::of(experiment, observed),
        factorials: effects::factorials(experiment, observed, basis),
        findings: findings(observed),
        measured_share: end
            .filter(|end| end.seconds > 0.0)
            .map(|end| end.measured_s / end.seconds),
        seconds: end.map(|end| end.seconds),
        cores_apart: core_distance::of(&gathered.core_distances),
        wakeups: wakeups::of(head, &gathered),
        network_changes: network_share::changes(experiment, &gathered, &contrasts),
        cores: plan.cores,
        seed: head.seed,
        environment: head.environment.clone(),
        open_vswitch: gathered.open_vswitch.clone(),
        warnings: warnings.into_iter().chain(told).collect(),
        trust: Trust::default(),
        answer: Answer::default(),
        gathered,
    };
    document.answer = answer::of(&document);
    document.trust = trust::of(&document);
    document
}

/// Whether the first stream of a cell is TCP in one direction, to which the limit of the line in one direction applies.
fn one_way(cell: &Cell) -> bool {
    let mut streams = cell.loads.iter().map(|named| named.load.workload);
    let first = streams.find(|workload| !workload.is_request_response());
    first == Some(Workload::TcpStream)
}

fn marks(gathered: &Gathered) -> Vec<MarkCount> {
    let counts = Mark::KINDS.into_iter().zip(gathered.marked);
    let some = counts.filter(|(_, samples)| *samples > 0);
    some.map(|(kind, samples)| MarkCount {
        kind: kind.into(),
        samples,
    })
    .collect()
}

fn cell_result(experiment: &Experiment, cell: &Cell, gathered: &Gathered) -> CellResult {
    let sums = &gathered.cells[&cell.index];
    let over = |values: &[f64]| summary(values.iter().copied());
    let loads = loads::of(experiment, cell, sums, &gathered.observed);
    let stream = loads
        .iter()
        .find(|load| !load.workload.is_request_response());
    let cpu = |of: fn(&CellLoad) -> Option<Summary>| stream.and_then(of);
    let varied = |(key, _): &(&String, &String)| experiment.varied().any(|f| f.key == **key);
    let network = &cell.network;
    CellResult {
        cell: cell.index,
        levels: cell
            .levels
            .iter()
            .filter(varied)
            .map(|(key, level)| (key.clone(), level.clone()))
            .collect(),
        all_levels: cell.levels.clone(),
        guest_mtu: cell.guest_mtu,
        skipped: sums.unbuilt.clone(),
        samples: sums.samples,
        valid: sums.valid,
        marked: sums.marked,
        throughput_gbps: over(&sums.gbps),
        sender_cpu_percent_per_gbps: cpu(|load| load.sender_cpu_percent_per_gbps),
        receiver_cpu_percent_per_gbps: cpu(|load| load.receiver_cpu_percent_per_gbps),
        cpu_percent_per_gbps: cpu(|load| load.cpu_percent_per_gbps),
        figures: sums.columns.summaries(),
        line_limit_gbps: network.total_rate().filter(|_| one_way(cell)).map(|rate| {
            let overhead = network.line_overhead_bytes(cell.guest_mtu);
            tcp_goodput_bps(rate, cell.guest_mtu, overhead, network.guest_ip) / 1e9
        }),
        published_gbps: published::figure(experiment, cell).map(|figure| figure.gbps),
        busy_cores: [over(&sums.busy_cores[0]), over(&sums.busy_cores[1])],
        loads,
    }
}
