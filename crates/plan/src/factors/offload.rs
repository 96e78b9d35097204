//! Levels of `offload`: a profile, or a profile with single switches changed.

use std::collections::BTreeMap;

use wirecost_model::offload::{Feature, Offload, Profile};

use crate::keys::{self, Key};
use crate::node::Value;
use crate::read::{Entry, Fields, Level, Levels, Reader};
use crate::values::{switch, word};

/// Reads the levels. Two that set the same switches everywhere are the same level, a fault, however they are written.
pub(super) fn levels(reader: &mut Reader, root: &Fields<'_>) -> Levels<Offload> {
    let mut all = super::levels(reader, root, &keys::OFFLOAD, read, Offload::to_string);
    let mut kept = Vec::<Level<Offload>>::new();
    for level in all.levels {
        let same = kept.iter().find(|kept| same(&kept.value, &level.value));
        if let Some(first) = same {
            let message = format!(
                "the level `{}` of `offload` switches the same things as `{}`",
                level.label, first.label
            );
            let help = "remove one of them: a level is one side of a comparison";
            reader.fault(level.span, &level.path, message, "second time", help);
        } else {
            kept.push(level);
        }
    }
    all.levels = kept;
    all
}

fn same(one: &Offload, other: &Offload) -> bool {
    [false, true]
        .into_iter()
        .all(|tunnelled| one.switches(tunnelled) == other.switches(tunnelled))
}

fn profile(word: &str) -> Profile {
    match word {
        "none" => Profile::None,
        "plain" => Profile::Plain,
        _ => Profile::Tunnel,
    }
}

/// The plan's key of each switch.
const SWITCHES: [(&Key, Feature); 5] = [
    (&keys::OFFLOAD_TSO, Feature::Tso),
    (&keys::OFFLOAD_GSO, Feature::Gso),
    (&keys::OFFLOAD_GRO, Feature::Gro),
    (&keys::OFFLOAD_TUNNEL, Feature::TunnelSegmentation),
    (&keys::OFFLOAD_CHECKSUM, Feature::Checksum),
];

pub(super) fn read(reader: &mut Reader, entry: &Entry<'_>) -> Option<Offload> {
    if !matches!(entry.node.value, Value::Map(_)) {
        return word(reader, entry).map(|word| Offload::profile(profile(word)));
    }
    let faults = reader.faults.len();
    let fields = Fields::open(reader, entry.key.path, &entry.path, &entry.node)?;
    let from = fields
        .get(reader, &keys::OFFLOAD_PROFILE)
        .and_then(|entry| word(reader, &entry));
    let mut set = BTreeMap::new();
    for (key, feature) in SWITCHES {
        let Some(entry) = fields.get(reader, key) else {
            continue;
        };
        let on = match feature {
            Feature::Checksum => word(reader, &entry).map(|word| word == "hardware"),
            _ => switch(reader, &entry),
        };
        set.extend(on.map(|on| (feature, on)));
    }
    let profile = profile(from?);
    (reader.faults.len() == faults).then_some(Offload { profile, set })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_has_its_key_in_the_table() {
        for (key, feature) in SWITCHES {
            assert_eq!(key.name(), feature.key());
        }
        for feature in Feature::ALL {
            assert!(SWITCHES.iter().any(|(_, known)| *known == feature));
        }
    }
}
