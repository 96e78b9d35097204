//! uperf: a profile in XML, a thread for each connection.

use std::fs;

use super::{Peer, Plan, Setting, first_line, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::Load;

/// Of its control connection.
const PORT: u16 = 20_000;

#[derive(Debug)]
pub(crate) struct Uperf;

/// Its parser wants every element on a line of its own.
fn profile(load: Load, setting: &Setting<'_>) -> Result<String, String> {
    let size = load.message();
    let write = format!("      <flowop type=\"write\" options=\"size={size}\"/>\n");
    let read = write.replace("write", "read");
    let (nodelay, work) = match load {
        Load::Stream { nodelay, .. } => (nodelay, write),
        Load::TcpRr { .. } => (true, write + &read),
        Load::Storage { .. } => return Err("it has no storage".to_owned()),
        Load::UdpRr { .. } | Load::UdpStream { .. } => {
            return Err("over UDP its slave aborted when it was tried (1.0.8)".to_owned());
        }
    };
    let nodelay = if nodelay { " tcp_nodelay" } else { "" };
    let congestion = setting.congestion;
    Ok(format!(
        r#"<?xml version="1.0"?>
<profile name="wirecost">
  <group nthreads="{}">
    <transaction iterations="1">
      <flowop type="connect" options="remotehost={} protocol=tcp{nodelay} cc={congestion}"/>
    </transaction>
    <transaction duration="{}s">
{work}    </transaction>
    <transaction iterations="1">
      <flowop type="disconnect"/>
    </transaction>
  </group>
</profile>
"#,
        load.flows(),
        setting.server,
        setting.seconds,
    ))
}

impl Peer for Uperf {
    fn name(&self) -> &'static str {
        "uperf"
    }

    fn version(&self) -> Result<String, String> {
        first_line("uperf", &["-V"])
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let profile = profile(load, setting)?;
        let path = setting.scratch.join("uperf.xml");
        fs::write(&path, profile).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Plan {
            server: words!["uperf", "-s"],
            listening_port: ListeningPort::Tcp(PORT),
            server_ends: false,
            clients: vec![words!["uperf", "-R", "-m", path.display()]],
            takes_window: false,
        })
    }

    fn own(&self, load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        own(load, &finished.output).ok_or_else(|| format!("no figure: {}", finished.words()))
    }
}

/// From the raw, time-stamped statistics of the transaction that is the load, the second of three:
/// `timestamp_ms:X name:Txn2 nr_bytes:Y nr_ops:Z`, first and last.
fn own(load: Load, text: &str) -> Option<f64> {
    let mut lines = text
        .split(['\n', '\r'])
        .filter(|line| line.contains("name:Txn2"))
        .filter_map(|line| {
            let field = |key: &str| -> Option<f64> {
                let (_, rest) = line.split_once(key)?;
                rest.split_whitespace().next()?.parse().ok()
            };
            Some((
                field("timestamp_ms:")?,
                field("nr_bytes:")?,
                field("nr_ops:")?,
            ))
        });
    let first = lines.next()?;
    let last = lines.next_back()?;
    let seconds = (last.0 - first.0) / 1e3;
    let figure = if load.is_exchange() {
        // A write and a read are two operations.
        (last.2 - first.2) / 2.0 / 1e3
    } else {
        (last.1 - first.1) * 8.0 / 1e9
    };
    (seconds > 0.0).then_some(figure / seconds)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, SMALL, finished, setting};
    use super::*;

    const TCP: Load = Load::TcpRr { connections: 4 };

    #[test]
    fn its_profile_has_the_load_between_connect_and_disconnect() {
        insta::assert_snapshot!(profile(TCP, &setting()).expect("it can"));
        let small = profile(SMALL, &setting()).expect("it can");
        assert!(small.contains("tcp_nodelay") && small.contains("size=128"));
        assert!(profile(Load::UdpRr { connections: 1 }, &setting()).is_err());
    }

    #[test]
    fn its_figures_are_read() {
        let stream = finished(include_str!("../../fixtures/uperf-1.0.8-stream.txt"));
        insta::assert_debug_snapshot!(Uperf.own(BULK, &stream));
        let exchange = finished(include_str!("../../fixtures/uperf-1.0.8-rr.txt"));
        insta::assert_debug_snapshot!(Uperf.own(TCP, &exchange));
        assert!(Uperf.own(TCP, &finished("Error parsing")).is_err());
    }
}
