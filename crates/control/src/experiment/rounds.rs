//! The run: measures every cell once per round in random order, writes every sample when it is taken, and writes how
//! the run ended, whatever happens.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use wirecost_agent::link::LinkError;
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::line::RELEASE_US;
use wirecost_model::metric::Metric;
use wirecost_model::plan::{Cores, Hosts};
use wirecost_model::record::{self, AdaptiveEnd, Environment, Outcome, RunEnd, RunHead};
use wirecost_model::sample::Sample;
use wirecost_model::vary::Setting;

use super::adaptive::AdaptiveMonitor;
use super::attempts::Attempts;
use super::datapath;
use super::directory::{Directory, refuse_existing};
use super::error::RunError;
use super::existing;
use super::forecast::{RemainingTime, forecast, longest_sample};
use super::labs::Labs;
use super::max_rate::{SendLimit, Traffic, ends_by_itself};
use super::progress::Progress;
use super::settings::{check_congestion, check_steering};
use super::start::{allowed_cpus, choose_seed, random_bytes};
use crate::hosts::{AgentRole, HostsContext, HostsError};
use crate::lab::{ExistingPair, HostPool, LabContext};
use crate::placement::place_run;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the agents of all hosts are started with.
    pub agents: HostsContext,
    /// The run directory, or `None` for a new one under `wirecost-runs`.
    pub out: Option<PathBuf>,
    /// The plan as the user wrote it, kept beside the record.
    pub plan_text: String,
    /// Seed of the random order; takes precedence over the plan's.
    pub seed: Option<u64>,
    /// Whether one setting that cannot be applied ends the run before its first sample. Otherwise the samples with that
    /// setting are not valid.
    pub needs_all_settings: bool,
    /// Version of the program.
    pub program_version: String,
}

/// A run that left a record.
#[derive(Debug)]
pub struct Finished {
    /// The run directory.
    pub directory: PathBuf,
    /// How the run ended.
    pub end: RunEnd,
}

