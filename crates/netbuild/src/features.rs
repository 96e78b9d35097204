//! Single device features, in addition to the offload profile: set, read back, and restored.

use std::collections::BTreeMap;
use std::io;

use wirecost_model::offload::Role;
use wirecost_model::sample::DeviceState;
use wirecost_sys::ethtool::Ethtool;

use crate::adapt::count_alike;
use crate::device;
use crate::error::{BuildError, Step, same};
use crate::host::LabHost;
use crate::names::{BRIDGE, GUEST_DEVICE, TUNNEL, UNDERLAY_DEVICE};
use crate::netlink::Netlink;

/// The changeable features of every device in a role as they were before some were set: one may drag
/// others along.
#[derive(Debug)]
pub struct KeptFeatures {
    role: Role,
    /// By guest; of what a host has once, one.
    states: Vec<BTreeMap<String, bool>>,
}

/// One device of a host or of its guests.
pub(crate) struct FeatureTarget<'a> {
    pub(crate) name: &'a str,
    /// As messages call it: `eth0`, or `eth0` behind a host's port where there are several.
    pub(crate) place: String,
    pub(crate) netlink: &'a mut Netlink,
    pub(crate) ethtool: &'a Ethtool,
}

impl LabHost {
    /// Sets features of every device in a role, every guest's where guests have it, by the kernel's names,
    /// and reads them back. Returns how the devices were before, for [`LabHost::restore_features`]; where
    /// it fails, they are as they were.
    ///
    /// # Errors
    /// Where the kernel knows no such feature, keeps it fixed, or does not apply it.
    pub fn set_features(
        &mut self,
        role: Role,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<KeptFeatures, BuildError> {
        let mut kept = KeptFeatures {
            role,
            states: Vec::new(),
        };
        for number in 0..self.count(role) {
            let set = self.device(role, number).and_then(|device| {
                let before = device.changeable(wanted)?;
                // From here on it has to be put back, whatever becomes of it.
                kept.states.push(before);
                device.set(wanted)
            });
            if let Err(error) = set.and_then(|()| self.follow_underlay()) {
                self.restore_features(&kept)?;
                return Err(error);
            }
        }
        Ok(kept)
    }

    /// Puts features back as they were on every device, and reads them back. All are tried.
    ///
    /// # Errors
    /// The first of where the kernel refuses, or does not apply it.
    pub fn restore_features(&mut self, kept: &KeptFeatures) -> Result<(), BuildError> {
        let mut restored = Ok(());
        for (number, state) in kept.states.iter().enumerate() {
            let device = self.device(kept.role, number);
            restored = restored.and(device.and_then(|device| device.put_back(state)));
        }
        restored.and_then(|()| self.follow_underlay())
    }

    /// The devices that `last` stands for as they are now: the same features, and those of `also`.
    ///
    /// # Errors
    /// Where one cannot be read, or where a guest's is unlike the first guest's.
    pub fn read_again(
        &mut self,
        last: &DeviceState,
        also: &BTreeMap<String, bool>,
    ) -> Result<DeviceState, BuildError> {
        let mut first = None;
        for number in 0..self.count(last.role) {
            let FeatureTarget {
                name,
                place,
                netlink,
                ethtool,
            } = self.device(last.role, number)?;
            // A tunnel may be of two devices, of which each was read by its own name; a switch gives its own names.
            let name = if matches!(last.role, Role::Tunnel | Role::Bridge) {
                last.name.as_str()
            } else {
                name
            };
            let step = || format!("reading {place} back");
            let found = ethtool.features(name).step(step)?;
            let mtu = device::read(netlink, name).step(step)?.mtu;
            // One that is fixed at off is not among those found.
            let state = |feature: &String| found.get(feature).is_some_and(|state| state.active);
            let features = last.features.keys().chain(also.keys());
            let now = DeviceState {
                mtu,
                features: features.map(|name| (name.clone(), state(name))).collect(),
                count: 1,
                ..last.clone()
            };
            count_alike(&mut first, now, &place)?;
        }
        Ok(first.unwrap_or_else(|| last.clone()))
    }

    /// How many devices a host and its guests have in a role.
    fn count(&self, role: Role) -> usize {
        match role {
            Role::Guest | Role::GuestPort => self.guests.len(),
            Role::Underlay | Role::Tunnel | Role::Bridge => 1,
        }
    }

    fn device(&mut self, role: Role, number: usize) -> Result<FeatureTarget<'_>, BuildError> {
        let several = self.guests.len() > 1;
        let name = match role {
            Role::Underlay => UNDERLAY_DEVICE,
            Role::Tunnel => self.switched.tunnel.as_deref().unwrap_or(TUNNEL),
            Role::Bridge => self.switched.underlay_bridge.as_deref().unwrap_or(BRIDGE),
            Role::GuestPort | Role::Guest => {
                let guest = self.guests.get_mut(number);
                let guest = guest
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
                    .step(|| format!("looking for guest {number}"))?;
                if role == Role::Guest {
                    let place = if several {
                        format!("`{GUEST_DEVICE}` behind `{}`", guest.port)
                    } else {
                        format!("`{GUEST_DEVICE}`")
                    };
                    return Ok(FeatureTarget {
                        name: GUEST_DEVICE,
                        place,
                        netlink: &mut guest.netlink,
                        ethtool: &guest.ethtool,
                    });
                }
                &guest.port
            }
        };
        Ok(FeatureTarget {
            name,
            place: format!("`{name}`"),
            netlink: &mut self.netlink,
            ethtool: &self.ethtool,
        })
    }
}

impl FeatureTarget<'_> {
    /// Its changeable features as they are, where all of those wanted can be had.
    pub(crate) fn changeable(
        &self,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<BTreeMap<String, bool>, BuildError> {
        let Self {
            name,
            place,
            ethtool,
            ..
        } = self;
        let step = || format!("setting features of {place}");
        let before = ethtool.features(name).step(step)?;
        for (feature, on) in wanted {
            let problem = match before.get(feature) {
                Some(state) if state.changeable || state.active == *on => continue,
                Some(_) => "is fixed at on",
                None if ethtool.knows(name, feature).step(step)? => "is fixed at off",
                None => "is not known to this kernel",
            };
            return Err(BuildError::Feature {
                feature: feature.clone(),
                device: place.clone(),
                problem,
            });
        }
        Ok(before
            .into_iter()
            .filter(|(_, state)| state.changeable)
            .map(|(feature, state)| (feature, state.active))
            .collect())
    }

    pub(crate) fn set(&self, wanted: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.ethtool
            .set_features(self.name, wanted)
            .step(|| format!("setting features of {}", self.place))?;
        self.has(wanted)
    }

    pub(crate) fn put_back(&self, state: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.ethtool
            .set_features(self.name, state)
            .step(|| format!("putting the features of {} back", self.place))?;
        self.has(state)
    }

    fn has(&self, wanted: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        let found = self
            .ethtool
            .features(self.name)
            .step(|| format!("reading the features of {} back", self.place))?;
        let word = |on| if on { "on" } else { "off" };
        for (feature, on) in wanted {
            let active = found.get(feature).is_some_and(|state| state.active);
            same(
                || format!("{feature} of {}", self.place),
                &word(*on),
                &word(active),
            )?;
        }
        Ok(())
    }
}
