//! netperf: one connection a process, so several connections are several processes.

use super::{Peer, Plan, Setting, find, first_line, value, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Its default port.
const PORT: u16 = 12_865;

/// Processes that start within a second: the first ones have to wait for the last.
const STARTED_A_SECOND: u32 = 32;

#[derive(Debug)]
pub(crate) struct Netperf;

impl Peer for Netperf {
    fn name(&self) -> &'static str {
        "netperf"
    }

    fn version(&self) -> Result<String, String> {
        find("netserver").ok_or("no netserver on PATH")?;
        first_line("netperf", &["-V"])
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let size = load.message();
        let (test, mut options) = match load {
            Load::Stream { nodelay, .. } => {
                let mut options = words!["-m", size, "-M", size];
                if nodelay {
                    options.push("-D".to_owned());
                }
                ("TCP_STREAM", options)
            }
            Load::TcpRr { .. } => ("TCP_RR", words!["-r", format!("{size},{size}"), "-D"]),
            Load::UdpRr { .. } => ("UDP_RR", words!["-r", format!("{size},{size}")]),
            Load::UdpStream { .. } => return Err("it is not compared on datagram floods".into()),
            Load::Storage { .. } => return Err("it has no storage".into()),
        };
        if !load.is_udp() {
            options.extend(words!["-K", setting.congestion]);
        }
        options.extend(words!["-k", "THROUGHPUT,THROUGHPUT_UNITS"]);
        let mut client = words!["netperf", "-4", "-H", setting.server, "-p", PORT];
        let seconds = setting.seconds + load.flows() / STARTED_A_SECOND;
        client.extend(words!["-t", test, "-l", seconds, "-P", 0, "--"]);
        client.extend(options);
        Ok(Plan {
            server: words!["netserver", "-D", "-4", "-L", setting.server, "-p", PORT],
            listening_port: ListeningPort::Tcp(PORT),
            server_ends: false,
            clients: vec![client; load.flows() as usize],
            takes_window: false,
        })
    }

    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        let unit = if load.is_exchange() {
            "Trans/s"
        } else {
            "10^6bits/s"
        };
        if !finished
            .output
            .contains(&format!("THROUGHPUT_UNITS={unit}"))
        {
            return Err(format!("no figure in {unit}: {}", finished.words()));
        }
        value(&finished.output, "THROUGHPUT").map(|figure| figure / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, finished, lines, setting};
    use super::*;

    const TCP: Load = Load::TcpRr { connections: 64 };

    #[test]
    fn its_command_lines_name_every_option_that_both_have() {
        let line = |load| lines(&Netperf.plan(load, &setting()).expect("it can"));
        insta::assert_snapshot!(line(SMALL), @"
        netserver -D -4 -L 198.19.0.2 -p 12865
        netperf -4 -H 198.19.0.2 -p 12865 -t TCP_STREAM -l 2 -P 0 -- -m 128 -M 128 -D -K cubic -k THROUGHPUT,THROUGHPUT_UNITS
        ");
        insta::assert_snapshot!(line(TCP), @"
        netserver -D -4 -L 198.19.0.2 -p 12865
        netperf -4 -H 198.19.0.2 -p 12865 -t TCP_RR -l 4 -P 0 -- -r 16,16 -D -K cubic -k THROUGHPUT,THROUGHPUT_UNITS
        ");
        insta::assert_snapshot!(line(Load::UdpRr { connections: 1 }), @"
        netserver -D -4 -L 198.19.0.2 -p 12865
        netperf -4 -H 198.19.0.2 -p 12865 -t UDP_RR -l 2 -P 0 -- -r 16,16 -k THROUGHPUT,THROUGHPUT_UNITS
        ");
    }

    #[test]
    fn connections_are_processes() {
        assert_eq!(
            Netperf
                .plan(BULK, &setting())
                .expect("it can")
                .clients
                .len(),
            4
        );
        assert_eq!(
            Netperf.plan(TCP, &setting()).expect("it can").clients.len(),
            64
        );
    }

    #[test]
    fn its_figures_are_read_with_their_unit() {
        let stream = finished(include_str!("../../fixtures/netperf-2.7.1-stream.txt"));
        insta::assert_debug_snapshot!(Netperf.own(BULK, &stream));
        let exchange = finished(include_str!("../../fixtures/netperf-2.7.1-rr.txt"));
        insta::assert_debug_snapshot!(Netperf.own(TCP, &exchange));
        assert!(Netperf.own(BULK, &exchange).is_err());
    }
}
