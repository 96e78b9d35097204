//! The kernel's devices of each encapsulation, as ports of the host's bridge, or as devices that the host routes to.

mod wireguard;

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Encapsulation, Geneve, Vlan, Vxlan};

use crate::device::{self, NewDevice, TunnelDevice};
use crate::device::{enslave, up};
use crate::error::{BuildError, Context, same};
use crate::host::LabHost;
use crate::names::{TAG, TUNNEL, UNDERLAY_DEVICE};
use crate::netlink::Netlink;
use crate::routed::Routing;
use crate::spec::EndSecret;

impl LabHost {
    /// Builds what is between the guests and the underlay. `underlay` and `bridge` are interface indexes; without a
    /// bridge the host routes.
    pub(crate) fn build_encapsulation(
        &mut self,
        underlay: u32,
        bridge: Option<u32>,
    ) -> Result<(), BuildError> {
        let encapsulation = self.spec.network.encapsulation.clone();
        if encapsulation == Encapsulation::None {
            return self.attach(UNDERLAY_DEVICE, bridge);
        }
        if self.link_netns.is_none() {
            self.join_underlay()?;
        }
        let network = &self.spec.network;
        let between = Endpoints {
            encapsulation: &encapsulation,
            ends: (self.spec.underlay_address(), self.spec.underlay_peer()),
            underlay,
            secrets: self.spec.end_secrets(),
            guest_ip: network.guest_ip,
            // An inner VLAN tag is part of what the tunnel device carries.
            mtu: network.tunnel_mtu() + encapsulation.inner_tag_bytes(),
            link_netns: self.link_netns,
        };
        between.make(&mut self.netlink, TUNNEL)?;
        let port = self.build_inner_tag()?;
        self.attach(port, bridge)
    }

    /// Makes the tunnel's ends agree on a session where they need one before they carry packets. Both hosts must be
    /// built.
    ///
    /// # Errors
    /// Where they do not agree within [`wireguard::PATIENCE`].
    pub(crate) fn handshake(&self) -> Result<(), BuildError> {
        match self.spec.network.encapsulation {
            Encapsulation::Wireguard(_) => wireguard::handshake(TUNNEL, self.spec.side),
            _ => Ok(()),
        }
    }

    /// Makes the device towards the other host a port of the bridge; without a bridge, routes to it.
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
        routing.set_up(&mut self.netlink)
    }

    /// Creates a VLAN device for the inner tag over the tunnel's, where the plan has one. Returns the name of the
    /// bridge's port.
    fn build_inner_tag(&mut self) -> Result<&'static str, BuildError> {
        let network = &self.spec.network;
        let mtu = network.tunnel_mtu();
        let tunnel = network.encapsulation.udp();
        let Some(id) = tunnel.and_then(|tunnel| tunnel.inner_vlan) else {
            return Ok(TUNNEL);
        };
        up(&mut self.netlink, TUNNEL)?;
        let below = device::read(&mut self.netlink, TUNNEL)
            .with_context(|| format!("reading `{TUNNEL}` back"))?;
        make_vlan(&mut self.netlink, TAG, Vlan { id }, below.index, mtu)?;
        Ok(TAG)
    }
}

/// How long the kernel may take to remove the devices of a process that ended (net/core/net_namespace.c,
/// `cleanup_net`).
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Whether another device has the same ends and VNI or key: `EEXIST`, for Geneve `EBUSY`.
fn is_taken(error: &io::Error) -> bool {
    matches!(crate::netlink::code(error), Some(16 | 17))
}

/// Parameters of an encapsulation's device.
#[derive(Debug)]
pub(crate) struct Endpoints<'a> {
    pub(crate) encapsulation: &'a Encapsulation,
    /// This host's address on the underlay, and the other's.
    pub(crate) ends: (IpAddr, IpAddr),
    /// Interface index of the underlay's device; 0: the routes choose the device.
    pub(crate) underlay: u32,
    /// Keys of this host's end and of the other's, for an encapsulation that encrypts.
    pub(crate) secrets: (&'a EndSecret, &'a EndSecret),
    /// IP version of the guests.
    pub(crate) guest_ip: IpVersion,
    /// MTU of the device, bytes.
    pub(crate) mtu: u32,
    /// See [`NewDevice::link_netns`].
    pub(crate) link_netns: Option<i32>,
}

