//! The ICMP messages that a firewall rule matches: whether too-big messages are among them.

/// Protocol of a rule that matches ICMP messages, and none that are too-big messages.
const OTHER_ICMP: &str = "other-icmp";

/// The protocols of a rule: ICMP becomes [`OTHER_ICMP`] where the rule's words name other types or codes only.
pub(super) fn narrowed(protocols: Vec<String>, words: &[&str]) -> Vec<String> {
    if !(iptables_spares(words) || nft_spares(words)) {
        return protocols;
    }
    let narrow = |protocol: String| match protocol.as_str() {
        "icmp" | "icmpv6" | "ipv6-icmp" => OTHER_ICMP.to_owned(),
        _ => protocol,
    };
    protocols.into_iter().map(narrow).collect()
}

/// Whether a rule of iptables-save spares too-big messages: `! --icmp-type 3/4`, `--icmpv6-type 128`.
fn iptables_spares(words: &[&str]) -> bool {
    words.windows(3).any(|words| {
        let [before, option @ ("--icmp-type" | "--icmpv6-type"), value] = *words else {
            return false;
        };
        let named = match option {
            "--icmp-type" => matches!(value, "any" | "3" | "3/4"),
            _ => matches!(value, "any" | "2" | "2/0"),
        };
        named == (before == "!")
    })
}

/// Whether a rule of nft spares too-big messages: `icmp type != { destination-unreachable, redirect }`.
fn nft_spares(words: &[&str]) -> bool {
    (0..words.len()).any(|at| {
        let [
            header @ ("icmp" | "icmpv6"),
            field @ ("type" | "code"),
            rest @ ..,
        ] = &words[at..]
        else {
            return false;
        };
        let (not, rest) = match rest {
            ["!=", rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let values = match rest {
            ["{", set @ ..] => set.split(|word| *word == "}").next().unwrap_or_default(),
            _ => rest.get(..1).unwrap_or_default(),
        };
        let mut values = values.iter().map(|value| value.trim_end_matches(','));
        // A named set, a concatenation, a comparison or a range (`2-4`) is not read.
        let is_unread = |value: &str| {
            !value.starts_with(|first: char| first.is_ascii_alphabetic())
                && value.parse::<u8>().is_err()
        };
        let named = |value: &str| {
            // nft(8): by name, or by number where it knows none.
            matches!(
                (*header, *field, value),
                ("icmp", "type", "destination-unreachable" | "3")
                    | ("icmp", "code", "frag-needed" | "4")
                    | ("icmpv6", "type", "packet-too-big" | "2")
                    | ("icmpv6", "code", "no-route" | "0")
            )
        };
        !values.clone().any(is_unread) && values.any(named) == not
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As iptables-save 1.8.9 and nft 1.0.6 print them.
    #[test]
    fn a_rule_for_other_messages_spares_those_that_say_too_big() {
        for (rule, spares) in [
            ("-A INPUT -p icmp -m icmp --icmp-type 8 -j DROP", true),
            ("-A INPUT -p icmp -m icmp --icmp-type 3/1 -j DROP", true),
            ("-A INPUT -p icmp -m icmp ! --icmp-type 3 -j DROP", true),
            ("-A INPUT -p icmp -m icmp ! --icmp-type 8 -j DROP", false),
            ("-A INPUT -p icmp -m icmp --icmp-type 3/4 -j DROP", false),
            ("-A INPUT -p icmp -m icmp --icmp-type any -j DROP", false),
            ("-A INPUT -p icmp -j DROP", false),
            (
                "-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 128 -j DROP",
                true,
            ),
            (
                "-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 2 -j DROP",
                false,
            ),
            ("icmp type echo-request counter packets 3 bytes 9", true),
            ("icmp type { echo-reply, echo-request }", true),
            ("icmp type { echo-reply, destination-unreachable }", false),
            ("icmp type != destination-unreachable", true),
            ("icmp type != { echo-reply, echo-request }", false),
            ("icmp type destination-unreachable", false),
            (
                "icmp type destination-unreachable icmp code host-unreachable",
                true,
            ),
            ("icmp type destination-unreachable icmp code 4", false),
            ("icmp type @refused", false),
            ("icmp type != @allowed", false),
            ("icmp type { 3-5, echo-request }", false),
            ("icmp type < 8", false),
            ("meta l4proto icmp", false),
            ("icmpv6 type { nd-redirect, echo-request }", true),
            ("icmpv6 type packet-too-big", false),
        ] {
            let words: Vec<&str> = rule.split(' ').collect();
            let protocols = narrowed(vec!["icmp".to_owned(), "udp".to_owned()], &words);
            let icmp = if spares { OTHER_ICMP } else { "icmp" };
            assert_eq!(protocols, [icmp, "udp"], "{rule}");
        }
    }
}
