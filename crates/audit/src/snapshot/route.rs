//! Routes in the words of `ip route`, so that a command about one leaves the rest of it as it is.

use std::fmt::Write as _;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// A route as it is typed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteWords {
    /// Whether it is one of IPv6: `default` does not tell.
    pub six: bool,
    /// `10.0.0.0/24`, `default`.
    pub destination: String,
    /// The address that packets leave with where nothing else is said.
    pub source: Option<IpAddr>,
    /// What else tells it from others to the same destination: `metric 100 table 7`.
    pub place: String,
    /// `via 10.0.1.254 dev eth0`, or of several equal ones `nexthop via ... nexthop via ...`.
    pub hops: String,
}

impl RouteWords {
    /// Gives it another MTU, in bytes, or none of its own.
    pub fn change(&self, mtu: Option<u32>) -> String {
        self.command("change", &self.destination, &self.place, mtu)
    }

    /// A route to this address alone that packets take as they take this one, with an MTU of its own, in bytes. It is in
    /// the same table: a rule (ip-rule(8)) leads packets there, and the main table is for others.
    pub fn only_to(&self, address: IpAddr, mtu: u32) -> String {
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
        // Options of the route stand before several next hops; before one they may, and are read more easily behind.
        if self.hops.starts_with("nexthop") {
            command + &mtu + " " + &self.hops
        } else {
            command + " " + &self.hops + &mtu
        }
    }
}

/// How packets between two addresses leave a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressRoute {
    /// The device; of several equal ways the one that the kernel named.
    pub device: String,
    /// The router that they go to first; `None`: the destination is on the link.
    pub router: Option<IpAddr>,
    /// The route's own MTU, bytes, whatever too-big messages said since; `None`: the device's.
    pub mtu: Option<u32>,
    /// The route; `None`: it could not be read.
    pub route: Option<RouteWords>,
    /// The device's own MTU, bytes; `None`: it could not be read.
    pub device_mtu: Option<u32>,
    /// Over IPv6: the MTU that IPv6 has on this device (`net.ipv6.conf.DEV.mtu`, which a router advertisement sets), bytes,
    /// where it is smaller than the device's.
    pub ipv6_mtu: Option<u32>,
}

impl EgressRoute {
    /// What this host sends at most by this way where that is less than the device takes, bytes. A route's MTU goes before
    /// IPv6's own (net/ipv6/route.c, `ip6_mtu`).
    pub fn sends_at_most(&self) -> Option<u32> {
        self.mtu.or(self.ipv6_mtu)
    }
}

/// What is known of a neighbour on a link (include/uapi/linux/neighbour.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// It is being asked for.
    Sought,
    /// It was asked for, and nobody answered.
    Missing,
    /// It answered, or was set, or need not be asked for; or nobody wanted it.
    Fine,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_what_the_route_has() {
        let mut route = RouteWords {
            destination: "10.2.0.0/16".into(),
            source: Some([10, 0, 0, 1].into()),
            place: "metric 100 table 7".into(),
            hops: "via 10.0.0.254 dev eth0".into(),
            ..RouteWords::default()
        };
        assert_eq!(
            route.change(None),
            "ip route change 10.2.0.0/16 src 10.0.0.1 metric 100 table 7 via 10.0.0.254 dev eth0"
        );
        assert_eq!(
            route.only_to([10, 2, 0, 9].into(), 8950),
            "ip route replace 10.2.0.9 src 10.0.0.1 table 7 via 10.0.0.254 dev eth0 mtu 8950"
        );
        route.hops = "nexthop via 10.0.0.254 dev m0 nexthop via 10.0.1.254 dev m1".into();
        assert_eq!(
            route.only_to([10, 2, 0, 9].into(), 8950),
            "ip route replace 10.2.0.9 src 10.0.0.1 table 7 mtu 8950 nexthop via 10.0.0.254 dev m0 nexthop via 10.0.1.254 dev m1"
        );
    }
}