impl Endpoints<'_> {
    /// Creates the device `name`, and reads it back. Without encapsulation there is no device.
    ///
    /// # Errors
    /// Where the kernel refuses, or the device does not read back as wanted.
    pub(crate) fn make(&self, netlink: &mut Netlink, name: &str) -> Result<(), BuildError> {
        match self.encapsulation {
            Encapsulation::None => Ok(()),
            Encapsulation::Vlan(vlan) => make_vlan(netlink, name, *vlan, self.underlay, self.mtu),
            Encapsulation::Vxlan(vxlan) => self.make_vxlan(netlink, name, vxlan),
            Encapsulation::Geneve(geneve) => self.make_geneve(netlink, name, geneve),
            Encapsulation::Gre(_) | Encapsulation::Gretap(_) | Encapsulation::Ipip(_) => {
                self.make_ip_tunnel(netlink, name)
            }
            Encapsulation::Wireguard(wireguard) => {
                wireguard::make(self, wireguard, (netlink, name))
            }
        }
    }

    /// Creates a device by `create`. With a link namespace the device has a temporary name until it is created, and
    /// creation is retried while the kernel still removes the devices of a process that ended.
    fn create(
        &self,
        netlink: &mut Netlink,
        name: &str,
        create: impl Fn(&mut Netlink, NewDevice<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.link_netns.is_none() {
            return create(netlink, name.into());
        }
        let first = format!("wc{}", std::process::id());
        let new = NewDevice {
            name: &first,
            link_netns: self.link_netns,
        };
        let began = Instant::now();
        while let Err(error) = create(netlink, new) {
            if !is_taken(&error) || began.elapsed() > GONE_WITHIN {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(50));
        }
        device::rename(netlink, &first, name)
    }

    fn make_vxlan(
        &self,
        netlink: &mut Netlink,
        name: &str,
        vxlan: &Vxlan,
    ) -> Result<(), BuildError> {
        // The inner VLAN tag is added by a device of its own.
        let of_device = Vxlan {
            inner_vlan: None,
            ..vxlan.clone()
        };
        let (ends, underlay, mtu) = (self.ends, self.underlay, self.mtu);
        self.create(netlink, name, |netlink, new| {
            device::create_vxlan(netlink, new, &of_device, ends, underlay, mtu)
        })
        .with_context(|| format!("making the vxlan device `{name}`"))?;
        let found = device::read_vxlan(netlink, name)
            .with_context(|| format!("reading the vxlan device `{name}` back"))?;
        let wanted = (of_device, [Some(self.ends.0), Some(self.ends.1)]);
        alike("vxlan", name, &wanted, &found)
    }

    fn make_geneve(
        &self,
        netlink: &mut Netlink,
        name: &str,
        geneve: &Geneve,
    ) -> Result<(), BuildError> {
        let of_device = Geneve {
            inner_vlan: None,
            ..geneve.clone()
        };
        let (_, remote) = self.ends;
        self.create(netlink, name, |netlink, new| {
            device::create_geneve(netlink, new, &of_device, remote, self.mtu)
        })
        .with_context(|| format!("making the geneve device `{name}`"))?;
        let found = device::read_geneve(netlink, name)
            .with_context(|| format!("reading the geneve device `{name}` back"))?;
        alike("geneve", name, &(of_device, Some(remote)), &found)
    }

    fn make_ip_tunnel(&self, netlink: &mut Netlink, name: &str) -> Result<(), BuildError> {
        let Some(wanted) = TunnelDevice::of(self.encapsulation, self.ends, self.guest_ip) else {
            return Ok(());
        };
        let kind = &wanted.kind;
        self.create(netlink, name, |netlink, new| {
            device::create_ip_tunnel(netlink, new, &wanted, self.underlay, self.mtu)
        })
        .with_context(|| format!("making the {kind} device `{name}`"))?;
        let found = device::read_ip_tunnel(netlink, name)
            .with_context(|| format!("reading the {kind} device `{name}` back"))?;
        alike(&kind.to_string(), name, &Some(&wanted), &found.as_ref())
    }
}

fn make_vlan(
    netlink: &mut Netlink,
    name: &str,
    Vlan { id }: Vlan,
    below: u32,
    mtu: u32,
) -> Result<(), BuildError> {
    device::create_vlan(netlink, name, id, below, mtu)
        .with_context(|| format!("making the VLAN device `{name}`"))?;
    let found = device::read_vlan(netlink, name)
        .with_context(|| format!("reading the VLAN device `{name}` back"))?;
    same(|| format!("VLAN of `{name}`"), &id, &found.unwrap_or(0))
}

/// Fails unless a device's options read back as wanted.
fn alike<T: PartialEq + Debug>(
    kind: &str,
    name: &str,
    wanted: &T,
    found: &T,
) -> Result<(), BuildError> {
    if wanted == found {
        return Ok(());
    }
    Err(BuildError::ReadBack {
        step: format!("options of the {kind} device `{name}`"),
        wanted: format!("{wanted:?}"),
        found: format!("{found:?}"),
    })
}
