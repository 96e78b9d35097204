//! The figures of each load of a cell over its valid samples.

use std::collections::BTreeMap;
use std::time::Duration;

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::load::Workload;
use wirecost_model::metric::{Figure, Metric};
use wirecost_stats::{CpuFigures, Observed, cpu_figures, summary};

use crate::result::document::{CellLoad, Document, LatencyResult};
use crate::result::gathered::{CellSums, ENOUGH_BEYOND, LoadColumns};
use crate::result::network_share;

/// Latency bound for which the share of transactions within it is given.
const BOUND: Duration = Duration::from_micros(500);

/// Largest small message of a stream, bytes: for small messages, messages per second are given as well.
const SMALL: u32 = 4096;

/// Every load of a cell, in its order.
pub(crate) fn of(
    experiment: &Experiment,
    cell: &Cell,
    sums: &CellSums,
    observed: &Observed,
) -> Vec<CellLoad> {
    let loads = sums.loads.iter();
    loads
        .map(|columns| one(experiment, cell.index, columns, observed))
        .collect()
}

fn one(experiment: &Experiment, cell: u32, columns: &LoadColumns, observed: &Observed) -> CellLoad {
    let (name, workload) = (&columns.named.name, columns.named.load.workload);
    let metrics = Metric::shown(workload, experiment.plan.cores);
    let figure = |metric: Metric| Figure {
        load: name.clone(),
        metric,
    };
    let metric = |metric: Metric, scale: f64| {
        let values = observed.values(cell, &figure(metric));
        summary(values.map(|value| value * scale))
    };
    let load = &columns.named.load;
    let small = matches!(workload, Workload::TcpStream | Workload::TcpBidirectional)
        .then_some(load.request)
        .filter(|message| *message <= SMALL);
    let mut cpu_below = BTreeMap::new();
    let mut cpu = |metric: Metric| {
        if !metrics.contains(&metric) {
            return None;
        }
        match cpu_figures(observed.parts(cell, &figure(metric)))? {
            CpuFigures::Measured(figures) => summary(figures),
            CpuFigures::Below(below) => {
                cpu_below.insert(metric, below);
                None
            }
        }
    };
    let (sender, receiver) = (cpu(Metric::SenderCpu), cpu(Metric::ReceiverCpu));
    let (client, server) = (cpu(Metric::ClientCpu), cpu(Metric::ServerCpu));
    let (machine, transaction) = (cpu(Metric::Cpu), cpu(Metric::TransactionCpu));
    let over = |values: &[f64]| summary(values.iter().copied());
    CellLoad {
        name: name.clone(),
        workload,
        throughput_gbps: metric(Metric::Throughput, 1e-9),
        messages_per_s: small
            .and_then(|message| metric(Metric::Throughput, 1.0 / (8.0 * f64::from(message)))),
        transactions_per_s: metric(Metric::Transactions, 1.0),
        latency: latency(columns),
        datagrams: columns.datagrams,
        datagrams_per_s: metric(Metric::Datagrams, 1.0),
        delivered_percent: over(&columns.delivered_percent),
        jitter_us: over(&columns.jitter_us),
        sender_cpu_percent_per_gbps: sender,
        receiver_cpu_percent_per_gbps: receiver,
        cpu_percent_per_gbps: machine,
        client_cpu_us_per_transaction: client,
        server_cpu_us_per_transaction: server,
        cpu_us_per_transaction: transaction,
        cpu_below,
        fairness: over(&columns.fairness),
        flows: columns.flows.result(),
        moves: columns.moves.result(
            metric(Metric::MoveTime, 1.0),
            metric(Metric::Downtime, 1e3),
            metric(Metric::DirtyLimit, 1e-9),
        ),
        network: network_share::of_cell(&columns.shares),
        path: columns.path.clone(),
        strays: columns.strays,
        generator_bound: columns.generator_bound,
        missed_schedule: columns.missed_schedule,
    }
}

fn latency(columns: &LoadColumns) -> Option<LatencyResult> {
    let (all, lateness) = (&columns.latency, &columns.lateness);
    let count = all.count();
    let us = |percent: f64| Some(all.percentile(percent)?.as_secs_f64() * 1e6);
    let flush_us = |percent: f64| Some(columns.flushes.percentile(percent)?.as_secs_f64() * 1e6);
    let late_us = |percent: f64| Some(lateness.percentile(percent)?.as_secs_f64() * 1e6);
    let enough = |percent: f64| all.beyond(percent) >= ENOUGH_BEYOND;
    Some(LatencyResult {
        count,
        p50_us: us(50.0)?,
        p90_us: us(90.0)?,
        p99_us: us(99.0)?,
        p999_us: us(99.9).filter(|_| enough(99.9)),
        p9999_us: us(99.99).filter(|_| enough(99.99)),
        max_us: us(100.0)?,
        late_p50_us: late_us(50.0),
        late_p99_us: late_us(99.0),
        flush_p50_us: flush_us(50.0),
        flush_p99_us: flush_us(99.0),
        share_within_500us: all.share_within(BOUND)?,
        requests: columns.requests,
    })
}

/// The loads of a run by name, in the order of its cells.
pub(crate) fn named(doc: &Document) -> Vec<(&str, Workload)> {
    let mut named: Vec<(&str, Workload)> = Vec::new();
    for load in doc.cells.iter().flat_map(|cell| &cell.loads) {
        if !named.iter().any(|(known, _)| *known == load.name) {
            named.push((&load.name, load.workload));
        }
    }
    named
}
