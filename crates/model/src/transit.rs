//! What lies between the two hosts of a lab: switches and routers one behind the other, and equal paths.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Hops in the order from host a to host b, then the equal-cost paths. Nothing of it is one wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Transit {
    /// From host a on.
    pub hops: Vec<Hop>,
    /// Members among which flows are divided by a hash of addresses and ports, between the last hop and
    /// host b; none, or 2 to [`MAX_PATHS`].
    pub paths: Vec<Member>,
}

/// Most hops of a lab.
pub const MAX_HOPS: usize = 8;
/// Most equal paths of a lab: what an equal-cost group of a usual switch chip holds at the least.
pub const MAX_PATHS: usize = 64;

/// A device that frames pass through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hop {
    /// What it is.
    pub kind: HopKind,
    /// Most bytes of IP that it passes on, by direction.
    pub mtu: Mtus,
    /// Whether ICMP is lost here. A router's own messages; through a switch, all that pass.
    #[serde(default)]
    pub icmp: Icmp,
    /// Destination port of UDP that is dropped silently, in both directions.
    #[serde(default)]
    pub drop_udp_port: Option<u16>,
    /// Packets lost at random in either direction, parts per million.
    #[serde(default)]
    pub loss_ppm: u32,
    /// Delay in either direction, microseconds.
    #[serde(default)]
    pub delay_us: u32,
}

/// What a hop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HopKind {
    /// Passes frames on by their hardware address; one that is too large is gone without a word.
    Switch,
    /// Passes packets on by their IP address; to the sender of one that is too large it says so
    /// (RFC 1191, RFC 8201), or fragments it where IPv4 allows.
    Router,
}

/// Bytes of IP by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mtus {
    /// Of what comes from host a.
    pub from_a: u32,
    /// Of what comes from host b.
    pub from_b: u32,
}

/// What becomes of ICMP.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Icmp {
    /// It is sent and passed on.
    #[default]
    Sent,
    /// It is lost.
    Filtered,
}

/// One of several equal-cost paths: a router of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Most bytes of IP that it passes on; `None`: whatever the hosts send.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Whether it says when something is too large.
    #[serde(default)]
    pub icmp: Icmp,
}

impl Mtus {
    /// The same in both directions.
    pub const fn both(mtu: u32) -> Self {
        Self {
            from_a: mtu,
            from_b: mtu,
        }
    }

    /// The smaller of the two.
    pub fn least(self) -> u32 {
        self.from_a.min(self.from_b)
    }
}

impl Hop {
    /// One without faults.
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
    /// One wire from host to host.
    pub const fn wire() -> Self {
        Self {
            hops: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Whether there is nothing between the hosts.
    pub const fn is_wire(&self) -> bool {
        self.hops.is_empty() && self.paths.is_empty()
    }

    /// Whether the hosts are on different links, so that only IP gets from one to the other.
    pub fn is_routed(&self) -> bool {
        !self.paths.is_empty() || self.hops.iter().any(|hop| hop.kind == HopKind::Router)
    }

    /// The smallest MTU on the way, bytes, whatever the direction and the path; `None` for a wire.
    pub fn narrowest(&self) -> Option<u32> {
        let hops = self.hops.iter().map(|hop| hop.mtu.least());
        hops.chain(self.paths.iter().filter_map(|member| member.mtu))
            .min()
    }
}

/// In words: `through a switch of MTU 8950, a router of MTU 1500 and 4 equal paths`.
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

/// In words: `a router of MTU 1500 (ICMP filtered)`.
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

/// In words: `of MTU 1500, ICMP filtered`; nothing for a path without limits.
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
