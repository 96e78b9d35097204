//! The network between the two hosts of a lab: switches and routers in a row, and equal-cost paths.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Hops in the order from host a to host b, then equal-cost paths. The default, without either, is one wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Transit {
    /// The hops, the one next to host a first.
    pub hops: Vec<Hop>,
    /// Equal-cost paths between the last hop and host b, among which flows are divided by a hash of addresses and
    /// ports; none, or 2 to [`MAX_PATHS`].
    pub paths: Vec<Member>,
}

/// Most hops of a lab.
pub const MAX_HOPS: usize = 8;
/// Most equal-cost paths of a lab: the least that an equal-cost group of common switch chips holds.
pub const MAX_PATHS: usize = 64;

/// A switch or router that packets pass through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hop {
    /// Whether the hop is a switch or a router.
    pub kind: HopKind,
    /// Largest IP packet that the hop forwards, for each direction.
    pub mtu: Mtus,
    /// Whether ICMP is filtered here: at a router its own messages, at a switch all ICMP that passes.
    #[serde(default)]
    pub icmp: Icmp,
    /// UDP destination port whose packets are dropped without ICMP, in both directions.
    #[serde(default)]
    pub drop_udp_port: Option<u16>,
    /// Random packet loss in each direction, parts per million.
    #[serde(default)]
    pub loss_ppm: u32,
    /// Added delay in each direction, microseconds.
    #[serde(default)]
    pub delay_us: u32,
}

/// The kind of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HopKind {
    /// Forwards frames by hardware address; drops frames that are too large without ICMP.
    Switch,
    /// Forwards packets by IP address; a packet that is too large is answered with ICMP (RFC 1191, RFC 8201), or
    /// fragmented where IPv4 allows.
    Router,
}

/// MTUs of a hop by direction, bytes of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mtus {
    /// MTU for packets from host a.
    pub from_a: u32,
    /// MTU for packets from host b.
    pub from_b: u32,
}

/// Treatment of ICMP at a hop.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Icmp {
    /// ICMP is sent and forwarded.
    #[default]
    Sent,
    /// ICMP is dropped.
    Filtered,
}

/// One of several equal-cost paths: a router of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Largest IP packet that the path forwards, bytes; `None` for whatever the hosts send.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Whether the path's router sends ICMP for packets that are too large.
    #[serde(default)]
    pub icmp: Icmp,
}

impl Mtus {
    /// The same MTU in both directions.
    pub const fn both(mtu: u32) -> Self {
        Self {
            from_a: mtu,
            from_b: mtu,
        }
    }

    /// The smaller MTU of both directions, bytes.
    pub fn least(self) -> u32 {
        self.from_a.min(self.from_b)
    }
}

impl Hop {
    /// A hop without faults.
    pub const fn new(kind: HopKind, mtu: u32) -> Self {
        Self {
            kind,
            mtu: Mtus::both(mtu),
            icmp: Icmp::Sent,
            drop_udp_port: None,
            loss_ppm: 0,
            delay_us: 0,
        }
    }
}

impl Transit {
    /// A single wire from host to host.
    pub const fn wire() -> Self {
        Self {
            hops: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Whether nothing is between the hosts.
    pub const fn is_wire(&self) -> bool {
        self.hops.is_empty() && self.paths.is_empty()
    }

    /// Whether the hosts are on different links, so that a router has to forward between them.
    pub fn is_routed(&self) -> bool {
        !self.paths.is_empty() || self.hops.iter().any(|hop| hop.kind == HopKind::Router)
    }

    /// The smallest MTU between the hosts, bytes, over all directions and paths; `None` without a limit.
    pub fn narrowest(&self) -> Option<u32> {
        let hops = self.hops.iter().map(|hop| hop.mtu.least());
        hops.chain(self.paths.iter().filter_map(|member| member.mtu))
            .min()
    }
}

/// `through a switch of MTU 8950, a router of MTU 1500 and 4 equal paths`.
impl fmt::Display for Transit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.hops.iter().map(Hop::to_string).collect();
        if !self.paths.is_empty() {
            let odd = self.paths.iter().zip(1..).filter_map(|(member, number)| {
                let what = member.to_string();
                (!what.is_empty()).then(|| format!("number {number} {what}"))
            });
            let count = format!("{} equal paths", self.paths.len());
            parts.push(with_details(count, &odd.collect::<Vec<_>>()));
        }
        let Some((last, others)) = parts.split_last() else {
            return f.write_str("over one wire");
        };
        f.write_str("through ")?;
        if !others.is_empty() {
            write!(f, "{} and ", others.join(", "))?;
        }
        f.write_str(last)
    }
}

/// `a router of MTU 1500 (ICMP filtered)`.
impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mtus { from_a, from_b } = self.mtu;
        let other = if from_a == from_b {
            String::new()
        } else {
            format!(" from a and {from_b} from b")
        };
        let what = format!("a {} of MTU {from_a}{other}", self.kind.key());
        let mut details = Vec::new();
        if self.icmp == Icmp::Filtered {
            details.push("ICMP filtered".to_owned());
        }
        if let Some(port) = self.drop_udp_port {
            details.push(format!("UDP to port {port} dropped"));
        }
        if self.loss_ppm > 0 {
            details.push(format!("{} % lost", f64::from(self.loss_ppm) / 1e4));
        }
        if self.delay_us > 0 {
            details.push(format!("{} ms delay", f64::from(self.delay_us) / 1e3));
        }
        f.write_str(&with_details(what, &details))
    }
}

/// `of MTU 1500, ICMP filtered`; empty for a path without limits.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mtu = self.mtu.map(|mtu| format!("of MTU {mtu}"));
        let icmp = (self.icmp == Icmp::Filtered).then(|| "ICMP filtered".to_owned());
        let parts: Vec<String> = mtu.into_iter().chain(icmp).collect();
        f.write_str(&parts.join(", "))
    }
}

fn with_details(what: String, details: &[String]) -> String {
    if details.is_empty() {
        what
    } else {
        format!("{what} ({})", details.join("; "))
    }
}

impl HopKind {
    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Router => "router",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_reads_as_a_sentence_and_knows_its_narrowest_place() {
        let mut narrow = Hop::new(HopKind::Switch, 9000);
        narrow.mtu.from_b = 8192;
        let member = |mtu| Member {
            mtu,
            icmp: Icmp::Sent,
        };
        let transit = Transit {
            hops: vec![
                narrow,
                Hop {
                    icmp: Icmp::Filtered,
                    drop_udp_port: Some(4789),
                    loss_ppm: 50_000,
                    delay_us: 1500,
                    ..Hop::new(HopKind::Router, 8950)
                },
            ],
            paths: vec![member(None), member(Some(1500))],
        };
        assert_eq!(
            transit.to_string(),
            "through a switch of MTU 9000 from a and 8192 from b, a router of MTU 8950 (ICMP filtered; UDP to port \
             4789 dropped; 5 % lost; 1.5 ms delay) and 2 equal paths (number 2 of MTU 1500)"
        );
        assert_eq!(transit.narrowest(), Some(1500));
        assert!(transit.is_routed() && !transit.is_wire());
    }

    #[test]
    fn switches_alone_route_nothing() {
        let transit = Transit {
            hops: vec![Hop::new(HopKind::Switch, 1500)],
            paths: vec![],
        };
        assert!(!transit.is_routed());
        assert_eq!(Transit::wire().narrowest(), None);
    }
}
