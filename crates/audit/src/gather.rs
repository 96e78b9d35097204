//! Reads a host without changing it: netlink dumps and lookups, ethtool's getters, files, and programs that list
//! firewall rules.

mod attributes;
mod firewall;
mod ipv6;
mod links;
mod lookup;
mod namespace_links;
mod namespaces;
mod open_vswitch;
mod ovn;
mod ovsdb;
mod queues;
mod reader;
mod routes;
mod rules;
mod tunnels;

use std::fs;
use std::io;

use wirecost_sys::namespace::Netns;

use crate::snapshot::{HostStack, NetnsEntry, ReadFailure, VERSION};
pub use lookup::{egress_route, neighbour, source_ports};
use namespace_links::{follow_links, link_peers, route_from_sockets};
use reader::{inside, read};
pub use routes::reads_route;
pub use rules::firewall_drops;

/// Upper bound on the namespaces whose firewall rules are listed: each takes a run of nft and of iptables-save.
const MOST_RULE_SETS: usize = 4;

/// Reads the calling thread's namespace, and those that its veths and tunnel sockets lead to, as far as this process
/// may enter them. `host` is the host's name in the document.
///
/// # Errors
/// Where not even the devices can be listed. Everything else that cannot be read is listed in [`HostStack::unread`].
pub fn gather(host: &str) -> io::Result<HostStack> {
    let mut unread = Vec::new();
    let own = read(
        Netns::current()?,
        ("host", NetnsEntry::Here),
        true,
        &mut unread,
    )?;
    let mut readings = vec![own];
    let mut at = 0;
    while at < readings.len() {
        follow_links(at, &mut readings, &mut unread);
        at += 1;
    }
    link_peers(&mut readings);
    route_from_sockets(&mut readings);
    for (at, reading) in readings.iter_mut().enumerate().take(MOST_RULE_SETS) {
        let forwards = reading.namespace.number("ipv4.ip_forward") == Some(1);
        if at > 0 && !forwards {
            continue;
        }
        match inside(&reading.netns, reading.own, firewall::read).flatten() {
            Ok(clamps) => reading.namespace.mss_clamps = Some(clamps),
            Err(error) => unread.push(ReadFailure {
                what: format!("rules that change TCP's MSS ({})", reading.namespace.label),
                why: error.to_string(),
            }),
        }
    }
    let ovs = open_vswitch::read(&mut readings[0], &mut unread);
    Ok(HostStack {
        version: VERSION,
        host: host.to_owned(),
        namespaces: readings
            .into_iter()
            .map(|reading| reading.namespace)
            .collect(),
        ovs,
        cpus: online(),
        unread,
    })
}

/// Number of online processors of the machine, from a list such as `0-7,9`; 0 where /sys cannot be read. It does not
/// depend on the processors that this process may use.
fn online() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    text.trim().split(',').filter_map(count).sum()
}
