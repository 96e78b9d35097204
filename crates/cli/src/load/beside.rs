//! Further loads (`--beside`): parses them, and gives loads distinct names.

use std::collections::BTreeMap;

use clap::Parser;
use wirecost_model::host::split_words;
use wirecost_model::load::NamedLoad;

use super::kind::Kind;
use super::options::LoadOptions;

/// A load of `--beside`: what stands behind the two hosts.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, name = "--beside")]
struct BesideLoad {
    workload: Kind,
    #[command(flatten)]
    options: LoadOptions,
}

/// Parses the value of `--beside`.
pub(super) fn beside(text: &str) -> Result<NamedLoad, String> {
    let words = split_words(text).map_err(|_| "a quote is not closed".to_owned())?;
    let beside = BesideLoad::try_parse_from(words).map_err(|error| {
        let text = error.render().to_string();
        let line = text.lines().next().unwrap_or_default();
        line.trim_start_matches("error: ").to_owned()
    })?;
    if beside.workload == Kind::Mix || beside.options.both_ways() {
        return Err("one load in one direction: repeat --beside for more".to_owned());
    }
    let load = beside.options.resolve(beside.workload.first());
    load.map(NamedLoad::alone).map_err(|wrong| wrong.join("; "))
}

/// Numbers loads of the same name, since figures and errors identify loads by name.
pub(super) fn number_duplicates(loads: &mut [NamedLoad]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for named in loads {
        let times = seen.entry(named.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            named.name = format!("{}-{times}", named.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::load::{Load, Rate, Workload};

    use super::*;

    #[test]
    fn a_load_beside_is_read_like_the_command_itself() {
        let load = beside("tcp-rr --streams 4 --rate 100/s --request 64")
            .expect("a load")
            .load;
        assert_eq!((load.workload, load.streams), (Workload::TcpRr, 4));
        assert_eq!(load.rate, Some(Rate::RequestsPerSecond(100.0)));
        assert_eq!((load.request, load.response), (64, 1));
        for (text, words) in [
            ("tcp-rx", "'tcp-rx'"),
            ("mix", "one load"),
            ("tcp-rr --steams 4", "'--steams'"),
            ("tcp-rr --rate 1gbit", "requests per second"),
            ("udp-stream --request 5", "use --message"),
            ("udp-rr --nodelay", "no TCP connection"),
            ("tcp-rr --reply-timeout 1s", "has no responses in datagrams"),
            ("tcp-rr 'x", "quote"),
            ("udp-stream --total-rate 5/s", "--total-rate"),
            (
                "udp-stream --rate 1mbit --total-rate 5mbit",
                "cannot be used with",
            ),
        ] {
            let error = beside(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn the_rate_of_all_flows_is_divided_among_them() {
        let load = beside("udp-stream --streams 4 --total-rate 100mbit").expect("a load");
        assert_eq!(load.load.rate, Some(Rate::BitsPerSecond(25_000_000)));
        let load = beside("tcp-rr --total-rate 10/s --streams 4").expect("a load");
        assert_eq!(load.load.rate, Some(Rate::RequestsPerSecond(2.5)));
    }

    #[test]
    fn loads_of_one_name_are_told_apart() {
        let load = || NamedLoad::alone(Load::new(Workload::TcpRr));
        let mut loads = [load(), load(), load()];
        number_duplicates(&mut loads);
        assert_eq!(
            loads.map(|named| named.name),
            ["tcp-rr", "tcp-rr-2", "tcp-rr-3"]
        );
    }
}
