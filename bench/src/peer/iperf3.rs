//! iperf3: Debian's, and a newer one where there is one. One process with `-P` connections, each a thread since 3.16.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Peer, Plan, Setting, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Its default port; the guest's namespace has nobody else who could use it.
const PORT: u16 = 5201;
/// Bytes that it hands over at once with `--gsro`, and segments of them that every kernel takes (`UDP_MAX_SEGMENTS`,
/// 128 since Linux 6.9).
const MAX_PAYLOAD: u32 = 65_507;
const MAX_SEGMENTS: u32 = 64;
/// Where Debian's package puts it.
const DEBIAN: &str = "/usr/bin/iperf3";

/// One of its versions.
#[derive(Debug)]
pub(crate) struct Iperf3 {
    name: &'static str,
    /// The program, or why there is none.
    program: Result<PathBuf, String>,
    /// Whether it has `--gsro`.
    has_gsro: bool,
}

impl Iperf3 {
    /// Debian's and the newer one: `given`, or another on PATH with a higher version.
    pub(crate) fn both(given: Option<PathBuf>) -> (Self, Self) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path: Vec<PathBuf> = std::env::split_paths(&path)
            .map(|directory| directory.join("iperf3"))
            .filter(|file| file.is_file())
            .collect();
        let debian = on_path
            .iter()
            .find(|file| file.as_os_str() == DEBIAN)
            .or(on_path.first())
            .cloned();
        let age = |file: &PathBuf| number(&run(file, "--version").unwrap_or_default());
        let newer = given.or_else(|| {
            let oldest = debian.as_ref().and_then(age)?;
            on_path
                .into_iter()
                .find(|file| age(file).is_some_and(|its| its > oldest))
        });
        let missing = |what: &str| format!("no {what}iperf3 on PATH");
        (
            Self::new("iperf3", debian.ok_or_else(|| missing(""))),
            Self::new(
                super::NEWER,
                newer.ok_or_else(|| missing("newer ") + ", and none named with --iperf3"),
            ),
        )
    }

    fn new(name: &'static str, program: Result<PathBuf, String>) -> Self {
        let help = program.as_ref().map(|program| run(program, "--help"));
        Self {
            name,
            has_gsro: matches!(help, Ok(Ok(help)) if help.contains("--gsro")),
            program,
        }
    }

    fn can_segment(&self, message: u32) -> bool {
        self.has_gsro && fits(message)
    }
}

/// Whether every kernel takes what it hands over at once: as many datagrams as a super-datagram has room for. Where
/// they are too many it ends without a word.
fn fits(message: u32) -> bool {
    message.saturating_mul(MAX_SEGMENTS) >= MAX_PAYLOAD
}

fn run(program: &PathBuf, argument: &str) -> Result<String, String> {
    let output = std::process::Command::new(program)
        .arg(argument)
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// `iperf 3.12 (cJSON 1.7.15)` -> 3, 12.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_whitespace().nth(1)?.split_once('.')?;
    let digits = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
    Some((major.parse().ok()?, digits.split('.').next()?.parse().ok()?))
}

impl Peer for Iperf3 {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> Result<String, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?;
        let text = run(program, "--version")?;
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let program = self.program.as_ref().map_err(Clone::clone)?.display();
        let mut client = words![program, "-c", setting.server, "-t", setting.seconds, "-J"];
        client.extend(words!["-l", load.message(), "-P", load.flows()]);
        match load {
            Load::Stream { nodelay, .. } => {
                client.extend(words!["-C", setting.congestion]);
                if nodelay {
                    client.push("-N".to_owned());
                }
            }
            Load::UdpStream { segmentation, .. } => {
                client.extend(words!["-u", "-b", 0]);
                if segmentation && self.can_segment(load.message()) {
                    client.push("--gsro".to_owned());
                }
            }
            Load::Storage { .. } => return Err("it has no storage".to_owned()),
            Load::TcpRr { .. } | Load::UdpRr { .. } => {
                return Err("it has no request/response".to_owned());
            }
        }
        Ok(Plan {
            server: words![program, "-s", "-1", "-B", setting.server],
            listening_port: ListeningPort::Tcp(PORT),
            server_ends: true,
            clients: vec![client],
            takes_window: false,
        })
    }

    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        let output: Output = serde_json::from_str(&finished.output)
            .map_err(|error| format!("no result ({error}): {}", finished.words()))?;
        match (output.error, output.end.sum_received) {
            (Some(error), _) => Err(error),
            (None, Some(sum)) if load.is_udp() => {
                Ok(sum.bytes / f64::from(load.message()) / sum.seconds / 1e3)
            }
            (None, Some(sum)) => Ok(sum.bits_per_second / 1e9),
            (None, None) => Err("its result has no end.sum_received".into()),
        }
    }

    fn aggregates(&self, load: Load) -> bool {
        matches!(
            load,
            Load::UdpStream {
                segmentation: true,
                ..
            }
        ) && self.can_segment(load.message())
    }
}

