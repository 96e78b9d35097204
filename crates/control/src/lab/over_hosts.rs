//! A lab on two existing hosts: guests, bridge and tunnel as in any lab, with the hosts' own network as underlay.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::Request;
use wirecost_model::cell::Network;
use wirecost_model::plan::NamedPair;

use super::host_pool::link_error;
use super::{Lab, LabContext};

impl Lab {
    /// Starts both hosts' agents and builds guests, bridge and tunnel on them. The underlay is the network between the
    /// addresses that [`Lab::join`] determined.
    ///
    /// To be called on a thread that lives as long as the lab: the kernel ends agents of this machine with it.
    pub(crate) fn over_hosts(
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

    /// Removes the tunnel and ends the agents. The kernel removes the devices of an ended agent only a moment later,
    /// and until then the endpoints of the tunnel are in use.
    pub(crate) fn take_down(mut self) {
        let never = AtomicBool::new(false);
        // Dropping the lab ends the agents, whatever they answered.
        let _ = self.both_done(&Request::RemoveTunnel, &Request::RemoveTunnel, &never);
    }
}
