//! TCP streams, both ends on loopback. Every wait is bounded, none is measured.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};
use wirecost_model::end_window::{End, FlowWindow};
use wirecost_sys::socket::tcp_info;

use crate::engine::Engine;
use crate::handshake::{ANSWER_BYTES, Answer, HEADER_BYTES, Header, Phase};
use crate::socket::set_sender_options;
use crate::task::stream_sender::{Initiator, StreamSender};
use crate::worker::{ThreadMode, spawn};
use crate::{Client, Options, Refusal, Server, TrafficError, Workload, window};

const LONG: Duration = Duration::from_secs(20);
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn options(streams: u32) -> Options {
    Options::new(Workload::TcpStream, *b"0123456789abcdef").with(|load| {
        load.streams = streams;
        load.congestion = Some("reno".to_owned());
    })
}

fn socket(flow: &FlowWindow) -> &wirecost_model::sample::Socket {
    flow.tcp.as_ref().unwrap()
}

fn pair(options: &Options) -> (Server, Client) {
    let sink = Server::listen(LOOPBACK, options).unwrap();
    let source = Client::connect(sink.address(), options, LONG).unwrap();
    sink.wait_connected(LONG).unwrap();
    (sink, source)
}

/// Looks again and again until it holds.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Something that listens like a sink and takes one flow; returns the accepted connection.
fn false_server(options: &Options) -> (Client, TcpStream) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    let taking = thread::spawn(move || {
        let (mut taken, _) = listener.accept().unwrap();
        taken.read_exact(&mut [0; HEADER_BYTES]).unwrap();
        taken.write_all(&Answer::Accepted.encode()).unwrap();
        taken
    });
    let source = Client::connect(address, options, LONG).unwrap();
    (source, taking.join().unwrap())
}

/// A connection that opens like a source's, without the answer read.
fn false_client(sink: &Server, header: &Header) -> TcpStream {
    let mut stream = TcpStream::connect(sink.address().ip().unwrap()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(&header.encode()).unwrap();
    stream
}

fn reset(stream: TcpStream) {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
}

#[test]
fn every_byte_that_was_sent_is_read() {
    // Stopping falls anywhere in a write: again and again, with messages that fit nothing.
    for message in [1, 1_000, 65_537, 1 << 20] {
        let options = options(1).with(|load| load.request = message);
        let (sink, source) = pair(&options);
        assert_eq!((sink.bytes(), source.bytes()), (0, 0));
        source.start().unwrap();
        eventually("bytes arrive", || sink.bytes() > 100_000);
        let sent = source.stop(LONG).unwrap();
        let read = sink.finish(LONG).unwrap();
        assert!(sent.drained() && read.drained(), "{sent:?} {read:?}");
        assert_eq!(sent.bytes, read.bytes);
        assert_eq!(read.strays, 0);
    }
}

#[test]
fn four_flows_begin_together_and_are_all_measured() {
    let (sink, source) = pair(&options(4));
    source.start().unwrap();
    eventually("every flow moves", || {
        sink.snapshot()
            .unwrap()
            .flows
            .iter()
            .all(|flow| flow.counts.bytes() > 0)
    });
    let before = (source.snapshot().unwrap(), sink.snapshot().unwrap());
    // What the kernel had queued before can feed the reader for a while: both ends are to have gained.
    eventually("every flow gains", || {
        let sent = window(&before.0, &source.snapshot().unwrap()).unwrap();
        let read = window(&before.1, &sink.snapshot().unwrap()).unwrap();
        sent.flows.iter().all(|flow| socket(flow).data_segs_out > 0)
            && read
                .flows
                .iter()
                .all(|flow| flow.counts.read_bytes > 0 && socket(flow).segs_in > 0)
    });
    let after = (source.snapshot().unwrap(), sink.snapshot().unwrap());
    let sent = window(&before.0, &after.0).unwrap();
    let read = window(&before.1, &after.1).unwrap();
    assert_eq!((sent.flows.len(), read.flows.len()), (4, 4));
    for (sent, read) in sent.flows.iter().zip(&read.flows) {
        let (sender, receiver) = (socket(sent), socket(read));
        assert!(sender.data_segs_out > 0 && receiver.segs_in > 0 && receiver.data_segs_out == 0);
        assert!(sender.snd_mss > 0 && sender.pmtu > sender.snd_mss && sender.snd_cwnd > 0);
        assert_eq!(
            (&*sender.congestion, &*receiver.congestion),
            ("reno", "reno")
        );
        assert!(read.counts.read_bytes > 0);
    }
    let gained = after.1.bytes() - before.1.bytes();
    assert_eq!(read.counts().bytes(), gained);
    assert!(after.1.since(&before.1) > Duration::ZERO);
    let sent = source.stop(LONG).unwrap();
    assert_eq!(sent.bytes, sink.finish(LONG).unwrap().bytes);
}

#[test]
fn it_runs_over_ipv6_too() {
    let options = options(2);
    let sink = Server::listen(SocketAddr::from((Ipv6Addr::LOCALHOST, 0)), &options).unwrap();
    let source = Client::connect(sink.address(), &options, LONG).unwrap();
    source.start().unwrap();
    eventually("bytes arrive", || sink.bytes() > 0);
    assert_eq!(
        source.stop(LONG).unwrap().bytes,
        sink.finish(LONG).unwrap().bytes
    );
}

#[test]
fn segments_are_full_whatever_the_message_size() {
    for message in [100, 1_000, 10_007, 128 << 10] {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        // Loopback's own MSS is 64 KiB; a network card's shows what is meant.
        socket.set_tcp_mss(1_408).unwrap();
        socket
            .connect(&listener.local_addr().unwrap().into())
            .unwrap();
        let mut options = options(1);
        options.load.request = message;
        set_sender_options(&socket, &options).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let reader = thread::spawn(move || std::io::copy(&mut far, &mut std::io::sink()));

        let engine = Engine::new(&options, End::Server).unwrap();
        let socket = Arc::new(socket);
        let source = StreamSender::new(&options, Arc::clone(&socket), 0, Initiator::Local);
        let writer = spawn(
            &engine.shared,
            0,
            vec![Box::new(source)],
            ThreadMode::Blocking,
            false,
        )
        .unwrap();
        let flows = &engine.shared.flows;
        eventually("enough was sent", || flows.bytes() > 20_000_000);
        flows.set_stopping();
        writer.join().unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), flows.bytes());

        let info = tcp_info(&socket).unwrap();
        let fewest = flows.bytes().div_ceil(u64::from(info.snd_mss));
        let sent = u64::from(info.data_segs_out - info.total_retrans);
        // Another segment now and then where the peer's window or the send buffer ends within one.
        assert!(
            sent >= fewest && sent <= fewest + fewest / 100,
            "message {message}: {sent} segments for {} bytes of MSS {}, at least {fewest}",
            flows.bytes(),
            info.snd_mss
        );
    }
}

