//! Readers that share a processor.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_sys::process::allowed_cpus;

use crate::handshake::{ANSWER_BYTES, Header, Phase};
use crate::{Options, Server, Workload};

const LONG: Duration = Duration::from_secs(20);
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Much less than a read may take.
const LITTLE: [u8; 4096] = [0; 4096];

#[test]
fn a_stream_that_is_silent_holds_up_nobody_whose_turn_comes_after_it() {
    let streams = allowed_cpus().unwrap().len() as u32 + 1;
    let options = Options {
        streams,
        threads: Some(streams),
        ..Options::new(Workload::TcpStream, *b"0123456789abcdef")
    };
    let sink = Server::listen(LOOPBACK, &options).unwrap();
    let connections: Vec<TcpStream> = (0..streams)
        .map(|flow| {
            let mut stream = TcpStream::connect(sink.address()).unwrap();
            let header = Header::new(&options, flow, Phase::Open);
            stream.write_all(&header.encode()).unwrap();
            stream.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
            stream.set_nodelay(true).unwrap();
            stream
        })
        .collect();
    sink.wait_connected(LONG).unwrap();
    let group = sink.turns().unwrap().group(0);
    let over = AtomicBool::new(false);
    // The first and the last share a processor: all write, then the first is silent.
    let [first, .., last] = &connections[..] else {
        unreachable!("there are two at least")
    };
    let write = |mut stream: &TcpStream| {
        let mut written = 0;
        while !over.load(Relaxed) {
            written += stream.write(&LITTLE).unwrap() as u64;
            thread::sleep(Duration::from_micros(200));
        }
        written
    };
    let deadline = Instant::now() + LONG;
    let written = thread::scope(|scope| {
        let writers = [scope.spawn(|| write(first)), scope.spawn(|| write(last))];
        while !group.is_taken() {
            assert!(Instant::now() < deadline, "they never took turns");
            thread::sleep(Duration::from_millis(1));
        }
        over.store(true, Relaxed);
        writers
            .map(|writer| writer.join().unwrap())
            .iter()
            .sum::<u64>()
    });
    over.store(false, Relaxed);
    let more = thread::scope(|scope| {
        let writer = scope.spawn(|| write(last));
        let wanted = written + (1 << 20);
        while sink.bytes() < wanted {
            assert!(Instant::now() < deadline, "{} of {wanted}", sink.bytes());
            thread::sleep(Duration::from_millis(1));
        }
        over.store(true, Relaxed);
        writer.join().unwrap()
    });
    while sink.bytes() < written + more {
        assert!(
            Instant::now() < deadline,
            "{} of {}",
            sink.bytes(),
            written + more
        );
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(sink.bytes(), written + more);
}
