//! IPv6 MTUs of devices: a router advertisement or a sysctl sets them, and the device's MTU does not show them.

use std::collections::BTreeMap;
use std::fs;

const CONF: &str = "/proc/sys/net/ipv6/conf";

/// IPv6 MTU of one device of the calling thread's namespace, bytes.
pub(super) fn mtu(device: &str) -> Option<u32> {
    let text = fs::read_to_string(format!("{CONF}/{device}/mtu")).ok()?;
    text.trim().parse().ok()
}

/// IPv6 MTUs of all devices of the calling thread's namespace, bytes, by name.
pub(super) fn mtus() -> BTreeMap<String, u32> {
    let entries = fs::read_dir(CONF).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let devices = names.filter(|name| name != "all" && name != "default");
    devices
        .filter_map(|name| mtu(&name).map(|mtu| (name, mtu)))
        .collect()
}
