//! The kernel's devices of each encapsulation, as ports of the host's bridge, or as what it routes to.

use std::fmt::Debug;

use wirecost_model::plan::{Encapsulation, Geneve, Vlan, Vxlan};

use crate::device::{self, TunnelDevice};
use crate::error::{BuildError, Step, same};
use crate::host::{LabHost, enslave, up};
use crate::routed::Routing;
use crate::spec::{TAG, TUNNEL, UNDERLAY_DEVICE};

impl LabHost {
    /// Makes what lies between the guests and the underlay, by the interface indexes of the underlay's device and of
    /// the bridge, without which the host routes.
    pub(crate) fn build_encapsulation(
        &mut self,
        underlay: u32,
        bridge: Option<u32>,
    ) -> Result<(), BuildError> {
        match self.spec.network.encapsulation.clone() {
            Encapsulation::None => return self.attach(UNDERLAY_DEVICE, bridge),
            Encapsulation::Vlan(vlan) => {
                self.join_underlay()?;
                let mtu = self.spec.network.underlay_mtu;
                self.build_vlan(TUNNEL, vlan, underlay, mtu)?;
            }
            Encapsulation::Vxlan(vxlan) => {
                self.join_underlay()?;
                self.build_vxlan(&vxlan, underlay)?;
            }
            Encapsulation::Geneve(geneve) => {
                self.join_underlay()?;
                self.build_geneve(&geneve)?;
            }
            Encapsulation::Gre(_) | Encapsulation::Gretap(_) | Encapsulation::Ipip(_) => {
                self.join_underlay()?;
                self.build_ip_tunnel(underlay)?;
            }
        }
        let port = self.build_inner_tag()?;
        self.attach(port, bridge)
    }

    /// Puts the device towards the other host behind the bridge, or routes to it.
    fn attach(&mut self, device: &str, bridge: Option<u32>) -> Result<(), BuildError> {
        if let Some(bridge) = bridge {
            return enslave(&mut self.netlink, device, bridge);
        }
        up(&mut self.netlink, device)?;
        let routing = Routing {
            side: self.spec.side,
            ip: self.spec.network.guest_ip,
            guests: &mut self.guests,
            tunnel: device,
        };
        routing.settle(&mut self.netlink)
    }

    /// The largest frame that the tunnel takes, as an MTU: a tag inside is part of it.
    fn tunnel_mtu(&self) -> u32 {
        let network = &self.spec.network;
        network.underlay_mtu - network.overhead_bytes() + network.encapsulation.inner_tag_bytes()
    }

    fn build_vxlan(&mut self, vxlan: &Vxlan, underlay: u32) -> Result<(), BuildError> {
        let mtu = self.tunnel_mtu();
        // The tag inside is put there by a device of its own.
        let of_device = Vxlan {
            inner_vlan: None,
            ..vxlan.clone()
        };
        let ends = (self.spec.underlay_address(), self.spec.underlay_peer());
        device::create_vxlan(&mut self.netlink, TUNNEL, &of_device, ends, underlay, mtu)
            .step(|| format!("making the vxlan device `{TUNNEL}`"))?;
        let found = device::read_vxlan(&mut self.netlink, TUNNEL)
            .step(|| format!("reading the vxlan device `{TUNNEL}` back"))?;
        let wanted = (of_device, [Some(ends.0), Some(ends.1)]);
        alike("vxlan", &wanted, &found)
    }

    fn build_geneve(&mut self, geneve: &Geneve) -> Result<(), BuildError> {
        let mtu = self.tunnel_mtu();
        let of_device = Geneve {
            inner_vlan: None,
            ..geneve.clone()
        };
        let remote = self.spec.underlay_peer();
        device::create_geneve(&mut self.netlink, TUNNEL, &of_device, remote, mtu)
            .step(|| format!("making the geneve device `{TUNNEL}`"))?;
        let found = device::read_geneve(&mut self.netlink, TUNNEL)
            .step(|| format!("reading the geneve device `{TUNNEL}` back"))?;
        alike("geneve", &(of_device, Some(remote)), &found)
    }

    fn build_ip_tunnel(&mut self, underlay: u32) -> Result<(), BuildError> {
        let mtu = self.tunnel_mtu();
        let network = &self.spec.network;
        let ends = (self.spec.underlay_address(), self.spec.underlay_peer());
        let Some(wanted) = TunnelDevice::of(&network.encapsulation, ends, network.guest_ip) else {
            return Ok(());
        };
        let kind = &wanted.kind;
        device::create_ip_tunnel(&mut self.netlink, TUNNEL, &wanted, underlay, mtu)
            .step(|| format!("making the {kind} device `{TUNNEL}`"))?;
        let found = device::read_ip_tunnel(&mut self.netlink, TUNNEL)
            .step(|| format!("reading the {kind} device `{TUNNEL}` back"))?;
        alike(&kind.to_string(), &Some(&wanted), &found.as_ref())
    }

    fn build_vlan(
        &mut self,
        name: &str,
        vlan: Vlan,
        below: u32,
        mtu: u32,
    ) -> Result<(), BuildError> {
        let Vlan { id } = vlan;
        device::create_vlan(&mut self.netlink, name, id, below, mtu)
            .step(|| format!("making the VLAN device `{name}`"))?;
        let found = device::read_vlan(&mut self.netlink, name)
            .step(|| format!("reading the VLAN device `{name}` back"))?;
        same(|| format!("VLAN of `{name}`"), &id, &found.unwrap_or(0))
    }

    /// Puts a device for the tag inside the tunnel over the tunnel's, where there is one. Returns the bridge's port.
    fn build_inner_tag(&mut self) -> Result<&'static str, BuildError> {
        let network = &self.spec.network;
        let mtu = network.underlay_mtu - network.overhead_bytes();
        let tunnel = network.encapsulation.udp();
        let Some(id) = tunnel.and_then(|tunnel| tunnel.inner_vlan) else {
            return Ok(TUNNEL);
        };
        up(&mut self.netlink, TUNNEL)?;
        let below =
            device::read(&mut self.netlink, TUNNEL).step(|| format!("reading `{TUNNEL}` back"))?;
        self.build_vlan(TAG, Vlan { id }, below.index, mtu)?;
        Ok(TAG)
    }
}

/// Fails unless a tunnel's options are what was wanted.
fn alike<T: PartialEq + Debug>(kind: &str, wanted: &T, found: &T) -> Result<(), BuildError> {
    if wanted == found {
        return Ok(());
    }
    Err(BuildError::ReadBack {
        step: format!("options of the {kind} device `{TUNNEL}`"),
        wanted: format!("{wanted:?}"),
        found: format!("{found:?}"),
    })
}
