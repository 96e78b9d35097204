//! Tries what the kernel lets this process create, with the same messages as a lab where a lab creates such a device;
//! each is read back. For `wirecost doctor`.
//!
//! Nothing is removed: the devices go with the caller's namespace, which is a scratch one. That is faster than deleting
//! them one by one.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use netlink_packet_route::link::InfoKind;
use netlink_packet_route::tc::TcAttribute;
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Description, Encapsulation, Vxlan};
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::HeldNetns;
use wirecost_wire::size_table::size_table;

use crate::device::{self, Change, PeerNamespace};
use crate::encapsulate::Endpoints;
use crate::guest::raise_tsq_limit;
use crate::ipv6;
use crate::netem;
use crate::netlink::Netlink;
use crate::spec::EndSecret;
use crate::steering::{Steering, cpu_mask, mask_value, receive_mask};
use crate::{fq, qdisc, tbf};

const VETH: &str = "veth0";
const BRIDGE: &str = "bridge0";
const IFB: &str = "ifb-try";
/// MTU of the devices, bytes.
const MTU: u32 = 9000;
const RATE: u64 = 10_000_000_000;
const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
/// Addresses for documentation (RFC 9637).
const ADDRESS6: Ipv6Addr = Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 2);
const FEATURES: [&str; 2] = ["tx-tcp-segmentation", "rx-gro"];

/// Writes to settings of the calling thread's namespace, which must be a new one, as a lab does in each guest's.
///
/// # Errors
/// `EROFS` where /proc/sys may only be read, as in a container that is not privileged.
pub fn settings() -> io::Result<()> {
    raise_tsq_limit().map_err(io::Error::from)
}

/// A scratch namespace: that of the calling thread.
#[derive(Debug)]
pub struct Scratch {
    netlink: Netlink,
    /// Namespace of the other end of the veths.
    peer: Option<HeldNetns>,
    /// Whether a VXLAN tunnel could be made.
    has_vxlan: bool,
}

impl Scratch {
    /// Opens rtnetlink in the calling thread's namespace, which must be a new one, and sets its loopback device up.
    pub fn open() -> io::Result<Self> {
        let mut scratch = Self {
            netlink: Netlink::open()?,
            peer: None,
            has_vxlan: false,
        };
        scratch.up("lo")?;
        Ok(scratch)
    }

    /// Interface index of a device of this namespace.
    pub fn index(&mut self, name: &str) -> io::Result<u32> {
        Ok(device::read(&mut self.netlink, name)?.index)
    }

    /// Creates a veth with a large MTU whose other end is in a second namespace.
    ///
    /// # Errors
    /// For this and the functions below: the kernel's error number ([`crate::error_code`]), or a message where the
    /// kernel accepted a request and did something else.
    pub fn veth(&mut self) -> io::Result<()> {
        self.veth_to_peer(VETH)?;
        self.up(VETH)?;
        let found = device::read(&mut self.netlink, VETH)?.mtu;
        same("MTU", &MTU, &found)
    }

