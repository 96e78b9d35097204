//! iperf3 in the guests, on the agents' cores. Whatever ends this program ends it too.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::configuration::{CONGESTION, MESSAGE};
use crate::error::BenchError;

/// iperf3's default port; the guest's namespace has nobody else who could use it.
const PORT: u16 = 5201;
/// How long it may take to begin, or to end after its test.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(5);
/// `TCP_LISTEN` (include/net/tcp_states.h) as /proc/net/tcp prints it.
const LISTEN: &str = "0A";

/// Checks that every program is there and returns the first line of `iperf3 --version`.
pub(crate) fn version() -> Result<String, BenchError> {
    for program in ["nsenter", "taskset", "setpriv"] {
        first_line(program, "util-linux")?;
    }
    first_line("iperf3", "iperf3")
}

fn first_line(program: &'static str, package: &'static str) -> Result<String, BenchError> {
    match Command::new(program).arg("--version").output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().next().unwrap_or_default().trim().to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(BenchError::Missing { program, package })
        }
        Err(error) => Err(BenchError::machine("starting a tool")(error)),
    }
}

/// Where one side runs.
#[derive(Debug)]
pub(crate) struct Place {
    /// A thread in the guest's network namespace.
    tid: u32,
    cpus: String,
}

impl Place {
    pub(crate) fn new(tid: u32, cpus: &[u32]) -> Self {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        Self {
            tid,
            cpus: cpus.join(","),
        }
    }

    /// iperf3 there. Every program on the way becomes the next one, so that the child's process id
    /// is iperf3's.
    fn iperf3(&self) -> Command {
        let tid = self.tid;
        let mut command = Command::new("nsenter");
        let user = |of: &dyn Display| fs::read_link(format!("/proc/{of}/ns/user")).ok();
        if user(&"self") != user(&tid) {
            // The lab of a plain user.
            command
                .arg(format!("--user=/proc/{tid}/ns/user"))
                .arg("--preserve-credentials");
        }
        command
            .arg(format!("--net=/proc/{tid}/ns/net"))
            .args(["--", "taskset", "-c", &self.cpus])
            // Behind nsenter: a change of user namespace clears the signal (kernel/cred.c).
            .args(["setpriv", "--pdeathsig", "KILL", "iperf3"])
            // A group of its own: the terminal's Ctrl-C is for this program to handle.
            .process_group(0)
            .stdin(Stdio::null());
        command
    }

    fn is_listened_at(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/net/tcp", self.tid))
            .is_ok_and(|table| listens(&table, PORT))
    }
}

/// Whether a /proc/net/tcp shows a listener on `port` (net/ipv4/tcp_ipv4.c, `get_tcp4_sock`).
fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        columns.get(1).is_some_and(|local| local.ends_with(&port))
            && columns.get(3).is_some_and(|state| *state == LISTEN)
    })
}

/// A started iperf3 and what it says. Dropping it ends it.
#[derive(Debug)]
struct Process {
    side: &'static str,
    child: Child,
    said: Option<JoinHandle<String>>,
}

impl Process {
    fn start(side: &'static str, command: &mut Command) -> Result<Self, BenchError> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(BenchError::machine("starting iperf3"))?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        // Read all along: a full pipe would stop it.
        let said = pipes.map(|(mut output, mut errors)| {
            thread::spawn(move || {
                let mut text = String::new();
                // What cannot be read shows as an answer that makes no sense.
                let _ = output.read_to_string(&mut text);
                let _ = errors.read_to_string(&mut text);
                text
            })
        });
        Ok(Self { side, child, said })
    }

