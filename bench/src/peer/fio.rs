//! fio's nbd engine, which is libnbd, at nbdkit's memory: what people take to measure storage over a network without a
//! disk.

use serde_json::Value;

use super::{Peer, Plan, Setting, first_line, words};
use crate::guest::ListeningPort;
use crate::process::FinishedProgram;
use crate::row::{EXPORT_MIB, Load};

/// NBD's own.
const PORT: u16 = 10_809;

#[derive(Debug)]
pub(crate) struct Fio;

impl Peer for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn version(&self) -> Result<String, String> {
        let engines = std::process::Command::new("fio").arg("--enghelp").output();
        let engines = engines.map_err(|error| format!("no fio on PATH: {error}"))?;
        if !String::from_utf8_lossy(&engines.stdout).contains("nbd") {
            return Err("this fio was built without its nbd engine".to_owned());
        }
        let server = first_line("nbdkit", &["--version"])?;
        Ok(format!("{}, {server}", first_line("fio", &["--version"])?))
    }

    fn plan(&self, load: Load, setting: &Setting<'_>) -> Result<Plan, String> {
        let Load::Storage { connections, depth } = load else {
            return Err("it is compared on storage only".to_owned());
        };
        let server = setting.server;
        let mut client = words!["fio", "--name=load", "--ioengine=nbd", "--rw=randread"];
        client.extend(words![
            format!("--uri=nbd://{server}:{PORT}/"),
            format!("--bs={}", load.message()),
            format!("--iodepth={depth}"),
            format!("--numjobs={connections}"),
            format!("--size={EXPORT_MIB}m"),
            "--norandommap",
            "--time_based",
            format!("--runtime={}", setting.seconds),
            "--group_reporting",
            "--percentile_list=50:99",
            "--output-format=json",
        ]);
        Ok(Plan {
            server: words![
                "nbdkit",
                "--foreground",
                format!("--ipaddr={server}"),
                format!("--port={PORT}"),
                "memory",
                format!("{EXPORT_MIB}M"),
            ],
            listening_port: ListeningPort::Tcp(PORT),
            server_ends: false,
            clients: vec![client],
            takes_window: false,
        })
    }

    fn own(&self, _load: Load, finished: &FinishedProgram) -> Result<f64, String> {
        let per_s = reads(finished).and_then(|reads| reads["iops"].as_f64());
        per_s
            .map(|per_s| per_s / 1e3)
            .ok_or_else(|| format!("no figure: {}", finished.words()))
    }

    /// From when an I/O was handed to libnbd until fio saw it completed.
    fn latency_us(&self, finished: &FinishedProgram) -> Option<[f64; 2]> {
        let latency = &reads(finished)?["clat_ns"]["percentile"];
        let us = |percent: &str| latency[percent].as_f64().map(|ns| ns / 1e3);
        Some([us("50.000000")?, us("99.000000")?])
    }
}

/// `jobs[0].read` of its document, which words of its own may stand before.
fn reads(finished: &FinishedProgram) -> Option<Value> {
    let (_, document) = finished.output.split_once('{')?;
    let document: Value = serde_json::from_str(&format!("{{{document}")).ok()?;
    Some(document["jobs"][0]["read"].clone())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BULK, finished, lines, setting};
    use super::*;

    const READS: Load = Load::Storage {
        connections: 4,
        depth: 32,
    };

    #[test]
    fn its_command_lines_have_the_load() {
        insta::assert_snapshot!(lines(&Fio.plan(READS, &setting()).expect("it can")), @"
        nbdkit --foreground --ipaddr=198.19.0.2 --port=10809 memory 64M
        fio --name=load --ioengine=nbd --rw=randread --uri=nbd://198.19.0.2:10809/ --bs=4096 --iodepth=32 --numjobs=4 --size=64m --norandommap --time_based --runtime=2 --group_reporting --percentile_list=50:99 --output-format=json
        ");
        assert!(Fio.plan(BULK, &setting()).is_err());
    }

    #[test]
    fn its_figures_are_read() {
        let recorded = finished(include_str!("../../fixtures/fio-3.33-nbd.json"));
        insta::assert_debug_snapshot!((Fio.own(READS, &recorded), Fio.latency_us(&recorded)));
        let refused = finished("fio: nbd_connect_uri: Connection refused");
        assert!(Fio.own(READS, &refused).is_err());
        assert_eq!(Fio.latency_us(&refused), None);
    }
}
