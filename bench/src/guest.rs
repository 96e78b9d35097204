//! Where one end of a load runs: in a guest's namespace, on its host's cores.

use std::fmt::Display;
use std::fs;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// `TCP_LISTEN` (include/net/tcp_states.h) as /proc/net/tcp prints it.
const LISTEN: &str = "0A";

/// A guest: its namespace, its address, and the cores of its host.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    /// A thread in the guest's network namespace.
    tid: u32,
    cpus: String,
    /// The guest's address.
    pub(crate) address: IpAddr,
}

impl Guest {
    pub(crate) fn new(tid: u32, cpus: &[u32], address: IpAddr) -> Self {
        let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
        Self {
            tid,
            cpus: cpus.join(","),
            address,
        }
    }

    /// There, on one core.
    pub(crate) fn on(&self, cpu: u32) -> Self {
        Self {
            cpus: cpu.to_string(),
            ..self.clone()
        }
    }

    /// A program there. Every program on the way becomes the next one, so that the child's process id is the
    /// program's.
    pub(crate) fn command(&self, words: &[String]) -> Command {
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
            .args(["setpriv", "--pdeathsig", "KILL"])
            .args(words)
            // A group of its own: the terminal's Ctrl-C is for this program to handle.
            .process_group(0)
            .stdin(Stdio::null());
        command
    }

    /// Whether somebody waits there on a port.
    pub(crate) fn is_open(&self, listening_port: ListeningPort) -> bool {
        let (file, port, state) = match listening_port {
            ListeningPort::Tcp(port) => ("tcp", port, Some(LISTEN)),
            ListeningPort::Udp(port) => ("udp", port, None),
        };
        // A server that listens on every address of both families is in the second file.
        [file.to_owned(), format!("{file}6")].iter().any(|file| {
            fs::read_to_string(format!("/proc/{}/net/{file}", self.tid))
                .is_ok_and(|table| is_bound(&table, port, state))
        })
    }
}

/// A port that is to be waited on before a client may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListeningPort {
    /// A listener.
    Tcp(u16),
    /// A bound socket.
    Udp(u16),
}

/// Whether a /proc/net/tcp or udp shows a socket on `port`, in this state where one is wanted
/// (net/ipv4/tcp_ipv4.c, `get_tcp4_sock`).
fn is_bound(table: &str, port: u16, state: Option<&str>) -> bool {
    let port = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        columns.get(1).is_some_and(|local| local.ends_with(&port))
            && columns
                .get(3)
                .is_some_and(|its| state.is_none_or(|state| *its == state))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listener_on_the_port_counts_as_one() {
        let table = |local: &str, state: &str| {
            format!("  sl  local_address rem_address st\n   0: {local} 00000000:0000 {state} 0\n")
        };
        assert!(is_bound(&table("0200C613:1451", "0A"), 5201, Some(LISTEN)));
        assert!(!is_bound(&table("0200C613:1451", "06"), 5201, Some(LISTEN)));
        assert!(!is_bound(&table("0200C613:1452", "0A"), 5201, Some(LISTEN)));
        assert!(is_bound(&table("0200C613:1451", "07"), 5201, None));
        assert!(!is_bound("", 5201, None));
    }
}
