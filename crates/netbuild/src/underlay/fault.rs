//! Faults of a hop other than its MTU: loss by UDP port or at random, ICMP that is filtered, and delay.

use wirecost_model::transit::{Hop, HopKind, Icmp};

use crate::error::{BuildError, Context};
use crate::netem;
use crate::underlay::nftables::{self, Drop};
use crate::underlay::node::{Node, TOWARDS_A, TOWARDS_B};
use crate::underlay::switch;

/// Sets up a hop's faults for both directions: packets are dropped at the device where they arrive, and delayed at the
/// one where they leave.
pub(super) fn set_up_faults(node: &mut Node, hop: &Hop) -> Result<(), BuildError> {
    let mut drops = Vec::new();
    drops.extend(hop.drop_udp_port.map(Drop::UdpPort));
    drops.extend((hop.loss_ppm > 0).then_some(Drop::Share(hop.loss_ppm)));
    // A router drops its own ICMP messages by a routing rule, and forwards those of others.
    let through = hop.kind == HopKind::Switch && hop.icmp == Icmp::Filtered;
    drops.extend(through.then_some(Drop::Icmp));
    let (incoming, outgoing) = match hop.kind {
        // Inside a switch there are frames only, outside super-packets.
        HopKind::Switch => (switch::RECEIVING, switch::SENDING),
        HopKind::Router => ([TOWARDS_A, TOWARDS_B], [TOWARDS_A, TOWARDS_B]),
    };
    node.within(|netlink| {
        if !drops.is_empty() {
            nftables::drop_at(&incoming, &drops)
                .with_context(|| "making nf_tables rules that drop packets".to_owned())?;
        }
        if hop.delay_us > 0 {
            for device in outgoing {
                netem::delay(netlink, device, hop.delay_us).with_context(|| {
                    format!("making a netem qdisc that delays what `{device}` sends")
                })?;
            }
        }
        Ok(())
    })
}
