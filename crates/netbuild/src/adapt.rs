//! Settings that change between the cells of one lab: the guests' MTU, the offloads on every device of the path, and
//! the rate limiter's size table. Each is set, then read back.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirecost_model::cell::Network;
use wirecost_model::datapath::Datapath;
use wirecost_model::offload::{Feature, Offload, PathOffload, Role};
use wirecost_model::plan::Encapsulation;
use wirecost_model::sample::DeviceState;
use wirecost_sys::ethtool::Ethtool;
use wirecost_wire::size_table::FrameSizes;

use crate::device::{self, Change};
use crate::device_features::set_features;
use crate::error::{BuildError, Context, same};
use crate::host::LabHost;
use crate::host::Line;
use crate::names::{GUEST_DEVICE, Side, TAG, TUNNEL, UNDERLAY_DEVICE, guest_port};
use crate::netlink::Netlink;
use crate::ready;
use crate::steering::receive_mask;

impl LabHost {
    /// Sets the guests' MTU, in bytes, and the offloads of every device of the path, and returns the devices as they
    /// were read back. Both hosts must be built: waits until the path can be used.
    ///
    /// # Errors
    /// Where the kernel refuses, where a device did not change a feature, where the guests' devices differ from each
    /// other, or where a link does not come up.
    pub fn adapt(
        &mut self,
        guest_mtu: u32,
        offload: &Offload,
    ) -> Result<Vec<DeviceState>, BuildError> {
        let network = &self.spec.network;
        let overhead = network.overhead_bytes() + network.padding_bytes(guest_mtu);
        let guest_ip = network.guest_ip;
        let tag = network.encapsulation.line_tag_bytes();
        let wanted = PathSettings {
            side: self.spec.side,
            offload,
            network,
            frame_by_frame: self.switch_devices.frame_by_frame,
        };
        let mut path = Vec::new();
        if self.link_netns.is_none() {
            path.push((UNDERLAY_DEVICE, Role::Underlay));
        }
        if network.datapath == Datapath::Kernel && network.encapsulation != Encapsulation::None {
            path.push((TUNNEL, Role::Tunnel));
            let inner = network.encapsulation.inner_tag_bytes() > 0;
            path.extend(inner.then_some((TAG, Role::Tunnel)));
        }
        let of_switch = |name: &'_ Option<String>, role| Some((name.clone()?, role));
        let switch = [
            of_switch(&self.switch_devices.tunnel, Role::Tunnel),
            of_switch(&self.switch_devices.underlay_bridge, Role::Bridge),
        ];
        let switch: Vec<_> = switch.into_iter().flatten().collect();
        path.extend(switch.iter().map(|(name, role)| (name.as_str(), *role)));
        let mut devices = Vec::with_capacity(path.len() + 2);
        for (name, role) in path {
            let host = (&mut self.netlink, &self.ethtool);
            devices.push(DeviceState {
                rps_cpus: receive_mask(name),
                ..wanted.set(host, name, role)?
            });
        }
        let (mut ports, mut guests) = (None, None);
        for (number, guest) in self.guests.iter_mut().enumerate() {
            set_mtu(&mut self.netlink, &guest.port, guest_mtu)?;
            set_mtu(&mut guest.netlink, GUEST_DEVICE, guest_mtu)?;
            let host = (&mut self.netlink, &self.ethtool);
            let port = DeviceState {
                // Beside the host's own devices it has another name in each process.
                name: guest_port(number),
                rps_cpus: receive_mask(&guest.port),
                ..wanted.set(host, &guest.port, Role::GuestPort)?
            };
            let inside = (&mut guest.netlink, &guest.ethtool);
            let own = wanted.set(inside, GUEST_DEVICE, Role::Guest)?;
            require_same_state(&mut ports, port, &format!("`{}`", guest.port))?;
            let place = format!("`{GUEST_DEVICE}` behind `{}`", guest.port);
            require_same_state(&mut guests, own, &place)?;
        }
        devices.extend(ports);
        devices.extend(guests);

        self.follow_underlay()?;
        self.line = self.spec.network.rate.map(|rate| Line {
            rate,
            frames: FrameSizes::new(guest_mtu, overhead, guest_ip, tag),
        });
        if self.link_netns.is_none() {
            self.set_line()?;
        }
        self.wait_until_ready()?;
        Ok(devices)
    }