    fn failed(&self, said: impl Into<String>) -> BenchError {
        BenchError::Iperf3 {
            side: self.side,
            said: said.into(),
        }
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, BenchError> {
        self.child
            .try_wait()
            .map_err(BenchError::machine("waiting for iperf3"))
    }

    /// Waits for its end and returns what it said.
    fn finish(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<(ExitStatus, String), BenchError> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.ended()? {
                let said = self.said.take().and_then(|said| said.join().ok());
                return Ok((status, said.unwrap_or_default()));
            }
            pause(interrupt)?;
            if Instant::now() >= deadline {
                let words = format!("did not end within {:.1} s", within.as_secs_f64());
                return Err(self.failed(words));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reaped already, or ended now; there is nobody to tell if neither works.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pause(interrupt: &AtomicBool) -> Result<(), BenchError> {
    if interrupt.load(Ordering::Relaxed) {
        return Err(BenchError::Interrupted);
    }
    sleep(GLANCE);
    Ok(())
}

/// The receiving side, for one test.
#[derive(Debug)]
pub(crate) struct Server(Process);

impl Server {
    /// Starts it and waits until it listens.
    pub(crate) fn start(
        place: &Place,
        address: IpAddr,
        interrupt: &AtomicBool,
    ) -> Result<Self, BenchError> {
        let mut command = place.iperf3();
        command.args(["-s", "-1", "-B", &address.to_string()]);
        let mut process = Process::start("server", &mut command)?;
        let deadline = Instant::now() + PATIENCE;
        while !place.is_listened_at() {
            if process.ended()?.is_some() {
                let (status, said) = process.finish(PATIENCE, interrupt)?;
                return Err(process.failed(format!("{status}: {}", said.trim())));
            }
            pause(interrupt)?;
            if Instant::now() >= deadline {
                return Err(process.failed("did not begin to listen"));
            }
        }
        Ok(Self(process))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.child.id()
    }

    /// Waits for its end, which its only test brings.
    pub(crate) fn finish(mut self, interrupt: &AtomicBool) -> Result<(), BenchError> {
        match self.0.finish(PATIENCE, interrupt)? {
            (status, _) if status.success() => Ok(()),
            (status, said) => Err(self.0.failed(format!("{status}: {}", said.trim()))),
        }
    }
}

/// The sending side.
#[derive(Debug)]
pub(crate) struct Client {
    process: Process,
    seconds: u32,
}

impl Client {
    /// Starts it; it connects and begins by itself.
    pub(crate) fn start(place: &Place, server: IpAddr, seconds: u32) -> Result<Self, BenchError> {
        let mut command = place.iperf3();
        command
            .args([
                "-c",
                &server.to_string(),
                "-C",
                CONGESTION,
                "-l",
                &MESSAGE.to_string(),
            ])
            .args(["-t", &seconds.to_string(), "-J"]);
        Ok(Self {
            process: Process::start("client", &mut command)?,
            seconds,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.child.id()
    }

    /// Waits for its end and returns the Gbit/s that it says the server received.
    pub(crate) fn finish(mut self, interrupt: &AtomicBool) -> Result<f64, BenchError> {
        let within = Duration::from_secs(self.seconds.into()) + PATIENCE;
        let (status, said) = self.process.finish(within, interrupt)?;
        received(&said).map_err(|reason| self.process.failed(format!("{status}: {reason}")))
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
    bits_per_second: f64,
}

fn received(json: &str) -> Result<f64, String> {
    let output: Output = serde_json::from_str(json)
        .map_err(|error| format!("no result ({error}): {}", json.trim()))?;
    match (output.error, output.end.sum_received) {
        (Some(error), _) => Err(error),
        (None, Some(sum)) => Ok(sum.bits_per_second / 1e9),
        (None, None) => Err("its result has no end.sum_received".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_figure_is_read() {
        let json = r#"{"start":{},"end":{"sum_received":{"start":0,"bits_per_second":6.5e9}}}"#;
        assert_eq!(received(json), Ok(6.5));
    }

    #[test]
    fn what_iperf3_complains_about_is_passed_on() {
        let refused = r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#;
        assert_eq!(received(refused), Err("unable to connect".to_owned()));
        let words = received("iperf3: parameter error").expect_err("not JSON");
        assert!(words.contains("parameter error"), "{words}");
    }

    #[test]
    fn only_a_listener_on_the_port_counts_as_one() {
        let table = |local: &str, state: &str| {
            format!("  sl  local_address rem_address st\n   0: {local} 00000000:0000 {state} 0\n")
        };
        assert!(listens(&table("0200C613:1451", "0A"), PORT));
        assert!(!listens(&table("0200C613:1451", "06"), PORT));
        assert!(!listens(&table("0200C613:1452", "0A"), PORT));
        assert!(!listens("", PORT));
    }
}
