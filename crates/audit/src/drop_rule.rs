//! A firewall rule that drops packets, and which packets it may meet.

use serde::{Deserialize, Serialize};

/// A rule of a host's own firewall that drops or refuses packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropRule {
    /// The rule, as the firewall's program prints it.
    pub rule: String,
    /// Hook of the rule: `input`, `output` or `forward`; empty: unknown.
    pub hook: String,
    /// Protocols that the rule matches; empty: any. `other-icmp`: ICMP, and no too-big messages.
    pub protocols: Vec<String>,
    /// Packets that matched the rule; `None`: the rule has no counter.
    pub packets: Option<u64>,
    /// The command that removes the rule.
    pub undo: Option<String>,
}

impl DropRule {
    /// Whether the rule drops packets of one of these protocols at this hook, as far as hook, protocols and counter
    /// tell.
    pub fn drops(&self, hook: &str, protocols: &[&str]) -> bool {
        let there = self.hook == hook || (self.hook.is_empty() && self.packets > Some(0));
        let about = self.protocols.is_empty()
            || self
                .protocols
                .iter()
                .any(|it| protocols.contains(&it.as_str()));
        there && about && self.packets != Some(0)
    }

    /// Whether the rule may meet packets of IPv6, or of IPv4 where `six` is false. The program tells or, for nft, the
    /// table's family and what the rule matches.
    pub fn may_match(&self, six: bool) -> bool {
        let program = self.rule.split([' ', ':']).next().unwrap_or_default();
        let table = self
            .rule
            .strip_prefix("nft: the policy of ")
            .or_else(|| self.rule.strip_prefix("nft "));
        let family = table.map_or(program, |table| table.split(' ').next().unwrap_or_default());
        let (others, header, version) = if six {
            (["iptables", "ip", "arp"], "ip", "ipv4")
        } else {
            (["ip6tables", "ip6", "arp"], "ip6", "ipv6")
        };
        let matches_other = table.is_some_and(|rule| is_of_version(rule, header, version));
        !others.contains(&family) && !matches_other
    }
}

/// Whether a rule of nft matches packets of one IP version only: by its name, such as `ipv6`, or by its header, such as
/// `ip6`.
fn is_of_version(rule: &str, header: &str, version: &str) -> bool {
    let words: Vec<&str> = rule.split_whitespace().collect();
    words.windows(2).any(|pair| match pair {
        ["nfproto", it] => *it == version,
        // `meta protocol ip6`, `ether type ip6`, `ip6 saddr ...`
        ["protocol" | "type", it] | [it, "saddr" | "daddr" | "nexthdr" | "protocol"] => {
            *it == header
        }
        _ => false,
    })
}
