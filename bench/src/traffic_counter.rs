//! The yardstick of all: what the kernel of the receiving guest counted, whoever sent it. A program of its own (a
//! hidden subcommand), which lives in the guest as long as its lab.
//!
//! TCP: bytes of payload received, in order, by the connections that are there (`tcpi_bytes_received`, by
//! sock_diag(7)); of requests and responses the responses, at the client. UDP: datagrams that applications read
//! (`Udp: InDatagrams`; net/ipv4/udp.c counts in recvmsg). Each line `WARMUP SECONDS` is answered by what was counted
//! over that window, a line `await BYTES` as soon as a load has begun: so much payload, or some datagrams, came.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::guest::Guest;
use crate::helper::{Helper, answer, over};
use crate::process::PATIENCE;

/// The word that asks whether a load has begun.
const AWAIT: &str = "await";
/// Datagrams after which a UDP load has begun.
const BEGUN_DATAGRAMS: u64 = 1_000;
/// Between two looks at whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Where `tcpi_bytes_received` is in `struct tcp_info` (include/uapi/linux/tcp.h).
const BYTES_RECEIVED: usize = 128;

/// What a window held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct WindowCounts {
    pub(crate) seconds: f64,
    /// Payload received by TCP connections.
    pub(crate) tcp_bytes: u64,
    /// Datagrams read by applications.
    pub(crate) udp_datagrams: u64,
    /// Connections that were there at the beginning and not at the end.
    pub(crate) ended: u32,
}

/// The guest's counters at an instant.
struct CounterSnapshot {
    at: Instant,
    /// Bytes received by the connection's cookie.
    tcp: BTreeMap<[u8; 8], u64>,
    udp: u64,
}

impl CounterSnapshot {
    fn take() -> io::Result<Self> {
        let begin = Instant::now();
        let tcp = connections()?;
        let udp = datagrams_read(&fs::read_to_string("/proc/thread-self/net/snmp")?);
        let udp = udp.ok_or_else(|| io::Error::other("/proc/net/snmp has no Udp: InDatagrams"))?;
        Ok(Self {
            at: begin + begin.elapsed() / 2,
            tcp,
            udp,
        })
    }

    fn since(&self, before: &Self) -> WindowCounts {
        let gained = self.tcp.iter().map(|(cookie, bytes)| {
            bytes.saturating_sub(before.tcp.get(cookie).copied().unwrap_or(0))
        });
        let ended = before
            .tcp
            .keys()
            .filter(|cookie| !self.tcp.contains_key(*cookie));
        WindowCounts {
            seconds: self.at.saturating_duration_since(before.at).as_secs_f64(),
            tcp_bytes: gained.sum(),
            udp_datagrams: self.udp.saturating_sub(before.udp),
            ended: ended.count() as u32,
        }
    }
}

/// `InDatagrams` of a /proc/net/snmp.
fn datagrams_read(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split(' ').position(|name| name == "InDatagrams")?;
    values.split(' ').nth(place)?.parse().ok()
}

/// Bytes received by every established connection of this namespace. A server that listens on an IPv6 socket has its
/// IPv4 connections there too.
fn connections() -> io::Result<BTreeMap<[u8; 8], u64>> {
    let mut found = BTreeMap::new();
    for family in [AF_INET, AF_INET6] {
        connections_of(family, &mut found)?;
    }
    Ok(found)
}

fn connections_of(family: u8, found: &mut BTreeMap<[u8; 8], u64>) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::ESTABLISHED,
        socket_id: SocketId::new_v4(),
    };
    let payload = SockDiagMessage::InetRequest(request).into();
    let mut message = NetlinkMessage::new(header, payload);
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    loop {
        let (bytes, _) = socket.recv_from_full()?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                .map_err(|error| io::Error::other(format!("sock_diag: {error}")))?;
            match message.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                    let info = response.nlas.iter().find_map(|nla| match nla {
                        Nla::TcpInfo(info) => info.get(BYTES_RECEIVED..BYTES_RECEIVED + 8),
                        _ => None,
                    });
                    if let Some(Ok(received)) = info.map(<[u8; 8]>::try_from) {
                        let received = u64::from_ne_bytes(received);
                        found.insert(response.header.socket_id.cookie, received);
                    }
                }
                _ => {}
            }
            // Messages are padded to four bytes (netlink(7), NLMSG_ALIGN).
            let length = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(length.max(4)..).unwrap_or_default();
        }
    }
}

