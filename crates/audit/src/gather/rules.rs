//! Firewall rules of a host that drop or reject packets, as iptables-save and nft print them.

mod icmp;
mod nft;
mod verdict_map;

use super::firewall::output;
use crate::drop_rule::DropRule;

/// The rules of the calling thread's namespace that drop or reject; empty where no program may list rules.
pub fn firewall_drops() -> Vec<DropRule> {
    let (mut chains, mut rules) = (Vec::new(), Vec::new());
    for program in ["iptables", "ip6tables"] {
        if let Ok(text) = output(&format!("{program}-save"), &["-c"]) {
            let (of, dropping): (Vec<_>, Vec<_>) = of_iptables(program, &text).into_iter().unzip();
            chains.extend(of);
            rules.extend(dropping);
        }
    }
    if let Ok(text) = output("nft", &["-a", "list", "ruleset"]) {
        rules.extend(nft::of_nft(&text, &chains));
    }
    rules
}

const PROTOCOLS: [&str; 6] = ["udp", "tcp", "icmp", "icmpv6", "ipv6-icmp", "sctp"];

/// The words of a rule. Text in quotes, such as a comment, is one word.
fn words(rule: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start: Option<usize> = None;
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in rule.char_indices() {
        if letter.is_whitespace() && !quoted {
            words.extend(start.take().map(|start| &rule[start..at]));
            continue;
        }
        start = start.or(Some(at));
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
    }
    words.extend(start.map(|start| &rule[start..]));
    words
}

/// The protocols of a rule that names some, or excludes some.
fn matched(named: &[&str], excluded: &[&str]) -> Vec<String> {
    let is_icmp6 = |it: &&str| matches!(*it, "icmpv6" | "ipv6-icmp");
    let is_out =
        |it: &&str| excluded.contains(it) || (is_icmp6(it) && excluded.iter().any(is_icmp6));
    let rest = PROTOCOLS.iter().filter(|it| !is_out(it));
    let rest = rest.filter(|_| named.is_empty() && !excluded.is_empty());
    named
        .iter()
        .chain(rest)
        .map(|it| (*it).to_owned())
        .collect()
}

fn hook_of(chain: &str) -> &'static str {
    match chain.to_ascii_lowercase().as_str() {
        "input" | "prerouting" | "ingress" => "input",
        "output" | "postrouting" | "egress" => "output",
        "forward" => "forward",
        _ => "",
    }
}

/// Rules in the output of `iptables-save -c`, each beside its chain as nft names it: `ip filter INPUT`.
pub(super) fn of_iptables(program: &str, text: &str) -> Vec<(String, DropRule)> {
    let family = if program == "ip6tables" { "ip6" } else { "ip" };
    let mut rules = Vec::new();
    let mut table = "filter";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name.trim();
        } else if let Some(policy) = line.strip_prefix(':') {
            let mut words = policy.split_whitespace();
            let (Some(chain), Some("DROP")) = (words.next(), words.next()) else {
                continue;
            };
            let rule = DropRule {
                rule: format!("{program}: the policy of {chain} is DROP"),
                hook: hook_of(chain).into(),
                packets: words.next().and_then(counted),
                ..DropRule::default()
            };
            rules.push((format!("{family} {table} {chain}"), rule));
        } else if let Some((packets, rule)) = rule(line) {
            let words = words(rule);
            let drops = words
                .windows(2)
                .any(|words| matches!(words, ["-j", "DROP" | "REJECT"]));
            if !drops {
                continue;
            }
            let chain = words.get(1).copied().unwrap_or_default();
            let protocols = words.windows(3).find_map(|words| match words {
                ["!", "-p", protocol] => Some(matched(&[], &[protocol])),
                [_, "-p", protocol] => Some(matched(&[protocol], &[])),
                _ => None,
            });
            let dropping = DropRule {
                rule: format!("{program} -t {table} {rule}"),
                hook: hook_of(chain).into(),
                protocols: icmp::narrowed(protocols.unwrap_or_default(), &words),
                packets,
                undo: rule
                    .strip_prefix("-A ")
                    .map(|rest| format!("{program} -t {table} -D {rest}")),
            };
            rules.push((format!("{family} {table} {chain}"), dropping));
        }
    }
    rules
}

/// Packet count and rule of a line such as `[5:420] -A INPUT -p icmp -j DROP`.
fn rule(line: &str) -> Option<(Option<u64>, &str)> {
    let (counters, rule) = line.split_once("] ")?;
    rule.starts_with("-A ")
        .then(|| (counted(counters), rule.trim()))
}

