//! The parts that the bench starts of itself, over loopback: no privilege and no peer is needed.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A started part and its output; dropping it ends it.
struct Part(Child, BufReader<ChildStdout>);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Part {
    fn start(words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wirecost-bench"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the bench");
        let output = child.stdout.take().expect("piped");
        Self(child, BufReader::new(output))
    }

    /// Its next line; empty where it has ended.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("text");
        line
    }

    fn send_line(&mut self, line: &str) {
        let input = self.0.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("it listens");
    }

    /// Closes its input and reads what it says to its end.
    fn finish(mut self) -> serde_json::Value {
        drop(self.0.stdin.take());
        let (mut said, mut errors) = (String::new(), String::new());
        self.1.read_to_string(&mut said).expect("text");
        let stderr = self.0.stderr.as_mut().expect("piped");
        stderr.read_to_string(&mut errors).expect("text");
        assert!(self.0.wait().expect("ended").success(), "{errors}");
        serde_json::from_str(said.trim()).expect("one JSON line")
    }
}

/// Both ends' figures over a short window: server first.
fn run(workload: &str, options: &[&str]) -> [serde_json::Value; 2] {
    let end = |side, address: &str| {
        let mut words = vec!["load", side, "--workload", workload, "--address", address];
        words.extend(["--secret", "ab", "--flows", "2"]);
        words.extend(options);
        Part::start(&words)
    };
    let mut server = end("server", "127.0.0.1:0");
    let address = server.line();
    let mut client = end("client", address.trim());
    // The client's window ends the load: long after the server's, also where that process has to wait for a core.
    server.send_line("0.05 2");
    client.send_line("0.05 5");
    let client = client.finish();
    [server.finish(), client]
}

fn figure(told: &serde_json::Value, key: &str) -> u64 {
    told[key].as_u64().expect("a count")
}

#[test]
fn a_stream_is_counted_where_it_is_read_and_each_end_tells_its_peak_memory() {
    let [server, client] = run("tcp-stream", &["--message", "131072"]);
    assert!(figure(&server, "bytes") > 0 && figure(&client, "bytes") == 0);
    assert!(figure(&server, "peak_bytes") > 1 << 20);
}

#[test]
fn requests_and_responses_are_counted_at_both_ends() {
    for workload in ["tcp-rr", "udp-rr"] {
        for told in run(workload, &["--message", "16"]) {
            let messages = figure(&told, "messages");
            // Both are counted one after the other while flows go on: off by one for each flow at either end.
            let off = figure(&told, "bytes").abs_diff(messages * 16);
            assert!(messages > 0 && off <= 4 * 16, "{workload}: {told}");
        }
    }
}

#[test]
fn the_witness_tells_what_came_and_refuses_what_is_no_window() {
    let mut witness = Part::start(&["witness"]);
    witness.send_line("0 0.05");
    let seen: serde_json::Value = serde_json::from_str(&witness.line()).expect("JSON");
    assert!(
        seen["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
    witness.send_line("soon");
    let mut errors = String::new();
    let stderr = witness.0.stderr.as_mut().expect("piped");
    stderr.read_to_string(&mut errors).expect("text");
    assert_eq!(errors.trim(), "`soon` is not WARMUP SECONDS");
}
