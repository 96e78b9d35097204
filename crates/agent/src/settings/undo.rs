//! One step back: what a journal keeps, and what is done to undo a change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirecost_model::vary::DeviceSetting;

/// One step back. It is noted before the step it undoes is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undo {
    /// "the level `x` of `y`".
    pub(super) of: String,
    pub(super) what: What,
    /// The device that it is of, where that is not the one with the measured address
    /// ([`wirecost_model::vary::Setting::device_name`]).
    #[serde(default)]
    pub(super) device: Option<String>,
}

/// What is put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum What {
    Sysctl { name: String, was: String },
    Features(BTreeMap<String, bool>),
    Device { setting: DeviceSetting, was: String },
    Command(String),
}

impl Undo {
    /// In words.
    pub(super) fn words(&self) -> String {
        let Self { of, what, device } = self;
        let device = device.as_ref().map(|device| format!(" of {device}"));
        let device = device.unwrap_or_default();
        match what {
            What::Sysctl { name, was } => format!("{of}: {name} = {was}"),
            What::Features(_) if device.is_empty() => format!("{of}: features of the device"),
            What::Features(_) => format!("{of}: features{device}"),
            What::Device { setting, was } => format!("{of}: {}{device} = {was}", setting.key()),
            What::Command(command) => format!("{of}: {}", command.trim()),
        }
    }
}
