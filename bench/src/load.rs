//! One end of the built-in load, as a program of its own (a hidden subcommand): what the other generators are too.
//!
//! The end that receives - of requests and responses the client - takes one line on its input, `WARMUP SECONDS`, and
//! tells what it counted over that window ([`EndCounters`]). When its input closes the client ends the load. The
//! server's first line is the address at which it listens.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use wirecost_model::end_window::EndWindow;
use wirecost_traffic::{
    Client, Load, Options, Segmentation, Server, Snapshot, TrafficError, WaitMode, Workload,
    window_until_end,
};

use crate::helper::over;

/// How long flows may take to open or to end.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    side: Side,
    #[arg(long, value_parser = workload)]
    workload: Workload,
    #[arg(long)]
    flows: u32,
    /// Of storage.
    #[arg(long, default_value_t = 1)]
    depth: u32,
    #[arg(long)]
    message: u32,
    #[arg(long)]
    address: SocketAddr,
    #[arg(long, value_parser = secret)]
    secret: Secret,
    #[arg(long)]
    congestion: Option<String>,
    #[arg(long)]
    nodelay: bool,
    #[arg(long)]
    segmentation: bool,
    #[arg(long)]
    spin: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    Server,
    Client,
}

#[derive(Debug, Clone, Copy)]
struct Secret([u8; 16]);

fn workload(text: &str) -> Result<Workload, String> {
    Workload::by_name(text).ok_or_else(|| format!("there is no workload {text}"))
}

fn secret(text: &str) -> Result<Secret, String> {
    u128::from_str_radix(text, 16)
        .map(|number| Secret(number.to_be_bytes()))
        .map_err(|error| error.to_string())
}

/// What one end counted over its window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndCounters {
    pub(crate) seconds: f64,
    /// Read by the application.
    pub(crate) bytes: u64,
    /// Datagrams or responses read.
    pub(crate) messages: u64,
    /// Of storage at the client: median and 99th percentile of latencies, microseconds.
    pub(crate) latency_us: Option<[f64; 2]>,
    /// Whether its threads, and not the path, were the limit.
    pub(crate) generator_bound: bool,
    /// Peak memory of this process (`VmHWM`), bytes; 0 where /proc does not say.
    pub(crate) peak_bytes: u64,
}

impl EndCounters {
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.lines()
            .rev()
            .find_map(|line| serde_json::from_str(line).ok())
    }
}

impl Arguments {
    fn options(&self) -> Options {
        let usual = Load::new(self.workload);
        let load = Load {
            streams: self.flows,
            request: self.message,
            depth: self.depth,
            response: if self.workload.is_request_response() && !self.workload.is_storage() {
                self.message
            } else {
                usual.response
            },
            nodelay: usual.nodelay || self.nodelay,
            congestion: self.congestion.clone(),
            segmentation: Segmentation {
                send: self.segmentation,
                receive: self.segmentation,
            },
            waiting: if self.spin {
                WaitMode::Spin
            } else {
                WaitMode::Sleep
            },
            ..usual
        };
        Options::of(load, self.secret.0)
    }
}

/// Runs one end to its end.
///
/// # Errors
/// In words.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let options = arguments.options();
    let words = |error: TrafficError| error.to_string();
    match arguments.side {
        Side::Server => {
            let server = Server::listen(arguments.address, &options).map_err(words)?;
            print_line(&server.address().to_string())?;
            server.wait_connected(PATIENCE).map_err(words)?;
            let window = window(|| server.snapshot().map_err(words))?;
            // The client ends the load, whenever that is.
            server.finish(Duration::from_hours(1)).map_err(words)?;
            print_counters(window.as_ref())
        }
        Side::Client => {
            let client = Client::connect(arguments.address, &options, PATIENCE).map_err(words)?;
            client.start().map_err(words)?;
            let window = window(|| client.snapshot().map_err(words))?;
            let mut rest = String::new();
            let _ = io::stdin().lock().read_line(&mut rest);
            client.stop(PATIENCE).map_err(words)?;
            print_counters(window.as_ref())
        }
    }
}

/// Waits for the line that says when, and counts then. No line, no window.
fn window(look: impl Fn() -> Result<Snapshot, String>) -> Result<Option<EndWindow>, String> {
    let mut line = String::new();
    io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| format!("reading the window: {error}"))?;
    if line.is_empty() {
        return Ok(None);
    }
    let [before, after] = over(&line, look)?;
    // On a full core this end may be late with its second look, and the client have stopped by then: that is for the
    // traffic counter to say, which sees connections that end within the window.
    window_until_end(&before, &after)
        .map(Some)
        .map_err(|error| error.to_string())
}

fn print_counters(window: Option<&EndWindow>) -> Result<(), String> {
    let Some(window) = window else {
        return Ok(());
    };
    let counters = EndCounters {
        seconds: window.seconds,
        bytes: window.counts().read_bytes,
        messages: window.counts().received,
        latency_us: latency_us(window),
        generator_bound: window.generator_bound,
        peak_bytes: peak_bytes(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()),
    };
    print_line(&serde_json::to_string(&counters).map_err(|error| error.to_string())?)
}

fn latency_us(window: &EndWindow) -> Option<[f64; 2]> {
    let us = |percent| {
        let time = window.latency.percentile(percent)?;
        Some(time.as_secs_f64() * 1e6)
    };
    Some([us(50.0)?, us(99.0)?])
}

fn print_line(line: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("saying `{line}`: {error}"))
}

/// `VmHWM` of a /proc/PID/status (proc_pid_status(5)), bytes; 0 where it is missing.
fn peak_bytes(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kibibytes| kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_the_last_line_that_makes_sense() {
        let counters = EndCounters {
            seconds: 1.0,
            bytes: 5,
            messages: 2,
            latency_us: None,
            generator_bound: false,
            peak_bytes: 7 << 20,
        };
        let text = format!(
            "a word\n{}\n",
            serde_json::to_string(&counters).expect("plain")
        );
        assert_eq!(EndCounters::read(&text), Some(counters));
        assert_eq!(EndCounters::read("a word\n"), None);
    }

    #[test]
    fn peak_memory_is_read_from_status() {
        assert_eq!(
            peak_bytes("VmPeak:\t 9 kB\nVmHWM:\t    2304 kB\n"),
            2304 << 10
        );
        assert_eq!(peak_bytes(""), 0);
    }

    #[test]
    fn a_secret_is_sixteen_bytes() {
        assert_eq!(
            secret("00ff").map(|secret| secret.0[14..].to_vec()),
            Ok(vec![0, 255])
        );
        assert!(secret("xyz").is_err() && secret(&"f".repeat(33)).is_err());
    }
}