/// Runs an experiment to its end, or as far as it gets.
///
/// # Errors
/// Only where the record could not be created or written. A run that stopped early is `Ok`, with its reason.
pub fn run(
    experiment: &Experiment,
    options: &Options,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, RunError> {
    let began = Instant::now();
    let allowed = allowed_cpus()?;
    refuse_existing(options.out.as_deref())?;
    let agents = HostsContext {
        role: agent_role(experiment),
        idle: longest_sample(experiment),
        ..options.agents.clone()
    };
    let host_pool = host_pool(experiment, &agents, interrupt)?;
    let placement = match &host_pool {
        Some(host_pool) => existing::placement(host_pool.pairs())?,
        None => place_run(experiment, &allowed),
    };
    let mut experiment = placed(experiment, placement.cores);
    if let Some(host_pool) = &host_pool {
        let limits = existing::adapt(&mut experiment, host_pool.pairs())?;
        tell(&experiment, host_pool.pairs().iter().zip(limits), progress);
    } else {
        check_steering(&experiment, &placement.all())?;
        check_congestion(&experiment)?;
    }
    let context = LabContext {
        agents,
        placement,
        release_us: experiment.plan.underlay.release_us.unwrap_or(RELEASE_US),
        several_links: experiment
            .plan
            .underlay
            .links
            .iter()
            .any(|links| *links > 1),
    };
    let mut labs = Labs::new(context);
    let is_tunnel = experiment.plan.hosts.is_tunnel();
    if let Some(host_pool) = host_pool {
        labs.use_hosts(host_pool, is_tunnel);
    }
    let hosts = experiment.plan.hosts.clone();
    let no_lab = |error| RunError::not_built(error, &hosts);
    let experiment =
        &datapath::choose(experiment, &mut labs, interrupt, progress).map_err(no_lab)?;
    let environment = labs
        .describe(experiment, interrupt, progress)
        .map_err(no_lab)?;
    labs.check(experiment, options.needs_all_settings, interrupt, progress)?;
    let (seed, _) = choose_seed(options.seed, experiment.plan.seed)?;
    let cost = environment.wakeup_cost;
    let directory = directory(experiment, options, seed, environment)?;
    let expected = forecast(experiment, seed);
    progress(Progress::Started {
        directory: directory.path().to_owned(),
        samples: expected.samples,
        expected_s: expected.total_s,
    });
    let mut rounds = Rounds {
        experiment,
        labs,
        directory,
        interrupt,
        began,
        measured_s: 0.0,
        written: 0,
        monitor: AdaptiveMonitor::of(experiment, cost),
        attempts: Attempts::default(),
        until: None,
    };
    let stopped = rounds.all(seed, expected.rounds, progress);
    drop(rounds.labs);
    let (stopped, lost) = match stopped {
        Ok(stopped) => (stopped, None),
        Err(RunError::Directory(error)) => {
            (Some((Outcome::Failed, error.to_string())), Some(error))
        }
        Err(error) => return Err(error),
    };
    let (outcome, reason) = stopped.unzip();
    let end = RunEnd {
        outcome: outcome.unwrap_or(Outcome::Complete),
        reason,
        seconds: began.elapsed().as_secs_f64(),
        measured_s: rounds.measured_s,
        until: rounds.until,
    };
    let directory = rounds.directory.path().to_owned();
    // Where samples could not be written, the file of the run's end may still fit on the disk.
    let closed = rounds.directory.close(&end);
    match lost.map_or(closed, Err) {
        Ok(()) => Ok(Finished { directory, end }),
        Err(source) => Err(RunError::Record {
            directory,
            samples: rounds.written,
            source,
        }),
    }
}

/// What agents of existing hosts are started for.
pub fn agent_role(experiment: &Experiment) -> AgentRole {
    let plan = &experiment.plan;
    let settings = || plan.vary.iter().flat_map(|factor| &factor.levels);
    let is_of_root = |setting: &Setting| {
        !(setting.sysctl.is_empty() && setting.ethtool.is_empty() && setting.device.is_empty())
    };
    if plan.hosts.is_tunnel() {
        AgentRole::Build
    } else if settings().any(is_of_root) {
        AgentRole::Change
    } else if settings().any(|setting| setting.command.is_some()) {
        AgentRole::Commands
    } else {
        AgentRole::Load
    }
}

/// Reaches the hosts of a plan for existing hosts; `None` for a plan with labs.
fn host_pool(
    experiment: &Experiment,
    agents: &HostsContext,
    interrupt: &AtomicBool,
) -> Result<Option<HostPool>, RunError> {
    if experiment.plan.hosts == Hosts::Lab {
        return Ok(None);
    }
    let pairs = experiment.plan.host_pairs().ok_or(RunError::NoHosts)?;
    let network = &experiment.cells[0].network;
    let host_pool = HostPool::open(agents, &pairs, network, interrupt);
    host_pool.map(Some).map_err(|error| match error {
        HostsError::Link(LinkError::Interrupted) => RunError::Interrupted,
        error => RunError::NoHost(error),
    })
}

/// Reports the data-plane addresses of each pair of hosts, and how much is sent between them.
fn tell<'a>(
    experiment: &Experiment,
    pairs: impl Iterator<Item = (&'a ExistingPair, Option<u64>)>,
    progress: &mut dyn FnMut(Progress),
) {
    let forecast = forecast(experiment, 0);
    let all = f64::from(experiment.samples_a_round());
    for (number, (existing, limit)) in pairs.enumerate() {
        let is_of = |cell: &&Cell| experiment.plan.pair_of(&cell.levels) == number;
        let share = experiment.measured().filter(is_of).count() as f64 / all;
        progress(Progress::Reached {
            addresses: existing.addresses,
            traffic: Traffic {
                limit: limit.map_or(SendLimit::None, SendLimit::Rate),
                seconds: (forecast.windows_s + forecast.warmups_s) * share,
                ends_by_itself: ends_by_itself(experiment),
            },
        });
    }
}

/// Creates the run directory with everything that is known before the first sample.
fn directory(
    experiment: &Experiment,
    options: &Options,
    seed: u64,
    environment: Environment,
) -> Result<Directory, RunError> {
    let now = jiff::Timestamp::now();
    let head = RunHead {
        record_version: record::VERSION,
        program_version: options.program_version.clone(),
        started: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        seed,
        experiment: experiment.clone(),
        environment,
    };
    let made = if let Some(path) = &options.out {
        Directory::create(path, &head, &options.plan_text)
    } else {
        let stem = format!("{}-{}", experiment.plan.name, now.strftime("%Y%m%d-%H%M%S"));
        Directory::create_in(Path::new("wirecost-runs"), &stem, &head, &options.plan_text)
    };
    Ok(made?)
}

/// A run in progress.
struct Rounds<'a> {
    experiment: &'a Experiment,
    labs: Labs,
    directory: Directory,
    interrupt: &'a AtomicBool,
    began: Instant,
    /// Time of all measured windows, seconds.
    measured_s: f64,
    /// Samples in the record.
    written: u32,
    /// Interim analyses of an adaptive run; `None` where the number of rounds is fixed.
    monitor: Option<AdaptiveMonitor<'a>>,
    attempts: Attempts,
    /// Why an adaptive run ended by its own rule; `None`: it did not.
    until: Option<AdaptiveEnd>,
}

