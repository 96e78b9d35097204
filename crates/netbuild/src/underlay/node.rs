//! A namespace between the hosts, and the wires from one to the next.

use std::os::fd::AsFd;

use wirecost_model::offload::{Offload, Profile};
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::{HeldNetns, Netns};

use crate::addresses::LinkEnd;
use crate::device::up;
use crate::device::{self, PeerNamespace, VethEnd};
use crate::device_features::set_features;
use crate::error::{BuildError, Context};
use crate::ipv6;
use crate::netlink::Netlink;
use crate::underlay::ANY_SIZE;

/// Names of a hop's device towards host a, and of the one towards host b.
pub(super) const TOWARDS_A: &str = "towards-a";
pub(super) const TOWARDS_B: &str = "towards-b";

/// A switch's or router's namespace.
#[derive(Debug)]
pub(super) struct Node {
    /// Name in messages: `hop 2, a router,`.
    name: String,
    namespace: HeldNetns,
    netlink: Netlink,
}

impl Node {
    pub(super) fn create(name: String) -> Result<Self, BuildError> {
        let making = || format!("making the namespace of {name}");
        let namespace = HeldNetns::create("hop").with_context(making)?;
        let inside = || -> Result<_, BuildError> {
            ipv6::disable()?;
            Netlink::open().with_context(|| "opening rtnetlink".into())
        };
        let mut netlink = namespace.netns().within(inside).with_context(making)??;
        up(&mut netlink, "lo")?;
        Ok(Self {
            name,
            namespace,
            netlink,
        })
    }

    /// Runs a step inside the namespace.
    pub(super) fn within<T>(
        &mut self,
        step: impl FnOnce(&mut Netlink) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        let Self {
            name,
            namespace,
            netlink,
        } = self;
        let done = namespace.netns().within(|| step(netlink));
        let done = done.with_context(|| format!("entering the namespace of {name}"))?;
        done.map_err(|error| error.inside(name))
    }

    pub(super) const fn netlink(&mut self) -> &mut Netlink {
        &mut self.netlink
    }

    pub(super) fn netns(&self) -> &Netns {
        self.namespace.netns()
    }

    /// Id of a thread inside the namespace.
    pub(super) fn tid(&self) -> u32 {
        self.namespace.tid()
    }

    /// The namespace as a place to create devices in.
    pub(super) fn as_peer(&self) -> PeerNamespace<'_> {
        PeerNamespace::Fd(self.namespace.netns().as_fd())
    }
}

/// An end of a wire: the device's name and its MTU in bytes, and its place, where it has an address.
#[derive(Debug, Clone)]
pub(super) struct WireEnd {
    pub(super) device: String,
    pub(super) mtu: u32,
    pub(super) place: Option<LinkEnd>,
}

impl WireEnd {
    /// An end at a device between the hosts.
    pub(super) fn inner(device: &str, place: Option<LinkEnd>) -> Self {
        Self {
            device: device.to_owned(),
            mtu: ANY_SIZE,
            place,
        }
    }

    fn end(&self, queues: u32) -> VethEnd<'_> {
        VethEnd {
            name: &self.device,
            mtu: self.mtu,
            mac: self.place.map(LinkEnd::mac),
            queues,
        }
    }
}

/// Makes a device of the calling thread's namespace segment super-packets into frames when they leave by it: no port of
/// a switch or a router forwards super-packets. Checksums are still left to devices: computing them is not a hop's
/// work.
pub(super) fn without_offloads(device: &str) -> Result<(), BuildError> {
    let off = Offload::profile(Profile::None).switches(true);
    let wanted = off.into_iter().flat_map(|(feature, on)| {
        let names = feature.ethtool().iter();
        names.map(move |name| ((*name).to_owned(), on))
    });
    let ethtool = Ethtool::open().with_context(|| "opening ethtool".into())?;
    let step = || format!("switching the offloads of `{device}` off");
    set_features(&ethtool, device, wanted.collect(), &step).map(|_| ())
}

/// Creates a veth from a namespace, that of `netlink` where it is `None`, to another.
pub(super) fn wire(
    netlink: &mut Netlink,
    (from, own): (Option<PeerNamespace<'_>>, &WireEnd),
    (to, other): (PeerNamespace<'_>, &WireEnd),
    queues: u32,
) -> Result<(), BuildError> {
    let ends = [own, other].map(|wire_end| wire_end.end(queues));
    device::create_veth_between(netlink, (from, ends[0]), (to, ends[1])).with_context(|| {
        format!(
            "making the veth from `{}` to `{}`",
            own.device, other.device
        )
    })
}