    /// Creates a veth for a switch other than the kernel's bridge, sets it up and returns its name.
    pub fn switch_port(&mut self) -> io::Result<&'static str> {
        const PORT: &str = "switched0";
        self.veth_to_peer(PORT)?;
        self.up(PORT)?;
        Ok(PORT)
    }

    fn veth_to_peer(&mut self, name: &str) -> io::Result<()> {
        if self.peer.is_none() {
            self.peer = Some(HeldNetns::create("peer")?);
        }
        let Some(peer) = &self.peer else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let namespace = PeerNamespace::Fd(peer.netns().as_fd());
        device::create_veth(&mut self.netlink, (name, name), namespace, MTU, 1)
    }

    /// Sets receive steering as a lab does, for a device that is created meanwhile. Returns the mask that was read
    /// back; `None` where this namespace's sysfs is not mounted.
    pub fn steering(&mut self, cpus: &[u32]) -> io::Result<Option<String>> {
        const STEERED: &str = "steered0";
        let steering = Steering::begin(cpus)?;
        let made = self.veth_to_peer(STEERED);
        let steered = steering.end(STEERED, 1);
        made?;
        if !steered? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let Some(found) = receive_mask(STEERED) else {
            return Ok(None);
        };
        same("mask", &mask_value(&cpu_mask(cpus)), &mask_value(&found))?;
        Ok(Some(found))
    }

    /// Switches segmentation and receive offload of the veth off and on again, and reads them back.
    pub fn offloads(&mut self) -> io::Result<()> {
        let ethtool = Ethtool::open()?;
        for on in [false, true] {
            let wanted = FEATURES.map(|name| (name.to_owned(), on)).into();
            ethtool.set_features(VETH, &wanted)?;
            let found = ethtool.features(VETH)?;
            for name in FEATURES {
                same(
                    name,
                    &on,
                    &found.get(name).is_some_and(|state| state.active),
                )?;
            }
        }
        Ok(())
    }

    /// Makes a token bucket with a size table the veth's root qdisc.
    pub fn rate_limit(&mut self) -> io::Result<()> {
        let index = self.index(VETH)?;
        let sizes = size_table(1500, 0, IpVersion::Ipv4);
        tbf::set(&mut self.netlink, index, RATE, &sizes)?;
        same(
            "rate",
            &Some(RATE),
            &tbf::read_rate(&mut self.netlink, index)?,
        )
    }

    /// Makes a delay (netem) the veth's root qdisc.
    pub fn delay(&mut self) -> io::Result<()> {
        netem::delay(&mut self.netlink, VETH, 1000)?;
        self.same_queue("netem")
    }

    /// Makes fq the veth's root qdisc, which paces flows by itself, and releases a lab's line in steps.
    pub fn fair_queue(&mut self) -> io::Result<()> {
        let index = self.index(VETH)?;
        qdisc::set(&mut self.netlink, index, fq::KIND, [])?;
        self.same_queue(fq::KIND)
    }

    fn same_queue(&mut self, kind: &str) -> io::Result<()> {
        let index = self.index(VETH)?;
        let root = qdisc::read(&mut self.netlink, index)?;
        let found = root
            .into_iter()
            .flatten()
            .find_map(|attribute| match attribute {
                TcAttribute::Kind(kind) => Some(kind),
                _ => None,
            });
        same("qdisc", &Some(kind.to_owned()), &found)
    }

    /// Creates a bridge with the veth as a port.
    pub fn bridge(&mut self) -> io::Result<()> {
        device::create_bridge(&mut self.netlink, BRIDGE)?;
        self.up(BRIDGE)?;
        let bridge = self.index(BRIDGE)?;
        // Only the bridge is tried here: without a veth it has no port.
        if self.index(VETH).is_ok() {
            let change = Change {
                controller: Some(bridge),
                ..Change::default()
            };
            change.apply(&mut self.netlink, VETH)?;
            let found = device::read(&mut self.netlink, VETH)?.controller;
            same("bridge", &Some(bridge), &found)?;
        }
        Ok(())
    }

    /// Creates a VXLAN tunnel over IPv4.
    pub fn vxlan(&mut self) -> io::Result<()> {
        self.vxlan_between("vxlan4", 4, (ADDRESS.into(), PEER.into()))?;
        self.has_vxlan = true;
        Ok(())
    }

    /// Adds an IPv6 address and, where one over IPv4 could be made, creates a VXLAN tunnel over IPv6. Returns what was
    /// made, in words.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no IPv6.
    pub fn ipv6(&mut self) -> io::Result<&'static str> {
        // New devices may have it switched off, where a lab switches it on.
        ipv6::enable("lo")?;
        let index = self.index("lo")?;
        device::add_address(&mut self.netlink, index, ADDRESS6.into(), 64)?;
        if !self.has_vxlan {
            return Ok("an address");
        }
        self.vxlan_between("vxlan6", 6, (ADDRESS6.into(), PEER6.into()))?;
        Ok("an address, and a vxlan between addresses")
    }

    fn vxlan_between(&mut self, name: &str, vni: u32, ends: (IpAddr, IpAddr)) -> io::Result<()> {
        let vxlan = Encapsulation::Vxlan(Vxlan {
            vni,
            ..Vxlan::default()
        });
        self.between(name, &vxlan, ends)
    }

    /// Creates the device of a kind of encapsulation with its default options: a tunnel over IPv4, any other on the
    /// veth.
    pub fn encapsulation(&mut self, kind: &Description) -> io::Result<()> {
        let ends = (ADDRESS.into(), PEER.into());
        self.between(&format!("try-{}", kind.word), &(kind.usual)(), ends)
    }

    fn between(
        &mut self,
        name: &str,
        encapsulation: &Encapsulation,
        ends: (IpAddr, IpAddr),
    ) -> io::Result<()> {
        let below = if encapsulation.is_tunnel() {
            "lo"
        } else {
            VETH
        };
        let between = Endpoints {
            encapsulation,
            ends,
            underlay: self.index(below)?,
            secrets: (&EndSecret([1; 32]), &EndSecret([2; 32])),
            guest_ip: IpVersion::Ipv4,
            mtu: MTU,
            link_netns: None,
        };
        between.make(&mut self.netlink, name)?;
        self.up(name)
    }

    /// Creates an intermediate functional block device.
    pub fn ifb(&mut self) -> io::Result<()> {
        self.make(IFB, InfoKind::Ifb)
    }

    /// Creates a device of a kind that no lab uses.
    fn make(&mut self, name: &str, kind: InfoKind) -> io::Result<()> {
        device::create_plain(&mut self.netlink, name.into(), kind.clone(), MTU)?;
        self.up(name)?;
        same(
            "kind",
            &Some(kind),
            &device::read_kind(&mut self.netlink, name)?,
        )
    }

    fn up(&mut self, name: &str) -> io::Result<()> {
        let change = Change {
            up: true,
            ..Change::default()
        };
        change.apply(&mut self.netlink, name)?;
        same("up", &true, &device::read(&mut self.netlink, name)?.up)
    }
}

/// Fails with a message unless what was read back is what was asked for.
fn same<T: PartialEq + Debug>(what: &str, wanted: &T, found: &T) -> io::Result<()> {
    if wanted == found {
        return Ok(());
    }
    let words = format!("{what}: asked for {wanted:?}, read back {found:?}");
    Err(io::Error::other(words))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::thread;

    use wirecost_sys::namespace::{self, UserNamespace};

    use super::*;

    #[test]
    fn ipv6_that_is_switched_off_for_new_devices_is_there_for_a_lab() {
        let tried = thread::spawn(|| {
            // This thread's own namespaces, which end with it.
            match namespace::isolate(UserNamespace::Keep) {
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
                isolated => isolated.expect("namespaces"),
            }
            fs::write("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "1").expect("written");
            let mut scratch = Scratch::open().expect("rtnetlink");
            Ok(scratch.ipv6().expect("an address"))
        });
        match tried.join().expect("the thread") {
            Err(error) => {
                wirecost_skips::skip(format!("this needs root: {error}"));
            }
            // No VXLAN was tried before.
            Ok(made) => assert_eq!(made, "an address"),
        }
    }
}
