//! The run: labs kept while cells share them, every cell once a round in random order, every
//! sample written when taken, and an end in words whatever happens.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_agent::stray::Owner;
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::metric::Metric;
use wirecost_model::plan::Cores;
use wirecost_model::record::{self, Environment, HostEnvironment, Outcome, RunEnd, RunHead};
use wirecost_model::sample::{Invalid, Sample};

use crate::directory::{Directory, DirectoryError};
use crate::lab::{Lab, LabContext, PROMPT};
use crate::placement::place;
use crate::progress::Progress;
use crate::sample::{Taking, take};

/// Labs kept at the same time; beyond that the one unused for longest is taken down.
const MAX_LABS: usize = 8;

/// What a run needs beside its experiment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `wirecost` program, for the agents.
    pub program: PathBuf,
    /// The run directory, or `None` for a new one under `wirecost-runs`.
    pub out: Option<PathBuf>,
    /// The plan as the user wrote it, kept beside the record.
    pub plan_text: String,
    /// Seed of the random order, before the plan's.
    pub seed: Option<u64>,
    /// Version of the program.
    pub program_version: String,
}

/// A run that left a record.
#[derive(Debug)]
pub struct Finished {
    /// The run directory.
    pub directory: PathBuf,
    /// How it ended.
    pub end: RunEnd,
}

