//! The devices of a tunnel that somebody tries by hand: on a host that is used as it is, in the calling thread's
//! network namespace.

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
use crate::error::{BuildError, Step};
use crate::ipv6;
use crate::names::Side;
use crate::netlink::Netlink;

/// Length in bits of the prefix that both guests of a pair of namespaces share.
pub const GUEST_PREFIX: u8 = 24;

/// The address of the guest at one side of a pair of namespaces.
pub fn guest_address(side: Side) -> IpAddr {
    addresses::guest(IpVersion::Ipv4, side, 0)
}

/// A guest's device and its port, which are the two ends of one veth in one namespace.
#[derive(Debug, Clone, Copy)]
pub struct GuestDevice<'a> {
    /// What applications use.
    pub name: &'a str,
    /// Where the frames that they send arrive.
    pub port: &'a str,
    /// Of the device, in bytes.
    pub mtu: u32,
    /// Its port's; [`PORT_MTU`] where programs there tell the guest what fits, also one that is given a larger MTU by
    /// hand, whose packets a smaller port would drop before anybody looks at them.
    pub port_mtu: u32,
    /// Hardware address of the guest's device.
    pub mac: [u8; 6],
    /// Its IP address and the length of its network's prefix.
    pub address: (IpAddr, u8),
    /// Whether segments that arrive one by one are joined for the guest: worth it where the underlay's device delivers
    /// them so, as network cards do that know no such tunnel.
    pub joins: bool,
}

/// The most that a veth has (drivers/net/veth.c, `max_mtu`).
pub const PORT_MTU: u32 = 65535;

impl GuestDevice<'_> {
    /// Makes both ends, switches them on and gives the guest's its address.
    ///
    /// # Errors
    /// Where the kernel refuses a step; what was made until then is there.
    pub fn create(&self) -> Result<(), BuildError> {
        let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
        let end = |name, mtu, mac| VethEnd {
            name,
            mtu,
            mac,
            queues: 1,
        };
        let guest = end(self.name, self.mtu, Some(self.mac));
        let port = end(self.port, self.port_mtu, None);
        device::create_veth_here(&mut netlink, guest, port)
            .step(|| format!("making the veth from `{}` to `{}`", self.name, self.port))?;
        let (address, prefix) = self.address;
        if address.is_ipv6() {
            ipv6::allow(self.name)?;
        }
        let index = index(&mut netlink, self.name)?;
        device::add_address(&mut netlink, index, address, prefix)
            .step(|| format!("giving `{}` the address {address}", self.name))?;
        if self.joins {
            self.join_segments()?;
        }
        up(&mut netlink, self.port)?;
        up(&mut netlink, self.name)
    }

    /// The guest's end joins what its port does not leave to it unsegmented (drivers/net/veth.c,
    /// `veth_skb_is_eligible_for_gro`).
    fn join_segments(&self) -> Result<(), BuildError> {
        let step = || format!("switching on GRO of `{}`", self.name);
        let ethtool = Ethtool::open().step(step)?;
        let all = |feature: Feature, on: bool| -> BTreeMap<String, bool> {
            let names = feature.ethtool().iter();
            names.map(|name| ((*name).to_owned(), on)).collect()
        };
        set_features(&ethtool, self.port, all(Feature::Tso, false), &step)?;
        set_features(&ethtool, self.name, all(Feature::Gro, true), &step)?;
        Ok(())
    }
}

/// Readies a namespace that was just made: its loopback device is on, and devices are silent but for their users.
///
/// # Errors
/// Where the kernel refuses a step.
pub fn prepare_namespace() -> Result<(), BuildError> {
    ipv6::quiet()?;
    let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
    up(&mut netlink, "lo")
}

/// Interface index of a device; `None` where there is no such one.
///
/// # Errors
/// Where the kernel does not report it.
pub fn find(name: &str) -> Result<Option<u32>, BuildError> {
    let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
    match device::read(&mut netlink, name) {
        Ok(found) => Ok(Some(found.index)),
        Err(error) if error.kind() == io::ErrorKind::NotFound || is_no_device(&error) => Ok(None),
        Err(error) => Err(error).step(|| format!("looking for `{name}`")),
    }
}

/// A device's MTU in bytes.
///
/// # Errors
/// Where there is no such one, or the kernel does not report it.
pub fn mtu(name: &str) -> Result<u32, BuildError> {
    let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
    let found = device::read(&mut netlink, name).step(|| format!("reading `{name}`"))?;
    Ok(found.mtu)
}

/// Has a guest's device hand over whole frames with their checksums: a switch that reads packet sockets would lose
/// what is left to a device.
///
/// # Errors
/// Where the kernel refuses, or does not apply it.
pub fn disable_offloads(name: &str) -> Result<(), BuildError> {
    let step = || format!("switching off the offloads of `{name}`");
    let ethtool = Ethtool::open().step(step)?;
    let off = [Feature::Tso, Feature::Gso, Feature::Checksum];
    let names = off.iter().flat_map(|feature| feature.ethtool());
    let wanted = names.map(|name| ((*name).to_owned(), false)).collect();
    set_features(&ethtool, name, wanted, &step)?;
    Ok(())
}

/// Removes a device, and a veth's other end with it; one that is gone is no error.
///
/// # Errors
/// Where the kernel refuses.
pub fn remove(name: &str) -> Result<(), BuildError> {
    let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
    match device::delete(&mut netlink, name) {
        Err(error) if !is_no_device(&error) => Err(error).step(|| format!("removing `{name}`")),
        _ => Ok(()),
    }
}

/// The names of all devices, sorted.
///
/// # Errors
/// Where the kernel does not report it.
pub fn devices() -> io::Result<Vec<String>> {
    // A namespace's own, whatever sysfs shows (net/core/net-procfs.c).
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn index(netlink: &mut Netlink, name: &str) -> Result<u32, BuildError> {
    let found = device::read(netlink, name).step(|| format!("reading `{name}` back"))?;
    Ok(found.index)
}

/// ENODEV.
fn is_no_device(error: &io::Error) -> bool {
    crate::netlink::code(error) == Some(19)
}
