//! Firewall rules of a host that drop or reject packets, as iptables-save and nft print them.

use super::firewall::output;

/// A firewall rule that drops or rejects packets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dropping {
    /// The rule, as its program prints it.
    pub rule: String,
    /// `input`, `output` or `forward`; empty for a chain that is not attached to a hook.
    pub hook: String,
    /// Protocols that the rule matches; empty: any.
    pub protocols: Vec<String>,
    /// Packets that the rule matched; `None`: the rule has no counter.
    pub packets: Option<u64>,
    /// The command that deletes the rule.
    pub undo: Option<String>,
}

/// The rules of the calling thread's namespace that drop or reject; empty where no program may list rules.
pub fn dropping() -> Vec<Dropping> {
    let mut rules = Vec::new();
    for program in ["iptables", "ip6tables"] {
        if let Ok(text) = output(&format!("{program}-save"), &["-c"]) {
            rules.extend(of_iptables(program, &text));
        }
    }
    let through_nft = !rules.is_empty();
    if let Ok(text) = output("nft", &["-a", "list", "ruleset"]) {
        rules.extend(of_nft(&text, through_nft));
    }
    rules
}

const PROTOCOLS: [&str; 6] = ["udp", "tcp", "icmp", "icmpv6", "ipv6-icmp", "sctp"];

fn hook_of(chain: &str) -> &'static str {
    match chain.to_ascii_lowercase().as_str() {
        "input" | "prerouting" | "ingress" => "input",
        "output" | "postrouting" | "egress" => "output",
        "forward" => "forward",
        _ => "",
    }
}

/// Rules in the output of `iptables-save -c`.
pub(super) fn of_iptables(program: &str, text: &str) -> Vec<Dropping> {
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
            rules.push(Dropping {
                rule: format!("{program}: the policy of {chain} is DROP"),
                hook: hook_of(chain).into(),
                packets: words.next().and_then(counted),
                ..Dropping::default()
            });
        } else if let Some((packets, rule)) = rule(line) {
            let mut words = rule.split_whitespace();
            let chain = words.nth(1).unwrap_or_default();
            let protocol = rule.split_once("-p ").map(|(_, rest)| rest);
            let protocol = protocol.and_then(|rest| rest.split_whitespace().next());
            rules.push(Dropping {
                rule: format!("{program} -t {table} {rule}"),
                hook: hook_of(chain).into(),
                protocols: protocol.map(str::to_owned).into_iter().collect(),
                packets,
                undo: rule
                    .strip_prefix("-A ")
                    .map(|rest| format!("{program} -t {table} -D {rest}")),
            });
        }
    }
    rules
}

/// Packet count and rule of a line such as `[5:420] -A INPUT -p icmp -j DROP`.
fn rule(line: &str) -> Option<(Option<u64>, &str)> {
    let (counters, rule) = line.split_once("] ")?;
    let drops = ["-j DROP", "-j REJECT"]
        .iter()
        .any(|target| rule.contains(target));
    (rule.starts_with("-A ") && drops).then(|| (counted(counters), rule.trim()))
}

fn counted(text: &str) -> Option<u64> {
    text.trim_start_matches('[').split(':').next()?.parse().ok()
}

/// Rules in the output of `nft -a list ruleset`. `known`: the tables of iptables were listed already and are skipped.
pub(super) fn of_nft(text: &str, known: bool) -> Vec<Dropping> {
    let mut rules = Vec::new();
    let (mut table, mut chain, mut hook) = (String::new(), String::new(), "");
    for line in text.lines() {
        let (line, handle) = line.rsplit_once(" # handle ").unwrap_or((line, ""));
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["table", family, name, ..] => table = format!("{family} {name}"),
            ["chain", name, ..] => (chain, hook) = (name.to_owned(), ""),
            ["type", _, "hook", at, ..] => {
                hook = hook_of(at);
                if line.contains("policy drop") {
                    rules.push(Dropping {
                        rule: format!("nft: the policy of {table} {chain} is drop"),
                        hook: hook.into(),
                        ..Dropping::default()
                    });
                }
            }
            _ if words.contains(&"drop") || words.contains(&"reject") => {
                let iptables = [
                    "ip filter",
                    "ip6 filter",
                    "ip mangle",
                    "ip6 mangle",
                    "ip raw",
                ];
                if known && iptables.contains(&table.as_str()) {
                    continue;
                }
                let protocols = PROTOCOLS.iter().filter(|it| words.contains(it));
                let packets = words.iter().position(|word| *word == "packets");
                rules.push(Dropping {
                    rule: format!("nft {table} {chain}: {}", line.trim()),
                    hook: hook.into(),
                    protocols: protocols.map(|it| (*it).to_owned()).collect(),
                    packets: packets.and_then(|at| words.get(at + 1)?.parse().ok()),
                    undo: (!handle.is_empty()).then(|| {
                        format!("nft delete rule {table} {chain} handle {}", handle.trim())
                    }),
                });
            }
            _ => {}
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_of_iptables_are_read_with_counters_and_the_command_that_takes_them_away() {
        let text = "# Generated\n*filter\n:INPUT DROP [3:180]\n:OUTPUT ACCEPT [0:0]\n[5:420] -A INPUT -p icmp -j DROP\n\
            [0:0] -A INPUT -s 10.0.0.9/32 -j REJECT --reject-with icmp-port-unreachable\n[9:9] -A INPUT -j ACCEPT\nCOMMIT\n";
        let rules = of_iptables("iptables", text);
        assert_eq!(rules.len(), 3, "{rules:?}");
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
    fn rules_of_nft_are_read_with_their_handle() {
        let text = "table inet f { # handle 4\n\tchain i { # handle 1\n\t\ttype filter hook input priority filter; policy accept;\n\
            \t\tmeta l4proto udp counter packets 7 bytes 9 drop # handle 3\n\t\ttcp dport 22 accept # handle 5\n\t}\n}\n";
        let rules = of_nft(text, false);
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

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "(\\PC|[\\n\\t\\[:*-])*") {
            let _ = of_nft(&text, false);
            let _ = of_iptables("iptables", &text);
        }
    }
}
