//! Open vSwitch of a host, where its bridges are in the host's own namespace.

use super::reader::NamespaceReader;
use super::{ovn, ovsdb, routes};
use crate::snapshot::{Ovs, ReadFailure};

/// Reads Open vSwitch's database. `None` where there is no server, or its bridges are in another namespace.
pub(super) fn read(own: &mut NamespaceReader, unread: &mut Vec<ReadFailure>) -> Option<Ovs> {
    let socket = ovsdb::socket()?;
    let mut ovs = match ovsdb::read(&socket) {
        Ok(ovs) => ovs,
        Err(error) => {
            unread.push(ReadFailure {
                what: format!("Open vSwitch's database ({})", socket.display()),
                why: format!("{error}; root may read it"),
            });
            return None;
        }
    };
    let is_here = |name: &str| {
        own.namespace
            .devices
            .iter()
            .any(|device| device.name == name)
    };
    if !ovs.bridges.is_empty() && !ovs.bridges.iter().any(|bridge| is_here(&bridge.name)) {
        unread.push(ReadFailure {
            what: "Open vSwitch".into(),
            why: "it runs, but its bridges are in another namespace".into(),
        });
        return None;
    }
    if ovs.is_ovn() {
        ovn::read(&mut ovs, unread);
    }
    for bridge in &mut ovs.bridges {
        for interface in &mut bridge.interfaces {
            let remote = interface.options.get("remote_ip");
            interface.remote = remote
                .and_then(|remote| remote.parse().ok())
                .map(|address| routes::towards(&mut own.netlink, address));
        }
    }
    Some(ovs)
}
