//! The options of a load on the command line.

mod storage;

use std::time::Duration;

use clap::{Args, ValueEnum};
use wirecost_model::load::{
    Direction, Fault, Load, Pattern, Rate, Receiving, Segmentation, Sending, WaitMode, Workload,
};
use wirecost_model::units::parse_rate;

use super::migration::MigrationOptions;
use super::values::{duration, size, small_size};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LoadDirection {
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

/// Options of every load.
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
    /// What storage loads: `memory` or `discard` of our own target, an NBD server nbd://HOST:PORT/EXPORT, or the path
    /// of a file, a block device or a directory [default: memory]
    #[arg(long, value_name = "KIND|URI|PATH")]
    target: Option<String>,
    /// Let storage write to an NBD server or a path, whose content is lost
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
    /// How long udp-rr waits for a response [default: 200ms]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    reply_timeout: Option<Duration>,
    /// Which host sends the data or the requests
    #[arg(long, value_name = "WAY", conflicts_with = "reverse")]
    direction: Option<LoadDirection>,
    /// The second host sends the data or the requests: --direction reverse
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

impl LoadOptions {
    pub(super) fn both_ways(&self) -> bool {
        self.direction == Some(LoadDirection::Both)
    }

    /// The load of a workload with these options, or everything that does not apply to the workload. Contradictions
    /// that no load can have are found by [`Load::faults`].
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
                    "{option}: {workload} has no requests and responses: use {other}"
                ));
            }
        }
        self.storage(&mut load, &mut wrong);
        self.migration.apply(&mut load, &mut wrong);
        if workload.is_migration() && self.message.is_some() {
            wrong.push("--message: a migration has no messages: use --memory".to_owned());
        }
        if self.nodelay.is_some() && workload.is_udp() {
            wrong.push(format!("--nodelay: {workload} has no TCP connection"));
        }
        if self.reply_timeout.is_some() && !workload.has_reply_timeout() {
            wrong.push(format!(
                "--reply-timeout: {workload} has no responses in datagrams"
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
        if self.reverse || self.direction == Some(LoadDirection::Reverse) {
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
            load.waiting = WaitMode::Spin;
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

/// The message of a fault, with the command line's name of its option.
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
