//! nuttcp: TCP streams. It has no option for congestion control in Debian's version.

use super::{Peer, Plan, Setting, first_line, value, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Of its control connection.
const PORT: u16 = 5000;

#[derive(Debug)]
pub(crate) struct Nuttcp;

impl Peer for Nuttcp {
    fn name(&self) -> &'static str {
        "nuttcp"
    }

    fn version(&self) -> Result<String, String> {
        first_line("nuttcp", &["-V"])
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let Load::Stream {
            streams,
            message,
            nodelay,
        } = load
        else {
            return Err("it is compared on TCP streams only".to_owned());
        };
        let mut client = words!["nuttcp", "-fparse", format!("-l{message}")];
        if streams > 1 {
            client.push(format!("-N{streams}"));
        }
        if nodelay {
            client.push("-D".to_owned());
        }
        client.extend(words![format!("-T{}", setting.seconds), setting.server]);
        Ok(Plan {
            server: words!["nuttcp", "-1", "--nofork"],
            listening_port: ListeningPort::Tcp(PORT),
            server_ends: true,
            clients: vec![client],
            takes_window: false,
        })
    }

    fn own(&self, _: Load, finished: &FinishedProgram) -> Result<f64, String> {
        value(&finished.output, "rate_Mbps")
            .map(|megabits| megabits / 1e3)
            .map_err(|reason| format!("{reason}: {}", finished.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, finished, lines, setting};
    use super::*;

    #[test]
    fn its_command_lines_name_every_option_that_it_has() {
        let line = |load| lines(&Nuttcp.plan(load, &setting()).expect("it can"));
        insta::assert_snapshot!(line(BULK), @"
        nuttcp -1 --nofork
        nuttcp -fparse -l131072 -N4 -T2 198.19.0.2
        ");
        insta::assert_snapshot!(line(SMALL), @"
        nuttcp -1 --nofork
        nuttcp -fparse -l128 -D -T2 198.19.0.2
        ");
        assert!(
            Nuttcp
                .plan(Load::UdpRr { connections: 1 }, &setting())
                .is_err()
        );
    }

    #[test]
    fn its_rate_is_read() {
        let recorded = finished(include_str!("../../fixtures/nuttcp-6.1.2-tcp.txt"));
        insta::assert_debug_snapshot!(Nuttcp.own(BULK, &recorded));
        let refused = finished(include_str!("../../fixtures/nuttcp-6.1.2-refused.txt"));
        let words = Nuttcp.own(BULK, &refused).expect_err("no figure");
        assert!(words.contains("Connection refused"), "{words}");
    }
}
