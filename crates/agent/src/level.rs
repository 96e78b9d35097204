//! Settings of a cell on one lab host: applied after [`wirecost_netbuild::LabHost::adapt`], read back, undone.

use std::collections::BTreeMap;

use wirecost_model::sample::DeviceState;
use wirecost_model::vary::Setting;
use wirecost_netbuild::{LabHost, SavedFeatures};

use crate::error::{AgentError, Context, Result};
use crate::guards::{GuardNamespaces, SettingsGuards};

/// The settings that are applied on a lab host.
#[derive(Debug, Default)]
pub(crate) struct AppliedLevel {
    features: Vec<SavedFeatures>,
}

impl AppliedLevel {
    /// Applies settings in order, and returns the devices of the path as read back afterwards. If one fails, all are
    /// undone.
    ///
    /// # Errors
    /// A setting cannot be applied; the message names place and level.
    pub(crate) fn apply(
        &mut self,
        host: &mut LabHost,
        guards: &SettingsGuards,
        settings: &[Setting],
        devices: &[DeviceState],
    ) -> Result<Vec<DeviceState>> {
        let applied = settings
            .iter()
            .try_for_each(|setting| self.one(host, guards, setting))
            .and_then(|()| read_again(host, settings, devices));
        applied.map_err(|error| match self.undo(host, guards) {
            Ok(()) => error,
            Err(also) => error.and(also),
        })
    }

    fn one(
        &mut self,
        host: &mut LabHost,
        guards: &SettingsGuards,
        setting: &Setting,
    ) -> Result<()> {
        for (role, features) in &setting.ethtool {
            let kept = host.set_features(*role, features);
            let (side, Setting { factor, label, .. }) = (host.side(), setting);
            let step = format!("host {side}: the level `{label}` of `{factor}`");
            self.features.push(kept.context(step)?);
        }
        guards.apply(&GuardNamespaces::of_lab(host), setting)
    }

    /// Undoes everything, in reverse order. A failure does not stop the rest; what failed is tried again by the next
    /// call.
    ///
    /// # Errors
    /// Something could not be undone; the message says what.
    pub(crate) fn undo(&mut self, host: &mut LabHost, guards: &SettingsGuards) -> Result<()> {
        let mut failed: Vec<AgentError> = guards.undo().err().into_iter().collect();
        let mut left = Vec::new();
        while let Some(kept) = self.features.pop() {
            let restored = host.restore_features(&kept);
            if let Err(error) = restored.context(format!("host {}", host.side())) {
                failed.push(error);
                left.insert(0, kept);
            }
        }
        self.features = left;
        AgentError::all(failed)
    }
}

fn read_again(
    host: &mut LabHost,
    settings: &[Setting],
    devices: &[DeviceState],
) -> Result<Vec<DeviceState>> {
    let again = devices.iter().map(|device| {
        let of_role = |setting: &Setting| setting.ethtool.get(&device.role).cloned();
        let also: BTreeMap<String, bool> = settings.iter().filter_map(of_role).flatten().collect();
        host.read_again(device, &also)
    });
    let again: Result<_, _> = again.collect();
    again.context(format!("host {}", host.side()))
}
