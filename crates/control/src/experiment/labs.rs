//! The labs of a run: built when first needed, kept while cells share them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tracing::debug;
use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Request, Stage};
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::line::LineRelease;
use wirecost_model::plan::{Cores, PairNames};
use wirecost_model::record::{Environment, HostEnvironment};
use wirecost_model::sample::{Invalid, Sample};

use super::forecast::MAX_LABS;
use super::machine::MachineSettings;
use super::progress::Progress;
use super::sample::{SampleContext, take};
use super::tunnel::too_large;
use crate::lab::{ExistingPair, HostPool, Lab, LabContext, unlike};
use crate::timeouts::PROMPT;

/// The labs of a run, the most recently used last.
pub(crate) struct Labs {
    context: LabContext,
    up: Vec<Lab>,
    /// Networks that could not be built, by pair of hosts, with the reason: not tried again.
    broken: BTreeMap<(usize, Network), String>,
    /// Why other datapaths could not build an encapsulation either, by encapsulation as `wirecost overhead` writes it.
    other_refusals: BTreeMap<String, String>,
    /// How rate-limited lines release packets, which is the same in all labs.
    line: Option<LineRelease>,
    /// The existing hosts of the run; `None`: labs of namespaces.
    host_pool: Option<HostPool>,
    /// Whether labs are built on the existing hosts.
    builds: bool,
    /// Settings of this machine, outside of the labs.
    pub(crate) machine: MachineSettings,
}

impl Labs {
    pub(crate) fn new(context: LabContext) -> Self {
        Self {
            machine: MachineSettings::new(&context),
            context,
            up: Vec::new(),
            broken: BTreeMap::new(),
            other_refusals: BTreeMap::new(),
            line: None,
            host_pool: None,
            builds: false,
        }
    }

    /// Runs every cell between existing hosts: as they are or, with `builds`, in labs that are built on them, with
    /// tunnels over the hosts' own network.
    pub(crate) fn use_hosts(&mut self, mut host_pool: HostPool, builds: bool) {
        if builds {
            host_pool.end_agents();
        }
        (self.host_pool, self.builds) = (Some(host_pool), builds);
    }

