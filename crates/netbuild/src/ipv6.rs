//! IPv6 only where the network uses it: a device with IPv6 sends by itself (router solicitations, multicast reports,
//! link-local addresses), and every frame on the path is counted.

use std::fs;

use crate::error::{BuildError, Context, same};

/// Settings that a device takes over when it is created, in /proc/sys/net/ipv6/conf/default
/// (Documentation/networking/ip-sysctl.rst): no address but the one it is given, and no router solicitations.
const NO_AUTOCONF: [(&str, &str); 5] = [
    ("accept_ra", "0"),
    ("autoconf", "0"),
    ("router_solicitations", "0"),
    // 1 is IN6_ADDR_GEN_MODE_NONE: no link-local address. Neighbours are found from the global one.
    ("addr_gen_mode", "1"),
    ("accept_dad", "0"),
];

/// Disables IPv6 in the calling thread's namespace, also for devices created later. Where [`enable`] enables it again,
/// these neither configure addresses nor solicit routers by themselves.
pub(crate) fn disable() -> Result<(), BuildError> {
    for scope in ["all", "default"] {
        let path = key(scope, "disable_ipv6");
        if fs::exists(&path).unwrap_or(false) {
            write(&path, "1")?;
        }
    }
    for (name, value) in NO_AUTOCONF {
        let path = key("default", name);
        if fs::exists(&path).unwrap_or(false) {
            write(&path, value)?;
        }
    }
    Ok(())
}

/// Enables IPv6 for one device of the calling thread's namespace.
pub(crate) fn enable(device: &str) -> Result<(), BuildError> {
    let path = key(device, "disable_ipv6");
    write(&path, "0")?;
    let found = fs::read_to_string(&path).with_context(|| format!("reading {path} back"))?;
    same(|| path.clone(), &"0", &found.trim())
}

fn key(scope: &str, name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{scope}/{name}")
}

fn write(path: &str, value: &str) -> Result<(), BuildError> {
    fs::write(path, value).with_context(|| format!("writing {value} to {path}"))
}
