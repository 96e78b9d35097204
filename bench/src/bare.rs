//! The system calls of a load and nothing else, as a program of its own (a hidden subcommand): what of a kernel's
//! stream, requests and datagrams is to be had without a generator. No headers, no numbers, no clock for each, nothing
//! is counted at the receiver. Linux: sendmmsg(2) and recvmmsg(2), or write(2), read(2) and, for several connections,
//! epoll_wait(2).

mod tcp;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use wirecost_sys::socket::{ReceiveBatch, SendBatch};

/// Datagrams for each system call, as many as ours hands over.
const BATCH: usize = 64;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// UDP, [`BATCH`] datagrams for each system call.
    Datagrams,
    /// TCP, from client to server.
    Stream,
    /// TCP, one request outstanding on each connection.
    Exchange,
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    side: Side,
    #[arg(long)]
    kind: Kind,
    /// Bytes of a datagram, a write, a request and a response.
    #[arg(long)]
    message: u32,
    /// TCP connections.
    #[arg(long, default_value_t = 1)]
    connections: u32,
    /// Of the server.
    #[arg(long)]
    address: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum Side {
    /// Reads until it is ended.
    Server,
    Client {
        #[arg(long)]
        seconds: u32,
    },
}

/// Runs one end: the client for its time, the server until it is ended. A client prints `rate=` in thousands of
/// datagrams or transactions a second, or in Gbit/s.
///
/// # Errors
/// In words.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let &Arguments { kind, address, .. } = arguments;
    let (message, connections) = (
        arguments.message as usize,
        arguments.connections.max(1) as usize,
    );
    let done = match (arguments.side, kind) {
        (Side::Server, Kind::Datagrams) => receive(address, message),
        (Side::Server, Kind::Stream) => tcp::drain(address, message, connections),
        (Side::Server, Kind::Exchange) => tcp::answer(address, message, connections),
        (Side::Client { seconds }, _) => {
            let time = Duration::from_secs(seconds.into());
            let rate = match kind {
                Kind::Datagrams => send_to(address, message, time),
                Kind::Stream => tcp::fill(address, message, connections, time),
                Kind::Exchange => tcp::ask(address, message, connections, time),
            };
            rate.map(|rate| println!("rate={rate:.3}"))
        }
    };
    done.map_err(|error| format!("{address}: {error}"))
}

/// Reads datagrams until it is ended.
fn receive(address: SocketAddr, message: usize) -> std::io::Result<()> {
    let socket = UdpSocket::bind(address)?;
    let mut batch = ReceiveBatch::new(BATCH, message, false);
    loop {
        batch.receive(&socket, true, false)?;
    }
}

/// Sends to this address for so long; thousands a second.
fn send_to(address: SocketAddr, message: usize, time: Duration) -> std::io::Result<f64> {
    let socket = UdpSocket::bind(SocketAddr::new(unspecified(address), 0))?;
    socket.connect(address)?;
    let (sent, took) = send(&socket, message, time)?;
    Ok(sent as f64 / took.as_secs_f64() / 1e3)
}

/// Sends for so long; how many left, and how long it was.
fn send(socket: &UdpSocket, message: usize, time: Duration) -> std::io::Result<(u64, Duration)> {
    let mut batch = SendBatch::new(BATCH, message);
    let begin = Instant::now();
    let mut sent = 0;
    loop {
        sent += batch.send(socket, 0, BATCH, true)? as u64;
        let took = begin.elapsed();
        if took >= time {
            return Ok((sent, took));
        }
    }
}

fn unspecified(like: SocketAddr) -> std::net::IpAddr {
    match like {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_to_have_sent_is_what_comes() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        client
            .connect(server.local_addr().expect("bound"))
            .expect("known");
        // One batch, which the receive buffer holds.
        let (sent, _) = send(&client, 64, Duration::ZERO).expect("sent");
        assert_eq!(sent, BATCH as u64);
        let mut batch = ReceiveBatch::new(BATCH, 64, false);
        let mut read = 0;
        while read < BATCH {
            let more = batch.receive(&server, true, false).expect("some are there");
            assert!((0..more).all(|index| batch.get(index).length == 64));
            read += more;
        }
        assert_eq!(read, BATCH);
    }
}
