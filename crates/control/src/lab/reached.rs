//! The existing hosts of a run, two of which are measured at a time: an agent for each, all started at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{Request, Stage};
use wirecost_model::cell::Network;
use wirecost_model::plan::NamedPair;
use wirecost_model::record::HostEnvironment;

use super::{Existing, Lab};
use crate::calls::PROMPT;
use crate::hosts::{HostsContext, HostsError, open};

/// An agent behind a shell ends after 15 minutes in which nothing is asked of it; each is asked something after this.
const KEEP_ALIVE: Duration = Duration::from_mins(1);

/// The existing hosts of a run.
#[derive(Debug)]
pub(crate) struct Reached {
    /// Every pair as it was found, in the order of the plan.
    pairs: Vec<Existing>,
    /// The number of the pair that is measured now.
    current: usize,
    /// Agents of hosts that are not in a lab, by their names in the plan.
    idle: BTreeMap<String, Link>,
    /// When all of them were asked something.
    asked: Instant,
}

impl Reached {
    /// Reaches all hosts and has each pair join once.
    ///
    /// To be called on a thread that lives as long: the kernel ends agents of this machine with it.
    ///
    /// # Errors
    /// Where a host is not reached, or has no address towards the other one of a pair.
    pub(crate) fn open(
        context: &HostsContext,
        pairs: &[NamedPair],
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Self, HostsError> {
        let mut hosts = BTreeMap::new();
        for NamedPair { names, hosts: pair } in pairs {
            let [a, b] = &names.0;
            hosts.insert(a, &pair.a);
            hosts.insert(b, &pair.b);
        }
        let addresses: Vec<_> = hosts.values().copied().collect();
        let links = open(context, &addresses, interrupt)?;
        let names = hosts.into_keys().cloned();
        let mut reached = Self {
            pairs: Vec::new(),
            current: 0,
            idle: names.zip(links).collect(),
            asked: Instant::now(),
        };
        for pair in pairs {
            let lab = reached.join(pair, network, interrupt)?;
            let existing = reached.leave(lab);
            reached.pairs.push(existing);
        }
        Ok(reached)
    }

    /// Every pair, in the order of the plan.
    pub(crate) fn pairs(&self) -> &[Existing] {
        &self.pairs
    }

    /// The pair that is measured now.
    pub(crate) fn current(&self) -> &Existing {
        &self.pairs[self.current]
    }

    /// Its number.
    pub(crate) const fn number(&self) -> usize {
        self.current
    }

    /// Turns to the pair of that number: whether it was another one.
    pub(crate) fn turn_to(&mut self, pair: usize) -> bool {
        std::mem::replace(&mut self.current, pair) != pair
    }

    /// The hosts of the current pair, as a lab of which nothing is built.
    ///
    /// # Errors
    /// Where a host is gone, or has lost its address. No pair can be measured with it any more.
    pub(crate) fn lab(
        &mut self,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Lab, LinkError> {
        let pair = self.current().pair.clone();
        let joined = self.join(&pair, network, interrupt);
        joined.map_err(|error| match link_error(error) {
            LinkError::Refused { host, message, .. } => LinkError::NoAgent { host, message },
            error => error,
        })
    }

    fn join(
        &mut self,
        pair: &NamedPair,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Lab, HostsError> {
        let [a, b] = pair.names.0.each_ref().map(|name| self.idle.remove(name));
        let (Some(a), Some(b)) = (a, b) else {
            unreachable!("an agent of each host is idle");
        };
        Lab::joined([a, b], pair, network, interrupt)
    }

    /// Has the hosts of a lab be idle, and returns what they had reported.
    pub(crate) fn leave(&mut self, lab: Lab) -> Existing {
        let (existing, links) = lab.into_hosts();
        self.idle
            .extend(existing.pair.names.0.iter().cloned().zip(links));
        existing
    }

    /// Ends the agents: others are started for each lab that is built on the hosts.
    pub(crate) fn end_agents(&mut self) {
        self.idle.clear();
    }

    /// Asks every agent something, of the labs `up` too, where the last time was a while ago.
    ///
    /// # Errors
    /// An agent that has ended, or whose line is lost.
    pub(crate) fn keep_alive(
        &mut self,
        up: &mut [Lab],
        interrupt: &AtomicBool,
    ) -> Result<(), LinkError> {
        if self.asked.elapsed() < KEEP_ALIVE {
            return Ok(());
        }
        self.asked = Instant::now();
        let of_labs = up.iter_mut().flat_map(Lab::links);
        for link in of_labs.chain(self.idle.values_mut()) {
            link.call(&Request::Machine, PROMPT, interrupt)?;
        }
        Ok(())
    }

    /// All hosts for the record, by their names; where a host is in several pairs, as the first has it.
    pub(crate) fn hosts(&self) -> BTreeMap<String, HostEnvironment> {
        let mut all = BTreeMap::new();
        for (name, host) in self.pairs.iter().flat_map(Existing::hosts) {
            all.entry(name).or_insert(host);
        }
        all
    }
}

/// As an error of one host's agent.
pub(super) fn link_error(error: HostsError) -> LinkError {
    match error {
        HostsError::Link(error) => error,
        HostsError::Address(error) => LinkError::Refused {
            host: "a".to_owned(),
            stage: Stage::Build,
            message: error.to_string(),
        },
    }
}
