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
    pub fn takes(&self, hook: &str, protocols: &[&str]) -> bool {
        let there = self.hook == hook || (self.hook.is_empty() && self.packets > Some(0));
        let about = self.protocols.is_empty()
            || self
                .protocols
                .iter()
                .any(|it| protocols.contains(&it.as_str()));
        there && about && self.packets != Some(0)
    }

    /// Whether the rule may meet packets of IPv6, or of IPv4 where `six` is false. The program or, for nft, the table's
    /// family tells.
    pub fn may_take(&self, six: bool) -> bool {
        let program = self.rule.split([' ', ':']).next().unwrap_or_default();
        let table = self
            .rule
            .strip_prefix("nft: the policy of ")
            .or_else(|| self.rule.strip_prefix("nft "));
        let family = table.map_or(program, |table| table.split(' ').next().unwrap_or_default());
        let others = if six {
            ["iptables", "ip", "arp"]
        } else {
            ["ip6tables", "ip6", "arp"]
        };
        !others.contains(&family)
    }
}
