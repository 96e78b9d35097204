//! Several loads on one TCP and one UDP port.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::handshake::{Header, Phase};
use crate::{Client, Options, Server, TrafficError, Workload};

const LONG: Duration = Duration::from_secs(30);

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Loads whose secrets differ in their last byte, as those of one run do.
fn loads(workloads: &[Workload]) -> Vec<Options> {
    let shared = |(number, workload): (u8, &Workload)| {
        let mut secret = *b"0123456789abcdef";
        secret[15] ^= number;
        Options::new(*workload, secret).with(|load| load.streams = 3)
    };
    (0..).zip(workloads).map(shared).collect()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn ports(servers: &[Server], options: &[Options]) -> (Vec<u16>, Vec<u16>) {
    let of = |udp: bool| {
        let mut ports: Vec<u16> = servers
            .iter()
            .zip(options)
            .filter(|(_, options)| options.load.workload.is_udp() == udp)
            .map(|(server, _)| server.address().ip().unwrap().port())
            .collect();
        ports.dedup();
        ports
    };
    (of(false), of(true))
}

/// Runs them all at once, and ends them in this order.
fn all_at_once(workloads: &[Workload], ends: impl Fn(usize) -> usize) {
    let options = loads(workloads);
    let servers = Server::listen_all(loopback(), &options).unwrap();
    let (tcp, udp) = ports(&servers, &options);
    assert!(tcp.len() <= 1 && udp.len() <= 1, "{tcp:?} {udp:?}");
    let clients: Vec<Client> = servers
        .iter()
        .zip(&options)
        .map(|(server, options)| Client::connect(server.address(), options, LONG).unwrap())
        .collect();
    for (server, client) in servers.iter().zip(&clients) {
        server.wait_connected(LONG).unwrap();
        client.start().unwrap();
    }
    for server in &servers {
        eventually("every load runs", || server.received().0 > 1000);
    }
    let mut pairs: Vec<(usize, (Server, Client))> =
        servers.into_iter().zip(clients).enumerate().collect();
    pairs.sort_by_key(|(place, _)| ends(*place));
    for (place, (server, client)) in pairs {
        client.stop(LONG).unwrap();
        let finished = server.finish(LONG).unwrap();
        assert_eq!(finished.strays, 0, "{:?}", workloads[place]);
        assert!(
            finished
                .flows
                .iter()
                .all(|flow| flow.drained && flow.bytes > 0)
        );
    }
}

#[test]
fn streams_and_requests_share_a_door() {
    let both = [
        Workload::TcpStream,
        Workload::TcpRr,
        Workload::TcpBidirectional,
    ];
    all_at_once(&both, |place| place);
    all_at_once(&both, |place| both.len() - place);
}

#[test]
fn who_connects_for_each_transaction_shares_the_port_with_everybody() {
    let all = [
        Workload::TcpStream,
        Workload::TcpCrr,
        Workload::UdpRr,
        Workload::TcpCrr,
        Workload::TcpRr,
        Workload::UdpStream,
        Workload::UdpRr,
    ];
    all_at_once(&all, |place| place);
    all_at_once(&all, |place| all.len() - place);
}

#[test]
fn each_connection_has_its_own_loads_options_and_no_others() {
    let mut options = loads(&[Workload::TcpStream, Workload::TcpRr, Workload::TcpRr]);
    options[0].load.congestion = Some("reno".to_owned());
    options[1].load.socket_buffer = Some(300_000);
    options[1].load.dscp = Some(8);
    options[2].load.congestion = Some("reno".to_owned());
    options[2].load.socket_buffer = Some(100_000);
    let alone: Vec<_> = options
        .iter()
        .map(|options| states(std::slice::from_ref(options)))
        .collect();
    let together = states(&options);
    for (number, alone) in alone.into_iter().enumerate() {
        assert_eq!(together[number], alone[0], "load {number}");
    }
}

/// Of each load's first flow at its server: congestion control, and both buffers where a size was asked for.
fn states(options: &[Options]) -> Vec<(String, Option<(u32, u32)>)> {
    let servers = Server::listen_all(loopback(), options).unwrap();
    let clients: Vec<Client> = servers
        .iter()
        .zip(options)
        .map(|(server, options)| Client::connect(server.address(), options, LONG).unwrap())
        .collect();
    let state = |(server, options): (&Server, &Options)| {
        server.wait_connected(LONG).unwrap();
        let tcp = server.snapshot().unwrap().flows[0].tcp.clone().unwrap();
        let buffers = options.load.socket_buffer.map(|_| (tcp.sndbuf, tcp.rcvbuf));
        (tcp.congestion, buffers)
    };
    let states = servers.iter().zip(options).map(state).collect();
    drop(clients);
    states
}

#[test]
fn a_stranger_is_refused_whoever_accepts() {
    for workloads in [
        [Workload::TcpStream, Workload::TcpRr],
        [Workload::TcpStream, Workload::TcpCrr],
    ] {
        let options = loads(&workloads);
        let servers = Server::listen_all(loopback(), &options).unwrap();
        let mut stranger = options[0].clone();
        stranger.secret = *b"fedcba9876543210";
        let mut socket = TcpStream::connect(servers[0].address().ip().unwrap()).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        let header = Header::new(&stranger, 0, Phase::Open).encode();
        socket.write_all(&header).unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        let first = answer.first_chunk().expect("an answer");
        assert!(crate::handshake::read_answer(*first).unwrap().is_err());
        let strays = |server: &Server| server.load_strays();
        eventually("it is counted", || {
            servers.iter().map(strays).sum::<u32>() == 1
        });
    }
}

#[test]
fn secrets_that_are_the_same_are_refused() {
    let mut options = loads(&[Workload::UdpRr, Workload::TcpRr]);
    options[1].secret = options[0].secret;
    assert!(matches!(
        Server::listen_all(loopback(), &options),
        Err(TrafficError::Options(_))
    ));
}

#[test]
fn a_port_that_another_run_has_over_udp_is_refused_and_its_datagrams_are_its_own() {
    for workload in [Workload::UdpRr, Workload::UdpStream] {
        let ours = Options::new(workload, *b"0123456789abcdef").with(|load| {
            load.streams = 8;
            load.threads = Some(2);
        });
        let server = Server::listen(loopback(), &ours).unwrap();
        let client = Client::connect(server.address(), &ours, LONG).unwrap();
        client.start().unwrap();
        eventually("it runs", || server.received().0 > 1_000);
        // Of the same user, so that the kernel would let it join those that share the port.
        for threads in [1, 2] {
            let other = Options::new(workload, *b"fedcba9876543210").with(|load| {
                load.streams = threads;
                load.threads = Some(threads);
            });
            let error = Server::listen(server.address(), &other).unwrap_err();
            assert!(
                error.to_string().contains("another program has the port"),
                "{error}"
            );
        }
        let read = server.received().0;
        eventually("it goes on", || server.received().0 > read + 1_000);
        client.stop(LONG).unwrap();
        assert_eq!(server.finish(LONG).unwrap().strays, 0, "{workload:?}");
    }
}
