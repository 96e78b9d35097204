//! CSV with a row for each sample: the levels of its cell, whether it is valid, every figure.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use csv::{Terminator, WriterBuilder};
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;
use wirecost_model::plan::Cores;
use wirecost_model::record::{Run, RunHead};
use wirecost_model::sample::{Invalid, LoadResult, Mark, Sample};
use wirecost_model::usage::HostUsage;

use crate::render::format::{Format, FormatError, Terminal};
use crate::result::cell_figures::{CELL_FIGURES, Figure};
use crate::result::load_counts::{DATAGRAM_COUNTS, REQUEST_COUNTS};
use crate::result::read::{DEVICES, read_into};
use crate::result::run::RunResult;

/// The CSV format.
#[derive(Debug)]
pub(crate) struct Csv;

impl Format<RunResult> for Csv {
    fn option(&self) -> &'static str {
        "csv"
    }

    fn help(&self) -> &'static str {
        "Every sample as a row of CSV"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        let run = &result.reading.run;
        let document = &result.document;
        if run.samples.len() == document.samples as usize {
            return all(run, to).map_err(unwritten);
        }
        // Of a large run only the samples that are drawn are in memory: all are read from the record.
        let directory = Path::new(&document.run_dir);
        let mut failed = None;
        let begin = |head: &RunHead| {
            let to = to;
            Rows::new(&head.experiment, to)
        };
        let read = read_into(directory, DEVICES, begin, |rows, sample| {
            if let Ok(all) = rows
                && failed.is_none()
            {
                failed = all.add(&sample).err();
            }
        });
        let (_, rows) = read.map_err(FormatError::of)?;
        let written = failed.map_or(Ok(()), Err).and_then(|()| rows?.finish());
        written.map_err(unwritten)
    }
}

/// A column of figures: its name with the unit, and the value of a sample; `None` is an empty field.
type NamedFigure = (&'static str, Figure);

const ALWAYS: [NamedFigure; 10] = [
    ("throughput_gbps", |s| Some(s.throughput()? / 1e9)),
    ("bytes", |s| Some(s.stream()?.stream.as_ref()?.bytes as f64)),
    ("seconds", |s| Some(s.loads.first()?.seconds)),
    ("sender_busy_cores", |s| {
        Some(s.sender.as_ref()?.busy_cores())
    }),
    ("receiver_busy_cores", |s| {
        Some(s.receiver.as_ref()?.busy_cores())
    }),
    ("sender_steal_fraction", |s| {
        Some(s.sender.as_ref()?.steal_fraction())
    }),
    ("receiver_steal_fraction", |s| {
        Some(s.receiver.as_ref()?.steal_fraction())
    }),
    ("foreign_cores", |s| both(s, |host| host.foreign_cores)),
    ("backlog_drops", |s| {
        both(s, |host| Some(host.backlog_drops as f64))
    }),
    ("cores_apart_ns", Sample::core_distance_ns),
];

const SPLIT: [NamedFigure; 2] = [
    ("sender_cpu_percent_per_gbps", |s| {
        Metric::SenderCpu.value(s, &s.stream()?.name)
    }),
    ("receiver_cpu_percent_per_gbps", |s| {
        Metric::ReceiverCpu.value(s, &s.stream()?.name)
    }),
];

const SHARED: [NamedFigure; 1] = [("cpu_percent_per_gbps", |s| {
    Metric::Cpu.value(s, &s.stream()?.name)
})];

/// The sum over those of both hosts that have the figure.
fn both(sample: &Sample, figure: fn(&HostUsage) -> Option<f64>) -> Option<f64> {
    let hosts = [sample.sender.as_ref(), sample.receiver.as_ref()];
    let figures: Vec<f64> = hosts.into_iter().flatten().filter_map(figure).collect();
    (!figures.is_empty()).then(|| figures.iter().sum())
}

/// Every sample of a run as CSV (RFC 4180), in the order in which they were taken, below a header
/// line. Rounds and cells are numbered from 0, as in the record. A factor's column is named by the
/// plan's key and holds the cell's level.
///
/// # Errors
/// A bug in this program: no record causes one.
pub fn csv(run: &Run) -> Result<String, FormatError> {
    let mut text = Vec::new();
    all(run, &mut text).map_err(unwritten)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn all(run: &Run, to: &mut dyn Write) -> Result<(), csv::Error> {
    let mut rows = Rows::new(&run.head.experiment, to)?;
    for sample in &run.samples {
        rows.add(sample)?;
    }
    rows.finish()
}

fn unwritten(error: csv::Error) -> FormatError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => FormatError::Output(error),
        // Rows of unequal length: a bug in this program.
        kind => FormatError::of(io::Error::other(format!("{kind:?}"))),
    }
}

