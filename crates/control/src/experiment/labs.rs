//! The labs of a run: built when first needed, kept while cells share them.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use tracing::debug;
use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Request, Stage};
use wirecost_model::cell::{Cell, Experiment, Network};
use wirecost_model::line::LineRelease;
use wirecost_model::plan::{Cores, HostPair, Repeat};
use wirecost_model::record::{Environment, HostEnvironment};
use wirecost_model::sample::{Invalid, Sample};

use super::machine::MachineSettings;
use super::progress::Progress;
use super::sample::{SampleContext, take};
use super::tunnel::too_large;
use crate::calls::PROMPT;
use crate::lab::{Existing, Lab, LabContext, unlike};

/// Labs kept at the same time; beyond that the one unused for longest is taken down.
pub(crate) const MAX_LABS: usize = 8;

/// The labs of a run, the most recently used last.
pub(crate) struct Labs {
    context: LabContext,
    up: Vec<Lab>,
    /// Networks that could not be built, and why: not tried again.
    broken: BTreeMap<Network, String>,
    /// By encapsulation, as `wirecost overhead` writes it: why other datapaths could not build it either.
    also_refused: BTreeMap<String, String>,
    /// How lines let packets out: those of all labs do it alike.
    line: Option<LineRelease>,
    /// The hosts on which every lab is built, where they are existing ones.
    between: Option<(HostPair, Existing)>,
    pub(crate) machine: MachineSettings,
}

impl Labs {
    pub(crate) fn new(context: LabContext) -> Self {
        Self {
            machine: MachineSettings::new(&context),
            context,
            up: Vec::new(),
            broken: BTreeMap::new(),
            also_refused: BTreeMap::new(),
            line: None,
            between: None,
        }
    }

    /// Has every cell run between existing hosts, instead of in a lab.
    pub(crate) fn use_existing(&mut self, lab: Lab) {
        self.up = vec![lab];
    }

    /// Has every lab built on existing hosts, and tunnels go over their own network.
    pub(crate) fn build_on(&mut self, pair: HostPair, existing: Existing) {
        self.between = Some((pair, existing));
    }

    fn existing(&self) -> Option<&Existing> {
        self.up.first()?.existing.as_ref()
    }

