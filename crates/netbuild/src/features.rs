//! Single device features beside the offload profile: set, read back, and put back as they were.

use std::collections::BTreeMap;

use wirecost_model::offload::Role;
use wirecost_model::sample::DeviceState;
use wirecost_sys::ethtool::Ethtool;

use crate::device;
use crate::error::{BuildError, Step, same};
use crate::host::LabHost;
use crate::netlink::Netlink;
use crate::spec::{BRIDGE, GUEST_DEVICE, GUEST_PORT, TUNNEL, UNDERLAY_DEVICE};

/// A device's changeable features as they were before some were set: one may drag others along.
#[derive(Debug)]
pub struct KeptFeatures {
    role: Role,
    state: BTreeMap<String, bool>,
}

impl LabHost {
    /// Sets features of one device, by the kernel's names, and reads them back. Returns how the device
    /// was before, for [`LabHost::restore_features`]; where it fails, it is as it was.
    ///
    /// # Errors
    /// Where the kernel knows no such feature, keeps it fixed, or does not do as it was told.
    pub fn set_features(
        &mut self,
        role: Role,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<KeptFeatures, BuildError> {
        let (name, _, ethtool) = self.device(role);
        let step = || format!("setting features of `{name}`");
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
                device: name.to_owned(),
                problem,
            });
        }
        let kept = KeptFeatures {
            role,
            state: before
                .into_iter()
                .filter(|(_, state)| state.changeable)
                .map(|(feature, state)| (feature, state.active))
                .collect(),
        };
        let set = ethtool
            .set_features(name, wanted)
            .step(step)
            .and_then(|()| matches(ethtool, name, wanted));
        if let Err(error) = set {
            self.restore_features(&kept)?;
            return Err(error);
        }
        Ok(kept)
    }

    /// Puts a device's features back as they were, and reads them back.
    ///
    /// # Errors
    /// Where the kernel refuses, or does not do as it was told.
    pub fn restore_features(&mut self, kept: &KeptFeatures) -> Result<(), BuildError> {
        let (name, _, ethtool) = self.device(kept.role);
        ethtool
            .set_features(name, &kept.state)
            .step(|| format!("putting the features of `{name}` back"))?;
        matches(ethtool, name, &kept.state)
    }

    /// A device as it is now: the same features as in `last`, and those of `also`.
    pub fn read_again(
        &mut self,
        last: &DeviceState,
        also: &BTreeMap<String, bool>,
    ) -> Result<DeviceState, BuildError> {
        let (name, netlink, ethtool) = self.device(last.role);
        let step = || format!("reading `{name}` back");
        let found = ethtool.features(name).step(step)?;
        let mtu = device::read(netlink, name).step(step)?.mtu;
        // One that is fixed at off is not among those found.
        let state = |feature: &String| found.get(feature).is_some_and(|state| state.active);
        let features = last.features.keys().chain(also.keys());
        Ok(DeviceState {
            mtu,
            features: features.map(|name| (name.clone(), state(name))).collect(),
            ..last.clone()
        })
    }

    fn device(&mut self, role: Role) -> (&'static str, &mut Netlink, &Ethtool) {
        let name = match role {
            Role::Underlay => UNDERLAY_DEVICE,
            Role::Tunnel => TUNNEL,
            Role::GuestPort => GUEST_PORT,
            Role::Bridge => BRIDGE,
            Role::Guest => {
                return (GUEST_DEVICE, &mut self.guest_netlink, &self.guest_ethtool);
            }
        };
        (name, &mut self.netlink, &self.ethtool)
    }
}

fn matches(
    ethtool: &Ethtool,
    name: &str,
    wanted: &BTreeMap<String, bool>,
) -> Result<(), BuildError> {
    let found = ethtool
        .features(name)
        .step(|| format!("reading the features of `{name}` back"))?;
    let word = |on| if on { "on" } else { "off" };
    for (feature, on) in wanted {
        let active = found.get(feature).is_some_and(|state| state.active);
        same(
            || format!("{feature} of `{name}`"),
            &word(*on),
            &word(active),
        )?;
    }
    Ok(())
}
