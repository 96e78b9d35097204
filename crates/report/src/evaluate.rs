//! Works a run's result out of its samples: one [`Document`].

use std::collections::BTreeMap;
use std::path::Path;

use wirecost_answer::Answer;
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::load::Workload;
use wirecost_model::metric::{
    retransmits, segments_per_packet, stack_packets_per_second, wire_frames_per_second,
};
use wirecost_model::record::{Outcome, Run};
use wirecost_model::sample::{Mark, Sample};
use wirecost_stats::validity::findings;
use wirecost_stats::{Summary, contrasts, summary};
use wirecost_wire::line::tcp_goodput_bps;

use crate::document::{CellLoad, CellResult, Document, Ending, InvalidSample, MarkCount, Trust};
use crate::samples::{ByCell, by_cell, open_vswitch};
use crate::{
    answer, core_distance, effects, loads, published, rules, self_test, skipped, trust, until,
    wakeups, warnings,
};

/// Works the result out of a run that was read with [`crate::read`], whose warnings are passed on.
pub fn document(run: &Run, run_dir: &Path, warnings: Vec<String>) -> Document {
    let head = &run.head;
    let experiment = &head.experiment;
    let plan = &experiment.plan;
    let cost = head.environment.wakeup_cost;
    let contrasts = contrasts(experiment, &run.samples, cost);
    let rounds_done = rounds_done(run);
    let (until, basis) = until::judge(run, &contrasts, rounds_done);
    let mut effects = effects::judge(run, &contrasts, basis);
    let rounds_planned = match &until {
        Some(until) if until.stopped.is_some() => rounds_done,
        _ => plan.repeat.rounds,
    };
    let end = run.end.as_ref();
    let by_cell = by_cell(&run.samples);
    let cells: Vec<CellResult> = experiment
        .cells
        .iter()
        .map(|cell| cell_result(experiment, cell, &by_cell))
        .collect();
    let told = warnings::of(run, &cells);
    // Before effects of skipped cells go: what was published of these is told as not measured here.
    let published = published::result(experiment, &effects);
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
        samples: run.samples.len() as u32,
        invalid: run.samples.iter().filter_map(invalid).collect(),
        marks: marks(&run.samples),
        factors: experiment.varied().cloned().collect(),
        vary: plan.vary.clone(),
        figures: experiment.figures(),
        cells,
        published,
        effects,
        other_rules: rules::apply(&experiment.cells, &by_cell),
        self_test: experiment.twin.as_ref().map(|twin| {
            let twin = cell_result(experiment, twin, &by_cell);
            self_test::judge(run, twin, basis)
        }),
        factorials: effects::factorials(run, basis),
        findings: findings(experiment, &run.samples),
        measured_share: end
            .filter(|end| end.seconds > 0.0)
            .map(|end| end.measured_s / end.seconds),
        seconds: end.map(|end| end.seconds),
        cores_apart: core_distance::of(&run.samples),
        wakeups: wakeups::of(run, &by_cell),
        cores: plan.cores,
        seed: head.seed,
        environment: head.environment.clone(),
        open_vswitch: open_vswitch(run),
        warnings: warnings.into_iter().chain(told).collect(),
        trust: Trust::default(),
        answer: Answer::default(),
    };
    document.answer = answer::of(&document);
    document.trust = trust::of(&document, &run.samples);
    document
}

/// Whether the first stream of a cell is TCP in one direction, to which the line's limit in one applies.
fn one_way(cell: &Cell) -> bool {
    let mut streams = cell.loads.iter().map(|named| named.load.workload);
    let first = streams.find(|workload| !workload.is_request_response());
    first == Some(Workload::TcpStream)
}

fn rounds_done(run: &Run) -> u32 {
    let mut cells_in: BTreeMap<u32, usize> = BTreeMap::new();
    for sample in &run.samples {
        *cells_in.entry(sample.round).or_default() += 1;
    }
    let all = run.head.experiment.samples_a_round() as usize;
    cells_in.values().filter(|&&cells| cells == all).count() as u32
}

fn invalid(sample: &Sample) -> Option<InvalidSample> {
    Some(InvalidSample {
        round: sample.round,
        cell: sample.cell,
        reason: sample.invalid.as_ref()?.reason().into(),
    })
}

fn marks(samples: &[Sample]) -> Vec<MarkCount> {
    Mark::KINDS
        .into_iter()
        .filter_map(|wanted| {
            let carries = |sample: &&Sample| sample.marks.iter().any(|mark| mark.kind() == wanted);
            let samples = samples.iter().filter(carries).count() as u32;
            (samples > 0).then(|| MarkCount {
                kind: wanted.into(),
                samples,
            })
        })
        .collect()
}

fn cell_result(experiment: &Experiment, cell: &Cell, samples: &ByCell<'_>) -> CellResult {
    let mine = samples.get(&cell.index).map_or(&[][..], Vec::as_slice);
    let valid: Vec<&Sample> = mine
        .iter()
        .copied()
        .filter(|s| s.invalid.is_none())
        .collect();
    let over = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        summary(valid.iter().filter_map(|sample| figure(sample)))
    };
    let loads = loads::of(experiment, cell, &valid);
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
        skipped: skipped::reason(mine),
        samples: mine.len() as u32,
        valid: valid.len() as u32,
        marked: mine.iter().filter(|s| !s.marks.is_empty()).count() as u32,
        throughput_gbps: over(&|sample| Some(sample.throughput()? / 1e9)),
        sender_cpu_percent_per_gbps: cpu(|load| load.sender_cpu_percent_per_gbps),
        receiver_cpu_percent_per_gbps: cpu(|load| load.receiver_cpu_percent_per_gbps),
        cpu_percent_per_gbps: cpu(|load| load.cpu_percent_per_gbps),
        wire_frames_per_s: over(&wire_frames_per_second),
        stack_packets_per_s: over(&stack_packets_per_second),
        segments_per_packet: over(&segments_per_packet),
        retransmits: over(&|sample| Some(retransmits(sample)? as f64)),
        line_limit_gbps: network.rate.filter(|_| one_way(cell)).map(|rate| {
            let overhead = network.line_overhead_bytes(cell.guest_mtu);
            tcp_goodput_bps(rate, cell.guest_mtu, overhead, network.guest_ip) / 1e9
        }),
        published_gbps: published::figure(experiment, cell).map(|figure| figure.gbps),
        busy_cores: ["a", "b"].map(|host| over(&|sample| Some(sample.host(host)?.busy_cores()))),
        loads,
    }
}
