//! IPv6 where the network has it, and nowhere else: a device with it talks by itself (router
//! solicitations, multicast reports, link-local addresses), and every frame on the path is counted.

use std::fs;

use crate::error::{BuildError, Step, same};

/// What a device takes up when it is made, in /proc/sys/net/ipv6/conf/default
/// (Documentation/networking/ip-sysctl.rst): no address but the one it is given, and no word to routers.
const SILENT: [(&str, &str); 5] = [
    ("accept_ra", "0"),
    ("autoconf", "0"),
    ("router_solicitations", "0"),
    // 1 is IN6_ADDR_GEN_MODE_NONE: no link-local address. Neighbours are found from the global one.
    ("addr_gen_mode", "1"),
    ("accept_dad", "0"),
];

/// Switches IPv6 off in the calling thread's namespace, for devices to come too, and sets those up to
/// be silent where [`allow`] switches it on again. A kernel without IPv6 is silent already.
pub(crate) fn quiet() -> Result<(), BuildError> {
    for scope in ["all", "default"] {
        let path = key(scope, "disable_ipv6");
        if fs::exists(&path).unwrap_or(false) {
            write(&path, "1")?;
        }
    }
    for (name, value) in SILENT {
        let path = key("default", name);
        if fs::exists(&path).unwrap_or(false) {
            write(&path, value)?;
        }
    }
    Ok(())
}

/// Switches IPv6 on for one device of the calling thread's namespace.
pub(crate) fn allow(device: &str) -> Result<(), BuildError> {
    let path = key(device, "disable_ipv6");
    write(&path, "0")?;
    let found = fs::read_to_string(&path).step(|| format!("reading {path} back"))?;
    same(|| path.clone(), &"0", &found.trim())
}

fn key(scope: &str, name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{scope}/{name}")
}

fn write(path: &str, value: &str) -> Result<(), BuildError> {
    fs::write(path, value).step(|| format!("writing {value} to {path}"))
}
