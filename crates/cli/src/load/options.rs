//! A load's options as they are typed.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Parser, ValueEnum};
use wirecost_model::host::split_words;
use wirecost_model::load::{
    Backing, Direction, Fault, Load, NamedLoad, Pattern, Rate, Receiving, Segmentation, Sending,
    Waiting, Workload,
};
use wirecost_model::units::parse_rate;

use super::migration::MigrationOptions;
use super::values::{duration, size, small_size};

/// What may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One workload.
    One(Workload),
    /// `tcp-stream` and `tcp-rr` at the same time.
    Mix,
}

impl Kind {
    const ALL: [Self; Workload::ALL.len() + 1] = {
        let mut kinds = [Self::Mix; Workload::ALL.len() + 1];
        let mut index = 0;
        while index < Workload::ALL.len() {
            kinds[index] = Self::One(Workload::ALL[index]);
            index += 1;
        }
        kinds
    };

    /// The workload that the options are about.
    pub(super) const fn first(self) -> Workload {
        match self {
            Self::One(workload) => workload,
            Self::Mix => Workload::TcpStream,
        }
    }
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::One(workload) => PossibleValue::new(workload.name()).help(workload.about()),
            Self::Mix => PossibleValue::new("mix").help("tcp-stream and tcp-rr at the same time"),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    /// From the first host to the second
    Forward,
    /// From the second host to the first
    Reverse,
    /// Both at the same time, as two loads
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ends {
    Send,
    Receive,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// What every load may be told.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of the load")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct LoadOptions {
    /// Connections, flows or machines at once, 1 to 1024
    #[arg(long, aliases = ["connections", "machines"], value_name = "NUMBER")]
    streams: Option<u32>,
    /// Message size in bytes; for request/response, of both messages
    #[arg(long, value_parser = small_size, value_name = "SIZE")]
    message: Option<u32>,
    /// Bytes of a request
    #[arg(long, value_parser = small_size, value_name = "SIZE")]
    request: Option<u32>,
    /// Bytes of a response
    #[arg(long, value_parser = small_size, value_name = "SIZE")]
    response: Option<u32>,
    /// Bytes of each read or write of storage, 512B to 4MiB [default: 4KiB]
    #[arg(long, value_parser = small_size, value_name = "SIZE")]
    io_size: Option<u32>,
    /// Order and kind of storage I/O [default: random-read]
    #[arg(long, value_parser = Pattern::NAMES, value_name = "PATTERN")]
    pattern: Option<String>,
    /// Percent of a mixed pattern that are reads [default: 70]
    #[arg(long, value_name = "PERCENT")]
    reads: Option<u8>,
    /// Our own storage target's memory or discard, an NBD server nbd://HOST:PORT/EXPORT, or the path of a file, a block
    /// device or a directory [default: memory]
    #[arg(long, value_name = "KIND|URI|PATH")]
    target: Option<String>,
    /// Let storage write to an NBD server or a path: what it has is lost
    #[arg(long)]
    destructive: bool,
    /// The path of --target once more: write to it though it is not empty
    #[arg(long, value_name = "PATH")]
    overwrite: Option<String>,
    /// Size of the storage target's export [default: 64MiB]; of a path, what is used of it [default: all]
    #[arg(long, value_parser = size, value_name = "SIZE")]
    size: Option<u64>,
    /// Rate of each flow: 1gbit for streams, 1000/s for requests
    #[arg(long)]
    rate: Option<String>,
    /// Rate of all flows together, shared equally
    #[arg(long, value_name = "RATE", conflicts_with = "rate")]
    total_rate: Option<String>,
    /// Requests outstanding on a connection [default: 1; storage: 32]
    #[arg(long, value_name = "NUMBER")]
    depth: Option<u32>,
    /// Time between a response and the next request
    #[arg(long, value_parser = duration, value_name = "TIME")]
    think_time: Option<Duration>,
    /// Time-out of a response in a datagram [default: 200ms]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    reply_timeout: Option<Duration>,
    /// Which host sends or asks
    #[arg(long, value_name = "WAY", conflicts_with = "reverse")]
    direction: Option<Way>,
    /// The second host sends or asks: --direction reverse
    #[arg(long)]
    reverse: bool,
    /// TCP_NODELAY: send each write at once, or only full segments
    #[arg(long, value_name = "SWITCH", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    nodelay: Option<Switch>,
    /// TCP congestion control on both hosts [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Send and receive buffers of each socket [default: the kernel's]
    #[arg(long, value_parser = small_size, value_name = "SIZE")]
    socket_buffer: Option<u32>,
    /// Threads at each end [default: what measured best]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<u32>,
    /// Busy-poll instead of sleeping: takes a core for each thread
    #[arg(long)]
    spin: bool,
    /// Send TCP streams with MSG_ZEROCOPY
    #[arg(long)]
    zero_copy: bool,
    /// Receive streams with MSG_TRUNC: the kernel discards the data without copying it
    #[arg(long)]
    discard: bool,
    /// UDP segmentation offload of udp-stream
    #[arg(long, value_name = "ENDS", num_args = 0..=1, require_equals = true, default_missing_value = "both")]
    segmentation: Option<Ends>,
    /// DSCP of every packet, 0 to 63
    #[arg(long, value_name = "NUMBER")]
    dscp: Option<u8>,
    #[command(flatten)]
    migration: MigrationOptions,
}

/// A load of `--beside`: what stands behind the two hosts.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, name = "--beside")]
struct Beside {
    workload: Kind,
    #[command(flatten)]
    options: LoadOptions,
}

/// Reads the value of `--beside`.
pub(super) fn beside(text: &str) -> Result<NamedLoad, String> {
    let words = split_words(text).map_err(|_| "a quote is not closed".to_owned())?;
    let beside = Beside::try_parse_from(words).map_err(|error| {
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

impl LoadOptions {
    pub(super) fn both_ways(&self) -> bool {
        self.direction == Some(Way::Both)
    }

    /// The load that they make of a workload; what has no meaning there, in words. What no load can have is
    /// [`Load::faults`].
    pub(super) fn resolve(&self, workload: Workload) -> Result<Load, Vec<String>> {
        let mut load = Load::new(workload);
        let mut wrong = Vec::new();
        let asks = workload.is_request_response() && !workload.is_storage();
        if !asks {
            let odd = [
                ("--request", self.request.is_some()),
                ("--response", self.response.is_some()),
            ];
            for (option, _) in odd.into_iter().filter(|(_, given)| *given) {
                let other = if workload.is_storage() {
                    "--io-size"
                } else if workload.is_migration() {
                    "--memory"
                } else {
                    "--message"
                };
                wrong.push(format!(
                    "{option}: {workload} has neither requests nor responses, but {other}"
                ));
            }
        }
        self.storage(&mut load, &mut wrong);
        self.migration.apply(&mut load, &mut wrong);
        if workload.is_migration() && self.message.is_some() {
            wrong.push("--message: a migration has none, but --memory".to_owned());
        }
        if self.nodelay.is_some() && workload.is_udp() {
            wrong.push(format!("--nodelay: {workload} has no TCP connection"));
        }
        if self.reply_timeout.is_some() && workload != Workload::UdpRr {
            wrong.push(format!(
                "--reply-timeout: {workload} has no responses in datagrams, udp-rr has"
            ));
        }
        let request = self.io_size.or(self.request).or(self.message);
        load.request = request.unwrap_or(load.request);
        if asks {
            load.response = self.response.or(self.message).unwrap_or(load.response);
        }
        load.streams = self.streams.unwrap_or(load.streams);
        let streams = load.streams;
        for (option, text, flows) in [
            ("--rate", &self.rate, 1),
            ("--total-rate", &self.total_rate, streams),
        ] {
            match text.as_deref().map(|text| rate(text, workload)) {
                Some(Ok(rate)) => load.rate = Some(rate.shared_by(flows)),
                Some(Err(words)) => wrong.push(format!("{option}: {words}")),
                None => {}
            }
        }
        if self.reverse || self.direction == Some(Way::Reverse) {
            load.direction = Direction::BToA;
        }
        load.depth = self.depth.unwrap_or(load.depth);
        load.think_time = self.think_time.unwrap_or(load.think_time);
        load.reply_timeout = self.reply_timeout.unwrap_or(load.reply_timeout);
        load.nodelay = self
            .nodelay
            .map_or(load.nodelay, |switch| switch == Switch::On);
        load.congestion.clone_from(&self.congestion);
        load.socket_buffer = self.socket_buffer;
        load.threads = self.threads;
        load.dscp = self.dscp;
        if self.spin {
            load.waiting = Waiting::Spin;
        }
        if self.zero_copy {
            load.sending = Sending::ZeroCopy;
        }
        if self.discard {
            load.receiving = Receiving::Discard;
        }
        load.segmentation = Segmentation {
            send: matches!(self.segmentation, Some(Ends::Send | Ends::Both)),
            receive: matches!(self.segmentation, Some(Ends::Receive | Ends::Both)),
        };
        if wrong.is_empty() {
            Ok(load)
        } else {
            Err(wrong)
        }
    }

    /// Options that only storage has, or has not.
    fn storage(&self, load: &mut Load, wrong: &mut Vec<String>) {
        let workload = load.workload;
        let Some(storage) = &mut load.storage else {
            let odd = [
                ("--io-size", self.io_size.is_some()),
                ("--pattern", self.pattern.is_some()),
                ("--reads", self.reads.is_some()),
                ("--target", self.target.is_some()),
                ("--size", self.size.is_some()),
                ("--destructive", self.destructive),
                ("--overwrite", self.overwrite.is_some()),
            ];
            for (option, _) in odd.into_iter().filter(|(_, given)| *given) {
                wrong.push(format!("{option}: {workload} is no storage"));
            }
            return;
        };
        for (option, given) in [
            ("--message", self.message.is_some()),
            ("--think-time", self.think_time.is_some()),
            ("--nodelay", self.nodelay.is_some()),
        ] {
            if given {
                wrong.push(format!("{option}: storage has no such option"));
            }
        }
        let pattern = self.pattern.as_deref().and_then(Pattern::by_name);
        storage.pattern = pattern.unwrap_or(storage.pattern);
        match self
            .target
            .as_deref()
            .map(|text| (text, Backing::by_name(text)))
        {
            None => {}
            Some((_, Some(target))) => storage.target = target,
            Some((path, None)) if path.starts_with('/') => {
                load.path = Some(path.to_owned());
                storage.size = 0;
            }
            Some((text, None)) => match text.parse() {
                Ok(_) if self.size.is_some() => {
                    wrong.push("--size: a server's export has its own".to_owned());
                }
                Ok(server) => load.server = Some(server),
                Err(words) => wrong.push(format!(
                    "--target: {words}, or one of {}",
                    Backing::NAMES.join(", ")
                )),
            },
        }
        load.destructive = self.destructive;
        load.overwrite.clone_from(&self.overwrite);
        storage.reads = self.reads.unwrap_or(storage.reads);
        storage.size = self.size.unwrap_or(storage.size);
    }
}

fn rate(text: &str, workload: Workload) -> Result<Rate, String> {
    if !workload.is_request_response() {
        return parse_rate(text)
            .map(Rate::BitsPerSecond)
            .map_err(|error| error.to_string());
    }
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    number
        .parse()
        .map(Rate::RequestsPerSecond)
        .map_err(|_| format!("`{text}` is no number of requests per second: write 1000/s"))
}

/// A fault with the option that it is about, as it is typed.
pub(super) fn fault(name: &str, fault: &Fault) -> String {
    let option = match fault.option {
        "discard_on_receive" => "discard".to_owned(),
        "segmentation_offload" => "segmentation".to_owned(),
        "limit" => "bytes or --transactions".to_owned(),
        "rate" => "rate or --total-rate".to_owned(),
        option => option.replace('_', "-"),
    };
    format!("{name}, --{option}: {}", fault.message)
}

/// Numbers what would have the same name: figures and errors call loads by their names.
pub(super) fn name_apart(loads: &mut [NamedLoad]) {
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
    use super::*;

    #[test]
    fn durations_are_read_from_microseconds_to_hours() {
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2min"), Ok(Duration::from_mins(2)));
        assert_eq!(duration("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "us", "h", "-1s", "-1h", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

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
            ("udp-stream --request 5", "but --message"),
            ("udp-rr --nodelay", "no TCP connection"),
            ("tcp-rr --reply-timeout 1s", "udp-rr has"),
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
        name_apart(&mut loads);
        assert_eq!(
            loads.map(|named| named.name),
            ["tcp-rr", "tcp-rr-2", "tcp-rr-3"]
        );
    }
}
