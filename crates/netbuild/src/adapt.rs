//! What changes between the cells of one lab: the guest's MTU, the offloads on every device of the
//! path, and the rate limiter's idea of a frame. Set, then read back.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirecost_model::offload::{Offload, Role};
use wirecost_model::sample::DeviceState;
use wirecost_sys::ethtool::Ethtool;
use wirecost_wire::size_table::size_table;

use crate::device::{self, Change};
use crate::error::{BuildError, Step, same};
use crate::host::LabHost;
use crate::netlink::Netlink;
use crate::ready;
use crate::spec::{GUEST_DEVICE, GUEST_PORT, Side, TUNNEL, UNDERLAY_DEVICE};
use crate::steering::receive_mask;
use crate::tbf;

impl LabHost {
    /// Gives the guest its MTU and every device of the path its offloads, and returns what was
    /// read back. Both hosts must be built: it waits until the path can be used.
    ///
    /// # Errors
    /// Where the kernel refuses, where a device kept a feature as it was, or where a link does not
    /// come up.
    pub fn adapt(
        &mut self,
        guest_mtu: u32,
        offload: &Offload,
    ) -> Result<Vec<DeviceState>, BuildError> {
        let network = &self.spec.network;
        let tunnelled = network.encapsulation.is_tunnel();
        let (overhead, guest_ip) = (network.overhead_bytes(), network.guest_ip);
        set_mtu(&mut self.netlink, GUEST_PORT, guest_mtu)?;
        set_mtu(&mut self.guest_netlink, GUEST_DEVICE, guest_mtu)?;

        let mut path = vec![(UNDERLAY_DEVICE, Role::Underlay)];
        path.extend(tunnelled.then_some((TUNNEL, Role::Tunnel)));
        path.push((GUEST_PORT, Role::GuestPort));
        let side = self.spec.side;
        let mut devices = Vec::with_capacity(path.len() + 1);
        for (name, role) in path {
            let host = (&mut self.netlink, &self.ethtool);
            devices.push(DeviceState {
                rps_cpus: receive_mask(name),
                ..set_offloads(side, host, name, role, offload, tunnelled)?
            });
        }
        let guest = (&mut self.guest_netlink, &self.guest_ethtool);
        devices.push(set_offloads(
            side,
            guest,
            GUEST_DEVICE,
            Role::Guest,
            offload,
            tunnelled,
        )?);

        if let Some(rate) = self.spec.network.rate {
            let index = self.underlay_index()?;
            let sizes = size_table(guest_mtu, overhead, guest_ip);
            let step = || format!("limiting `{UNDERLAY_DEVICE}` with tbf to {rate} bit/s");
            tbf::set(&mut self.netlink, index, rate, &sizes).step(step)?;
            let found = tbf::read_rate(&mut self.netlink, index).step(step)?;
            same(step, &(rate / 8 * 8), &found.unwrap_or(0))?;
        }
        self.wait_until_ready()?;
        Ok(devices)
    }

    fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        for name in [UNDERLAY_DEVICE, GUEST_PORT] {
            ready::link(&mut self.netlink, name)?;
        }
        ready::link(&mut self.guest_netlink, GUEST_DEVICE)?;
        if let IpAddr::V6(address) = self.spec.underlay_address
            && self.spec.network.encapsulation.is_tunnel()
        {
            ready::address(address)?;
        }
        if let IpAddr::V6(address) = self.spec.guest_address {
            let usable = self.guest.netns().within(|| ready::address(address));
            usable.step(|| "entering the guest's namespace".into())??;
        }
        Ok(())
    }
}

fn set_mtu(netlink: &mut Netlink, name: &str, mtu: u32) -> Result<(), BuildError> {
    let step = || format!("setting the MTU of `{name}` to {mtu}");
    Change {
        mtu: Some(mtu),
        ..Change::default()
    }
    .apply(netlink, name)
    .step(step)?;
    let found = device::read(netlink, name).step(step)?.mtu;
    same(step, &mtu, &found)
}

fn set_offloads(
    side: Side,
    (netlink, ethtool): (&mut Netlink, &Ethtool),
    name: &str,
    role: Role,
    offload: &Offload,
    tunnelled: bool,
) -> Result<DeviceState, BuildError> {
    let step = || format!("setting the offloads of `{name}` to `{offload}`");
    let wanted: BTreeMap<String, bool> = offload
        .wanted(role, tunnelled)
        .into_iter()
        .flatten()
        .flat_map(|(feature, on)| {
            feature
                .ethtool()
                .iter()
                .map(move |name| ((*name).to_owned(), on))
        })
        .collect();
    ethtool.set_features(name, &wanted).step(step)?;
    let found = ethtool.features(name).step(step)?;
    let mut features = BTreeMap::new();
    for (feature, on) in wanted {
        // A device that has no such feature neither helps nor hides anything.
        let Some(state) = found.get(&feature) else {
            continue;
        };
        same(
            || format!("{feature} of `{name}`"),
            &word(on),
            &word(state.active),
        )?;
        features.insert(feature, state.active);
    }
    let device = device::read(netlink, name).step(step)?;
    Ok(DeviceState {
        host: side.name().to_owned(),
        name: name.to_owned(),
        role,
        mtu: device.mtu,
        features,
        rps_cpus: None,
        tx_queues: device.tx_queues,
        rx_queues: device.rx_queues,
    })
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
