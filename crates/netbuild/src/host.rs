//! One lab host, built in three steps: namespaces and settings, the wire to the other host, the rest.

mod line;
mod switch_devices;

use std::io;
use std::os::fd::AsFd;

use wirecost_model::datapath::Datapath;
use wirecost_model::line::LineQdisc;
use wirecost_model::steering::Rps;
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::Netns;

use crate::addresses;
use crate::device::{self, PeerNamespace, has_queues, up};
use crate::error::{BuildError, Context, same};
use crate::guest::{Guest, Uplink};
use crate::ipv6;
use crate::names::{BRIDGE, Side, TUNNEL, UNDERLAY_DEVICE, guest_port_beside};
use crate::netlink::Netlink;
use crate::spec::HostSpec;
use crate::steering::{Steering, cpu_mask, mask_value, receive_masks};
use crate::underlay::line_namespace::LineNamespace;
use crate::underlay::{self, Underlay, UnderlayParameters};

pub use line::Line;
pub use switch_devices::SwitchDevices;

/// A lab host under construction or in use. The calling thread's network namespace is the host's.
#[derive(Debug)]
pub struct LabHost {
    pub(crate) spec: HostSpec,
    steering: Option<Steering>,
    /// Whether receive steering is active where it is requested.
    steered: bool,
    pub(crate) netlink: Netlink,
    pub(crate) ethtool: Ethtool,
    pub(crate) guests: Vec<Guest>,
    /// Namespace of the line, where the line is not on the host's own device.
    pub(crate) line_namespace: Option<LineNamespace>,
    /// The network between the hosts, on the host that built it.
    pub(crate) underlay: Option<Underlay>,
    /// Devices of a switch other than the kernel's bridge.
    pub(crate) switch_devices: SwitchDevices,
    /// The line that the last adaptation has set.
    pub(crate) line: Option<Line>,
    pub(crate) line_by: LineQdisc,
    /// Id, in the host's own namespace, of the existing network namespace that the tunnels go over.
    pub(crate) link_netns: Option<i32>,
}

impl LabHost {
    /// First step, on both hosts: the guests' namespaces and the settings that devices take over when they are created.
    /// The calling thread's namespace must be a new one of the host's own.
    pub fn prepare(spec: HostSpec) -> Result<Self, BuildError> {
        ipv6::disable()?;
        let macs = spec.guest_macs(spec.side);
        let addresses: Vec<_> = spec.guest_addresses().into_iter().zip(macs).collect();
        let guests = Guest::all(&addresses)?;
        let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
        up(&mut netlink, "lo")?;
        let steering = match &spec.receive_cpus {
            Some(cpus) => Some(
                Steering::begin(cpus)
                    .with_context(|| format!("setting net.core.rps_default_mask for {cpus:?}"))?,
            ),
            None => None,
        };
        let ethtool = Ethtool::open().with_context(|| "opening ethtool".into())?;
        let line_namespace = spec.line_core.map(|core| {
            let at = (&spec.network.transit, spec.side);
            underlay::make_line_namespace(core, at, underlay_parameters(&spec), &mut netlink)
        });
        Ok(Self {
            line_namespace: line_namespace.transpose()?,
            spec,
            steering,
            steered: true,
            netlink,
            ethtool,
            guests,
            underlay: None,
            switch_devices: SwitchDevices::default(),
            line: None,
            line_by: LineQdisc::Tbf,
            link_netns: None,
        })
    }

    /// First step of a host whose tunnels go over the network of another namespace, with
    /// [`HostSpec::existing_underlay`]; there is no second step. Where eBPF encapsulates, the host's ends of the
    /// guests' devices are created in that namespace, because the programs redirect within one; else nothing is.
    ///
    /// # Errors
    /// As for [`LabHost::prepare`], and where the caller may not make tunnels in that namespace.
    pub fn prepare_over(spec: HostSpec, netns: &Netns) -> Result<Self, BuildError> {
        let mut host = Self::prepare(spec)?;
        let number = device::number_netns(&mut host.netlink, netns.as_fd());
        host.link_netns =
            Some(number.with_context(|| "numbering the host's network namespace".into())?);
        if host.spec.network.datapath == Datapath::Ebpf {
            host.move_ports(netns)?;
        }
        Ok(host)
    }

    /// Has the host's ends of the guests' devices made in another namespace, where they disappear with the guests.
    fn move_ports(&mut self, netns: &Netns) -> Result<(), BuildError> {
        self.require_no_headroom()?;
        let open = || io::Result::Ok((Netlink::open()?, Ethtool::open()?));
        let opened = netns.within(open).and_then(|opened| opened);
        (self.netlink, self.ethtool) =
            opened.with_context(|| "opening netlink in the host's network namespace".into())?;
        let owner = std::process::id();
        for (number, guest) in self.guests.iter_mut().enumerate() {
            guest.port = guest_port_beside(owner, number);
        }
        Ok(())
    }

