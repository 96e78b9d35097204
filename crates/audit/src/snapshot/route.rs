//! Routes in the notation of `ip route`, so that a command that changes one setting of a route keeps the others.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A route in the notation of `ip route`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IpRoute {
    /// Whether the route is an IPv6 route: `default` alone does not tell.
    pub six: bool,
    /// The destination: `10.0.0.0/24`, `default`.
    pub destination: String,
    /// Preferred source address (`src`).
    pub source: Option<IpAddr>,
    /// Metric and table, which distinguish routes to the same destination: `metric 100 table 7`.
    pub place: String,
    /// The next hop, `via 10.0.1.254 dev eth0`, or several: `nexthop via ... nexthop via ...`.
    pub hops: String,
}

impl IpRoute {
    /// The command that gives the route another MTU, in bytes, or none of its own.
    pub fn change(&self, mtu: Option<u32>) -> String {
        self.command("change", &self.destination, &self.place, mtu)
    }

    /// The command that adds a route to one address alone, with the same next hop and an MTU of its own, in bytes. The
    /// route is in the same table, because a policy rule (ip-rule(8)) leads packets there rather than to the main
    /// table.
    pub fn host_route_command(&self, address: IpAddr, mtu: u32) -> String {
        let table = self.place.find("table ").map_or("", |at| &self.place[at..]);
        self.command("replace", &address.to_string(), table, Some(mtu))
    }

    fn command(&self, verb: &str, destination: &str, place: &str, mtu: Option<u32>) -> String {
        let six = if self.six { "-6 " } else { "" };
        let mut command = format!("ip {six}route {verb} {destination}");
        if let Some(source) = self.source {
            let _ = write!(command, " src {source}");
        }
        if !place.is_empty() {
            let _ = write!(command, " {place}");
        }
        let mtu = mtu.map_or_else(String::new, |mtu| format!(" mtu {mtu}"));
        // Options of the route must precede several next hops; with a single one they are easier to read after it.
        if self.hops.starts_with("nexthop") {
            command + &mtu + " " + &self.hops
        } else {
            command + " " + &self.hops + &mtu
        }
    }
}

/// The route of packets between two addresses out of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressRoute {
    /// Name of the output device; of several equal paths the one that the kernel chose.
    pub device: String,
    /// The first router; `None`: the destination is on the link.
    pub router: Option<IpAddr>,
    /// MTU of the route itself, bytes, regardless of ICMP too-big messages; `None`: the route has none.
    pub mtu: Option<u32>,
    /// The route as `ip route` takes it; `None`: it could not be read.
    pub route: Option<IpRoute>,
    /// MTU of the device, bytes; `None`: it could not be read.
    pub device_mtu: Option<u32>,
    /// For IPv6: the IPv6 MTU of the device (`net.ipv6.conf.DEV.mtu`, which a router advertisement sets), bytes, where
    /// it is smaller than the device's.
    pub ipv6_mtu: Option<u32>,
}

impl EgressRoute {
    /// Upper bound on the packets that this host sends by this route, bytes; `None`: the device's MTU. A route's MTU
    /// takes precedence over the IPv6 MTU (net/ipv6/route.c, `ip6_mtu`).
    pub fn sends_at_most(&self) -> Option<u32> {
        self.mtu.or(self.ipv6_mtu)
    }
}

/// State of a neighbour on a link (include/uapi/linux/neighbour.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// Resolution is in progress (`NUD_INCOMPLETE`).
    Sought,
    /// Resolution failed: no answer (`NUD_FAILED`).
    Missing,
    /// Any other state, or no entry: resolved, permanent, or not needed yet.
    Fine,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_what_the_route_has() {
        let mut route = IpRoute {
            destination: "10.2.0.0/16".into(),
            source: Some([10, 0, 0, 1].into()),
            place: "metric 100 table 7".into(),
            hops: "via 10.0.0.254 dev eth0".into(),
            ..IpRoute::default()
        };
        assert_eq!(
            route.change(None),
            "ip route change 10.2.0.0/16 src 10.0.0.1 metric 100 table 7 via 10.0.0.254 dev eth0"
        );
        assert_eq!(
            route.host_route_command([10, 2, 0, 9].into(), 8950),
            "ip route replace 10.2.0.9 src 10.0.0.1 table 7 via 10.0.0.254 dev eth0 mtu 8950"
        );
        route.hops = "nexthop via 10.0.0.254 dev m0 nexthop via 10.0.1.254 dev m1".into();
        assert_eq!(
            route.host_route_command([10, 2, 0, 9].into(), 8950),
            "ip route replace 10.2.0.9 src 10.0.0.1 table 7 mtu 8950 nexthop via 10.0.0.254 dev m0 nexthop via 10.0.1.254 dev m1"
        );
    }
}
