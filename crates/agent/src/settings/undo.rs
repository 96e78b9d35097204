//! Undo steps, which a journal stores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirecost_model::vary::DeviceSetting;
use wirecost_netbuild::{BuildError, ExistingDevice};

/// How to undo one change. It is recorded before the change is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undo {
    /// The level that made the change: "the level `x` of `y`".
    pub(super) of: String,
    pub(super) what: UndoAction,
    /// Name of the changed device, where that is not the one with the measured address
    /// ([`wirecost_model::vary::Setting::device_name`]).
    #[serde(default)]
    pub(super) device: Option<String>,
}

/// The setting to restore, with its earlier value, or the command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum UndoAction {
    Sysctl {
        name: String,
        was: String,
    },
    Features(BTreeMap<String, bool>),
    Device {
        setting: DeviceSetting,
        was: String,
    },
    /// Steering of each queue of a device ([`ExistingDevice::queue_files`]).
    QueueFiles(BTreeMap<String, String>),
    Command(String),
}

impl UndoAction {
    /// The steps that undo a change of a device setting, the last of them to be undone first. Steering is lost with the
    /// queues and restored after them.
    pub(super) fn before_change(
        device: &mut ExistingDevice,
        setting: DeviceSetting,
    ) -> Result<Vec<Self>, BuildError> {
        let was = device.setting(setting)?;
        let mut steps = Vec::new();
        if setting == DeviceSetting::Queues {
            steps.push(Self::QueueFiles(device.queue_files()?));
        }
        steps.push(Self::Device { setting, was });
        Ok(steps)
    }
}

impl Undo {
    /// Where the step is placed among those that were noted before it; the last is undone first. A qdisc that the
    /// kernel attaches by itself takes its kind from a sysctl, its options from the device's MTU and its children from
    /// the queues, which are restored before it. `own`: the device with the measured address.
    pub(super) fn place(&self, noted: &[Self], own: Option<&str>) -> usize {
        let is_own = match &self.what {
            UndoAction::Device { setting, was } => {
                *setting == DeviceSetting::Qdisc && was.starts_with("0: ")
            }
            _ => false,
        };
        let device = self.device.as_deref().or(own);
        let goes_first = |step: &Self| match &step.what {
            UndoAction::Device {
                setting: DeviceSetting::Mtu | DeviceSetting::Queues,
                ..
            } => step.device.as_deref().or(own) == device,
            UndoAction::Sysctl { name, .. } => name.replace('/', ".") == "net.core.default_qdisc",
            _ => false,
        };
        let before = noted.iter().position(goes_first);
        before.filter(|_| is_own).unwrap_or(noted.len())
    }

    /// The step as text.
    pub(super) fn words(&self) -> String {
        let Self { of, what, device } = self;
        let device = device.as_ref().map(|device| format!(" of {device}"));
        let device = device.unwrap_or_default();
        match what {
            UndoAction::Sysctl { name, was } => format!("{of}: {name} = {was}"),
            UndoAction::Features(_) if device.is_empty() => format!("{of}: features of the device"),
            UndoAction::Features(_) => format!("{of}: features{device}"),
            UndoAction::Device { setting, was } => {
                format!("{of}: {}{device} = {was}", setting.key())
            }
            UndoAction::QueueFiles(_) => format!("{of}: steering of each queue{device}"),
            UndoAction::Command(command) => format!("{of}: {}", command.trim()),
        }
    }
}
