//! One lab host, built in three steps: namespaces and settings, the wire to the other host, the rest.

use std::fs;
use std::os::fd::AsFd;

use wirecost_model::plan::Encapsulation;
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::{HeldNetns, Netns};

use crate::device::{self, Change, PeerNamespace};
use crate::error::{BuildError, Step, same};
use crate::ipv6;
use crate::netlink::Netlink;
use crate::spec::{
    BRIDGE, GUEST_DEVICE, GUEST_PORT, HostSpec, Side, TUNNEL, UNDERLAY_DEVICE, prefix,
};
use crate::steering::{Steering, cpu_mask, mask_value, receive_masks};

/// A lab host under construction or in use. The calling thread's network namespace is the host's.
#[derive(Debug)]
pub struct LabHost {
    pub(crate) spec: HostSpec,
    steering: Option<Steering>,
    pub(crate) netlink: Netlink,
    pub(crate) ethtool: Ethtool,
    pub(crate) guest: HeldNetns,
    pub(crate) guest_netlink: Netlink,
    pub(crate) guest_ethtool: Ethtool,
}

impl LabHost {
    /// First step, on both hosts: the guest's namespace and the settings that devices take up when
    /// they are made. The calling thread's namespace must be a fresh one of the host's own.
    pub fn prepare(spec: HostSpec) -> Result<Self, BuildError> {
        let guest = HeldNetns::create("guest").step(|| "making the guest's namespace".into())?;
        ipv6::quiet()?;
        let inside = |netns: &Netns| -> Result<_, BuildError> {
            netns
                .within(|| {
                    ipv6::quiet()?;
                    keep_to_own_cores()?;
                    let netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
                    let ethtool = Ethtool::open().step(|| "opening ethtool".into())?;
                    Ok((netlink, ethtool))
                })
                .step(|| "entering the guest's namespace".into())?
        };
        let (mut guest_netlink, guest_ethtool) = inside(guest.netns())?;
        let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
        for netlink in [&mut netlink, &mut guest_netlink] {
            up(netlink, "lo")?;
        }
        let steering = match &spec.receive_cpus {
            Some(cpus) => Some(
                Steering::begin(cpus)
                    .step(|| format!("setting net.core.rps_default_mask for {cpus:?}"))?,
            ),
            None => None,
        };
        let ethtool = Ethtool::open().step(|| "opening ethtool".into())?;
        Ok(Self {
            spec,
            steering,
            netlink,
            ethtool,
            guest,
            guest_netlink,
            guest_ethtool,
        })
    }

    /// Second step, on host a only, when both are prepared: the underlay, one veth whose other end
    /// is made inside the namespace of process `peer`.
    pub fn wire(&mut self, peer: u32) -> Result<(), BuildError> {
        let side = self.spec.side;
        device::create_veth(
            &mut self.netlink,
            (UNDERLAY_DEVICE, UNDERLAY_DEVICE),
            PeerNamespace::Process(peer),
            self.spec.network.underlay_mtu,
            self.spec.network.steering.queues,
            Some([side.underlay_mac(), side.other().underlay_mac()]),
        )
        .step(|| format!("making the veth `{UNDERLAY_DEVICE}` towards process {peer}"))
    }

    /// Third step, on both: bridge, guest, tunnel, addresses. Offloads, the guest's MTU and the
    /// rate limit come with [`LabHost::adapt`].
    pub fn build(&mut self) -> Result<(), BuildError> {
        // Steering belongs where frames arrive from the wire; behind it, it would only add a hop.
        let queues = self.spec.network.steering.queues;
        if let Some(steering) = self.steering.take() {
            steering
                .end(UNDERLAY_DEVICE, queues)
                .step(|| format!("steering what `{UNDERLAY_DEVICE}` receives"))?;
        }
        self.check_steering()?;
        let (name, mtu) = (UNDERLAY_DEVICE, self.spec.network.underlay_mtu);
        let underlay =
            device::read(&mut self.netlink, name).step(|| format!("reading `{name}` back"))?;
        same(|| format!("MTU of `{name}`"), &mtu, &underlay.mtu)?;
        has_queues(name, &underlay, queues)?;

        device::create_bridge(&mut self.netlink, BRIDGE)
            .step(|| format!("making the bridge `{BRIDGE}`"))?;
        let bridge = device::read(&mut self.netlink, BRIDGE)
            .step(|| format!("reading `{BRIDGE}` back"))?
            .index;
        up(&mut self.netlink, BRIDGE)?;

        device::create_veth(
            &mut self.netlink,
            (GUEST_PORT, GUEST_DEVICE),
            PeerNamespace::Fd(self.guest.netns().as_fd()),
            mtu,
            queues,
            None,
        )
        .step(|| format!("making the veth `{GUEST_PORT}` towards the guest"))?;
        enslave(&mut self.netlink, GUEST_PORT, bridge)?;

        match &self.spec.network.encapsulation {
            Encapsulation::None => enslave(&mut self.netlink, UNDERLAY_DEVICE, bridge)?,
            Encapsulation::Vxlan(_) => self.build_vxlan(underlay.index, bridge)?,
        }

        let guest = device::read(&mut self.guest_netlink, GUEST_DEVICE)
            .step(|| format!("reading the guest's `{GUEST_DEVICE}` back"))?;
        has_queues(GUEST_DEVICE, &guest, queues)?;
        let address = self.spec.guest_address;
        if address.is_ipv6() {
            let allowed = self.guest.netns().within(|| ipv6::allow(GUEST_DEVICE));
            allowed.step(|| "entering the guest's namespace".into())??;
        }
        let prefix = prefix(address);
        device::add_address(&mut self.guest_netlink, guest.index, address, prefix)
            .step(|| format!("giving the guest's `{GUEST_DEVICE}` the address {address}"))?;
        up(&mut self.guest_netlink, GUEST_DEVICE)
    }