/// Why a run ended before its last sample.
type Stopped = Option<(Outcome, String)>;

impl Rounds<'_> {
    /// Runs all rounds; `expected` is the forecast number of rounds.
    fn all(
        &mut self,
        seed: u64,
        expected: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stopped, RunError> {
        let began = Instant::now();
        let (mut done, mut pace) = (0, RemainingTime::new(self.experiment, expected));
        let cells: Vec<&Cell> = self.experiment.measured().collect();
        for round in 0..self.experiment.plan.repeat.rounds {
            let order = wirecost_stats::order(cells.len(), round, seed);
            for (position, cell) in order.into_iter().enumerate() {
                let cell = cells[cell];
                progress(Progress::Taking {
                    round,
                    cell: cell.index,
                });
                let started_s = self.began.elapsed().as_secs_f64();
                let mut sample = Sample::begun(round, position as u32, cell.index, started_s);
                let stopped = self.one(cell, &mut sample, progress)?;
                if matches!(stopped, Some((Outcome::Interrupted, _))) {
                    return Ok(stopped);
                }
                done += 1;
                pace.taken(cell);
                if position + 1 == cells.len() && stopped.is_none() {
                    self.interim_analysis(round + 1, &mut pace, progress);
                }
                progress(Progress::Taken {
                    done,
                    speed: speed(&sample),
                    invalid: sample
                        .invalid
                        .as_ref()
                        .map(|invalid| invalid.reason().to_owned()),
                    left_s: pace.left_s(began.elapsed().as_secs_f64()),
                });
                if stopped.is_some() {
                    return Ok(stopped);
                }
            }
            if self.until.is_some() {
                break;
            }
        }
        Ok(None)
    }

    /// The interim analysis of an adaptive run after a complete round: decides whether another round is needed.
    fn interim_analysis(
        &mut self,
        rounds: u32,
        pace: &mut RemainingTime<'_>,
        progress: &mut dyn FnMut(Progress),
    ) {
        let Some(monitor) = &self.monitor else { return };
        let analysis = monitor.interim_analysis(rounds, self.began.elapsed().as_secs_f64());
        self.until = analysis.end;
        pace.expect(analysis.rounds - rounds);
        progress(Progress::InterimAnalysis {
            known: analysis.known,
            asked: analysis.asked,
            rounds: analysis.rounds,
        });
    }

    /// Takes and writes one sample. An interrupted sample is not written.
    fn one(
        &mut self,
        cell: &Cell,
        sample: &mut Sample,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Stopped, RunError> {
        let interrupted = || Some((Outcome::Interrupted, "interrupted".to_owned()));
        if self.interrupt.load(Ordering::Relaxed) {
            return Ok(interrupted());
        }
        let started = Instant::now();
        let secret: [u8; 16] = random_bytes()?;
        let taken = self.attempts.take(cell, sample, |sample, attempt| {
            let mut secret = secret;
            secret[1] ^= attempt as u8;
            if let Some(failed) = sample.failed_attempts.last() {
                progress(Progress::Again {
                    reason: failed.invalid.reason().to_owned(),
                });
            }
            let (experiment, interrupt) = (self.experiment, self.interrupt);
            self.labs
                .take(experiment, cell, interrupt, secret, sample, progress)
        });
        if let Err(LinkError::Interrupted) = taken {
            return Ok(interrupted());
        }
        sample.took_s = started.elapsed().as_secs_f64();
        self.directory.append(sample)?;
        self.written += 1;
        if let Some(monitor) = &mut self.monitor {
            monitor.taken(sample);
        }
        let saturated = sample
            .saturated
            .as_ref()
            .and_then(|window| window.loads.first());
        let windows = sample.loads.first().into_iter().chain(saturated);
        self.measured_s += windows.map(|load| load.seconds).sum::<f64>();
        Ok(taken
            .err()
            .map(|error| (Outcome::Failed, error.to_string())))
    }
}

/// The experiment with the hosts' cores split or shared as they really are: a single core cannot be split.
fn placed(experiment: &Experiment, cores: Cores) -> Experiment {
    let mut experiment = experiment.clone();
    experiment.plan.cores = cores;
    for cell in experiment.cells.iter_mut().chain(&mut experiment.twin) {
        cell.network.cores = cores;
    }
    experiment
}

/// The main figure of the first load: throughput (bit/s) or transactions per second.
fn speed(sample: &Sample) -> Option<(Metric, f64)> {
    let load = sample.loads.first()?;
    let metric = if load.workload.is_request_response() {
        Metric::Transactions
    } else {
        Metric::Throughput
    };
    Some((metric, metric.value(sample, &load.name)?))
}
