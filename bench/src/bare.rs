//! Nothing but sendmmsg(2) and recvmmsg(2), as a program of its own (a hidden subcommand): what of a kernel's datagrams is
//! to be had without a generator. No headers, no numbers, no clock for each, nothing is counted at the receiver.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use wirecost_sys::socket::{ReceiveBatch, SendBatch};

/// Datagrams for each system call, as many as ours hands over.
const BATCH: usize = 64;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    side: Side,
    /// Bytes of a datagram.
    #[arg(long)]
    message: u32,
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

/// Runs one end: the client for its time, the server until it is ended.
///
/// # Errors
/// In words.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let words = |error: std::io::Error| format!("{}: {error}", arguments.address);
    let message = arguments.message as usize;
    match arguments.side {
        Side::Server => {
            let socket = UdpSocket::bind(arguments.address).map_err(words)?;
            let mut batch = ReceiveBatch::new(BATCH, message, false);
            loop {
                batch.receive(&socket, true, false).map_err(words)?;
            }
        }
        Side::Client { seconds } => {
            let any = SocketAddr::new(unspecified(arguments.address), 0);
            let socket = UdpSocket::bind(any).map_err(words)?;
            socket.connect(arguments.address).map_err(words)?;
            let time = Duration::from_secs(seconds.into());
            let (sent, took) = send(&socket, message, time).map_err(words)?;
            println!("sent_k={:.3}", sent as f64 / took.as_secs_f64() / 1e3);
            Ok(())
        }
    }
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