    /// Makes the hosts of a cell current, and gets the cell's lab as [`Labs::get`] does.
    pub(crate) fn of_cell(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Result<&mut Lab, String>, LinkError> {
        if let Some(host_pool) = &mut self.host_pool {
            host_pool.keep_alive(&mut self.up, interrupt)?;
            let turned = host_pool.select(experiment.plan.pair_of(&cell.levels));
            if !self.builds && (turned || self.up.is_empty()) {
                self.up.drain(..).for_each(|lab| {
                    host_pool.leave(lab);
                });
                self.up.push(host_pool.lab(&cell.network, interrupt)?);
            }
        }
        self.get(&cell.network, interrupt, progress)
    }

    /// Index of the current pair of hosts, in the order of the plan; 0 for labs of namespaces.
    fn pair(&self) -> usize {
        self.host_pool.as_ref().map_or(0, HostPool::number)
    }

    /// The hosts of the current pair, where nothing is built on them.
    fn existing(&self) -> Option<&ExistingPair> {
        let host_pool = self.host_pool.as_ref().filter(|_| !self.builds);
        host_pool.map(HostPool::current)
    }

    /// Builds the first lab that can be built, and has its host a describe the machine.
    pub(crate) fn describe(
        &mut self,
        experiment: &Experiment,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Environment, LinkError> {
        let mut first = None;
        // Cells with a rate-limited line first: their labs say how lines are emulated here.
        let (lines, others): (Vec<_>, Vec<_>) =
            (experiment.cells.iter()).partition(|cell| cell.network.rate.is_some());
        for cell in lines.into_iter().chain(others) {
            match self.of_cell(experiment, cell, interrupt, progress) {
                Ok(Ok(lab)) => {
                    let Reply::Description(environment) =
                        lab.a.call(&Request::Describe, PROMPT, interrupt)?
                    else {
                        return Err(lab.a.unexpected_reply("Describe"));
                    };
                    // The agent sees only the cores that it is pinned to: report those of both hosts.
                    let (cpus, hosts) = (self.context.placement.all(), self.hosts());
                    return Ok(Environment {
                        cpus,
                        hosts,
                        line: self.line.clone(),
                        ..*environment
                    });
                }
                Ok(Err(message)) => {
                    first.get_or_insert(LinkError::Refused {
                        host: "a".into(),
                        stage: Stage::Build,
                        message,
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Err(first.unwrap_or(LinkError::Interrupted))
    }

    fn hosts(&self) -> BTreeMap<String, HostEnvironment> {
        if let Some(host_pool) = &self.host_pool {
            return host_pool.hosts();
        }
        let placement = &self.context.placement;
        let cores = match placement.cores {
            Cores::Split => "split",
            Cores::Shared => "shared",
        };
        [("a", &placement.a), ("b", &placement.b)]
            .map(|(host, cpus)| {
                let environment = HostEnvironment {
                    cpus: cpus.clone(),
                    cores: cores.to_owned(),
                    existing: None,
                };
                (host.to_owned(), environment)
            })
            .into()
    }

    /// The lab of a network: one that is kept, or a new one. The inner error is the reason why this network cannot be
    /// built here; the outer error ends the run.
    pub(crate) fn get(
        &mut self,
        network: &Network,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Result<&mut Lab, String>, LinkError> {
        if self.existing().is_some() {
            return self.up.last_mut().map(Ok).ok_or(LinkError::Interrupted);
        }
        let key = (self.pair(), network.clone());
        if let Some(reason) = self.broken.get(&key) {
            return Ok(Err(self.with_others(network, reason)));
        }
        if let Some(reason) = network.datapath.cannot(&network.encapsulation) {
            return Ok(Err(self.with_others(network, reason)));
        }
        let host_pool = self.host_pool.as_ref();
        let pair = host_pool.map(|host_pool| &host_pool.current().pair.names);
        let is_it = |lab: &Lab| {
            lab.network() == network && lab.hosts().map(|existing| &existing.pair.names) == pair
        };
        // What an existing host receives would pass the programs of other tunnels, too.
        if self.builds {
            let passed = |lab: &mut Lab| lab.network().datapath == Datapath::Ebpf && !is_it(lab);
            self.up.extract_if(.., passed).for_each(Lab::take_down);
        }
        if let Some(at) = self.up.iter().position(is_it) {
            let lab = self.up.remove(at);
            self.up.push(lab);
        } else {
            if self.up.len() >= MAX_LABS {
                debug!(
                    "taking down {}: no more than {MAX_LABS} labs at a time",
                    self.up[0].network()
                );
                let oldest = self.up.remove(0);
                // No setting is applied in it.
                let _ = self.remove(oldest);
            }
            match self.up(network, interrupt) {
                Ok(lab) => {
                    if let Some(reason) = unlike(self.line.as_ref(), lab.line()) {
                        self.broken.insert(key, reason.clone());
                        return Ok(Err(reason));
                    }
                    self.line = self.line.take().or_else(|| lab.line().cloned());
                    progress(Progress::LabUp {
                        network: network.to_string(),
                        seconds: lab.seconds(),
                    });
                    self.up.push(lab);
                }
                Err(LinkError::Refused { message, .. }) => {
                    debug!("not built: {network}: {message}");
                    let reason = self.with_others(network, &message);
                    self.broken.insert(key, message);
                    return Ok(Err(reason));
                }
                Err(error) => return Err(error),
            }
        }
        self.up.last_mut().map(Ok).ok_or(LinkError::Interrupted)
    }

    /// Undoes a lab's settings and removes the lab. On existing hosts the tunnel is removed before the agents end: the
    /// kernel removes the devices of ended agents later, and until then the next lab could not have the same tunnel.
    fn remove(&self, mut lab: Lab) -> Result<(), LinkError> {
        let undone = lab.undo();
        if self.builds {
            lab.take_down();
        }
        undone
    }

    fn up(&mut self, network: &Network, interrupt: &AtomicBool) -> Result<Lab, LinkError> {
        let Some(host_pool) = &self.host_pool else {
            return Lab::up(&self.context, network, interrupt);
        };
        // Tunnels of one kind have the same endpoints, ports and identifiers, so that all samples are alike: only
        // one can exist.
        let (kind, pair) = (network.encapsulation.kind().word, &host_pool.current().pair);
        let same = |lab: &mut Lab| {
            let shares = |existing: &ExistingPair| {
                let PairNames(names) = &existing.pair.names;
                names.iter().any(|name| pair.names.0.contains(name))
            };
            lab.network().encapsulation.kind().word == kind && lab.hosts().is_none_or(shares)
        };
        self.up.extract_if(.., same).for_each(Lab::take_down);
        Lab::over_hosts(&self.context, pair, network, interrupt).map_err(|error| match error {
            // Name the host in the message.
            LinkError::Refused {
                host,
                stage,
                message,
            } => LinkError::Refused {
                message: format!("{host}: {message}"),
                host,
                stage,
            },
            error => error,
        })
    }

    /// Notes why another datapath could not build a network's encapsulation, to report both reasons together.
    pub(crate) fn add_refusal(&mut self, network: &Network, reason: String) {
        let stack = network.encapsulation.stack();
        self.other_refusals.insert(stack, reason);
    }

    fn with_others(&self, network: &Network, reason: &str) -> String {
        match self.other_refusals.get(&network.encapsulation.stack()) {
            Some(other) => format!("{reason}; by {other}"),
            None => reason.to_owned(),
        }
    }

    /// Takes one sample of a cell, settings of this machine included. A failure that does not end the run is the
    /// sample's reason to be invalid.
    pub(crate) fn take(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        interrupt: &AtomicBool,
        secret: [u8; 16],
        sample: &mut Sample,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LinkError> {
        if let Err(error) = self.machine.apply(&cell.settings) {
            sample.invalid = Some(Invalid::Setting(error.to_string()));
            return self.machine.undo();
        }
        let taken = self.take_in_lab(experiment, cell, interrupt, secret, sample, progress);
        // Whatever became of the sample, none of its settings may still be applied in the next one.
        let undone = self.undo(&taken).and(self.machine.undo());
        if let (Ok(()), Err(error)) = (&taken, &undone) {
            sample.invalid = Some(Invalid::Setting(error.to_string()));
        }
        taken.and(undone)
    }

    /// Undoes the cell's settings in its lab, the most recently used one.
    fn undo(&mut self, taken: &Result<(), LinkError>) -> Result<(), LinkError> {
        match self.up.last_mut() {
            // An agent is gone or still busy: it undoes its settings when its connection closes.
            _ if taken.is_err() => Ok(()),
            Some(lab) => lab.undo().map_err(|error| lab.blame(error)),
            None => Ok(()),
        }
    }

    fn take_in_lab(
        &mut self,
        experiment: &Experiment,
        cell: &Cell,
        interrupt: &AtomicBool,
        secret: [u8; 16],
        sample: &mut Sample,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LinkError> {
        if let Some(reason) = cell
            .idle_switch()
            .or_else(|| cell.asymmetry_with_untunnelled())
        {
            sample.invalid = Some(Invalid::Build(reason.to_owned()));
            return Ok(());
        }
        let pair = experiment.plan.pair_of(&cell.levels);
        let built_on = self.host_pool.as_ref().filter(|_| self.builds);
        if let Some(reason) =
            built_on.and_then(|host_pool| too_large(cell, &host_pool.pairs()[pair]))
        {
            sample.invalid = Some(Invalid::Build(reason));
            return Ok(());
        }
        let mut result = match self.of_cell(experiment, cell, interrupt, progress) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(reason)) => {
                sample.invalid = Some(Invalid::Build(reason));
                return Ok(());
            }
            Err(error) => Err(error),
        };
        let ours: Vec<u32> = self
            .up
            .iter()
            .flat_map(|lab| lab.pids().into_iter().chain(lab.daemons().iter().copied()))
            .chain([std::process::id()])
            .collect();
        if let (Ok(()), Some(lab)) = (&result, self.up.last_mut()) {
            let of_hosts = lab.hosts().map(ExistingPair::placement);
            let taking = SampleContext {
                repeat: &experiment.plan.repeat,
                placement: of_hosts.as_ref().unwrap_or(&self.context.placement),
                ours: &ours,
                secret,
                interrupt,
            };
            result = take(lab, cell, &taking, sample).map_err(|error| lab.blame(error));
            if sample.invalid.is_some() {
                lab.watch_underlay_again();
            }
        }
        match result {
            Err(LinkError::Refused {
                host,
                stage,
                message,
            }) => {
                sample.invalid = Some(refused(stage, format!("host {host}: {message}")));
                // The lab's state is unknown: the next sample gets a new lab. Existing hosts are kept: they give up
                // their loads when they are asked to open the next ones.
                let undone = match self.existing() {
                    Some(_) => self.up.last_mut().map_or(Ok(()), Lab::undo),
                    None => self.up.pop().map_or(Ok(()), |lab| self.remove(lab)),
                };
                if let Err(error) = &undone {
                    sample.invalid = Some(Invalid::Setting(error.to_string()));
                }
                undone
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

/// Why a sample is invalid whose agent refused a request of this stage.
const fn refused(stage: Stage, reason: String) -> Invalid {
    match stage {
        Stage::Build | Stage::Adapt | Stage::Describe => Invalid::Build(reason),
        Stage::Setting => Invalid::Setting(reason),
        Stage::Proof | Stage::Path => Invalid::Proof(reason),
        Stage::Load => Invalid::Load(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_could_not_be_adapted_is_no_load_that_did_not_run() {
        let of = |stage| refused(stage, "why".into());
        assert_eq!(of(Stage::Adapt), Invalid::Build("why".into()));
        assert_eq!(of(Stage::Setting), Invalid::Setting("why".into()));
        assert_eq!(of(Stage::Load), Invalid::Load("why".into()));
    }
}
