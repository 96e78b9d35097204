//! Devices of a tunnel that is tried by hand: on a host that is used as it is, in the calling thread's network
//! namespace.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;

use wirecost_model::ip::IpVersion;
use wirecost_model::offload::Feature;
use wirecost_sys::ethtool::Ethtool;

use crate::addresses;
use crate::device::up;
use crate::device::{self, VethEnd};
use crate::device_features::set_features;
use crate::error::{BuildError, Context};
use crate::ipv6;
use crate::names::Side;
use crate::netlink::Netlink;

/// Prefix length, in bits, that both guests of a pair of namespaces share.
pub const GUEST_PREFIX: u8 = 24;

/// The address of the guest at one side of a pair of namespaces.
pub fn guest_address(side: Side) -> IpAddr {
    addresses::guest(IpVersion::Ipv4, side, 0)
}

/// A guest's device and its port: the two ends of one veth, in one namespace.
#[derive(Debug, Clone, Copy)]
pub struct GuestDevice<'a> {
    /// Name of the device that applications use.
    pub name: &'a str,
    /// Name of the port, where the frames that they send arrive.
    pub port: &'a str,
    /// MTU of the device, bytes.
    pub mtu: u32,
    /// MTU of the port, bytes; [`PORT_MTU`] where programs at the port tell the guest which packets fit, also a guest
    /// that is given a larger MTU by hand: a smaller port would drop its packets before a program sees them.
    pub port_mtu: u32,
    /// Hardware address of the guest's device.
    pub mac: [u8; 6],
    /// IP address of the guest's device, and the prefix length of its network, bits.
    pub address: (IpAddr, u8),
    /// Whether segments that arrive one by one are joined for the guest (GRO): worth it where the underlay's device
    /// delivers them so, as network cards do that do not know the tunnel.
    pub joins: bool,
}

/// Largest MTU of a veth, bytes (drivers/net/veth.c, `max_mtu`).
pub const PORT_MTU: u32 = 65535;

impl GuestDevice<'_> {
    /// Creates both ends, sets them up and gives the guest's end its address.
    ///
    /// # Errors
    /// Where the kernel refuses a step; what was created until then stays.
    pub fn create(&self) -> Result<(), BuildError> {
        let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
        let end = |name, mtu, mac| VethEnd {
            name,
            mtu,
            mac,
            queues: 1,
        };
        let guest = end(self.name, self.mtu, Some(self.mac));
        let port = end(self.port, self.port_mtu, None);
        device::create_veth_here(&mut netlink, guest, port)
            .with_context(|| format!("making the veth from `{}` to `{}`", self.name, self.port))?;
        let (address, prefix) = self.address;
        if address.is_ipv6() {
            ipv6::enable(self.name)?;
        }
        let index = index(&mut netlink, self.name)?;
        device::add_address(&mut netlink, index, address, prefix)
            .with_context(|| format!("giving `{}` the address {address}", self.name))?;
        if self.joins {
            self.join_segments()?;
        }
        up(&mut netlink, self.port)?;
        up(&mut netlink, self.name)
    }

    /// Switches on GRO at the guest's end, which joins segments only where the port has no TSO (drivers/net/veth.c,
    /// `veth_skb_is_eligible_for_gro`).
    fn join_segments(&self) -> Result<(), BuildError> {
        let step = || format!("switching on GRO of `{}`", self.name);
        let ethtool = Ethtool::open().with_context(step)?;
        let all = |feature: Feature, on: bool| -> BTreeMap<String, bool> {
            let names = feature.ethtool().iter();
            names.map(|name| ((*name).to_owned(), on)).collect()
        };
        set_features(&ethtool, self.port, all(Feature::Tso, false), &step)?;
        set_features(&ethtool, self.name, all(Feature::Gro, true), &step)?;
        Ok(())
    }
}

/// Prepares a new namespace: sets its loopback device up, and keeps its devices from sending anything by themselves.
///
/// # Errors
/// Where the kernel refuses a step.
pub fn prepare_namespace() -> Result<(), BuildError> {
    ipv6::disable()?;
    let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
    up(&mut netlink, "lo")
}

/// Interface index of a device; `None` where no device has that name.
///
/// # Errors
/// Where the kernel does not report the device.
pub fn find(name: &str) -> Result<Option<u32>, BuildError> {
    let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
    match device::read(&mut netlink, name) {
        Ok(found) => Ok(Some(found.index)),
        Err(error) if error.kind() == io::ErrorKind::NotFound || is_no_device(&error) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("looking for `{name}`")),
    }
}

/// A device's MTU in bytes.
///
/// # Errors
/// Where no device has that name, or the kernel does not report it.
pub fn mtu(name: &str) -> Result<u32, BuildError> {
    let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
    let found = device::read(&mut netlink, name).with_context(|| format!("reading `{name}`"))?;
    Ok(found.mtu)
}

/// Makes a guest's device send complete frames with their checksums: a switch that reads packet sockets would lose the
/// segmentation and the checksums that are left to a device.
///
/// # Errors
/// Where the kernel refuses the change, or does not apply it.
pub fn disable_offloads(name: &str) -> Result<(), BuildError> {
    let step = || format!("switching off the offloads of `{name}`");
    let ethtool = Ethtool::open().with_context(step)?;
    let off = [Feature::Tso, Feature::Gso, Feature::Checksum];
    let names = off.iter().flat_map(|feature| feature.ethtool());
    let wanted = names.map(|name| ((*name).to_owned(), false)).collect();
    set_features(&ethtool, name, wanted, &step)?;
    Ok(())
}

/// Removes a device, and with a veth its other end; a missing device is no error.
///
/// # Errors
/// Where the kernel refuses.
pub fn remove(name: &str) -> Result<(), BuildError> {
    let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
    match device::delete(&mut netlink, name) {
        Err(error) if !is_no_device(&error) => {
            Err(error).with_context(|| format!("removing `{name}`"))
        }
        _ => Ok(()),
    }
}

/// Names of all devices of the calling thread's network namespace, sorted.
///
/// # Errors
/// Where the kernel does not report them.
pub fn devices() -> io::Result<Vec<String>> {
    // The calling thread's namespace, whichever /sys shows (net/core/net-procfs.c).
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn index(netlink: &mut Netlink, name: &str) -> Result<u32, BuildError> {
    let found = device::read(netlink, name).with_context(|| format!("reading `{name}` back"))?;
    Ok(found.index)
}

/// Whether the kernel answered ENODEV.
fn is_no_device(error: &io::Error) -> bool {
    crate::netlink::code(error) == Some(19)
}
