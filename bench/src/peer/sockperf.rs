//! sockperf: request/response on one connection, and small messages one way. Its TCP server serves one connection at
//! a time, a message is at most 65,507 bytes, and it has no option for congestion control.

use super::{Peer, Plan, Setting, first_line, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Its default port.
const PORT: u16 = 11_111;
/// Its largest message in bytes.
const LARGEST: u32 = 65_507;

#[derive(Debug)]
pub(crate) struct Sockperf;

impl Peer for Sockperf {
    fn name(&self) -> &'static str {
        "sockperf"
    }

    fn version(&self) -> Result<String, String> {
        first_line("sockperf", &["--version"])
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        if load.flows() > 1 {
            return Err("its server serves one connection at a time".to_owned());
        }
        if load.message() > LARGEST {
            return Err(format!("its largest message is {LARGEST} bytes"));
        }
        let (mode, tcp) = match load {
            Load::TcpRr { .. } => ("pp", true),
            Load::UdpRr { .. } => ("pp", false),
            Load::Stream { .. } => ("tp", true),
            Load::UdpStream { .. } => ("tp", false),
            Load::Storage { .. } => return Err("it has no storage".to_owned()),
        };
        let mut server = words!["sockperf", "sr", "-i", setting.server, "-p", PORT];
        let mut client = words!["sockperf", mode, "-i", setting.server, "-p", PORT];
        client.extend(words!["-m", load.message(), "-t", setting.seconds]);
        if tcp {
            server.push("--tcp".to_owned());
            client.push("--tcp".to_owned());
        }
        // One way it has TCP_NODELAY off, and this option turns it round.
        if matches!(load, Load::Stream { nodelay: true, .. }) {
            client.push("--tcp-avoid-nodelay".to_owned());
        }
        Ok(Plan {
            server,
            listening_port: if tcp {
                ListeningPort::Tcp(PORT)
            } else {
                ListeningPort::Udp(PORT)
            },
            server_ends: false,
            clients: vec![client],
            takes_window: false,
        })
    }

    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        let text = &finished.output;
        let figure = if load.is_exchange() {
            // `[Total Run] RunTime=1.001 sec; ...; ReceivedMessages=112250`
            let total = text.lines().find(|line| line.contains("[Total Run]"));
            total.and_then(|line| {
                let seconds = number_behind(line, "RunTime=")?;
                let messages = number_behind(line, "ReceivedMessages=")?;
                Some(messages / seconds / 1e3)
            })
        } else {
            // `Message Rate is 605237 [msg/sec]`
            number_behind(text, "Message Rate is ").map(|rate| match load {
                Load::Stream { message, .. } => rate * f64::from(message) * 8.0 / 1e9,
                _ => rate / 1e3,
            })
        };
        figure.ok_or_else(|| format!("no figure: {}", finished.words()))
    }
}

/// The number right behind `words`.
fn number_behind(text: &str, words: &str) -> Option<f64> {
    let (_, rest) = text.split_once(words)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, finished, lines, setting};
    use super::*;

    const TCP: Load = Load::TcpRr { connections: 1 };
    const UDP: Load = Load::UdpRr { connections: 1 };

    #[test]
    fn its_command_lines_name_every_option_that_it_has() {
        let line = |load| lines(&Sockperf.plan(load, &setting()).expect("it can"));
        insta::assert_snapshot!(line(TCP), @"
        sockperf sr -i 198.19.0.2 -p 11111 --tcp
        sockperf pp -i 198.19.0.2 -p 11111 -m 16 -t 2 --tcp
        ");
        insta::assert_snapshot!(line(UDP), @"
        sockperf sr -i 198.19.0.2 -p 11111
        sockperf pp -i 198.19.0.2 -p 11111 -m 16 -t 2
        ");
        insta::assert_snapshot!(line(SMALL), @"
        sockperf sr -i 198.19.0.2 -p 11111 --tcp
        sockperf tp -i 198.19.0.2 -p 11111 -m 128 -t 2 --tcp --tcp-avoid-nodelay
        ");
    }

    #[test]
    fn what_it_cannot_is_said() {
        let refused = |load| Sockperf.plan(load, &setting()).expect_err("it cannot");
        assert_eq!(refused(BULK), "its server serves one connection at a time");
        let large = Load::Stream {
            streams: 1,
            message: 1 << 17,
            nodelay: false,
        };
        assert_eq!(refused(large), "its largest message is 65507 bytes");
    }

    #[test]
    fn its_figures_are_read() {
        let tcp = finished(include_str!("../../fixtures/sockperf-3.7-tcp.txt"));
        insta::assert_debug_snapshot!(Sockperf.own(TCP, &tcp));
        let udp = finished(include_str!("../../fixtures/sockperf-3.7-udp.txt"));
        insta::assert_debug_snapshot!(Sockperf.own(UDP, &udp));
        let one_way = finished(include_str!("../../fixtures/sockperf-3.7-throughput.txt"));
        insta::assert_debug_snapshot!(Sockperf.own(SMALL, &one_way));
        let silent = finished(include_str!("../../fixtures/sockperf-3.7-silent.txt"));
        let words = Sockperf.own(SMALL, &silent).expect_err("no figure");
        assert!(words.contains("Is the server down?"), "{words}");
    }
}
