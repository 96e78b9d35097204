//! Rules that drop or reject packets in the output of `nft -a list ruleset`.

use super::verdict_map::{self, NamedMaps};
use super::{PROTOCOLS, hook_of, icmp, matched, words};
use crate::drop_rule::DropRule;

/// Other headers that a rule of nft may match (nft(8)).
const OTHER_HEADERS: [&str; 7] = ["esp", "ah", "comp", "udplite", "dccp", "igmp", "gre"];

/// Rules in the output of `nft -a list ruleset`, without those of chains of which iptables listed some (`known`): it
/// lists all of a chain or none.
pub(super) fn of_nft(text: &str, known: &[String]) -> Vec<DropRule> {
    let mut rules = Vec::new();
    let (mut table, mut chain, mut hook) = (String::new(), String::new(), "");
    let (mut maps, mut map) = (NamedMaps::new(), None);
    for line in text.lines() {
        let (line, handle) = line.rsplit_once(" # handle ").unwrap_or((line, ""));
        let words = words(line);
        match words[..] {
            ["table", family, name, ..] => table = format!("{family} {name}"),
            ["chain", name, ..] => (chain, hook, map) = (name.to_owned(), "", None),
            ["map", name, ..] => map = Some(format!("{table} {name}")),
            ["}"] => map = None,
            _ if map.is_some() => maps
                .entry(map.clone().unwrap_or_default())
                .or_default()
                .extend(words.iter().copied()),
            _ if known.contains(&format!("{table} {chain}")) => {}
            ["type", _, "hook", at, ..] => {
                hook = hook_of(at);
                if line.contains("policy drop") {
                    rules.push(DropRule {
                        rule: format!("nft: the policy of {table} {chain} is drop"),
                        hook: hook.into(),
                        ..DropRule::default()
                    });
                }
            }
            _ => {
                let plain = verdict(&words).map(|end| words[..end].to_vec());
                let is_map = plain.is_none();
                let of_map = || verdict_map::dropped(&words, &table, &maps);
                let Some(matched) = plain.or_else(of_map) else {
                    continue;
                };
                let protocols = icmp::narrowed(nft_protocols(&matched), &matched);
                // A map by something else, such as `ct state`, says nothing about what is sent here.
                if is_map && protocols.is_empty() {
                    continue;
                }
                let packets = words.windows(3).find_map(|words| match words {
                    ["counter", "packets", packets] => packets.parse().ok(),
                    _ => None,
                });
                rules.push(DropRule {
                    rule: format!("nft {table} {chain}: {}", line.trim()),
                    hook: hook.into(),
                    protocols,
                    // The rule also counts, and decides on, packets that its map does not drop.
                    packets: packets.filter(|packets| !is_map || *packets == 0),
                    undo: (!handle.is_empty() && !is_map).then(|| {
                        format!("nft delete rule {table} {chain} handle {}", handle.trim())
                    }),
                });
            }
        }
    }
    rules
}

/// Position of the verdict of a rule of nft that drops or refuses what it matches. A verdict after a colon is one of a
/// map's, which the others of the map may contradict.
fn verdict(words: &[&str]) -> Option<usize> {
    let before = std::iter::once(&"").chain(words);
    words
        .iter()
        .zip(before)
        .position(|(word, before)| matches!(*word, "drop" | "reject") && *before != ":")
}

/// The protocols of a rule of nft: `words` are those before its verdict. What stands after it is the answer to a
/// refused sender (`reject with tcp reset`).
fn nft_protocols(words: &[&str]) -> Vec<String> {
    let (mut named, mut excluded) = (Vec::new(), Vec::new());
    let (mut not, mut in_set, mut is_value) = (false, false, false);
    let mut before = "";
    for word in words.iter().map(|word| word.trim_end_matches(',')) {
        match word {
            "!=" => not = true,
            "{" => in_set = true,
            "}" => (not, in_set, is_value) = (false, false, false),
            "l4proto" | "nexthdr" => is_value = true,
            // `meta protocol` is the protocol of the frame.
            "protocol" => is_value = before != "meta",
            _ => {
                let value = Some(word).filter(|_| is_value).and_then(protocol);
                let is_header = PROTOCOLS.contains(&word) || OTHER_HEADERS.contains(&word);
                let list = if not { &mut excluded } else { &mut named };
                list.extend(value.or(is_header.then_some(word)));
                not &= in_set;
                is_value &= in_set;
            }
        }
        before = word;
    }
    matched(&named, &excluded)
}

