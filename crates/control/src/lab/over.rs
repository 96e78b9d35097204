//! A lab on two existing hosts: guests, bridge and tunnel as in any, and the hosts' own network in place of an underlay.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::Request;
use wirecost_model::cell::Network;
use wirecost_model::plan::NamedPair;

use super::reached::link_error;
use super::{Lab, LabContext};

impl Lab {
    /// Reaches both hosts and builds the network on them, whose underlay is as [`Lab::join`] found it.
    ///
    /// To be called on a thread that lives as long: the kernel ends agents of this machine with it.
    pub(crate) fn over(
        context: &LabContext,
        pair: &NamedPair,
        network: &Network,
        interrupt: &AtomicBool,
    ) -> Result<Self, LinkError> {
        let began = Instant::now();
        let joined = Self::join(&context.agents, &pair.hosts, network, interrupt);
        let mut lab = joined.map_err(link_error)?;
        lab.between = lab.existing.take().map(|mut existing| {
            existing.pair = pair.clone();
            existing
        });
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
