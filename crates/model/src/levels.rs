//! Levels of factors.

use std::collections::BTreeMap;

/// Levels by factor key, as labels: `{guest_mtu: 1500, encapsulation: vxlan}`.
pub type Levels = BTreeMap<String, String>;