/// The name of a protocol that nft prints by name or, where it knows none, by number; `None`: a set or a range.
fn protocol(word: &str) -> Option<&str> {
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Some(word);
    }
    // Assigned numbers (RFC 790, RFC 4443, RFC 9260).
    match word.parse::<u8>().ok()? {
        1 => Some("icmp"),
        6 => Some("tcp"),
        17 => Some("udp"),
        58 => Some("ipv6-icmp"),
        132 => Some("sctp"),
        _ => Some(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_nft_are_read_with_their_handle() {
        let text = "table inet f { # handle 4\n\tchain i { # handle 1\n\t\ttype filter hook input priority filter; policy accept;\n\
            \t\tmeta l4proto udp counter packets 7 bytes 9 drop # handle 3\n\t\ttcp dport 22 accept # handle 5\n\t}\n}\n";
        let rules = of_nft(text, &[]);
        assert_eq!(rules.len(), 1, "{rules:?}");
        assert_eq!(
            (rules[0].hook.as_str(), rules[0].packets),
            ("input", Some(7))
        );
        assert_eq!(rules[0].protocols, ["udp"]);
        assert_eq!(
            rules[0].undo.as_deref(),
            Some("nft delete rule inet f i handle 3")
        );
    }

    /// As nft 1.0.6 prints them.
    #[test]
    fn a_rule_of_nft_drops_what_it_names_or_does_not_exclude() {
        for (rule, protocols) in [
            (
                "meta l4proto != tcp counter packets 0 bytes 0 drop",
                &["udp", "icmp", "icmpv6", "ipv6-icmp", "sctp"][..],
            ),
            (
                "meta l4proto != { tcp, udp } drop",
                &["icmp", "icmpv6", "ipv6-icmp", "sctp"],
            ),
            (
                "ip6 nexthdr != ipv6-icmp drop",
                &["udp", "tcp", "icmp", "sctp"],
            ),
            ("meta l4proto { tcp, udp } drop", &["tcp", "udp"]),
            ("meta l4proto != tcp udp dport 53 drop", &["udp"]),
            ("udp dport != 53 drop", &["udp"]),
            ("udp dport != { 53, 123 } drop", &["udp"]),
            ("tcp dport != 22 reject with tcp reset", &["tcp"]),
            ("ip saddr 1.2.3.4 reject with icmp port-unreachable", &[]),
            ("meta l4proto esp drop", &["esp"]),
            ("meta l4proto { ah, esp } drop", &["ah", "esp"]),
            ("ip protocol 17 drop", &["udp"]),
            ("esp spi 7 drop", &["esp"]),
            (
                "meta l4proto != esp drop",
                &["udp", "tcp", "icmp", "icmpv6", "ipv6-icmp", "sctp"],
            ),
            ("meta l4proto @allowed drop", &[]),
            ("meta protocol ip drop", &[]),
            (
                "meta l4proto . th dport { tcp . 53, udp . 53 } drop",
                &["tcp", "udp"],
            ),
        ] {
            let rules = of_nft(&format!("\t\t{rule} # handle 2\n"), &[]);
            assert_eq!(rules.len(), 1, "{rule}");
            assert_eq!(rules[0].protocols, protocols, "{rule}");
        }
    }

    /// As nft 1.0.6 prints them.
    #[test]
    fn a_verdict_map_drops_the_protocols_of_its_elements() {
        for (rule, protocols) in [
            (
                "meta l4proto vmap { tcp : accept, udp : drop }",
                Some(&["udp"][..]),
            ),
            (
                "ip protocol vmap { icmp : jump pings, tcp : drop, udp : drop }",
                Some(&["tcp", "udp"][..]),
            ),
            (
                "udp dport vmap { 53 : accept, 4789 : drop }",
                Some(&["udp"][..]),
            ),
            (
                "meta l4proto . th dport vmap { tcp . 80 : accept, udp . 4789 : drop }",
                Some(&["udp"][..]),
            ),
            ("meta l4proto vmap @by_protocol", Some(&["udp"][..])),
            (
                "meta l4proto vmap { tcp : accept, * : drop }",
                Some(&["udp", "icmp", "icmpv6", "ipv6-icmp", "sctp"][..]),
            ),
            (
                "udp dport vmap { 53 : accept, 4789 : drop, * : drop }",
                Some(&["udp"][..]),
            ),
            (
                "icmp type vmap { echo-request : drop, destination-unreachable : accept }",
                Some(&["other-icmp"][..]),
            ),
            ("meta l4proto vmap { tcp : accept, udp : accept }", None),
            ("ip saddr vmap { 10.0.0.1 : drop }", None),
            ("meta l4proto vmap @of_another_table", None),
        ] {
            let text = format!(
                "table inet o {{ # handle 1\n\tmap of_another_table {{ # handle 2\n\t\ttype inet_proto : verdict\n\
                 \t\telements = {{ udp : drop }}\n\t}}\n}}\n\
                 table inet f {{ # handle 2\n\tmap by_protocol {{ # handle 2\n\t\ttype inet_proto : verdict\n\
                 \t\telements = {{ tcp counter packets 0 bytes 0 : accept,\n\t\t\t     \
                 udp counter packets 0 bytes 0 : drop }}\n\t}}\n\n\tchain i {{ # handle 3\n\
                 \t\ttype filter hook input priority filter; policy accept;\n\t\t{rule} # handle 4\n\t}}\n}}\n"
            );
            let rules = of_nft(&text, &[]);
            assert_eq!(rules.len(), usize::from(protocols.is_some()), "{rule}");
            for rule in &rules {
                assert_eq!(rule.protocols, protocols.unwrap_or_default(), "{rule:?}");
                assert_eq!((rule.hook.as_str(), &rule.undo), ("input", &None));
            }
        }
        let rules = of_nft(
            "\t\tcounter packets 9 bytes 9 meta l4proto vmap { udp : drop }\n",
            &[],
        );
        assert_eq!(rules[0].packets, None, "{rules:?}");
    }

    #[test]
    fn the_packets_of_a_burst_are_not_those_that_were_dropped() {
        let rule = "limit rate over 9/second burst 5 packets counter packets 0 bytes 0 drop";
        let rules = of_nft(&format!("\t\t{rule} # handle 2\n"), &[]);
        assert_eq!(rules[0].packets, Some(0), "{rules:?}");
    }
}
