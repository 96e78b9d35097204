//! Single device features, in addition to the offload profile: set, read back, and restored.

use std::collections::BTreeMap;
use std::io;

use wirecost_model::offload::Role;
use wirecost_model::sample::DeviceState;
use wirecost_sys::ethtool::{Ethtool, FeatureState};

use crate::adapt::require_same_state;
use crate::device;
use crate::error::{BuildError, Context, same};
use crate::host::LabHost;
use crate::names::{BRIDGE, GUEST_DEVICE, TUNNEL, UNDERLAY_DEVICE};
use crate::netlink::Netlink;

/// The changeable features of every device in a role as they were before some were set: setting one may change others.
#[derive(Debug)]
pub struct SavedFeatures {
    role: Role,
    /// One entry for each guest; a single entry for a device that a host has once.
    states: Vec<BTreeMap<String, bool>>,
}

/// One device of a host or of its guests.
pub(crate) struct FeatureTarget<'a> {
    pub(crate) name: &'a str,
    /// The device as messages name it: `eth0`, or `eth0` behind a host's port where there are several guests.
    pub(crate) place: String,
    pub(crate) netlink: &'a mut Netlink,
    pub(crate) ethtool: &'a Ethtool,
}

impl LabHost {
    /// Sets features, by the kernel's names, of every device in a role (every guest's where guests have it), and reads
    /// them back. Returns the state before, for [`LabHost::restore_features`]; on failure that state is restored.
    ///
    /// # Errors
    /// Where the kernel does not know a feature, fixes it, or does not apply it.
    pub fn set_features(
        &mut self,
        role: Role,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<SavedFeatures, BuildError> {
        let mut kept = SavedFeatures {
            role,
            states: Vec::new(),
        };
        for number in 0..self.count(role) {
            let set = self.device(role, number).and_then(|device| {
                let before = device.changeable(wanted)?;
                // From here on the device has to be restored, whether setting its features succeeds or not.
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

    /// Restores features on every device, and reads them back. All devices are tried.
    ///
    /// # Errors
    /// The first error: the kernel refuses a feature, or does not apply it.
    pub fn restore_features(&mut self, kept: &SavedFeatures) -> Result<(), BuildError> {
        let mut restored = Ok(());
        for (number, state) in kept.states.iter().enumerate() {
            let device = self.device(kept.role, number);
            restored = restored.and(device.and_then(|device| device.put_back(state)));
        }
        restored.and_then(|()| self.follow_underlay())
    }

    /// Reads the devices that `last` stands for again: the same features, and those in `also`.
    ///
    /// # Errors
    /// Where a device cannot be read, or a guest's differs from the first guest's.
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
            // A tunnel may consist of two devices, each read by its own name; a switch has names of its own.
            let name = if matches!(last.role, Role::Tunnel | Role::Bridge) {
                last.name.as_str()
            } else {
                name
            };
            let step = || format!("reading {place} back");
            let found = ethtool.features(name).with_context(step)?;
            let mtu = device::read(netlink, name).with_context(step)?.mtu;
            // A feature that is fixed at off is not among those found.
            let state = |feature: &String| found.get(feature).is_some_and(|state| state.active);
            let features = last.features.keys().chain(also.keys());
            let now = DeviceState {
                mtu,
                features: features.map(|name| (name.clone(), state(name))).collect(),
                count: 1,
                ..last.clone()
            };
            require_same_state(&mut first, now, &place)?;
        }
        Ok(first.unwrap_or_else(|| last.clone()))
    }

    /// Number of devices that a host and its guests have in a role.
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
            Role::Tunnel => self.switch_devices.tunnel.as_deref().unwrap_or(TUNNEL),
            Role::Bridge => self
                .switch_devices
                .underlay_bridge
                .as_deref()
                .unwrap_or(BRIDGE),
            Role::GuestPort | Role::Guest => {
                let guest = self.guests.get_mut(number);
                let guest = guest
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
                    .with_context(|| format!("looking for guest {number}"))?;
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
    /// The device's changeable features with their state; an error where one in `wanted` cannot be set to its value.
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
        let before = ethtool.features(name).with_context(step)?;
        for (feature, on) in wanted {
            let problem = match before.get(feature) {
                Some(state) if state.changeable || state.active == *on => continue,
                Some(_) => "is fixed at on",
                None if ethtool.knows(name, feature).with_context(step)? => "is fixed at off",
                None => "is not known to this kernel",
            };
            return Err(BuildError::Feature {
                feature: feature.clone(),
                device: place.clone(),
                problem,
            });
        }
        // What is off only while another feature is (`off [requested on]`) follows that one. To set it to off would end
        // the request: it is left alone, or requested again where `wanted` has it.
        Ok(before
            .into_iter()
            .filter(|(feature, state)| {
                let is_as_requested = state.active == state.requested;
                state.changeable && (is_as_requested || wanted.contains_key(feature))
            })
            .map(|(feature, state)| (feature, state.requested))
            .collect())
    }

    pub(crate) fn set(&self, wanted: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.ethtool
            .set_features(self.name, wanted)
            .with_context(|| format!("setting features of {}", self.place))?;
        self.has(wanted, |state, on| state.active == on)
    }

    pub(crate) fn put_back(&self, state: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.ethtool
            .set_features(self.name, state)
            .with_context(|| format!("putting the features of {} back", self.place))?;
        // One that waits for another feature was not active before, either.
        self.has(state, |state, on| {
            state.active == on || state.requested == on
        })
    }

    fn has(
        &self,
        wanted: &BTreeMap<String, bool>,
        is: impl Fn(&FeatureState, bool) -> bool,
    ) -> Result<(), BuildError> {
        let found = self
            .ethtool
            .features(self.name)
            .with_context(|| format!("reading the features of {} back", self.place))?;
        let word = |on| if on { "on" } else { "off" };
        for (feature, on) in wanted {
            let as_wanted = found.get(feature).map_or(!on, |state| is(state, *on));
            same(
                || format!("{feature} of {}", self.place),
                &word(*on),
                &word(*on == as_wanted),
            )?;
        }
        Ok(())
    }
}