/// Answers each line of the input, until it closes.
///
/// # Errors
/// In words.
pub(crate) fn run() -> Result<(), String> {
    let words = |error: io::Error| format!("reading the guest's counters: {error}");
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("reading the window: {error}"))?;
        if let Some(bytes) = line.strip_prefix(AWAIT) {
            let bytes: u64 = bytes
                .trim()
                .parse()
                .map_err(|_| format!("`{line}` is not {AWAIT} BYTES"))?;
            let before = CounterSnapshot::take().map_err(words)?;
            loop {
                sleep(POLL_INTERVAL);
                let counts = CounterSnapshot::take().map_err(words)?.since(&before);
                if counts.tcp_bytes >= bytes || counts.udp_datagrams >= BEGUN_DATAGRAMS {
                    answer(&counts)?;
                    break;
                }
            }
        } else {
            let [before, after] = over(&line, || CounterSnapshot::take().map_err(words))?;
            answer(&after.since(&before))?;
        }
    }
    Ok(())
}

/// The other end of it: a traffic counter in a guest. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct TrafficCounter(Helper);

impl TrafficCounter {
    pub(crate) fn start(guest: &Guest) -> Result<Self, BenchError> {
        Helper::start("the witness", "witness", guest).map(Self)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Begins to look for a load, over TCP one of so many bytes.
    pub(crate) fn await_load(&mut self, bytes: u64) -> Result<(), BenchError> {
        self.0.send_line(&format!("{AWAIT} {bytes}"))
    }

    /// Begins a window.
    pub(crate) fn begin(&mut self, line: &str) -> Result<(), BenchError> {
        self.0.send_line(line)
    }

    /// The answer to what it was told last.
    ///
    /// # Errors
    /// None within `within`; `alive` may say what ended meanwhile.
    pub(crate) fn counts(
        &mut self,
        within: Duration,
        interrupt: &AtomicBool,
        alive: impl FnMut() -> Result<(), BenchError>,
    ) -> Result<WindowCounts, BenchError> {
        self.0.answer(within, interrupt, alive)
    }
}

/// How long a load may take to begin.
pub(crate) const BEGINNING: Duration = PATIENCE;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn payload_that_a_connection_received_is_counted_exactly() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender =
            TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        let (mut receiver, _) = listener.accept().expect("accepted");
        let before = CounterSnapshot::take().expect("sock_diag");
        // Other processes' tests have another length.
        let length = 100_000 + std::process::id() as usize;
        sender.write_all(&vec![1; length]).expect("loopback");
        receiver.read_exact(&mut vec![0; length]).expect("loopback");
        let after = CounterSnapshot::take().expect("sock_diag");
        // Other tests' connections may be there too: ours is the one with exactly this gain.
        let gain = |cookie: &[u8; 8]| after.tcp[cookie] - before.tcp.get(cookie).unwrap_or(&0);
        let ours = after
            .tcp
            .keys()
            .filter(|&cookie| gain(cookie) == length as u64);
        assert_eq!(ours.count(), 1);
        assert!(after.since(&before).tcp_bytes >= length as u64);
    }

    #[test]
    fn datagrams_count_when_they_are_read() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let before = CounterSnapshot::take().expect("counters");
        socket
            .send_to(&[0; 64], socket.local_addr().expect("bound"))
            .expect("loopback");
        socket.recv(&mut [0; 64]).expect("loopback");
        let counts = CounterSnapshot::take().expect("counters").since(&before);
        assert!(counts.udp_datagrams >= 1, "{counts:?}");
    }

    #[test]
    fn a_connection_that_ended_is_told() {
        let snapshot = |tcp: &[([u8; 8], u64)], udp| CounterSnapshot {
            at: Instant::now(),
            tcp: tcp.iter().copied().collect(),
            udp,
        };
        let before = snapshot(&[([1; 8], 10), ([2; 8], 20)], 5);
        let counts = snapshot(&[([2; 8], 50), ([3; 8], 7)], 9).since(&before);
        assert_eq!(
            (counts.tcp_bytes, counts.udp_datagrams, counts.ended),
            (37, 4, 1)
        );
    }

    #[test]
    fn the_column_is_found_by_its_name() {
        let snmp = "Tcp: A B\nTcp: 1 2\nUdp: X InDatagrams Y\nUdp: 7 42 9\nUdpLite: X\n";
        assert_eq!(datagrams_read(snmp), Some(42));
        assert_eq!(datagrams_read("Udp: X\nUdp: 1\n"), None);
    }
}