#[test]
fn a_connection_with_the_wrong_secret_is_dropped_and_counted_while_the_right_one_runs() {
    let ours = options(1);
    let sink = Server::listen(LOOPBACK, &ours).unwrap();
    let theirs = Options {
        secret: [0; 16],
        ..ours.clone()
    };
    let refused = Client::connect(sink.address(), &theirs, LONG).unwrap_err();
    assert!(
        matches!(
            refused,
            TrafficError::Refused {
                flow: 0,
                refusal: Refusal::Secret,
                ..
            }
        ),
        "{refused}"
    );
    let words = format!("the server at {} refused flow 0: ", sink.address());
    assert!(refused.to_string().starts_with(&words), "{refused}");
    let source = Client::connect(sink.address(), &ours, LONG).unwrap();
    source.start().unwrap();
    eventually("bytes arrive", || sink.bytes() > 0);
    assert!(Client::connect(sink.address(), &theirs, LONG).is_err());
    let sent = source.stop(LONG).unwrap();
    let read = sink.finish(LONG).unwrap();
    assert_eq!((read.bytes, read.strays), (sent.bytes, 2));
}

#[test]
fn another_number_of_flows_and_a_second_of_the_same_flow_are_refused() {
    let ours = options(1);
    let (sink, _source) = pair(&ours);
    for other in [options(1), options(3)] {
        let refused = Client::connect(sink.address(), &other, LONG).unwrap_err();
        assert!(
            matches!(
                refused,
                TrafficError::Refused {
                    refusal: Refusal::Flow,
                    ..
                }
            ),
            "{refused}"
        );
    }
}

#[test]
fn a_silent_connection_holds_up_nobody_and_is_counted_when_it_goes() {
    let ours = options(2);
    let sink = Server::listen(LOOPBACK, &ours).unwrap();
    let silent = TcpStream::connect(sink.address().ip().unwrap()).unwrap();
    let mut half = TcpStream::connect(sink.address().ip().unwrap()).unwrap();
    half.write_all(b"wirecost").unwrap();
    let mut other = TcpStream::connect(sink.address().ip().unwrap()).unwrap();
    other
        .write_all(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
        .unwrap();

    let source = Client::connect(sink.address(), &ours, LONG).unwrap();
    source.start().unwrap();
    eventually("bytes arrive", || sink.bytes() > 0);
    drop((silent, half));
    other.set_read_timeout(Some(LONG)).unwrap();
    assert!(
        matches!(other.read(&mut [0; 8]), Ok(0) | Err(_)),
        "a stray is told nothing"
    );
    let sent = source.stop(LONG).unwrap();
    let lonely = Options {
        secret: [0; 16],
        ..ours
    };
    // Its refusal comes behind the others' end.
    assert!(Client::connect(sink.address(), &lonely, LONG).is_err());
    let read = sink.finish(LONG).unwrap();
    assert_eq!(read.bytes, sent.bytes);
    assert!((4..=5).contains(&read.strays), "{read:?}");
}

#[test]
fn somebody_else_who_listens_there_is_no_sink() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; HEADER_BYTES]).unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9\r\n").unwrap();
    });
    let error = Client::connect(address, &options(1), LONG).unwrap_err();
    other.join().unwrap();
    assert!(
        matches!(error, TrafficError::NoAnswer { flow: 0, .. }),
        "{error}"
    );
    let words = format!("flow 0 reached {address}, which did not answer as a Wirecost server: ");
    assert!(error.to_string().starts_with(&words), "{error}");
    let gone = Client::connect(address, &options(1), LONG).unwrap_err();
    assert!(
        matches!(gone, TrafficError::Connect { flow: 0, .. }),
        "{gone}"
    );
}

