//! A lab on two existing hosts: guests, bridge and tunnel as in any, and the hosts' own network in place of an underlay.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Request, Stage};
use wirecost_model::cell::Network;
use wirecost_model::plan::HostPair;

use super::{Lab, LabContext};
use crate::hosts::{HostsContext, HostsError};

impl Lab {
    /// Reaches both hosts and builds the network on them, whose underlay is as [`Lab::join`] found it.
    ///
    /// To be called on a thread that lives as long: the kernel ends agents of this machine with it.
    pub(crate) fn over(
        context: &LabContext,
        pair: &HostPair,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Self, LinkError> {
        let began = Instant::now();
        let hosts = HostsContext {
            program: context.program.clone(),
            binaries: context.binaries.clone(),
            owner: context.owner,
            verbose: context.verbose,
        };
        let joined = Self::join(&hosts, pair, network, interrupt);
        let mut lab = joined.map_err(|error| match error {
            HostsError::Link(error) => error,
            HostsError::Address(error) => LinkError::Refused {
                host: "a".to_owned(),
                stage: Stage::Build,
                message: error.to_string(),
            },
        })?;
        lab.between = lab.existing.take();
        lab.built = match lab.build(context, interrupt) {
            Ok(built) => built,
            Err(error) => return Err(lab.blame(error)),
        };
        lab.seconds = began.elapsed().as_secs_f64();
        Ok(lab)
    }

    /// Takes it down at once: the kernel removes what agents leave behind a moment after they ended, and until then the ends
    /// of the tunnel are taken.
    pub(crate) fn take_down(mut self) {
        let never = AtomicBool::new(false);
        // An agent that does not answer is ended all the same.
        let _ = self.both_done(&Request::RemoveTunnel, &Request::RemoveTunnel, &never);
    }
}
