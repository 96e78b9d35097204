//! The generators beside ours: for each a file with its command lines, how its output is read, and what it cannot do.

mod bare;
mod fio;
mod iperf3;
mod neper;
mod netperf;
mod nuttcp;
mod ours;
mod sockperf;
mod uperf;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use self::bare::NAME as BARE;
pub(crate) use self::ours::Ours;
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// A generator.
pub(crate) trait Peer {
    /// As the table and `--peer` name it.
    fn name(&self) -> &'static str;

    /// Its version.
    ///
    /// # Errors
    /// Why it is absent, in words.
    fn version(&self) -> Result<String, String>;

    /// How it runs this load.
    ///
    /// # Errors
    /// Why it cannot, in words.
    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String>;

    /// What a client says that it reached, in the load's unit ([`Load::unit`]; transactions and datagrams in
    /// thousands). Several clients' figures are added up.
    ///
    /// # Errors
    /// What it complains about, or what is missing in its output.
    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String>;

    /// What a client says of its latencies, where the row is about them: median and 99th percentile, microseconds.
    fn latency_us(&self, _finished: &FinishedProgram) -> Option<[f64; 2]> {
        None
    }

    /// Whether its own figure is the yardstick: where its receiving socket aggregates datagrams, the kernel counts
    /// each super-datagram once.
    fn aggregates(&self, _load: Load) -> bool {
        false
    }
}

/// What is the same for all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    /// The receiving guest's address.
    pub(crate) server: IpAddr,
    /// How long it is to run, from its first data on.
    pub(crate) seconds: u32,
    /// Congestion control. Who has no option for it has it by the guests' routes.
    pub(crate) congestion: &'a str,
    /// Where files of its own may be written.
    pub(crate) scratch: &'a Path,
    /// New for each sample.
    pub(crate) secret: [u8; 16],
}

/// The command lines of one load.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) server: Vec<String>,
    /// Where the server waits before a client may start.
    pub(crate) listening_port: ListeningPort,
    /// Whether the server ends with its client; else it is ended.
    pub(crate) server_ends: bool,
    /// One command line for each process.
    pub(crate) clients: Vec<Vec<String>>,
    /// Whether both ends take a line with the window on their input, and tell its figures.
    pub(crate) takes_window: bool,
}

/// The name of an iperf3 that is newer than Debian's.
pub(crate) const NEWER: &str = "iperf3-new";

/// Every peer, in the order of the table.
pub(crate) fn all(newer_iperf3: Option<PathBuf>) -> Vec<Box<dyn Peer>> {
    let (debian, newer) = iperf3::Iperf3::both(newer_iperf3);
    vec![
        Box::new(debian),
        Box::new(newer),
        Box::new(nuttcp::Nuttcp),
        Box::new(sockperf::Sockperf),
        Box::new(netperf::Netperf),
        Box::new(neper::Neper),
        Box::new(uperf::Uperf),
        Box::new(fio::Fio),
        Box::new(bare::Bare),
    ]
}

/// Command words from anything printable.
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$($word.to_string()),*] };
}
pub(crate) use words;

/// Where a program is found, as execvp(3) would.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

/// The first line with something on it that a program prints of itself.
fn first_line(program: &str, arguments: &[&str]) -> Result<String, String> {
    let path = find(program).ok_or_else(|| format!("no {program} on PATH"))?;
    let output = Command::new(path)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    Ok(line.unwrap_or("no version told").to_owned())
}

/// The number behind `key` and `=`, wherever it stands in words or lines of its own.
fn value(text: &str, key: &str) -> Result<f64, String> {
    text.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .find(|(name, _)| *name == key)
        .ok_or_else(|| format!("its output has no {key}"))
        .and_then(|(_, number)| {
            number
                .parse()
                .map_err(|_| format!("{key} is `{number}`, not a number"))
        })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    /// What a program said that ended well.
    pub(crate) fn finished(output: &str) -> FinishedProgram {
        FinishedProgram {
            status: ExitStatus::from_raw(0),
            output: output.to_owned(),
            errors: String::new(),
        }
    }

    pub(crate) fn setting() -> Setting<'static> {
        Setting {
            server: "198.19.0.2".parse().expect("an address"),
            seconds: 2,
            congestion: "cubic",
            scratch: Path::new("/nonexistent"),
            secret: [0xab; 16],
        }
    }

    /// The command lines of a plan, one to a line, server first.
    pub(crate) fn lines(plan: &Plan) -> String {
        std::iter::once(&plan.server)
            .chain(plan.clients.first())
            .map(|words| words.join(" "))
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub(crate) const BULK: Load = Load::Stream {
        streams: 4,
        message: 131_072,
        nodelay: false,
    };
    pub(crate) const SMALL: Load = Load::Stream {
        streams: 1,
        message: 128,
        nodelay: true,
    };

    #[test]
    fn a_value_is_found_among_words_and_lines() {
        assert_eq!(value("a=1 b=2.5\nc=x", "b"), Ok(2.5));
        assert_eq!(value("ab=1", "b"), Err("its output has no b".to_owned()));
        assert_eq!(value("c=x", "c"), Err("c is `x`, not a number".to_owned()));
    }

    #[test]
    fn an_absent_program_is_said_to_be_absent() {
        assert_eq!(
            first_line("no-such-generator", &["-V"]),
            Err("no no-such-generator on PATH".to_owned())
        );
    }

    #[test]
    fn peers_have_names_of_their_own() {
        let mut names: Vec<_> = all(None).iter().map(|peer| peer.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all(None).len());
    }
}
