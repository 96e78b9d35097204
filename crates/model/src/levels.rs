//! Levels of factors.

use std::collections::BTreeMap;

/// The label of a level for each factor key: `{guest_mtu: 1500, encapsulation: vxlan}`.
pub type Levels = BTreeMap<String, String>;
