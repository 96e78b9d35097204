//! The device of an existing host that is measured: its features are read, changed and restored; it is never made or removed.

use std::collections::BTreeMap;

use wirecost_model::offload::{Feature, Role};
use wirecost_model::sample::DeviceState;
use wirecost_sys::ethtool::Ethtool;

use crate::device;
use crate::error::{BuildError, Step};
use crate::features::FeatureTarget;
use crate::netlink::Netlink;
use crate::steering::receive_mask;

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

    fn target(&mut self) -> FeatureTarget<'_> {
        FeatureTarget {
            name: &self.name,
            place: self.place.clone(),
            netlink: &mut self.netlink,
            ethtool: &self.ethtool,
        }
    }
}
