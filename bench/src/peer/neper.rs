//! neper: one program a workload, epoll, one thread unless told otherwise.

use super::{Peer, Plan, Setting, find, first_line, value, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Of its control connection.
const PORT: u16 = 12_866;

#[derive(Debug)]
pub(crate) struct Neper;

impl Peer for Neper {
    fn name(&self) -> &'static str {
        "neper"
    }

    fn version(&self) -> Result<String, String> {
        for program in ["tcp_stream", "udp_rr"] {
            find(program).ok_or_else(|| format!("no {program} on PATH"))?;
        }
        first_line("tcp_rr", &["--nolog", "--version"]).map(|number| format!("neper {number}"))
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let size = load.message();
        let (program, mut both) = match load {
            Load::Stream { .. } => ("tcp_stream", words!["-B", size]),
            Load::TcpRr { .. } => ("tcp_rr", words!["-Q", size, "-R", size]),
            Load::UdpRr { .. } => ("udp_rr", words!["-Q", size, "-R", size]),
            Load::UdpStream { .. } => return Err("it is not compared on datagram floods".into()),
            Load::Storage { .. } => return Err("it has no storage".into()),
        };
        // It writes a log file into the directory otherwise.
        both.extend(words!["-F", load.flows(), "--nolog"]);
        let small = matches!(load, Load::Stream { nodelay: true, .. });
        if small {
            // Unless told, each of its sends has MSG_MORE (tcp(7)), which gathers messages whatever TCP_NODELAY says.
            both.push("--no-cork".to_owned());
        }
        if load.is_exchange() && !load.is_udp() || small {
            both.push("--no-delay".to_owned());
        }
        if !load.is_udp() {
            both.extend(words!["--congestion-control", setting.congestion]);
        }
        let mut server = words![program];
        server.extend(both.clone());
        let mut client = words![program, "-c", "-H", setting.server, "-l", setting.seconds];
        client.extend(both);
        Ok(Plan {
            server,
            listening_port: ListeningPort::Tcp(PORT),
            server_ends: true,
            clients: vec![client],
            takes_window: false,
        })
    }

    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        let figure = if load.is_exchange() {
            value(&finished.output, "throughput").map(|rate| rate / 1e3)
        } else {
            // The client learns from the server what arrived, in bits per second.
            value(&finished.output, "remote_throughput").map(|rate| rate / 1e9)
        };
        figure.map_err(|reason| format!("{reason}: {}", finished.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, finished, lines, setting};
    use super::*;

    const TCP: Load = Load::TcpRr { connections: 64 };

    #[test]
    fn its_command_lines_name_every_option_that_both_have() {
        let line = |load| lines(&Neper.plan(load, &setting()).expect("it can"));
        insta::assert_snapshot!(line(BULK), @"
        tcp_stream -B 131072 -F 4 --nolog --congestion-control cubic
        tcp_stream -c -H 198.19.0.2 -l 2 -B 131072 -F 4 --nolog --congestion-control cubic
        ");
        insta::assert_snapshot!(line(SMALL), @"
        tcp_stream -B 128 -F 1 --nolog --no-cork --no-delay --congestion-control cubic
        tcp_stream -c -H 198.19.0.2 -l 2 -B 128 -F 1 --nolog --no-cork --no-delay --congestion-control cubic
        ");
        insta::assert_snapshot!(line(TCP), @"
        tcp_rr -Q 16 -R 16 -F 64 --nolog --no-delay --congestion-control cubic
        tcp_rr -c -H 198.19.0.2 -l 2 -Q 16 -R 16 -F 64 --nolog --no-delay --congestion-control cubic
        ");
        insta::assert_snapshot!(line(Load::UdpRr { connections: 1 }), @"
        udp_rr -Q 16 -R 16 -F 1 --nolog
        udp_rr -c -H 198.19.0.2 -l 2 -Q 16 -R 16 -F 1 --nolog
        ");
    }

    #[test]
    fn its_figures_are_read() {
        let stream = finished(include_str!("../../fixtures/neper-1.1.0-stream.txt"));
        insta::assert_debug_snapshot!(Neper.own(BULK, &stream));
        let exchange = finished(include_str!("../../fixtures/neper-1.1.0-rr.txt"));
        insta::assert_debug_snapshot!(Neper.own(TCP, &exchange));
        assert!(Neper.own(BULK, &finished("VERSION=1.1.0")).is_err());
    }
}