/// What is read of `iperf3 -J`.
#[derive(Debug, Deserialize)]
struct Output {
    error: Option<String>,
    #[serde(default)]
    end: End,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    sum_received: Option<Sum>,
}

#[derive(Debug, Deserialize)]
struct Sum {
    seconds: f64,
    bytes: f64,
    bits_per_second: f64,
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, finished, lines, setting};
    use super::*;

    const DATAGRAMS: Load = Load::UdpStream {
        message: 64,
        segmentation: false,
    };

    fn debian() -> Iperf3 {
        Iperf3 {
            name: "iperf3",
            program: Ok(DEBIAN.into()),
            has_gsro: false,
        }
    }

    #[test]
    fn its_command_lines_name_every_option_that_both_have() {
        let line = |load| lines(&debian().plan(load, &setting()).expect("it can"));
        insta::assert_snapshot!(line(BULK), @"
        /usr/bin/iperf3 -s -1 -B 198.19.0.2
        /usr/bin/iperf3 -c 198.19.0.2 -t 2 -J -l 131072 -P 4 -C cubic
        ");
        insta::assert_snapshot!(line(SMALL), @"
        /usr/bin/iperf3 -s -1 -B 198.19.0.2
        /usr/bin/iperf3 -c 198.19.0.2 -t 2 -J -l 128 -P 1 -C cubic -N
        ");
        insta::assert_snapshot!(line(DATAGRAMS), @"
        /usr/bin/iperf3 -s -1 -B 198.19.0.2
        /usr/bin/iperf3 -c 198.19.0.2 -t 2 -J -l 64 -P 1 -u -b 0
        ");
        let refused = debian().plan(Load::TcpRr { connections: 1 }, &setting());
        assert_eq!(refused.expect_err("none"), "it has no request/response");
    }

    #[test]
    fn the_servers_figure_is_read() {
        let tcp = finished(include_str!("../../fixtures/iperf3-3.12-tcp.json"));
        insta::assert_debug_snapshot!(debian().own(BULK, &tcp));
        let udp = finished(include_str!("../../fixtures/iperf3-3.12-udp.json"));
        insta::assert_debug_snapshot!(debian().own(DATAGRAMS, &udp));
        let newer = finished(include_str!("../../fixtures/iperf3-3.21-gsro.json"));
        insta::assert_debug_snapshot!(debian().own(DATAGRAMS, &newer));
    }

    #[test]
    fn what_it_complains_about_is_passed_on() {
        let refused = r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#;
        assert_eq!(
            debian().own(BULK, &finished(refused)),
            Err("unable to connect".to_owned())
        );
        let words = debian()
            .own(BULK, &finished("iperf3: parameter error"))
            .expect_err("not JSON");
        assert!(words.contains("parameter error"), "{words}");
    }

    #[test]
    fn small_datagrams_are_too_many_for_its_segmentation_offload() {
        assert!(!fits(64) && !fits(1_023));
        assert!(fits(1_024) && fits(1_472));
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(number("iperf 3.12 (cJSON 1.7.15)"), Some((3, 12)));
        assert_eq!(number("iperf 3.21+ (cJSON 1.7.15)"), Some((3, 21)));
        assert_eq!(number("iperf 3.9"), Some((3, 9)));
        assert_eq!(number("something else"), None);
    }
}
