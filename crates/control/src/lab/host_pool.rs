//! The existing hosts of a run, with one agent each. Agents start at the same time; one pair of hosts is measured at a
//! time.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{Request, Stage};
use wirecost_model::cell::Network;
use wirecost_model::plan::NamedPair;
use wirecost_model::record::HostEnvironment;

use super::{ExistingPair, Lab};
use crate::hosts::{HostsContext, HostsError, open};
use crate::timeouts::PROMPT;

/// Interval between keep-alive requests: an agent behind a shell ends after 15 minutes without a request.
const KEEP_ALIVE: Duration = Duration::from_mins(1);

/// The existing hosts of a run.
#[derive(Debug)]
pub(crate) struct HostPool {
    /// What the hosts of every pair reported, in the order of the plan.
    pairs: Vec<ExistingPair>,
    /// Index in `pairs` of the pair that is measured now.
    current: usize,
    /// Agents of hosts that are not in a lab, by the hosts' names in the plan.
    idle: BTreeMap<String, Link>,
    /// When the agents were last sent a keep-alive request.
    asked: Instant,
}

impl HostPool {
    /// Starts the agents of all hosts and has each pair join once.
    ///
    /// To be called on a thread that lives as long as the agents: the kernel ends agents of this machine with it.
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
        let mut host_pool = Self {
            pairs: Vec::new(),
            current: 0,
            idle: names.zip(links).collect(),
            asked: Instant::now(),
        };
        for pair in pairs {
            let lab = host_pool.join(pair, network, interrupt)?;
            let existing = host_pool.leave(lab);
            host_pool.pairs.push(existing);
        }
        Ok(host_pool)
    }

    /// Every pair, in the order of the plan.
    pub(crate) fn pairs(&self) -> &[ExistingPair] {
        &self.pairs
    }

    /// The pair that is measured now.
    pub(crate) fn current(&self) -> &ExistingPair {
        &self.pairs[self.current]
    }

    /// Index of the pair that is measured now, in the order of the plan.
    pub(crate) const fn number(&self) -> usize {
        self.current
    }

    /// Makes `pair` (an index) the current one; whether another pair was current before.
    pub(crate) fn select(&mut self, pair: usize) -> bool {
        std::mem::replace(&mut self.current, pair) != pair
    }

    /// The hosts of the current pair as a lab in which nothing is built.
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
        joined.map_err(|error| lost(link_error(error)))
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

    /// Returns the agents of a lab's hosts to the idle ones, and what the hosts reported when they joined.
    pub(crate) fn leave(&mut self, lab: Lab) -> ExistingPair {
        let (existing, links) = lab.into_hosts();
        self.idle
            .extend(existing.pair.names.0.iter().cloned().zip(links));
        existing
    }

    /// Ends the idle agents: each lab that is built on the hosts starts agents of its own.
    pub(crate) fn end_agents(&mut self) {
        self.idle.clear();
    }

    /// Sends every agent a request, those of the labs `up` included, where the last one is older than [`KEEP_ALIVE`].
    ///
    /// # Errors
    /// An agent that has ended, or whose connection is lost.
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

    /// All hosts for the record, by their names in the plan. A host of several pairs is described as in the first of
    /// them.
    pub(crate) fn hosts(&self) -> BTreeMap<String, HostEnvironment> {
        let mut all = BTreeMap::new();
        for (name, host) in self.pairs.iter().flat_map(ExistingPair::hosts) {
            all.entry(name).or_insert(host);
        }
        all
    }
}

/// Converts to an error of one host's agent; an address error becomes a refusal of the host that it is about.
pub(super) fn link_error(error: HostsError) -> LinkError {
    match error {
        HostsError::Link(error) => error,
        HostsError::Address(error) => LinkError::Refused {
            host: error.host().unwrap_or("a").to_owned(),
            stage: Stage::Build,
            message: error.to_string(),
        },
    }
}

/// The error of a host that has joined before and refuses now, which ends the run.
fn lost(error: LinkError) -> LinkError {
    match error {
        LinkError::Refused { host, message, .. } => LinkError::Lost { host, message },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::AddressError;

    #[test]
    fn a_host_that_has_lost_its_address_is_named_and_ends_the_run() {
        let error = AddressError::NotItsOwn {
            host: "netns:b".to_owned(),
            address: [10, 0, 0, 2].into(),
            own: Vec::new(),
        };
        let error = lost(link_error(error.into()));
        assert!(!matches!(error, LinkError::Refused { .. }));
        assert_eq!(
            error.to_string(),
            "host netns:b can no longer be measured: netns:b has no address 10.0.0.2: it has none on a device that \
             is up"
        );
    }
}