/// A run that left no record, or whose record could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No lab could be built.
    #[error("no lab could be built: {0}")]
    NoLab(LinkError),
    /// Something this machine should have is missing.
    #[error("{what}: {source}")]
    Machine {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

/// Runs an experiment to its end, or as far as it gets.
///
/// # Errors
/// Only where no record could be made or kept; a run that stopped early is `Ok`, with its reason.
pub fn run(
    experiment: &Experiment,
    options: &Options,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Finished, RunError> {
    let began = Instant::now();
    let machine = |what| move |source| RunError::Machine { what, source };
    let allowed = wirecost_agent::lab::allowed_cpus().map_err(machine("reading the cores"))?;
    let owner = Owner::this().map_err(machine("reading /proc"))?;
    if let Some(out) = options.out.as_deref().filter(|out| out.exists()) {
        return Err(DirectoryError::Exists(out.to_owned()).into());
    }
    let placement = place(experiment.plan.cores, &allowed);
    let experiment = &placed(experiment, placement.cores);
    let context = LabContext { program: options.program.clone(), owner, placement };
    let mut labs = Labs { context, up: Vec::new(), broken: BTreeMap::new() };

    let environment = labs.describe(experiment, interrupt).map_err(RunError::NoLab)?;
    let random = || random_bytes().map_err(machine("reading /dev/urandom"));
    // 32 bits: a JSON reader with doubles must be able to keep it.
    let fresh = u64::from(u32::from_ne_bytes(random()?[..4].try_into().unwrap_or_default()));
    let seed = options.seed.or(experiment.plan.seed).unwrap_or(fresh);
    let now = jiff::Timestamp::now();
    let head = RunHead {
        record_version: record::VERSION,
        program_version: options.program_version.clone(),
        started: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        seed,
        experiment: experiment.clone(),
        environment,
    };
    let directory = match &options.out {
        Some(path) => Directory::create(path, &head, &options.plan_text)?,
        None => {
            let stem = format!("{}-{}", experiment.plan.name, now.strftime("%Y%m%d-%H%M%S"));
            let parent = Path::new("wirecost-runs");
            Directory::create_in(parent, &stem, &head, &options.plan_text)?
        }
    };
    let total = experiment.plan.repeat.rounds * experiment.cells.len() as u32;
    let path = directory.path().to_owned();
    progress(Progress::Started { directory: path, samples: total });

    let mut measured_s = 0.0;
    let mut done = 0;
    let loop_began = Instant::now();
    let mut stopped = None;
    'rounds: for round in 0..experiment.plan.repeat.rounds {
        let order = wirecost_stats::order(experiment.cells.len(), round, seed);
        for (position, cell) in order.into_iter().enumerate() {
            if interrupt.load(Ordering::Relaxed) {
                stopped = Some((Outcome::Interrupted, "interrupted".to_owned()));
                break 'rounds;
            }
            let cell = &experiment.cells[cell];
            progress(Progress::Taking { round, cell: cell.index });
            let started = Instant::now();
            let mut sample = empty(round, position as u32, cell, began);
            let taken = labs.take(experiment, cell, interrupt, random()?, &mut sample, progress);
            if let Err(LinkError::Interrupted) = taken {
                stopped = Some((Outcome::Interrupted, "interrupted".to_owned()));
                break 'rounds;
            }
            sample.took_s = started.elapsed().as_secs_f64();
            directory.append(&sample)?;
            measured_s += sample.stream.as_ref().map_or(0.0, |stream| stream.seconds);
            done += 1;
            let per_sample = loop_began.elapsed().as_secs_f64() / f64::from(done);
            progress(Progress::Taken {
                done,
                gbps: Metric::Throughput.value(&sample).map(|bps| bps / 1e9),
                invalid: sample.invalid.as_ref().map(|invalid| invalid.reason().to_owned()),
                left_s: per_sample * f64::from(total - done),
            });
            if let Err(error) = taken {
                stopped = Some((Outcome::Failed, error.to_string()));
                break 'rounds;
            }
        }
    }
    drop(labs);
    let (outcome, reason) = stopped.unzip();
    let end = RunEnd {
        outcome: outcome.unwrap_or(Outcome::Complete),
        reason,
        seconds: began.elapsed().as_secs_f64(),
        measured_s,
    };
    Ok(Finished { directory: directory.close(&end)?, end })
}

/// The experiment as it is really run: on one core nothing can be split.
fn placed(experiment: &Experiment, cores: Cores) -> Experiment {
    let mut experiment = experiment.clone();
    experiment.plan.cores = cores;
    for cell in &mut experiment.cells {
        cell.network.cores = cores;
    }
    experiment
}

fn empty(round: u32, position: u32, cell: &Cell, began: Instant) -> Sample {
    Sample {
        round,
        position,
        cell: cell.index,
        started_s: began.elapsed().as_secs_f64(),
        took_s: 0.0,
        invalid: None,
        marks: Vec::new(),
        proofs: Vec::new(),
        devices: Vec::new(),
        stream: None,
        sender: None,
        receiver: None,
    }
}

/// The labs of a run, the most recently used last.
struct Labs {
    context: LabContext,
    up: Vec<Lab>,
    /// Networks that could not be built, and why: not tried again.
    broken: BTreeMap<Network, String>,
}

impl Labs {
    /// Builds the first lab that can be built and asks it about the machine.
    fn describe(
        &mut self,
        experiment: &Experiment,
        interrupt: &AtomicBool,
    ) -> Result<Environment, LinkError> {
        let mut first = None;
        for cell in &experiment.cells {
            match self.get(&cell.network, interrupt) {
                Ok(Ok(lab)) => {
                    let Reply::Description(environment) =
                        lab.a.call(&Request::Describe, PROMPT, interrupt)?
                    else {
                        return Err(lab.a.confused("Describe"));
                    };
                    // The agent is pinned to its host's share of the cores.
                    let (cpus, hosts) = (self.context.placement.all(), self.hosts());
                    return Ok(Environment { cpus, hosts, ..*environment });
                }
                Ok(Err(message)) => {
                    first.get_or_insert(LinkError::Refused { host: "a".into(), message });
                }
                Err(error) => return Err(error),
            }
        }
        Err(first.unwrap_or(LinkError::Interrupted))
    }

    fn hosts(&self) -> BTreeMap<String, HostEnvironment> {
        let placement = &self.context.placement;
        let cores = match placement.cores {
            Cores::Split => "split",
            Cores::Shared => "shared",
        };
        [("a", &placement.a), ("b", &placement.b)]
            .map(|(host, cpus)| {
                let environment = HostEnvironment { cpus: cpus.clone(), cores: cores.to_owned() };
                (host.to_owned(), environment)
            })
            .into()
    }

    /// The lab for a network: one that is up, or a new one. The inner error is the reason why this
    /// network cannot be had here; the outer one ends the run.
    fn get(
        &mut self,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Result<&mut Lab, String>, LinkError> {
        if let Some(reason) = self.broken.get(network) {
            return Ok(Err(reason.clone()));
        }
        if let Some(at) = self.up.iter().position(|lab| lab.network() == network) {
            let lab = self.up.remove(at);
            self.up.push(lab);
        } else {
            if self.up.len() >= MAX_LABS {
                self.up.remove(0);
            }
            match Lab::up(&self.context, network, interrupt) {
                Ok(lab) => self.up.push(lab),
                Err(LinkError::Refused { message, .. }) => {
                    self.broken.insert(network.clone(), message.clone());
                    return Ok(Err(message));
                }
                Err(error) => return Err(error),
            }
        }
        self.up.last_mut().map(Ok).ok_or(LinkError::Interrupted)
    }

    fn take(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        interrupt: &AtomicBool,
        secret: [u8; 16],
        sample: &mut Sample,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LinkError> {
        let cores = self.context.placement.cores;
        let is_up = self.up.iter().any(|lab| lab.network() == &cell.network);
        let mut result = match self.get(&cell.network, interrupt) {
            Ok(Ok(lab)) => {
                if !is_up {
                    let network = cell.network.to_string();
                    progress(Progress::LabUp { network, seconds: lab.seconds() });
                }
                Ok(())
            }
            Ok(Err(reason)) => {
                sample.invalid = Some(Invalid::Build(reason));
                return Ok(());
            }
            Err(error) => Err(error),
        };
        let ours: Vec<u32> =
            self.up.iter().flat_map(Lab::pids).chain([std::process::id()]).collect();
        if let (Ok(()), Some(lab)) = (&result, self.up.last_mut()) {
            let repeat = &experiment.plan.repeat;
            let taking = Taking { repeat, cores, ours: &ours, secret, interrupt };
            result = take(lab, cell, &taking, sample);
        }
        match result {
            Err(LinkError::Refused { host, message }) => {
                sample.invalid = Some(Invalid::Load(format!("host {host}: {message}")));
                // Nobody knows in which state this lab is: the next sample gets a new one.
                self.up.pop();
                Ok(())
            }
            Err(LinkError::Interrupted) => Err(LinkError::Interrupted),
            Err(error) => {
                sample.invalid = Some(Invalid::Agent(error.to_string()));
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }
}

fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