    fn build_vxlan(&mut self, underlay: u32, bridge: u32) -> Result<(), BuildError> {
        let network = &self.spec.network;
        let Encapsulation::Vxlan(vxlan) = &network.encapsulation else {
            return Ok(());
        };
        let address = self.spec.underlay_address;
        if address.is_ipv6() {
            ipv6::allow(UNDERLAY_DEVICE)?;
        }
        device::add_address(&mut self.netlink, underlay, address, prefix(address))
            .step(|| format!("giving `{UNDERLAY_DEVICE}` the address {address}"))?;
        up(&mut self.netlink, UNDERLAY_DEVICE)?;
        // A guest that speaks by itself would make this host ask for the other before that is built, and
        // then again only after a second (RFC 4861, section 10, RETRANS_TIMER).
        let (peer, mac) = (
            self.spec.underlay_peer,
            self.spec.side.other().underlay_mac(),
        );
        device::add_neighbour(&mut self.netlink, underlay, peer, mac)
            .step(|| format!("telling `{UNDERLAY_DEVICE}` who has the address {peer}"))?;
        let mtu = network.underlay_mtu - network.overhead_bytes();
        let ends = (address, self.spec.underlay_peer);
        device::create_vxlan(&mut self.netlink, TUNNEL, vxlan, ends, underlay, mtu)
            .step(|| format!("making the vxlan device `{TUNNEL}`"))?;
        let found = device::read_vxlan(&mut self.netlink, TUNNEL)
            .step(|| format!("reading the vxlan device `{TUNNEL}` back"))?;
        let wanted = (vxlan.clone(), [Some(ends.0), Some(ends.1)]);
        if found != wanted {
            return Err(BuildError::ReadBack {
                step: format!("options of the vxlan device `{TUNNEL}`"),
                wanted: format!("{wanted:?}"),
                found: format!("{found:?}"),
            });
        }
        enslave(&mut self.netlink, TUNNEL, bridge)
    }

    fn check_steering(&self) -> Result<(), BuildError> {
        let cpus = self.spec.receive_cpus.as_deref().unwrap_or_default();
        let wanted = mask_value(&cpu_mask(cpus));
        // Not readable where the container forbids a sysfs of our own; the record then says so.
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

    /// Which of the two hosts this is.
    pub fn side(&self) -> Side {
        self.spec.side
    }

    /// What it was built from.
    pub fn spec(&self) -> &HostSpec {
        &self.spec
    }

    /// The guest's namespace.
    pub fn guest(&self) -> &Netns {
        self.guest.netns()
    }

    /// Thread id of a thread inside the guest's namespace.
    pub fn guest_tid(&self) -> u32 {
        self.guest.tid()
    }

    /// Interface index of the underlay device.
    pub fn underlay_index(&mut self) -> Result<u32, BuildError> {
        let device = device::read(&mut self.netlink, UNDERLAY_DEVICE)
            .step(|| format!("reading `{UNDERLAY_DEVICE}`"))?;
        Ok(device.index)
    }
}

fn has_queues(name: &str, device: &device::Device, queues: u32) -> Result<(), BuildError> {
    for (which, found) in [
        ("transmit", device.tx_queues),
        ("receive", device.rx_queues),
    ] {
        // A kernel that does not tell is not asked again.
        let found = found.unwrap_or(queues);
        same(|| format!("{which} queues of `{name}`"), &queues, &found)?;
    }
    Ok(())
}

fn up(netlink: &mut Netlink, name: &str) -> Result<(), BuildError> {
    Change {
        up: true,
        ..Change::default()
    }
    .apply(netlink, name)
    .step(|| format!("setting `{name}` up"))?;
    let device = device::read(netlink, name).step(|| format!("reading `{name}` back"))?;
    same(|| format!("state of `{name}`"), &true, &device.up)
}

fn enslave(netlink: &mut Netlink, name: &str, bridge: u32) -> Result<(), BuildError> {
    Change {
        controller: Some(bridge),
        up: true,
        ..Change::default()
    }
    .apply(netlink, name)
    .step(|| format!("making `{name}` a port of the bridge"))?;
    let device = device::read(netlink, name).step(|| format!("reading `{name}` back"))?;
    same(
        || format!("bridge of `{name}`"),
        &bridge,
        &device.controller.unwrap_or(0),
    )
}

/// Keeps the sending host's work on the sending host's cores.
///
/// A packet on a veth keeps its socket until the *other* host's stack takes it, where a NIC would
/// let go of it at transmit completion. TCP small queues (net/ipv4/tcp_output.c,
/// `tcp_small_queue_check`) would hold the sender back meanwhile and, on release, run its transmit
/// path on the receiver's core, overtaking what its own core sends: 266 retransmits in 0.6 s where
/// there were none. Its limit is 1 ms at the pacing rate; this makes it about
/// 8 ms, more than the path holds. Nothing paces by that rate under cubic or reno.
fn keep_to_own_cores() -> Result<(), BuildError> {
    for key in ["tcp_pacing_ca_ratio", "tcp_pacing_ss_ratio"] {
        let path = format!("/proc/sys/net/ipv4/{key}");
        fs::write(&path, "1000").step(|| format!("writing {path}"))?;
    }
    Ok(())
}