/// Writes rows one by one.
struct Rows<'a> {
    writer: csv::Writer<&'a mut dyn Write>,
    keys: Vec<String>,
    cells: BTreeMap<u32, Vec<String>>,
    figures: Vec<NamedFigure>,
    /// Columns of each load's own figures.
    loads: Vec<(String, Figured)>,
}

impl<'a> Rows<'a> {
    /// Writes the header line.
    fn new(experiment: &Experiment, to: &'a mut dyn Write) -> Result<Self, csv::Error> {
        let by_cores: &[NamedFigure] = match experiment.plan.cores {
            Cores::Split => &SPLIT,
            Cores::Shared => &SHARED,
        };
        let figures = [&ALWAYS, CELL_FIGURES, by_cores].concat();
        let mut writer = WriterBuilder::new()
            .terminator(Terminator::CRLF)
            .from_writer(to);
        let fixed = ["round", "position", "cell", "started_s", "took_s"];
        let factors = experiment.factors.iter();
        let keys: Vec<String> = factors.map(|factor| factor.key.clone()).collect();
        let judged = ["valid", "invalid_kind", "invalid_reason", "marks"];
        let loads = of_loads(experiment);
        let names = figures.iter().map(|(name, _)| *name);
        let names = names.chain(loads.iter().map(|(name, _)| name.as_str()));
        let fixed = fixed.into_iter().chain(keys.iter().map(String::as_str));
        writer.write_record(fixed.chain(judged).chain(names))?;
        let levels = |cell: &Cell| keys.iter().map(|key| level(cell, key)).collect();
        let cells = experiment.measured();
        Ok(Self {
            writer,
            cells: cells.map(|cell| (cell.index, levels(cell))).collect(),
            keys,
            figures,
            loads,
        })
    }

    fn add(&mut self, sample: &Sample) -> Result<(), csv::Error> {
        let mut row = vec![
            sample.round.to_string(),
            sample.position.to_string(),
            sample.cell.to_string(),
            sample.started_s.to_string(),
            sample.took_s.to_string(),
        ];
        match self.cells.get(&sample.cell) {
            Some(levels) => row.extend(levels.iter().cloned()),
            None => row.extend(self.keys.iter().map(|_| String::new())),
        }
        row.push(sample.invalid.is_none().to_string());
        row.push(sample.invalid.as_ref().map_or("", kind).to_owned());
        let reason = sample.invalid.as_ref().map_or("", Invalid::reason);
        row.push(reason.to_owned());
        let mut marks = Vec::new();
        for kind in sample.marks.iter().map(Mark::kind) {
            // Both hosts may have the same mark.
            if !marks.contains(&kind) {
                marks.push(kind);
            }
        }
        row.push(marks.join(" "));
        let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        row.extend(self.figures.iter().map(|(_, figure)| text(figure(sample))));
        row.extend(self.loads.iter().map(|(_, figure)| text(figure(sample))));
        self.writer.write_record(&row)
    }

    fn finish(mut self) -> Result<(), csv::Error> {
        Ok(self.writer.flush()?)
    }
}

