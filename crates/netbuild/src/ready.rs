//! Waits until a path can be used. The kernel acknowledges a device or an address before it works completely: links
//! come up (net/core/link_watch.c), and an IPv6 address gets its solicited-node group and its local route
//! (net/ipv6/addrconf.c, `addrconf_dad_work`), in work queues of their own. Packets that arrive before that are
//! dropped, and a host that has asked for a neighbour asks again only a second later.

use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::device;
use crate::error::{BuildError, Context};
use crate::names;
use crate::netlink::Netlink;

/// Time limit, less than the controller waits; work queues are late by milliseconds.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until a device's link is operationally up, its peer's included, and its queue takes packets.
pub(crate) fn link(netlink: &mut Netlink, name: &str) -> Result<(), BuildError> {
    until(
        || Ok(device::read(netlink, name)?.carries),
        || format!("waiting for the link of `{name}` to come up"),
    )
}

/// Waits until every link of a namespace is operationally up.
pub(crate) fn links(netlink: &mut Netlink) -> Result<(), BuildError> {
    until(
        || Ok(device::not_carrying(netlink)?.is_empty()),
        || "waiting for all links to come up".into(),
    )
}

/// Waits until packets can be sent from and received at an address of the calling thread's namespace.
pub(crate) fn address(address: Ipv6Addr) -> Result<(), BuildError> {
    let has_routes = || {
        let text = fs::read_to_string("/proc/thread-self/net/ipv6_route")?;
        let prefix = names::prefix(address.into());
        Ok(has_route(&text, address, 128) && has_route(&text, address, prefix))
    };
    until(has_routes, || format!("waiting for {address} to be usable"))
}

fn until(
    mut ready: impl FnMut() -> io::Result<bool>,
    step: impl Fn() -> String,
) -> Result<(), BuildError> {
    let began = Instant::now();
    while !ready().with_context(&step)? {
        if began.elapsed() > LIMIT {
            return Err(io::Error::from(io::ErrorKind::TimedOut)).with_context(&step);
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// Whether /proc/net/ipv6_route (net/ipv6/route.c, `rt6_info_route`: destination, its prefix length, and more, in
/// hexadecimal) has a route to exactly that prefix of an address.
fn has_route(text: &str, address: Ipv6Addr, length: u8) -> bool {
    let network = address.to_bits() & u128::MAX.unbounded_shl(128 - u32::from(length));
    let (network, length) = (format!("{network:032x}"), format!("{length:02x}"));
    text.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        fields.next() == Some(&network) && fields.next() == Some(&length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "\
20010002000000190000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
20010002000000190000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001     eth0
ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
";

    #[test]
    fn an_address_is_usable_with_its_own_route_and_its_links() {
        let own: Ipv6Addr = "2001:2:0:19::1".parse().expect("an address");
        assert!(has_route(ROUTES, own, 128) && has_route(ROUTES, own, 64));
        let other: Ipv6Addr = "2001:2:0:19::2".parse().expect("an address");
        assert!(has_route(ROUTES, other, 64) && !has_route(ROUTES, other, 128));
        assert!(!has_route(ROUTES, own, 48));
        assert!(!has_route("", own, 128));
    }

    #[test]
    fn waiting_ends_with_what_was_waited_for() {
        let mut left = 3;
        let counted = || {
            left -= 1;
            Ok(left == 0)
        };
        until(counted, || "waiting".into()).expect("it came");
        let refused = || Err(io::Error::from(io::ErrorKind::NotFound));
        let error = until(refused, || "waiting for `x`".into()).expect_err("it never comes");
        assert!(error.to_string().starts_with("waiting for `x`"), "{error}");
    }
}
