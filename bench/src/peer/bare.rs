//! Nothing but the system calls (`crate::bare`): no generator, but what the best one could have here. It is in this
//! program, so it is never absent.

use super::{Peer, Plan, Setting, value, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// As the table and `--peer` name it.
pub(crate) const NAME: &str = "bare";
/// Of its server.
const PORT: u16 = 7_001;

#[derive(Debug)]
pub(crate) struct Bare;

impl Peer for Bare {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> Result<String, String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let (kind, connections) = match load {
            Load::UdpStream {
                segmentation: false,
                ..
            } => ("datagrams", 1),
            Load::Stream { streams, .. } => ("stream", streams),
            Load::TcpRr { connections } => ("exchange", connections),
            Load::UdpStream { .. } | Load::UdpRr { .. } | Load::Storage { .. } => {
                return Err("it has datagrams one by one, and no requests in them".to_owned());
            }
        };
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut line = words![program.display(), "bare"];
        line.extend(words!["--kind", kind, "--message", load.message()]);
        line.extend(words!["--connections", connections]);
        line.extend(words!["--address", format!("{}:{PORT}", setting.server)]);
        let server = [line.clone(), words!["server"]].concat();
        line.extend(words!["client", "--seconds", setting.seconds]);
        Ok(Plan {
            server,
            listening_port: if load.is_udp() {
                ListeningPort::Udp(PORT)
            } else {
                ListeningPort::Tcp(PORT)
            },
            server_ends: false,
            clients: vec![line],
            takes_window: false,
        })
    }

    fn own(&self, _: Load, finished: &FinishedProgram) -> Result<f64, String> {
        value(&finished.output, "rate").map_err(|reason| format!("{reason}: {}", finished.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, finished, setting};
    use super::*;

    #[test]
    fn it_has_what_it_has_system_calls_for() {
        let datagrams = |segmentation| Load::UdpStream {
            message: 64,
            segmentation,
        };
        let plan = Bare.plan(datagrams(false), &setting()).expect("it can");
        let line = "bare --kind datagrams --message 64 --connections 1 --address 198.19.0.2:7001";
        // Behind the program's own path.
        assert_eq!(plan.server[1..].join(" "), format!("{line} server"));
        assert_eq!(
            plan.clients[0][1..].join(" "),
            format!("{line} client --seconds 2")
        );
        let exchange = Bare.plan(Load::TcpRr { connections: 64 }, &setting());
        assert!(
            exchange.expect("it can").server[1..]
                .join(" ")
                .starts_with("bare --kind exchange --message 16 --connections 64")
        );
        assert!(Bare.plan(BULK, &setting()).is_ok());
        for load in [datagrams(true), Load::UdpRr { connections: 1 }] {
            assert!(Bare.plan(load, &setting()).is_err(), "{load:?}");
        }
    }

    #[test]
    fn its_rate_is_read() {
        assert_eq!(Bare.own(BULK, &finished("rate=201.250\n")), Ok(201.25));
        assert!(Bare.own(BULK, &finished("")).is_err());
    }
}
