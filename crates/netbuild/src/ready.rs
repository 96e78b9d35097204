//! When a path can be used. The kernel acknowledges an address or a device before all of it works: links
//! come up, and an IPv6 address joins the group by which it is found, in work queues of their own
//! (net/core/link_watch.c; net/ipv6/addrconf.c, `addrconf_dad_work`). Who sends before that loses a
//! question for a neighbour, and asks again a second later: seen in one of three labs on a busy machine.

use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::device;
use crate::error::{BuildError, Step};
use crate::netlink::Netlink;

/// Within the controller's patience; work queues are late by milliseconds.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Waits until a device's link is up, its peer's included, and its queue takes packets.
pub(crate) fn link(netlink: &mut Netlink, name: &str) -> Result<(), BuildError> {
    until(
        || Ok(device::read(netlink, name)?.carries),
        || format!("waiting for the link of `{name}` to come up"),
    )
}

/// Waits until an address of the calling thread's namespace can be found by its neighbours.
pub(crate) fn neighbour(address: Ipv6Addr) -> Result<(), BuildError> {
    let group = solicited_node(address);
    let joined = || {
        let text = fs::read_to_string("/proc/thread-self/net/igmp6")?;
        Ok(has_joined(&text, group))
    };
    until(joined, || {
        format!("waiting for {address} to listen to its neighbours")
    })
}

fn until(
    mut ready: impl FnMut() -> io::Result<bool>,
    step: impl Fn() -> String,
) -> Result<(), BuildError> {
    let began = Instant::now();
    while !ready().step(&step)? {
        if began.elapsed() > LIMIT {
            return Err(io::Error::from(io::ErrorKind::TimedOut)).step(&step);
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// The multicast group in which an address is asked for (RFC 4291, section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let low = address.to_bits() & 0xff_ffff;
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | low)
}

/// Whether /proc/net/igmp6 (net/ipv6/mcast.c, `igmp6_mc_seq_show`) has the group: index, device, group in
/// hexadecimal, users, flags, timer.
fn has_joined(text: &str, group: Ipv6Addr) -> bool {
    let wanted = format!("{:032x}", group.to_bits());
    text.lines()
        .any(|line| line.split_whitespace().nth(2) == Some(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_the_group_of_its_last_24_bits() {
        let address: Ipv6Addr = "4037::1:800:200e:8c6c".parse().expect("the RFC's example");
        assert_eq!(
            solicited_node(address).to_string(),
            "ff02::1:ff0e:8c6c",
            "RFC 4291, section 2.7.1"
        );
    }

    #[test]
    fn a_group_is_known_by_all_of_its_digits() {
        let text = "\
1    lo              ff020000000000000000000000000001     1 0000000C 0
4    eth0            ff0200000000000000000001ff000002     1 00000004 0
";
        let group = |text: &str| text.parse().expect("a group");
        assert!(has_joined(text, group("ff02::1:ff00:2")));
        assert!(!has_joined(text, group("ff02::1:ff00:1")));
        assert!(!has_joined("", group("ff02::1:ff00:2")));
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