    /// Removes what would prevent another tunnel between the same hosts while this process exists: the tunnel's device,
    /// or the guests' ports beside the host's own devices.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn remove_tunnel(&mut self) -> Result<(), BuildError> {
        if self.has_ports_beside() {
            return self.remove_ports();
        }
        device::delete(&mut self.netlink, TUNNEL).with_context(|| format!("removing `{TUNNEL}`"))
    }

    /// Whether the guests' ports are beside an existing host's own devices.
    fn has_ports_beside(&self) -> bool {
        self.link_netns.is_some() && self.spec.network.datapath == Datapath::Ebpf
    }

    /// Removes all ports that can be removed, and returns the first error.
    fn remove_ports(&mut self) -> Result<(), BuildError> {
        let mut removed = Ok(());
        for name in self.guest_ports() {
            let done = device::delete(&mut self.netlink, &name);
            removed = removed.and(done.with_context(|| format!("removing `{name}`")));
        }
        removed
    }

    /// Names of the host's ends of the guests' devices, by number.
    pub fn guest_ports(&self) -> Vec<String> {
        self.guests.iter().map(|guest| guest.port.clone()).collect()
    }

    /// Second step, on host a only, when both hosts are prepared: creates the underlay, from this host to a device in
    /// the namespace of process or thread `peer` (the other host's [`LabHost::joined_at`]), and the network in between.
    pub fn wire(&mut self, peer: u32) -> Result<(), BuildError> {
        let underlay = Underlay::build(
            &self.spec.network.transit,
            underlay_parameters(&self.spec),
            (&mut self.netlink, self.line_namespace.as_ref()),
            PeerNamespace::Process(peer),
        )?;
        self.underlay = Some(underlay);
        Ok(())
    }

    /// Id of a process or thread in the namespace where the wire to the other host ends: the host's own, or its line's.
    pub fn joined_at(&self) -> u32 {
        let line_namespace = self.line_namespace.as_ref();
        line_namespace.map_or_else(std::process::id, LineNamespace::tid)
    }

    /// Third step, on both hosts: bridge, guests, tunnel, addresses. Offloads, the guests' MTU and the rate limit
    /// follow with [`LabHost::adapt`]. Where eBPF encapsulates, there is no bridge and no tunnel device: the caller
    /// attaches the programs. Where Open vSwitch switches, the caller starts it, and then calls
    /// [`LabHost::attach_switch`]. Where the tunnel carries packets instead of frames, the host routes instead of
    /// bridging.
    pub fn build(&mut self) -> Result<(), BuildError> {
        let underlay = match self.link_netns {
            Some(_) => 0,
            None => self.settle_underlay()?,
        };
        let mtu = self.spec.network.underlay_mtu;
        let queues = self.spec.network.steering.queues;
        let routes = self.spec.network.encapsulation.is_routed();
        let bridge = match self.spec.network.datapath {
            Datapath::Kernel if !routes => Some(self.build_bridge()?),
            _ => None,
        };
        let side = self.spec.side;
        for (number, guest) in (0..).zip(&mut self.guests) {
            let uplink = match bridge {
                Some(bridge) => Uplink::Bridge(bridge),
                None if routes => Uplink::Router {
                    mac: addresses::port_mac(side, number),
                },
                None => Uplink::Program,
            };
            guest.connect(&mut self.netlink, uplink, mtu, queues)?;
        }
        match self.spec.network.datapath {
            Datapath::Kernel => self.build_encapsulation(underlay, bridge),
            Datapath::Ebpf if self.has_ports_beside() => Ok(()),
            Datapath::Ebpf => {
                self.reserve_headroom(underlay)?;
                self.join_underlay()
            }
            Datapath::Ovs | Datapath::OvsKernel | Datapath::Ovn | Datapath::OvnKernel => {
                self.reach_router()?;
                up(&mut self.netlink, UNDERLAY_DEVICE)
            }
        }
    }

    /// Steers what the underlay's device receives, and reads that device back. Returns its interface index.
    fn settle_underlay(&mut self) -> Result<u32, BuildError> {
        // Steering belongs where frames arrive from the wire; behind it, it would only add a hop.
        let queues = self.spec.network.steering.queues;
        if let Some(steering) = self.steering.take() {
            let step = || format!("steering what `{UNDERLAY_DEVICE}` receives");
            self.steered = steering.end(UNDERLAY_DEVICE, queues).with_context(step)?;
            // Steering that a plan asks for explicitly is in force, or the build fails.
            if !self.steered && self.spec.network.steering.rps != Rps::Own {
                return Err(io::Error::from(io::ErrorKind::NotFound)).with_context(step);
            }
        }
        self.check_steering()?;
        if let Some(line_namespace) = &mut self.line_namespace {
            line_namespace.set_up()?;
        }
        let (name, mtu) = (UNDERLAY_DEVICE, self.spec.network.underlay_mtu);
        let underlay = device::read(&mut self.netlink, name)
            .with_context(|| format!("reading `{name}` back"))?;
        same(|| format!("MTU of `{name}`"), &mtu, &underlay.mtu)?;
        has_queues(name, &underlay, queues)?;
        Ok(underlay.index)
    }

    /// Adds a route and neighbour entries for the other host's guests to the guests, where a logical router is between
    /// them.
    fn reach_router(&mut self) -> Result<(), BuildError> {
        let Some(router) = self.spec.logical_router(self.spec.side) else {
            return Ok(());
        };
        let other = self.spec.side.other();
        let there = addresses::routed_range(self.spec.network.guest_ip, other);
        let others = self.spec.guest_addresses_of(other);
        for guest in &mut self.guests {
            guest.route(there)?;
            guest.reach(&others, router.mac)?;
        }
        Ok(())
    }

    fn build_bridge(&mut self) -> Result<u32, BuildError> {
        device::create_bridge(&mut self.netlink, BRIDGE)
            .with_context(|| format!("making the bridge `{BRIDGE}`"))?;
        let bridge = device::read(&mut self.netlink, BRIDGE)
            .with_context(|| format!("reading `{BRIDGE}` back"))?
            .index;
        up(&mut self.netlink, BRIDGE)?;
        Ok(bridge)
    }

    /// Gives the host its address on the underlay where it is the end of a tunnel; otherwise only sets the underlay
    /// device up.
    pub(crate) fn join_underlay(&mut self) -> Result<(), BuildError> {
        let network = &self.spec.network;
        if !network.encapsulation.is_tunnel() {
            return up(&mut self.netlink, UNDERLAY_DEVICE);
        }
        underlay::join(
            UNDERLAY_DEVICE,
            &network.transit,
            self.spec.side,
            network.underlay_ip,
            &mut self.netlink,
        )
    }

    fn check_steering(&self) -> Result<(), BuildError> {
        let cpus = self.spec.receive_cpus.as_deref().filter(|_| self.steered);
        let cpus = cpus.unwrap_or_default();
        let wanted = mask_value(&cpu_mask(cpus));
        // Empty where the container forbids a sysfs of our own; the record then says so.
        let found = receive_masks(UNDERLAY_DEVICE);
        for (queue, mask) in found.iter().enumerate() {
            let step = || format!("receive steering of queue {queue} of `{UNDERLAY_DEVICE}`");
            same(step, &wanted, &mask_value(mask))?;
        }
        if found.is_empty() {
            return Ok(());
        }
        same(
            || format!("receive queues in use of `{UNDERLAY_DEVICE}`"),
            &self.spec.network.steering.queues,
            &(found.len() as u32),
        )
    }

    /// Whether receive steering is active where it is requested. `false` where the kernel does not let this user steer
    /// what the host receives to the host's own cores.
    pub const fn is_steered(&self) -> bool {
        self.steered
    }

    /// Which of the two hosts this is.
    pub fn side(&self) -> Side {
        self.spec.side
    }

    /// Specification that the host was built from.
    pub fn spec(&self) -> &HostSpec {
        &self.spec
    }

    /// The guests' namespaces, by number.
    pub fn guests(&self) -> impl ExactSizeIterator<Item = &Netns> {
        self.guests.iter().map(|guest| guest.namespace.netns())
    }

    /// Thread ids of threads inside the guests' namespaces, by number.
    pub fn guest_tids(&self) -> Vec<u32> {
        let guests = self.guests.iter();
        guests.map(|guest| guest.namespace.tid()).collect()
    }

    /// Interface index of the underlay device.
    pub fn underlay_index(&mut self) -> Result<u32, BuildError> {
        let device = device::read(&mut self.netlink, UNDERLAY_DEVICE)
            .with_context(|| format!("reading `{UNDERLAY_DEVICE}`"))?;
        Ok(device.index)
    }
}

/// A closed connection of a guest keeps the guest's namespace for a while, and that the ports.
impl Drop for LabHost {
    fn drop(&mut self) {
        if self.has_ports_beside() {
            // They may be removed already, or not have been made.
            let _ = self.remove_ports();
        }
    }
}

fn underlay_parameters(spec: &HostSpec) -> UnderlayParameters {
    UnderlayParameters {
        mtu: spec.network.underlay_mtu,
        queues: spec.network.steering.queues,
        ip: spec.network.underlay_ip,
    }
}