    /// Sets the TSO of the line namespace's device that sends to the underlay device, as if there were no line
    /// namespace: like the hosts' underlay devices where these are linked directly, off where a hop is in between.
    pub(crate) fn follow_underlay(&self) -> Result<(), BuildError> {
        let Some(line_namespace) = &self.line_namespace else {
            return Ok(());
        };
        let step = || format!("reading the offloads of `{UNDERLAY_DEVICE}`");
        let found = self.ethtool.features(UNDERLAY_DEVICE).with_context(step)?;
        let transit = &self.spec.network.transit;
        let whole = transit.hops.is_empty() && transit.paths.is_empty();
        let active = |name: &str| found.get(name).is_some_and(|state| state.active);
        let wanted = Feature::Tso.ethtool().iter();
        let wanted = wanted.map(|name| ((*name).to_owned(), whole && active(name)));
        line_namespace.set_near_features(wanted.collect())
    }

    fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        if self.link_netns.is_none() {
            self.wait_for_underlay()?;
        }
        for guest in &mut self.guests {
            ready::link(&mut self.netlink, &guest.port)?;
            guest.wait_until_ready()?;
        }
        self.handshake()
    }

    fn wait_for_underlay(&mut self) -> Result<(), BuildError> {
        ready::link(&mut self.netlink, UNDERLAY_DEVICE)?;
        if let Some(bridge) = &self.switch_devices.underlay_bridge {
            ready::link(&mut self.netlink, bridge)?;
        }
        if let IpAddr::V6(address) = self.spec.underlay_address()
            && self.spec.network.encapsulation.is_tunnel()
        {
            ready::address(address)?;
        }
        if let Some(line_namespace) = &mut self.line_namespace {
            line_namespace.wait_until_ready()?;
        }
        if let Some(underlay) = &mut self.underlay {
            underlay.wait_until_ready()?;
        }
        Ok(())
    }
}

/// Requires that a device has the same state as the first device of its kind, and counts it.
///
/// # Errors
/// Where the two states differ.
pub(crate) fn require_same_state(
    first: &mut Option<DeviceState>,
    next: DeviceState,
    place: &str,
) -> Result<(), BuildError> {
    let Some(first) = first else {
        *first = Some(next);
        return Ok(());
    };
    let found = DeviceState {
        name: first.name.clone(),
        count: first.count,
        ..next
    };
    if found != *first {
        return Err(BuildError::ReadBack {
            step: format!("comparing {place} with the first guest's"),
            wanted: format!("{first:?}"),
            found: format!("{found:?}"),
        });
    }
    first.count += 1;
    Ok(())
}

pub(crate) fn set_mtu(netlink: &mut Netlink, name: &str, mtu: u32) -> Result<(), BuildError> {
    let step = || format!("setting the MTU of `{name}` to {mtu}");
    Change {
        mtu: Some(mtu),
        ..Change::default()
    }
    .apply(netlink, name)
    .with_context(step)?;
    let found = device::read(netlink, name).with_context(step)?.mtu;
    same(step, &mtu, &found)
}

/// For a switch that takes frames one by one: switches every feature off, so that only complete frames with their
/// checksums arrive. A guest may still join (GRO) what the switch delivers to it, where `joins`.
fn alone(role: Role, joins: bool, wanted: &mut BTreeMap<Feature, bool>) {
    for (feature, on) in wanted {
        *on = joins && *feature == Feature::Gro && role == Role::Guest;
    }
}

/// The settings wanted on every device of a host's path.
struct PathSettings<'a> {
    side: Side,
    offload: &'a Offload,
    network: &'a Network,
    /// See [`crate::SwitchDevices`].
    frame_by_frame: bool,
}

impl PathSettings<'_> {
    fn set(
        &self,
        (netlink, ethtool): (&mut Netlink, &Ethtool),
        name: &str,
        role: Role,
    ) -> Result<DeviceState, BuildError> {
        let step = || format!("setting the offloads of `{name}` to `{}`", self.offload);
        let Self {
            offload, network, ..
        } = *self;
        let mut wanted = PathOffload::of(offload, network)
            .device_features(offload, network, role)
            .unwrap_or_default();
        if self.frame_by_frame {
            let joins = offload.switches(network.encapsulation.is_tunnel())[&Feature::Gro];
            alone(role, joins, &mut wanted);
        }
        let wanted: BTreeMap<String, bool> = wanted
            .into_iter()
            .flat_map(|(feature, on)| {
                feature
                    .ethtool()
                    .iter()
                    .map(move |name| ((*name).to_owned(), on))
            })
            .collect();
        let features = set_features(ethtool, name, wanted, &step)?;
        let device = device::read(netlink, name).with_context(step)?;
        Ok(DeviceState {
            host: self.side.name().to_owned(),
            name: name.to_owned(),
            role,
            mtu: device.mtu,
            features,
            rps_cpus: None,
            tx_queues: device.tx_queues,
            rx_queues: device.rx_queues,
            count: 1,
        })
    }
}
