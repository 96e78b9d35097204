//! Firewall rules that change TCP's MSS, as nft and iptables-save print them.

use std::io::{self, ErrorKind, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::snapshot::MssClamp;

/// Time limit of one listing: longer than any takes, also on a busy host; a check must not hang on a huge rule set.
const PATIENCE: Duration = Duration::from_secs(10);

/// MSS clamps of the calling thread's namespace. The error says which program is missing or refused.
pub(super) fn read() -> io::Result<Vec<MssClamp>> {
    let nft = output("nft", &["-j", "list", "ruleset"]).map(|text| nft_clamps(&text));
    let iptables = [
        ("iptables-save", "iptables"),
        ("ip6tables-save", "ip6tables"),
    ]
    .map(|(program, from)| output(program, &[]).map(|text| iptables_clamps(from, &text)));
    together(nft, iptables)
}

type Listed = io::Result<Vec<MssClamp>>;

/// The clamps of all listings. None is in two: of a rule that iptables-nft made, nft's JSON tells the target's name and
/// no `mangle` (libnftables-json(5), "XT").
fn together(nft: Listed, [four, six]: [Listed; 2]) -> Listed {
    match (nft, four) {
        (Err(nft), Err(iptables)) => {
            let why = format!("nft: {nft}; iptables-save: {iptables}");
            Err(io::Error::other(why))
        }
        (nft, four) => Ok([nft, four, six].into_iter().flatten().flatten().collect()),
    }
}

/// What a program prints, if it succeeds within the time limit. The error says why not.
pub(super) fn output(program: &str, arguments: &[&str]) -> io::Result<String> {
    let directories = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    let path = directories
        .iter()
        .map(|directory| std::path::Path::new(directory).join(program))
        .find(|path| path.exists())
        .ok_or_else(|| io::Error::new(ErrorKind::NotFound, "not installed"))?;
    let mut child = Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let reader = child.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        })
    });
    let began = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                let why = format!("no answer within {} s", PATIENCE.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if !status.success() {
        let why = "refused (it needs CAP_NET_ADMIN)";
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    reader
        .and_then(|reader| reader.join().ok()?.ok())
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "its output is no text"))
}

/// MSS clamps in `nft -j list ruleset`: a `mangle` of the TCP option `maxseg` (libnftables-json(5)).
pub(super) fn nft_clamps(text: &str) -> Vec<MssClamp> {
    let Ok(document) = serde_json::from_str::<Value>(text) else {
        return Vec::new();
    };
    let objects = document["nftables"].as_array().cloned().unwrap_or_default();
    let rules = objects.iter().filter_map(|object| object.get("rule"));
    rules.filter_map(nft_clamp).collect()
}

fn nft_clamp(rule: &Value) -> Option<MssClamp> {
    let mangle = rule["expr"].as_array()?.iter().find_map(|expression| {
        let mangle = expression.get("mangle")?;
        let option = &mangle["key"]["tcp option"];
        (option["name"] == "maxseg").then_some(mangle)
    })?;
    let value = &mangle["value"];
    let mss = value.as_u64().map(|mss| mss as u32);
    let to = mss.map_or_else(|| "rt mtu".to_owned(), |mss| mss.to_string());
    let name = |key: &str| rule[key].as_str().unwrap_or("?").to_owned();
    Some(MssClamp {
        from: "nft".into(),
        rule: format!(
            "{} {} {}: tcp option maxseg size set {to}",
            name("family"),
            name("table"),
            name("chain")
        ),
        mss,
    })
}

/// MSS clamps in the output of iptables-save: `-j TCPMSS` (iptables-extensions(8)). `from` is `iptables` or
/// `ip6tables`.
pub(super) fn iptables_clamps(from: &str, text: &str) -> Vec<MssClamp> {
    let rules = text.lines().filter(|line| line.contains("-j TCPMSS"));
    rules
        .map(|line| {
            let mut words = line.split_whitespace();
            let mss = words
                .find(|word| *word == "--set-mss")
                .and_then(|_| words.next()?.parse().ok());
            MssClamp {
                from: from.into(),
                rule: line.trim().to_owned(),
                mss,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nft 1.0.6 prints it.
    const NFT: &str = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"table": {"family": "inet", "name": "m", "handle": 1}},
        {"rule": {"family": "inet", "table": "m", "chain": "f", "handle": 3, "expr": [
            {"match": {"op": "in", "left": {"payload": {"protocol": "tcp", "field": "flags"}}, "right": "syn"}},
            {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": 1360}}]}},
        {"rule": {"family": "inet", "table": "m", "chain": "f", "handle": 4, "expr": [
            {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": {"rt": {"key": "mtu"}}}}]}},
        {"rule": {"family": "inet", "table": "m", "chain": "f", "handle": 5, "expr": [{"accept": null}]}}]}"#;

    #[test]
    fn both_kinds_of_rule_are_read_from_nft() {
        let clamps = nft_clamps(NFT);
        assert_eq!(
            clamps.iter().map(|clamp| clamp.mss).collect::<Vec<_>>(),
            [Some(1360), None]
        );
        assert_eq!(clamps[0].rule, "inet m f: tcp option maxseg size set 1360");
        assert!(nft_clamps("no document").is_empty());
    }

    #[test]
    fn both_kinds_of_rule_are_read_from_iptables() {
        let text = "*mangle\n:FORWARD ACCEPT [0:0]\n\
            -A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu\n\
            -A FORWARD -o wg0 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1380\nCOMMIT\n";
        let clamps = iptables_clamps("iptables", text);
        assert_eq!(
            clamps.iter().map(|clamp| clamp.mss).collect::<Vec<_>>(),
            [None, Some(1380)]
        );
    }

    /// As nft 1.0.6 and iptables 1.8.9 (nf_tables) print one host: iptables' rule is in both listings.
    #[test]
    fn rules_of_one_size_are_told_one_by_one() {
        let nft = r#"{"nftables": [
            {"rule": {"family": "ip", "table": "mangle", "chain": "FORWARD", "handle": 2, "expr": [
                {"match": {"op": "==", "left": {"&": [{"payload": {"protocol": "tcp", "field": "flags"}}, ["syn", "rst"]]},
                    "right": "syn"}},
                {"counter": {"packets": 0, "bytes": 0}}, {"xt": {"type": "target", "name": "TCPMSS"}}]}},
            {"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 14, "expr": [
                {"mangle": {"key": {"tcp option": {"name": "maxseg", "field": "size"}}, "value": 1360}}]}}]}"#;
        let save = "-A FORWARD -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1360\n";
        let clamps = together(
            Ok(nft_clamps(nft)),
            ["iptables", "ip6tables"].map(|from| Ok(iptables_clamps(from, save))),
        );
        let clamps = clamps.expect("clamps");
        let from: Vec<_> = clamps.iter().map(|clamp| clamp.from.as_str()).collect();
        assert_eq!(from, ["nft", "iptables", "ip6tables"]);
    }
}
