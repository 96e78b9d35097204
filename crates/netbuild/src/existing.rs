//! The device of an existing host that is measured: its features are read, changed and restored; it is never made or removed.

mod root_qdisc;

use std::collections::BTreeMap;
use std::io;

use wirecost_model::offload::{Feature, Role};
use wirecost_model::sample::DeviceState;
use wirecost_model::vary::DeviceSetting;
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::with_own_sysfs;

use crate::device::{self, Change};
use crate::error::{BuildError, Step, same};
use crate::features::FeatureTarget;
use crate::netlink::Netlink;
use crate::steering::{mask_value, receive_mask, write_masks};

/// A device in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct ExistingDevice {
    name: String,
    place: String,
    netlink: Netlink,
    ethtool: Ethtool,
}

impl ExistingDevice {
    /// # Errors
    /// Where the kernel gives no socket. Whether the device exists shows in its first use.
    pub fn open(name: &str) -> Result<Self, BuildError> {
        Ok(Self {
            name: name.to_owned(),
            place: format!("`{name}`"),
            netlink: Netlink::open().step(|| "opening rtnetlink".into())?,
            ethtool: Ethtool::open().step(|| "opening a socket for ethtool".into())?,
        })
    }

    /// Its interface index.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn index(&mut self) -> Result<u32, BuildError> {
        let device = device::read(&mut self.netlink, &self.name);
        Ok(device.step(|| format!("reading {}", self.place))?.index)
    }

    /// The UDP ports of the VXLAN and Geneve devices of its namespace.
    ///
    /// # Errors
    /// Where the kernel does not list them.
    pub fn tunnel_ports(&mut self) -> Result<Vec<u16>, BuildError> {
        device::tunnel_ports(&mut self.netlink).step(|| "listing the host's tunnels".into())
    }

    /// Its MTU, queues, and offload features with those of `also`.
    ///
    /// # Errors
    /// Where it is gone.
    pub fn state(
        &mut self,
        host: &str,
        also: &BTreeMap<String, bool>,
    ) -> Result<DeviceState, BuildError> {
        let step = || format!("reading {}", self.place);
        let device = device::read(&mut self.netlink, &self.name).step(step)?;
        let found = self.ethtool.features(&self.name).step(step)?;
        let profile = Feature::ALL.iter().flat_map(|feature| feature.ethtool());
        let known = profile.copied().filter(|name| found.contains_key(*name));
        let asked = also.keys().map(String::as_str);
        let state = |name: &str| found.get(name).is_some_and(|state| state.active);
        Ok(DeviceState {
            host: host.to_owned(),
            name: self.name.clone(),
            role: Role::Underlay,
            mtu: device.mtu,
            features: known
                .chain(asked)
                .map(|name| (name.to_owned(), state(name)))
                .collect(),
            rps_cpus: receive_mask(&self.name),
            tx_queues: device.tx_queues,
            rx_queues: device.rx_queues,
            count: 1,
        })
    }

    /// Speed of its link in bit/s, where its driver knows.
    pub fn speed(&self) -> Option<u64> {
        let speed = self.ethtool.speed(&self.name).ok().flatten();
        speed.map(|mbit| u64::from(mbit) * 1_000_000)
    }

    /// Its changeable features as they are, for [`ExistingDevice::restore`].
    ///
    /// # Errors
    /// Where one of those wanted cannot be had.
    pub fn changeable(
        &mut self,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<BTreeMap<String, bool>, BuildError> {
        self.target().changeable(wanted)
    }

    /// Sets features and reads them back.
    ///
    /// # Errors
    /// Where the kernel refuses, or does not apply one.
    pub fn set(&mut self, wanted: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.target().set(wanted)
    }

    /// Restores features and reads them back.
    ///
    /// # Errors
    /// Where the kernel refuses, or does not apply one.
    pub fn restore(&mut self, before: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.target().put_back(before)
    }

    /// A setting as it is.
    ///
    /// # Errors
    /// Where the device has none, or it cannot be read.
    pub fn setting(&mut self, which: DeviceSetting) -> Result<String, BuildError> {
        let step = || format!("reading `{}` of {}", which.key(), self.place);
        let name = &self.name;
        let ethtool = &self.ethtool;
        let netlink = &mut self.netlink;
        match which {
            DeviceSetting::Mtu => device::read(netlink, name).map(|device| device.mtu.to_string()),
            DeviceSetting::Qdisc => device::read(netlink, name)
                .and_then(|device| root_qdisc::read(netlink, device.index)),
            DeviceSetting::RxRing => ethtool.rings(name).map(|rings| rings.rx.to_string()),
            DeviceSetting::TxRing => ethtool.rings(name).map(|rings| rings.tx.to_string()),
            DeviceSetting::Queues => ethtool
                .channels(name)
                .map(|queues| queues.combined.to_string()),
            DeviceSetting::Rps => with_own_sysfs(|| receive_mask(name)).and_then(|mask| {
                mask.ok_or_else(|| {
                    io::Error::other("the device has no receive queue with `rps_cpus`")
                })
            }),
        }
        .step(step)
    }

    /// Changes a setting and reads it back.
    ///
    /// # Errors
    /// Where the kernel or the driver refuses the value, or does not apply it.
    pub fn change(&mut self, which: DeviceSetting, value: &str) -> Result<(), BuildError> {
        let step = || format!("setting `{}` of {} to {value}", which.key(), self.place);
        let name = &self.name;
        let number = || {
            let number = value.parse::<u32>();
            number.map_err(|_| io::Error::other(format!("{value} is not a number")))
        };
        match which {
            DeviceSetting::Mtu => number().and_then(|mtu| {
                let mtu = Some(mtu);
                let change = Change {
                    mtu,
                    ..Change::default()
                };
                change.apply(&mut self.netlink, name)
            }),
            DeviceSetting::RxRing => {
                number().and_then(|rx| self.ethtool.set_rings(name, Some(rx), None))
            }
            DeviceSetting::TxRing => {
                number().and_then(|tx| self.ethtool.set_rings(name, None, Some(tx)))
            }
            DeviceSetting::Queues => {
                number().and_then(|queues| self.ethtool.set_combined(name, queues))
            }
            DeviceSetting::Rps => {
                with_own_sysfs(|| write_masks(name, value)).and_then(|written| written)
            }
            DeviceSetting::Qdisc => device::read(&mut self.netlink, name)
                .and_then(|device| root_qdisc::set(&mut self.netlink, device.index, value)),
        }
        .step(step)?;
        let found = self.setting(which)?;
        let plain = |text: &str| match which {
            DeviceSetting::Rps => mask_value(text),
            // Of a new one only the kind is wanted.
            DeviceSetting::Qdisc if root_qdisc::kind_of(value) == value => {
                root_qdisc::kind_of(text).to_owned()
            }
            _ => text.to_owned(),
        };
        let what = || format!("`{}` of {}", which.key(), self.place);
        same(what, &plain(value), &plain(&found))
    }

    fn target(&mut self) -> FeatureTarget<'_> {
        FeatureTarget {
            name: &self.name,
            place: self.place.clone(),
            netlink: &mut self.netlink,
            ethtool: &self.ethtool,
        }
    }
}
