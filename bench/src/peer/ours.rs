//! The built-in engine, started as the others are: this program again, in the guests (`load.rs`). Whoever drives it
//! through `wirecost run`'s agents runs the same code; here neither side has an agent that the other has not.

use super::{Peer, Plan, Setting, words};
use crate::guest::ListeningPort;
use crate::load::EndCounters;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Of its data, TCP or UDP.
const PORT: u16 = 7_000;

/// The built-in load.
#[derive(Debug)]
pub(crate) struct Ours {
    /// Whether its threads spin.
    pub(crate) spin: bool,
}

impl Peer for Ours {
    fn name(&self) -> &'static str {
        if self.spin { "ours, spinning" } else { "ours" }
    }

    fn version(&self) -> Result<String, String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let side = |side: &str| {
            let mut line = words![program.display(), "load", side];
            line.extend(words!["--workload", workload(load)]);
            line.extend(words!["--flows", load.flows(), "--message", load.message()]);
            line.extend(words!["--address", format!("{}:{PORT}", setting.server)]);
            let secret = u128::from_be_bytes(setting.secret);
            line.extend(words!["--secret", format!("{secret:032x}")]);
            if !load.is_udp() {
                line.extend(words!["--congestion", setting.congestion]);
            }
            if let Load::Storage { depth, .. } = load {
                line.extend(words!["--depth", depth]);
            }
            let switches = [
                (
                    "--nodelay",
                    matches!(load, Load::Stream { nodelay: true, .. }),
                ),
                ("--segmentation", self.aggregates(load)),
                ("--spin", self.spin),
            ];
            line.extend(
                switches
                    .iter()
                    .filter(|(_, on)| *on)
                    .map(|(word, _)| (*word).to_owned()),
            );
            line
        };
        Ok(Plan {
            server: side("server"),
            listening_port: if load.is_udp() {
                ListeningPort::Udp(PORT)
            } else {
                ListeningPort::Tcp(PORT)
            },
            server_ends: true,
            clients: vec![side("client")],
            takes_window: true,
        })
    }

    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        let counters = EndCounters::read(&finished.output).ok_or_else(|| finished.words())?;
        let rate = match load {
            Load::Stream { .. } => counters.bytes as f64 * 8.0 / 1e9,
            _ => counters.messages as f64 / 1e3,
        };
        Ok(rate / counters.seconds)
    }

    fn latency_us(&self, finished: &FinishedProgram) -> Option<[f64; 2]> {
        EndCounters::read(&finished.output)?.latency_us
    }

    fn aggregates(&self, load: Load) -> bool {
        matches!(
            load,
            Load::UdpStream {
                segmentation: true,
                ..
            }
        )
    }
}

/// By the engine's name.
fn workload(load: Load) -> &'static str {
    match load {
        Load::Stream { .. } => "tcp-stream",
        Load::TcpRr { .. } => "tcp-rr",
        Load::UdpRr { .. } => "udp-rr",
        Load::UdpStream { .. } => "udp-stream",
        Load::Storage { .. } => "storage",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, lines, setting};
    use super::*;

    fn line(load: Load, spin: bool) -> String {
        let plan = Ours { spin }.plan(load, &setting()).expect("it can");
        let text = lines(&plan);
        // The path of the test program differs from machine to machine.
        let short = |line: &str| line.split_once(' ').expect("words").1.to_owned();
        text.lines().map(short).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn both_ends_are_told_the_same() {
        insta::assert_snapshot!(line(BULK, false), @"
        load server --workload tcp-stream --flows 4 --message 131072 --address 198.19.0.2:7000 --secret abababababababababababababababab --congestion cubic
        load client --workload tcp-stream --flows 4 --message 131072 --address 198.19.0.2:7000 --secret abababababababababababababababab --congestion cubic
        ");
        assert!(line(SMALL, false).ends_with("--congestion cubic --nodelay"));
        let exchange = line(Load::UdpRr { connections: 1 }, true);
        assert!(exchange.ends_with("--spin") && !exchange.contains("congestion"));
        let flood = Load::UdpStream {
            message: 64,
            segmentation: true,
        };
        assert!(line(flood, false).ends_with("--segmentation"));
    }
}
