//! The settings of a cell on one lab host: put in force over what [`wirecost_netbuild::LabHost::adapt`] has
//! set, read back, undone.

use std::collections::BTreeMap;

use wirecost_model::sample::DeviceState;
use wirecost_model::vary::Setting;
use wirecost_netbuild::{KeptFeatures, LabHost};

use crate::keepers::Keepers;

/// What is in force on a lab host.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    features: Vec<KeptFeatures>,
}

impl InForce {
    /// Puts settings in force, in their order, and returns the devices of the path as they are then.
    /// Where one fails, all are undone.
    ///
    /// # Errors
    /// In words, with place and level.
    pub(crate) fn put(
        &mut self,
        host: &mut LabHost,
        keepers: &Keepers,
        settings: &[Setting],
        devices: &[DeviceState],
    ) -> Result<Vec<DeviceState>, String> {
        let put = settings
            .iter()
            .try_for_each(|setting| self.one(host, keepers, setting))
            .and_then(|()| read_again(host, settings, devices));
        put.map_err(|error| match self.undo(host, keepers) {
            Ok(()) => error,
            Err(also) => format!("{error}; {also}"),
        })
    }

    fn one(
        &mut self,
        host: &mut LabHost,
        keepers: &Keepers,
        setting: &Setting,
    ) -> Result<(), String> {
        for (role, features) in &setting.ethtool {
            let kept = host.set_features(*role, features);
            self.features.push(kept.map_err(|error| {
                let (side, Setting { factor, label, .. }) = (host.side(), setting);
                format!("host {side}: the level `{label}` of `{factor}`: {error}")
            })?);
        }
        keepers.put(host, setting)
    }

    /// Undoes everything, the last first. All of it is tried.
    ///
    /// # Errors
    /// What could not be undone, in words.
    pub(crate) fn undo(&mut self, host: &mut LabHost, keepers: &Keepers) -> Result<(), String> {
        let mut failed: Vec<String> = keepers.undo().err().into_iter().collect();
        while let Some(kept) = self.features.pop() {
            if let Err(error) = host.restore_features(&kept) {
                failed.push(format!("host {}: {error}", host.side()));
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("; "))
        }
    }
}

fn read_again(
    host: &mut LabHost,
    settings: &[Setting],
    devices: &[DeviceState],
) -> Result<Vec<DeviceState>, String> {
    let again = devices.iter().map(|device| {
        let of_role = |setting: &Setting| setting.ethtool.get(&device.role).cloned();
        let also: BTreeMap<String, bool> = settings.iter().filter_map(of_role).flatten().collect();
        host.read_again(device, &also)
    });
    again
        .collect::<Result<_, _>>()
        .map_err(|error| format!("host {}: {error}", host.side()))
}
