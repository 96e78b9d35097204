//! Headroom in the packets that guests send, for the headers that eBPF programs add.
//!
//! Where a program adds a header that is longer than the headroom, the kernel reallocates the packet's head, and does
//! not account the larger head to a packet that a socket owns (net/core/skbuff.c, `pskb_expand_head`). The receiver
//! then finds packets that are larger than accounted, and warns of each (`skb_try_coalesce`): with 128 bytes of
//! Geneve's options that took 75 % of its core. Where the guest's own device requests the headroom, IP allocates and
//! accounts it (`skb_expand_head`).
//!
//! No netlink message sets the headroom that a veth requests. A bridge does, to the maximum that its ports need
//! (net/bridge/br_if.c, `update_headroom`), and a VXLAN device needs that of its own headers and of its lower device.
//! So the guests' ports are ports of a bridge that is never set up, with VXLAN devices over VXLAN devices that are
//! never set up either. Frames do not reach the bridge: the programs take them before.

use std::net::{IpAddr, Ipv4Addr};

use wirecost_model::plan::Vxlan;

use crate::device;
use crate::device::enslave;
use crate::error::{BuildError, Context};
use crate::host::LabHost;
use crate::names::BRIDGE;

/// Headroom that TCP leaves on any kernel, bytes, besides at most 60 of TCP, 40 of IPv6 and 14 of Ethernet:
/// `MAX_TCP_HEADER` is 192 where no driver of wireless cards or amateur radio raises it (include/net/tcp.h).
const SPARE: u32 = 192 - 60 - 40 - 14;
/// Headroom that one more VXLAN device adds, bytes: Ethernet, IPv4, UDP, VXLAN, and the lower device's Ethernet
/// (drivers/net/vxlan).
const BY_ONE: u32 = 14 + 20 + 8 + 8 + 14;
const OVERHEAD: u32 = BY_ONE - 14;
/// Addresses of no host (RFC 5737): nothing is ever sent.
const ENDS: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
);

/// Number of VXLAN devices needed for a header of so many bytes.
const fn devices(header_bytes: u32) -> u32 {
    if header_bytes > SPARE {
        header_bytes.div_ceil(BY_ONE)
    } else {
        0
    }
}

impl LabHost {
    /// Makes the guests' devices request headroom for the programs' headers, where there would be too little.
    pub(crate) fn reserve_headroom(&mut self, underlay: u32) -> Result<(), BuildError> {
        let network = &self.spec.network;
        let mtu = network.underlay_mtu;
        let devices = devices(network.overhead_bytes());
        let (mut below, mut port) = (underlay, None);
        for number in 1..=devices {
            let name = format!("room{number}");
            let vxlan = Vxlan {
                vni: number,
                ..Vxlan::default()
            };
            let mtu = mtu - number * OVERHEAD;
            device::create_vxlan(
                &mut self.netlink,
                name.as_str().into(),
                &vxlan,
                ENDS,
                below,
                mtu,
            )
            .with_context(|| format!("making the device `{name}`, which reserves headroom"))?;
            let made = device::read(&mut self.netlink, &name)
                .with_context(|| format!("reading `{name}` back"))?;
            below = made.index;
            port = Some(name);
        }
        let Some(port) = port else { return Ok(()) };
        device::create_bridge(&mut self.netlink, BRIDGE)
            .with_context(|| format!("making the bridge `{BRIDGE}`, which reserves headroom"))?;
        let bridge = device::read(&mut self.netlink, BRIDGE)
            .with_context(|| format!("reading `{BRIDGE}` back"))?
            .index;
        device::Change {
            controller: Some(bridge),
            ..device::Change::default()
        }
        .apply(&mut self.netlink, &port)
        .with_context(|| format!("making `{port}` a port of `{BRIDGE}`"))?;
        for guest in &self.guests {
            enslave(&mut self.netlink, &guest.port, bridge)?;
        }
        Ok(())
    }

    /// Checks that no headroom has to be reserved: on an existing host there is no place for the devices.
    pub(crate) fn require_no_headroom(&self) -> Result<(), BuildError> {
        let bytes = self.spec.network.overhead_bytes();
        if devices(bytes) == 0 {
            return Ok(());
        }
        Err(BuildError::NotBeside(format!(
            "{bytes} bytes of headers are more than the {SPARE} for which the kernel leaves room, and on existing \
             hosts there is no device that reserves more: use fewer Geneve options"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_header_needs_no_devices_and_a_large_one_enough() {
        // VXLAN over IPv6, and Geneve with OVN's option.
        assert_eq!([70, 78].map(devices), [0, 0]);
        // Geneve over IPv6 with 252 bytes of options and a tag inside.
        for header in [79, 178, 302, 326] {
            assert!(devices(header) * BY_ONE >= header, "{header}");
            assert!((devices(header) - 1) * BY_ONE < header, "{header}");
        }
    }
}