#[test]
fn a_listener_that_never_answers_is_given_up_in_time() {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    let error = Client::connect(address, &options(1), Duration::from_millis(50)).unwrap_err();
    let TrafficError::NoAnswer { source, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn flows_that_never_come_are_named_in_time() {
    let sink = Server::listen(LOOPBACK, &options(2)).unwrap();
    let error = sink.wait_connected(Duration::from_millis(20)).unwrap_err();
    insta::assert_snapshot!(
        error,
        @"0 of 2 flows arrived within 0.02 s (0 connections of others were dropped)"
    );
    assert!(matches!(
        sink.snapshot(),
        Err(TrafficError::NotConnected { .. })
    ));
    assert!(!sink.finish(LONG).unwrap().drained());
}

#[test]
fn a_source_whose_sink_vanished_names_the_flow_and_its_bytes() {
    let (source, mut taken) = false_server(&options(1));
    source.start().unwrap();
    taken.read_exact(&mut [0; 4096]).unwrap();
    reset(taken);
    eventually("it is noticed", || source.snapshot().is_err());
    let written = source.bytes();
    let error = source.stop(LONG).unwrap_err();
    let TrafficError::PeerVanished { flow: 0, bytes, .. } = error else {
        panic!("{error}")
    };
    assert!(bytes == written && bytes >= 4096);
}

#[test]
fn a_sink_whose_source_vanished_names_the_flow_and_its_bytes() {
    let ours = options(2);
    let sink = Server::listen(LOOPBACK, &ours).unwrap();
    let header = |flow| Header::new(&ours, flow, Phase::Open);
    let _well = false_client(&sink, &header(0));
    let mut vanishing = false_client(&sink, &header(1));
    sink.wait_connected(LONG).unwrap();
    vanishing.read_exact(&mut [0; ANSWER_BYTES]).unwrap();
    vanishing.write_all(&[7; 1_234]).unwrap();
    eventually("its bytes arrive", || sink.bytes() == 1_234);
    reset(vanishing);
    eventually("it is noticed", || sink.snapshot().is_err());
    let error = sink.finish(Duration::ZERO).unwrap_err();
    insta::assert_snapshot!(
        error,
        @"lost contact with the peer of flow 1 after 1234 bytes: Connection reset by peer (os error 104)"
    );
}

#[test]
fn a_sink_that_is_dropped_is_a_peer_that_vanished() {
    let (sink, source) = pair(&options(2));
    source.start().unwrap();
    eventually("bytes arrive", || sink.bytes() > 0);
    drop(sink);
    eventually("it is noticed", || source.snapshot().is_err());
    assert!(matches!(
        source.stop(LONG),
        Err(TrafficError::PeerVanished { .. })
    ));
}

#[test]
fn flows_of_a_source_that_is_dropped_have_no_figure_at_the_sink() {
    let (sink, source) = pair(&options(2));
    source.start().unwrap();
    eventually("bytes arrive", || sink.bytes() > 0);
    let before = sink.snapshot().unwrap();
    drop(source);
    // A reset or an early end, as it falls: never a figure.
    eventually("it is noticed", || {
        sink.snapshot()
            .and_then(|after| window(&before, &after))
            .is_err()
    });
}

#[test]
fn a_writer_ends_though_the_receiver_does_not_read() {
    let (source, taken) = false_server(&options(1).with(|load| load.request = 1 << 20));
    source.start().unwrap();
    // The first write does not fit into both buffers: it has begun, and it cannot come back by itself.
    eventually("its buffers are full", || {
        source.snapshot().unwrap().flows[0]
            .tcp
            .as_ref()
            .unwrap()
            .info
            .notsent_bytes
            > 0
    });
    let finished = source.stop(Duration::from_millis(50)).unwrap();
    assert!(!finished.drained() && finished.bytes > 0, "{finished:?}");
    drop(taken);
}

#[test]
fn a_source_that_never_started_ends_in_order_with_nothing_sent() {
    let (sink, source) = pair(&options(3));
    let sent = source.stop(LONG).unwrap();
    let read = sink.finish(LONG).unwrap();
    assert!(sent.drained() && read.drained());
    assert_eq!((sent.bytes, read.bytes), (0, 0));
}

#[test]
fn a_sink_that_is_finished_first_gives_up_in_time() {
    let (sink, source) = pair(&options(2));
    source.start().unwrap();
    eventually("bytes arrive", || sink.bytes() > 0);
    let read = sink.finish(Duration::from_millis(20)).unwrap();
    assert!(!read.drained() && read.bytes > 0);
    assert!(matches!(
        source.stop(LONG),
        Err(TrafficError::PeerVanished { .. })
    ));
}

#[test]
fn a_flow_that_ended_is_told_from_one_that_runs() {
    let (sink, source) = pair(&options(1));
    let before = sink.snapshot().unwrap();
    source.start().unwrap();
    source.stop(LONG).unwrap();
    eventually("the end is noticed", || {
        sink.snapshot().unwrap().flows[0].ended.is_some()
    });
    let after = sink.snapshot().unwrap();
    assert!(matches!(
        window(&before, &after),
        Err(TrafficError::EndedEarly { flow: 0, .. })
    ));
}

#[test]
fn options_are_on_both_ends_as_asked_for() {
    let options = options(1).with(|load| load.socket_buffer = Some(100_000));
    let (sink, source) = pair(&options);
    for snapshot in [source.snapshot().unwrap(), sink.snapshot().unwrap()] {
        let flow = snapshot.flows[0].tcp.as_ref().unwrap();
        assert_eq!(flow.congestion, "reno");
        assert_eq!((flow.sndbuf, flow.rcvbuf), (200_000, 200_000));
    }
}

/// Whether buffers may go beyond the system's caps: CAP_NET_ADMIN (bit 12) in the initial user namespace.
fn may_go_beyond_the_caps() -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap();
    let status = read("/proc/self/status");
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap();
    let map = read("/proc/self/uid_map");
    let initial = map.split_whitespace().eq(["0", "0", "4294967295"]);
    initial && mask & 1 << 12 != 0
}

#[test]
fn a_buffer_above_the_systems_limit_is_given_where_that_is_allowed_and_else_names_the_sysctl_and_both_numbers()
 {
    let asked = 1 << 29;
    let limit = || -> u32 {
        let text = std::fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
        text.trim().parse().unwrap()
    };
    let wmem_max = limit();
    if wmem_max >= asked {
        wirecost_skips::lacks(format!(
            "net.core.wmem_max is {wmem_max}, above what is asked for"
        ));
        return;
    }
    let options = options(1).with(|load| load.socket_buffer = Some(asked));
    if may_go_beyond_the_caps() {
        let (_sink, source) = pair(&options);
        let flow = source.snapshot().unwrap().flows[0].tcp.clone().unwrap();
        assert_eq!((flow.sndbuf, flow.rcvbuf), (2 * asked, 2 * asked));
        assert_eq!(limit(), wmem_max, "the machine's own limit stays");
        return;
    }
    let text = Server::listen(LOOPBACK, &options).unwrap_err().to_string();
    assert!(
        text.contains("net.core.wmem_max")
            && text.contains(&asked.to_string())
            && text.contains(&wmem_max.to_string()),
        "{text}"
    );
}

#[test]
fn options_that_no_load_can_have_are_refused_at_both_ends() {
    for wrong in [
        options(1).with(|load| load.streams = 0),
        options(1).with(|load| load.request = 0),
    ] {
        assert!(matches!(
            Server::listen(LOOPBACK, &wrong),
            Err(TrafficError::Options(_))
        ));
        assert!(matches!(
            Client::connect(LOOPBACK, &wrong, LONG),
            Err(TrafficError::Options(_))
        ));
    }
    let unknown = options(1).with(|load| load.congestion = Some("no-such".to_owned()));
    assert!(matches!(
        Server::listen(LOOPBACK, &unknown),
        Err(TrafficError::Congestion(_))
    ));
}

#[test]
fn a_stream_waits_for_full_segments_where_its_buffer_has_room_for_them() {
    let corks = |nodelay: bool, socket_buffer: Option<u32>| {
        let options = options(1).with(|load| {
            load.socket_buffer = socket_buffer;
            load.nodelay = nodelay;
        });
        options.corks()
    };
    assert!(corks(false, None));
    assert!(corks(false, Some(1 << 20)));
    assert!(!corks(true, None));
    // A segment of an MTU of 8900 does not get full in it.
    assert!(!corks(false, Some(8 * 1024)));
}