type Figured = Box<dyn Fn(&Sample) -> Option<f64>>;

type LoadFigure = Box<dyn Fn(&LoadResult) -> Option<f64>>;

/// Columns `LOAD.FIGURE` of each load, with the unit in their name. None where every cell runs a TCP stream alone: the
/// other columns have its figures.
fn of_loads(experiment: &Experiment) -> Vec<(String, Figured)> {
    let figures = experiment.figures();
    let stream = Workload::TcpStream.name();
    let cells = &experiment.cells;
    let plain = |cell: &Cell| matches!(&cell.loads[..], [] | [_]);
    if cells.iter().all(plain) && figures.iter().all(|figure| figure.load == stream) {
        return Vec::new();
    }
    let mut columns: Vec<(String, Figured)> = Vec::new();
    for figure in figures {
        let (metric, scale) = match figure.metric {
            Metric::Throughput => ("throughput_gbps", 1e-9),
            Metric::SenderCpu => ("sender_cpu_percent_per_gbps", 1.0),
            Metric::ReceiverCpu => ("receiver_cpu_percent_per_gbps", 1.0),
            Metric::Cpu => ("cpu_percent_per_gbps", 1.0),
            Metric::Transactions => ("transactions_per_s", 1.0),
            Metric::LatencyMedian => ("latency_p50_us", 1e6),
            Metric::LatencyP99 => ("latency_p99_us", 1e6),
            Metric::LatencyP999 => ("latency_p999_us", 1e6),
            Metric::ClientCpu => ("client_cpu_us_per_transaction", 1.0),
            Metric::ServerCpu => ("server_cpu_us_per_transaction", 1.0),
            Metric::TransactionCpu => ("cpu_us_per_transaction", 1.0),
            Metric::Datagrams => ("datagrams_per_s", 1.0),
            Metric::Delivered => ("delivered_percent", 100.0),
            Metric::MoveTime => ("move_s", 1.0),
            Metric::Downtime => ("downtime_ms", 1e3),
            Metric::DirtyLimit => ("dirty_limit_gbps", 1e-9),
        };
        let (load, main) = (figure.load.clone(), figure.metric);
        columns.push((
            format!("{load}.{metric}"),
            Box::new(move |sample| Some(figure.value(sample)? * scale)),
        ));
        let mut add = |name: &str, figure| {
            columns.push((format!("{load}.{name}"), of_load(load.clone(), figure)));
        };
        match main {
            Metric::LatencyMedian => {
                add(
                    "latency_max_us",
                    Box::new(|of| Some(of.requests.as_ref()?.latency.max()?.as_secs_f64() * 1e6)),
                );
                for (name, count) in REQUEST_COUNTS {
                    add(name, Box::new(move |of| of.requests.as_ref().map(count)));
                }
            }
            Metric::Delivered => {
                add(
                    "jitter_us",
                    Box::new(|of| Some(of.datagrams.as_ref()?.jitter_s * 1e6)),
                );
                for (name, count) in DATAGRAM_COUNTS {
                    add(name, Box::new(move |of| of.datagrams.as_ref().map(count)));
                }
            }
            Metric::Throughput => add("fairness", Box::new(|of| of.stream.as_ref()?.fairness)),
            _ => {}
        }
    }
    columns
}

/// A column of a load's figures.
fn of_load(load: String, figure: LoadFigure) -> Figured {
    Box::new(move |sample| figure(sample.load(&load)?))
}

fn level(cell: &Cell, key: &str) -> String {
    cell.levels.get(key).cloned().unwrap_or_default()
}

const fn kind(invalid: &Invalid) -> &'static str {
    match invalid {
        Invalid::Proof(_) => "proof",
        Invalid::Build(_) => "build",
        Invalid::Load(_) => "load",
        Invalid::Setting(_) => "setting",
        Invalid::Agent(_) => "agent",
    }
}
