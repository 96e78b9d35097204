//! Features of a device (`ethtool -k`), set and read back.

use std::collections::BTreeMap;

use wirecost_sys::ethtool::Ethtool;

use crate::error::{BuildError, Context, same};

/// Sets a device's features, and returns those of them that the device has, as they were read back.
pub(crate) fn set_features(
    ethtool: &Ethtool,
    name: &str,
    wanted: BTreeMap<String, bool>,
    step: &impl Fn() -> String,
) -> Result<BTreeMap<String, bool>, BuildError> {
    ethtool.set_features(name, &wanted).with_context(step)?;
    let found = ethtool.features(name).with_context(step)?;
    let mut features = BTreeMap::new();
    for (feature, on) in wanted {
        // A feature that the device does not have neither helps nor hides anything.
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
    Ok(features)
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}