fn counted(text: &str) -> Option<u64> {
    text.trim_start_matches('[').split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::nft::of_nft;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_of_iptables_are_read_with_counters_and_the_command_that_takes_them_away() {
        let text = "# Generated\n*filter\n:INPUT DROP [3:180]\n:OUTPUT ACCEPT [0:0]\n[5:420] -A INPUT -p icmp -j DROP\n\
            [0:0] -A INPUT -s 10.0.0.9/32 -j REJECT --reject-with icmp-port-unreachable\n[9:9] -A INPUT -j ACCEPT\nCOMMIT\n";
        let (chains, rules): (Vec<_>, Vec<_>) = of_iptables("iptables", text).into_iter().unzip();
        assert_eq!(chains, ["ip filter INPUT"; 3], "{rules:?}");
        assert_eq!(
            (rules[0].hook.as_str(), rules[0].packets),
            ("input", Some(3))
        );
        assert_eq!(rules[1].protocols, ["icmp"]);
        assert_eq!(
            rules[1].undo.as_deref(),
            Some("iptables -t filter -D INPUT -p icmp -j DROP")
        );
        assert!(rules[2].protocols.is_empty());
    }

    #[test]
    fn a_rule_against_pings_does_not_drop_what_says_too_big() {
        let save = "*filter\n[5:420] -A INPUT -p icmp -m icmp --icmp-type 8 -j DROP\nCOMMIT\n";
        let (_, of_iptables) = of_iptables("iptables", save).remove(0);
        let nft = "\t\ticmp type echo-request drop # handle 2\n";
        for rule in [of_iptables, of_nft(nft, &[]).remove(0)] {
            assert_eq!(rule.protocols, ["other-icmp"], "{rule:?}");
        }
    }

    /// As iptables-save 1.8.9 prints them.
    #[test]
    fn a_rule_of_iptables_drops_what_it_does_not_exclude() {
        let text = "*filter\n[1:40] -A INPUT ! -p tcp -j DROP\n[1:40] -A INPUT -i eth0 ! -p ipv6-icmp -j DROP\n\
            [1:40] -A INPUT -p esp -j DROP\nCOMMIT\n";
        let rules = of_iptables("ip6tables", text);
        let protocols: Vec<_> = rules.iter().map(|(_, rule)| &rule.protocols[..]).collect();
        assert_eq!(
            protocols,
            [
                &["udp", "icmp", "icmpv6", "ipv6-icmp", "sctp"][..],
                &["udp", "tcp", "icmp", "sctp"],
                &["esp"],
            ]
        );
    }

    /// As iptables-save 1.8.9 and nft 1.0.6 print them.
    #[test]
    fn a_word_in_a_comment_a_map_or_a_chains_name_is_no_verdict() {
        let save = "*filter\n[1:40] -A INPUT -p udp -m comment --comment \"was: -j DROP\" -j ACCEPT\n\
            [1:40] -A INPUT -m comment --comment \"a \\\" -j DROP\" -j ACCEPT\n\
            [1:40] -A INPUT -p udp -j DROP_SPOOFED\nCOMMIT\n";
        let rules = of_iptables("iptables", save);
        assert!(rules.is_empty(), "{rules:?}");
        let nft = "table inet f { # handle 1\n\tmap m { # handle 2\n\t\ttype ipv4_addr : verdict\n\
            \t\telements = { 10.0.0.1 : drop,\n\t\t\t     10.0.0.2 : drop }\n\t}\n\n\tchain i { # handle 3\n\
            \t\tudp dport 53 accept comment \"do not drop these\" # handle 4\n\
            \t\tct state vmap { established : accept, related : accept, invalid : drop } # handle 5\n\t}\n}\n";
        let rules = of_nft(nft, &[]);
        assert!(rules.is_empty(), "{rules:?}");
    }

    /// As iptables-save 1.8.9 (nf_tables) and nft 1.0.6 print one host. iptables lists no base chain
    /// of another name than its own.
    #[test]
    fn what_iptables_listed_nft_does_not_tell_again() {
        let save = "*raw\n:PREROUTING DROP [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT DROP [3:180]\n\
            [1:40] -A INPUT ! -p tcp -j DROP\nCOMMIT\n";
        let nft = "table ip filter { # handle 1\n\tchain INPUT { # handle 1\n\
            \t\ttype filter hook input priority filter; policy drop;\n\
            \t\tmeta l4proto != tcp counter packets 1 bytes 40 drop # handle 2\n\t}\n}\n\
            table ip raw { # handle 2\n\tchain PREROUTING { # handle 1\n\
            \t\ttype filter hook prerouting priority raw; policy drop;\n\t}\n}\n\
            table ip mangle { # handle 3\n\tchain forward { # handle 1\n\
            \t\ttype filter hook forward priority mangle; policy drop;\n\
            \t\tudp dport 53 drop # handle 2\n\t}\n}\n\
            table ip6 filter { # handle 4\n\tchain INPUT { # handle 1\n\
            \t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n";
        let (chains, rules): (Vec<_>, Vec<_>) = of_iptables("iptables", save).into_iter().unzip();
        assert_eq!(rules.len(), 3, "{rules:?}");
        let rules = of_nft(nft, &chains);
        let rules: Vec<_> = rules.iter().map(|rule| rule.rule.as_str()).collect();
        assert_eq!(
            rules,
            [
                "nft: the policy of ip mangle forward is drop",
                "nft ip mangle forward: udp dport 53 drop",
                "nft: the policy of ip6 filter INPUT is drop",
            ]
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "(\\PC|[\\n\\t\\[:*-])*") {
            let _ = of_nft(&text, &[]);
            let _ = of_iptables("iptables", &text);
        }
    }
}
