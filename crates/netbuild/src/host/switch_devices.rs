//! A host whose frames are forwarded by a switch other than the kernel's bridge, over devices of the switch.

use crate::device;
use crate::error::{BuildError, Context, same};
use crate::host::LabHost;
use crate::names::UNDERLAY_DEVICE;
use crate::underlay;

/// Devices of a switch other than the kernel's bridge, on a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchDevices {
    /// The switch's device that has the host's address on the underlay; `None` where the underlay device has it.
    pub underlay_bridge: Option<String>,
    /// The switch's tunnel device, where it has one.
    pub tunnel: Option<String>,
    /// Whether the switch reads frames from packet sockets, one by one: super-packets and checksums that are left to a
    /// device would be lost.
    pub frame_by_frame: bool,
}

impl LabHost {
    /// Last step of building where a switch carries the frames, once the switch is up: the host's address on the
    /// underlay.
    ///
    /// # Errors
    /// Where the kernel refuses a step.
    pub fn attach_switch(&mut self, switch_devices: SwitchDevices) -> Result<(), BuildError> {
        let network = &self.spec.network;
        if network.encapsulation.is_tunnel() {
            let device = match &switch_devices.underlay_bridge {
                Some(bridge) => {
                    self.change_mac_of_underlay()?;
                    bridge
                }
                None => UNDERLAY_DEVICE,
            };
            let network = &self.spec.network;
            let (side, ip) = (self.spec.side, network.underlay_ip);
            underlay::join(device, &network.transit, side, ip, &mut self.netlink)?;
        }
        self.switch_devices = switch_devices;
        Ok(())
    }

    /// Gives the underlay's device another hardware address than the one that the other host sends to.
    ///
    /// A packet socket receives copies: the kernel still processes every frame itself, and would answer the tunnel's
    /// with ICMP "port unreachable", since the address is this host's on whichever device. Frames for another hardware
    /// address are dropped before that (net/ipv4/ip_input.c, `PACKET_OTHERHOST`), and a veth delivers them all the
    /// same. The device must not answer ARP requests for the address either.
    fn change_mac_of_underlay(&mut self) -> Result<(), BuildError> {
        // "Do not reply for all local addresses" (Documentation/networking/ip-sysctl.rst).
        underlay::set(&format!("ipv4/conf/{UNDERLAY_DEVICE}/arp_ignore"), "8")?;
        let mut mac = self.spec.underlay_mac();
        mac[3] = 2;
        let step = || format!("changing the hardware address of `{UNDERLAY_DEVICE}`");
        device::set_mac(&mut self.netlink, UNDERLAY_DEVICE, mac).with_context(step)?;
        let found = device::read_mac(&mut self.netlink, UNDERLAY_DEVICE).with_context(step)?;
        same(step, &format!("{mac:02x?}"), &format!("{found:02x?}"))
    }
}