    /// Builds the first lab that can be built and asks it about the machine.
    pub(crate) fn describe(
        &mut self,
        experiment: &Experiment,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Environment, LinkError> {
        let mut first = None;
        // One with a line, where there is one: it says how lines are emulated here.
        let (lines, others): (Vec<_>, Vec<_>) =
            (experiment.cells.iter()).partition(|cell| cell.network.rate.is_some());
        for cell in lines.into_iter().chain(others) {
            match self.get(&cell.network, interrupt, progress) {
                Ok(Ok(lab)) => {
                    let Reply::Description(environment) =
                        lab.a.call(&Request::Describe, PROMPT, interrupt)?
                    else {
                        return Err(lab.a.unexpected_reply("Describe"));
                    };
                    // The agent is pinned to its host's share of the cores.
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
        let between = self.between.as_ref().map(|(_, existing)| existing);
        if let Some(existing) = self.existing().or(between) {
            return existing.hosts();
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

    /// The lab for a network: one that is up, or a new one. The inner error is the reason why this
    /// network cannot be had here; the outer one ends the run.
    pub(crate) fn get(
        &mut self,
        network: &Network,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Result<&mut Lab, String>, LinkError> {
        if self.existing().is_some() {
            return self.up.last_mut().map(Ok).ok_or(LinkError::Interrupted);
        }
        if let Some(reason) = self.broken.get(network) {
            return Ok(Err(self.with_others(network, reason)));
        }
        if let Some(reason) = network.datapath.cannot(&network.encapsulation) {
            return Ok(Err(self.with_others(network, reason)));
        }
        if let Some(at) = self.up.iter().position(|lab| lab.network() == network) {
            let lab = self.up.remove(at);
            self.up.push(lab);
        } else {
            if self.up.len() >= MAX_LABS {
                debug!(
                    "taking down {}: no more than {MAX_LABS} labs at a time",
                    self.up[0].network()
                );
                self.up.remove(0);
            }
            match self.up(network, interrupt) {
                Ok(lab) => {
                    if let Some(reason) = unlike(self.line.as_ref(), lab.line()) {
                        self.broken.insert(network.clone(), reason.clone());
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
                    self.broken.insert(network.clone(), message);
                    return Ok(Err(reason));
                }
                Err(error) => return Err(error),
            }
        }
        self.up.last_mut().map(Ok).ok_or(LinkError::Interrupted)
    }

    fn up(&mut self, network: &Network, interrupt: &AtomicBool) -> Result<Lab, LinkError> {
        let Some((pair, _)) = &self.between else {
            return Lab::up(&self.context, network, interrupt);
        };
        // Two of a kind have the same ends, ports and numbers, so that all samples are of tunnels alike.
        let kind = network.encapsulation.kind().word;
        let same = |lab: &mut Lab| lab.network().encapsulation.kind().word == kind;
        self.up.extract_if(.., same).for_each(Lab::take_down);
        Lab::over(&self.context, pair, network, interrupt).map_err(|error| match error {
            // Who reads it has to know which host.
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

    /// Notes why another datapath could not build a network's encapsulation, to be told with why this one cannot.
    pub(crate) fn also_refused(&mut self, network: &Network, reason: String) {
        let stack = network.encapsulation.stack();
        self.also_refused.insert(stack, reason);
    }

    fn with_others(&self, network: &Network, reason: &str) -> String {
        match self.also_refused.get(&network.encapsulation.stack()) {
            Some(other) => format!("{reason}; by {other}"),
            None => reason.to_owned(),
        }
    }

    pub(crate) fn take(
        &mut self,
        repeat: &Repeat,
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
        let taken = self.take_in_lab(repeat, cell, interrupt, secret, sample, progress);
        // Whatever became of the sample, none of its settings may be applied in the next.
        let undone = self.undo(&taken).and(self.machine.undo());
        if let (Ok(()), Err(error)) = (&taken, &undone) {
            sample.invalid = Some(Invalid::Setting(error.to_string()));
        }
        taken.and(undone)
    }

    /// Undoes the cell's settings in its lab, the last one used.
    fn undo(&mut self, taken: &Result<(), LinkError>) -> Result<(), LinkError> {
        match self.up.last_mut() {
            // An agent is gone, or still busy: it undoes when its line closes.
            _ if taken.is_err() => Ok(()),
            Some(lab) => lab.undo().map_err(|error| lab.blame(error)),
            None => Ok(()),
        }
    }

    fn take_in_lab(
        &mut self,
        repeat: &Repeat,
        cell: &Cell,
        interrupt: &AtomicBool,
        secret: [u8; 16],
        sample: &mut Sample,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LinkError> {
        if let Some(reason) = cell.idle_switch().or_else(|| cell.unlike_others()) {
            sample.invalid = Some(Invalid::Build(reason.to_owned()));
            return Ok(());
        }
        let between = self.between.as_ref();
        if let Some(reason) = between.and_then(|(_, existing)| too_large(cell, existing)) {
            sample.invalid = Some(Invalid::Build(reason));
            return Ok(());
        }
        let mut result = match self.get(&cell.network, interrupt, progress) {
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
            let taking = SampleContext {
                repeat,
                placement: &self.context.placement,
                ours: &ours,
                secret,
                interrupt,
            };
            result = take(lab, cell, &taking, sample).map_err(|error| lab.blame(error));
        }
        match result {
            Err(LinkError::Refused {
                host,
                stage,
                message,
            }) => {
                sample.invalid = Some(refused(stage, format!("host {host}: {message}")));
                // Nobody knows in which state this lab is: the next sample gets a new one. Existing hosts stay, and give up
                // the loads that they have when they are asked for the next.
                let undone = match self.existing() {
                    Some(_) => self.up.last_mut().map_or(Ok(()), Lab::undo),
                    None => self.up.pop().map_or(Ok(()), |mut lab| lab.undo()),
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

/// Why a sample is not valid whose agent refused at this stage.
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
