//! Peers that are not what they should be, over UDP and for each transaction's connection; and a slow generator.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_model::end_window::End;

use crate::datagram::{Datagram, tag};
use crate::engine::Engine;
use crate::handshake::{Answer, HEADER_BYTES, Header, Phase};
use crate::sequence::Timestamp;
use crate::shared::Shared;
use crate::task::udp_sender::UdpSender;
use crate::task::{Context, Progress, Task};
use crate::{
    Client, Limit, Options, Rate, Refusal, Server, TrafficError, Workload, window, window_until_end,
};

const LONG: Duration = Duration::from_secs(30);

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn options(workload: Workload) -> Options {
    Options::new(workload, *b"fedcba9876543210")
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn bound() -> UdpSocket {
    let socket = UdpSocket::bind(loopback()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

/// Answers a handshake: takes the flow, or says that so many arrived.
fn answer(socket: &UdpSocket, to: SocketAddr, question: &[u8], arrived: u64) {
    let header = question.first_chunk().unwrap();
    let mut bytes = Answer::Accepted.encode_to(header).to_vec();
    bytes.extend(arrived.to_be_bytes());
    socket.send_to(&bytes, to).unwrap();
}

#[test]
fn other_datagrams_are_counted_and_never_measured() {
    let ours = options(Workload::UdpStream);
    let server = Server::listen(loopback(), &ours).unwrap();
    let client = Client::connect(server.address(), &ours, LONG).unwrap();
    let stranger = bound();
    stranger.connect(server.address().ip().unwrap()).unwrap();
    let mut foreign = vec![0; 1_400];
    for (run, flow) in [([1; 16], 0), (ours.secret, 5), (ours.secret, 60_000)] {
        let datagram = Datagram {
            tag: tag(&run),
            flow,
            counted: true,
            number: 9,
            sent: Timestamp(0),
        };
        datagram.put(&mut foreign);
        stranger.send(&foreign).unwrap();
    }
    stranger.send(b"wirecost").unwrap();
    stranger.send(b"x").unwrap();
    stranger.send(&[]).unwrap();
    client.start().unwrap();
    eventually("all strays are counted", || {
        server.snapshot().unwrap().strays == 6 && server.bytes() > 0
    });
    client.stop(LONG).unwrap();
    let answered = server.finish(LONG).unwrap();
    assert!(answered.drained() && answered.strays == 6);
    assert_eq!(answered.bytes % 1_400, 0);
}

#[test]
fn what_a_stranger_sends_with_the_tag_of_an_open_flow_is_neither_counted_nor_answered() {
    // Two flows of one thread share its socket, which is not connected.
    let ours = options(Workload::UdpRr).with(|load| {
        load.streams = 2;
        load.threads = Some(1);
    });
    let server = Server::listen(loopback(), &ours).unwrap();
    let client = Client::connect(server.address(), &ours, LONG).unwrap();
    let stranger = bound();
    stranger.connect(server.address().ip().unwrap()).unwrap();
    let datagram = Datagram {
        tag: tag(&ours.secret),
        flow: 0,
        counted: true,
        number: 9,
        sent: Timestamp(0),
    };
    let mut forged = [0; 16];
    datagram.put(&mut forged);
    stranger.send(&forged).unwrap();
    client.start().unwrap();
    eventually("the stray is counted", || {
        server.snapshot().unwrap().strays == 1 && server.bytes() > 0
    });
    stranger.set_nonblocking(true).unwrap();
    let answered = stranger.recv(&mut forged);
    assert!(answered.is_err(), "{answered:?}");
    client.stop(LONG).unwrap();
    assert_eq!(server.finish(LONG).unwrap().strays, 1);
}

#[test]
fn what_a_stranger_sends_beside_an_only_flow_is_counted_and_is_none_of_it() {
    let ours = options(Workload::UdpRr);
    let server = Server::listen(loopback(), &ours).unwrap();
    let client = Client::connect(server.address(), &ours, LONG).unwrap();
    client.start().unwrap();
    let stranger = bound();
    stranger.connect(server.address().ip().unwrap()).unwrap();
    // All that it could have heard on the way, but not the address.
    let datagram = Datagram {
        tag: tag(&ours.secret),
        flow: 0,
        counted: false,
        number: 1 << 40,
        sent: Timestamp(0),
    };
    let mut message = [0; 16];
    datagram.put(&mut message);
    stranger.send(&message).unwrap();
    eventually("the stranger is counted", || {
        server.snapshot().unwrap().strays == 1
    });
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut [0; 64]).is_err(), "it was answered");
    let before = server.received().1;
    eventually("the flow goes on", || server.received().1 > before);
    client.stop(LONG).unwrap();
    let finished = server.finish(LONG).unwrap();
    assert_eq!((finished.strays, finished.flows[0].drained), (1, true));
}

#[test]
fn strangers_beside_an_only_flow_are_counted_however_slow_it_is() {
    let ours =
        options(Workload::UdpRr).with(|load| load.rate = Some(Rate::RequestsPerSecond(20.0)));
    let server = Server::listen(loopback(), &ours).unwrap();
    let client = Client::connect(server.address(), &ours, LONG).unwrap();
    client.start().unwrap();
    let stranger = bound();
    stranger.connect(server.address().ip().unwrap()).unwrap();
    for _ in 0..100 {
        stranger.send(b"nobody of yours").unwrap();
    }
    eventually("the strangers are counted", || {
        server.snapshot().unwrap().strays == 100
    });
    assert!(server.received().1 < 100, "long before so many requests");
    client.stop(LONG).unwrap();
    assert!(server.finish(LONG).unwrap().drained());
}

#[test]
fn a_flow_of_another_run_or_load_is_refused_with_the_reason() {
    for workload in [Workload::UdpRr, Workload::TcpCrr, Workload::TcpRr] {
        let ours = options(workload);
        let server = Server::listen(loopback(), &ours).unwrap();
        let refusal =
            |theirs: &Options| match Client::connect(server.address(), theirs, LONG).unwrap_err() {
                TrafficError::Refused { refusal, .. } => refusal,
                other => panic!("{workload:?}: {other}"),
            };
        let other_run = Options {
            secret: [0; 16],
            ..ours.clone()
        };
        assert_eq!(refusal(&other_run), Refusal::Secret);
        let other_size = ours.clone().with(|load| load.response = 77);
        assert_eq!(refusal(&other_size), Refusal::Load);
        let other_count = ours.clone().with(|load| load.streams = 2);
        assert_eq!(refusal(&other_count), Refusal::Flow);
        let _client = Client::connect(server.address(), &ours, LONG).unwrap();
        assert_eq!(refusal(&ours), Refusal::Flow);
        // Some servers answer first.
        eventually("the refused are counted", || {
            server.snapshot().unwrap().strays >= 4
        });
    }
}

#[test]
fn late_and_repeated_responses_are_counted_and_no_latencies() {
    let server = bound();
    let address = server.local_addr().unwrap();
    let ours = options(Workload::UdpRr).with(|load| {
        load.limit = Some(Limit::Transactions(3));
        load.reply_timeout = Duration::from_secs(1);
    });
    let serving = thread::spawn(move || {
        let mut bytes = [0; 100];
        let mut next = || {
            let (length, from) = server.recv_from(&mut bytes).unwrap();
            (bytes[..length].to_vec(), from)
        };
        let (open, client) = next();
        answer(&server, client, &open, 0);
        let (first, _) = next();
        server.send_to(&first, client).unwrap();
        server.send_to(&first, client).unwrap();
        let (second, _) = next();
        // The client gives it up, and asks for the third.
        let (third, _) = next();
        server.send_to(&second, client).unwrap();
        server.send_to(b"nonsense", client).unwrap();
        server.send_to(&third, client).unwrap();
        let (close, _) = next();
        assert!(close.len() > HEADER_BYTES);
        answer(&server, client, &close, 3);
    });
    let client = Client::connect(address, &ours, LONG).unwrap();
    let before = client.snapshot().unwrap();
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let window = window_until_end(&before, &client.snapshot().unwrap()).unwrap();
    let counts = window.flows[0].counts;
    // The third is answered in time, unless this machine stood still.
    assert_eq!(counts.sent, 3);
    assert_eq!(counts.received + counts.timeouts, 3);
    assert!(counts.timeouts >= 1 && counts.late >= 1, "{counts:?}");
    assert!(counts.late <= counts.timeouts, "{counts:?}");
    assert_eq!(counts.duplicated, 1, "{counts:?}");
    assert_eq!(window.latency.count(), counts.received);
    let within = window.latency.share_within(Duration::from_millis(1020));
    assert!(within.is_none_or(|share| share >= 1.0), "{window:?}");
    assert_eq!(client.stop(LONG).unwrap().strays, 1);
    serving.join().unwrap();
}

#[test]
fn a_server_that_is_gone_is_named_by_every_workload() {
    for workload in Workload::ALL {
        let ours = options(workload).with(|load| {
            if workload == Workload::Migration {
                // Half a minute for one round: the move is not over before the server is gone.
                load.rate = Some(Rate::BitsPerSecond(20_000_000));
            }
        });
        let server = Server::listen(loopback(), &ours).unwrap();
        let client = Client::connect(server.address(), &ours, LONG).unwrap();
        client.start().unwrap();
        eventually("it moves", || server.bytes() > 0);
        drop(server);
        eventually("it is noticed", || client.snapshot().is_err());
        let error = client.stop(LONG).unwrap_err();
        assert!(
            matches!(error, TrafficError::PeerVanished { flow: 0, .. }),
            "{workload:?}: {error}"
        );
    }
}

#[test]
fn a_client_that_is_gone_is_no_ordered_end() {
    for workload in Workload::ALL {
        let server = Server::listen(loopback(), &options(workload)).unwrap();
        let client = Client::connect(server.address(), &options(workload), LONG).unwrap();
        client.start().unwrap();
        eventually("it moves", || server.bytes() > 0);
        drop(client);
        let end = server.finish(Duration::from_millis(300));
        let orderly = end.is_ok_and(|finished| finished.drained());
        // The kernel ends a connection in order before it resets it: where that is all there was, nothing was lost.
        let may_look_orderly = matches!(
            workload,
            Workload::TcpStream | Workload::TcpBidirectional | Workload::TcpRr
        );
        assert!(!orderly || may_look_orderly, "{workload:?}");
    }
}

#[test]
fn nobody_there_is_told_from_somebody_who_does_not_answer() {
    let free = bound().local_addr().unwrap();
    let error = Client::connect(free, &options(Workload::UdpRr), LONG).unwrap_err();
    assert!(matches!(error, TrafficError::Connect { .. }), "{error}");
    let silent = bound();
    let patience = Duration::from_millis(120);
    let error = Client::connect(
        silent.local_addr().unwrap(),
        &options(Workload::UdpRr),
        patience,
    )
    .unwrap_err();
    assert!(
        matches!(error, TrafficError::NoDatagram { flow: 0, .. }),
        "{error}"
    );
}

#[test]
fn a_server_of_connections_survives_whoever_calls() {
    let ours = options(Workload::TcpCrr);
    let server = Server::listen(loopback(), &ours).unwrap();
    let connect = || {
        let stream = TcpStream::connect(server.address().ip().unwrap()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    };
    let mut stranger = connect();
    stranger.write_all(&[b'x'; HEADER_BYTES]).unwrap();
    assert!(matches!(stranger.read(&mut [0; 8]), Ok(0) | Err(_)));
    // A transaction of a flow that was never opened.
    let mut early = connect();
    let header = Header::new(&ours, 0, Phase::Transaction);
    early.write_all(&header.encode()).unwrap();
    let mut told = [0; 12];
    early.read_exact(&mut told).unwrap();
    let _silent = connect();
    let client = Client::connect(server.address(), &ours, LONG).unwrap();
    client.start().unwrap();
    eventually("transactions go on", || {
        client.snapshot().unwrap().flows[0].counts.received > 10
    });
    assert!(client.stop(LONG).unwrap().drained());
    let answered = server.finish(LONG).unwrap();
    assert!(answered.drained() && answered.strays >= 2, "{answered:?}");
}

#[test]
fn strangers_that_say_nothing_keep_no_transaction_out_however_many_they_are() {
    let ours = options(Workload::TcpCrr).with(|load| load.threads = Some(1));
    let server = Server::listen(loopback(), &ours).unwrap();
    let client = Client::connect(server.address(), &ours, LONG).unwrap();
    client.start().unwrap();
    let done = || client.snapshot().unwrap().flows[0].counts.received;
    eventually("transactions go on", || done() > 10);
    // Many times the slots. By the timeout of a header alone (5 s for each 65) they would keep it busy for longer than
    // this test waits. Fewer than the slots come within a transaction, however late the client's thread runs.
    let silent: Vec<TcpStream> = (0..30)
        .flat_map(|_| {
            let connect = |_| TcpStream::connect(server.address().ip().unwrap()).unwrap();
            let some: Vec<TcpStream> = (0..20).map(connect).collect();
            let before = done();
            eventually("transactions go on beside them", || done() > before);
            some
        })
        .collect();
    let before = done();
    eventually("transactions go on after them", || done() > before + 100);
    drop(silent);
    assert!(client.stop(LONG).unwrap().drained());
    let answered = server.finish(LONG).unwrap();
    assert!(answered.drained() && answered.strays >= 100, "{answered:?}");
}

#[test]
fn a_server_that_takes_requests_and_never_answers_is_noticed() {
    let noticing: Vec<_> = [1, 2]
        .into_iter()
        .map(|streams| {
            // With a thread for each flow, and with one for both.
            let ours = options(Workload::TcpRr).with(|load| {
                load.streams = streams;
                load.threads = Some(1);
            });
            thread::spawn(move || {
                let listener = std::net::TcpListener::bind(loopback()).unwrap();
                let address = listener.local_addr().unwrap();
                let taking = thread::spawn(move || {
                    let take = |_| {
                        let (mut taken, _) = listener.accept().unwrap();
                        taken.read_exact(&mut [0; HEADER_BYTES]).unwrap();
                        taken.write_all(&Answer::Accepted.encode()).unwrap();
                        taken
                    };
                    (0..streams).map(take).collect::<Vec<_>>()
                });
                let client = Client::connect(address, &ours, LONG).unwrap();
                let _taken = taking.join().unwrap();
                client.start().unwrap();
                eventually("it is noticed", || client.snapshot().is_err());
                let error = client.stop(LONG).unwrap_err();
                assert!(
                    matches!(error, TrafficError::PeerVanished { .. }),
                    "{error}"
                );
            })
        })
        .collect();
    for one in noticing {
        one.join().unwrap();
    }
}

/// A source that has much to do besides: a generator that cannot keep up.
struct Slow(UdpSender);

impl Task for Slow {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let until = Instant::now() + Duration::from_millis(1);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.0.poll(context)
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        self.0.descriptor()
    }

    fn flow(&self) -> Option<u32> {
        self.0.flow()
    }
}

/// A client's end, made by hand, whose one machine this is.
fn alone(
    options: &Options,
    task: impl FnOnce(&Shared, Arc<Socket>) -> Box<dyn Task>,
) -> (Engine, thread::JoinHandle<()>) {
    let engine = Engine::new(options, End::Server).unwrap();
    let shared = &engine.shared;
    let target = bound();
    let socket = crate::socket::udp(loopback(), options, 1).unwrap();
    socket
        .connect(&target.local_addr().unwrap().into())
        .unwrap();
    // Nobody reads: what does not fit is dropped at the receiver, and never holds up the sender.
    std::mem::forget(target);
    let task = task(shared, Arc::new(socket));
    shared.flows.set_connected(&shared.flows.all()[0]);
    let thread = engine.spawn(0, vec![task]).unwrap();
    eventually("it runs", || shared.flows.bytes() > 0);
    (engine, thread)
}

#[test]
fn a_slow_generator_is_marked_and_one_that_waits_is_not() {
    let ours = options(Workload::UdpStream);
    let (engine, thread) = alone(&ours, |shared, socket| {
        Box::new(Slow(UdpSender::new(shared, socket, 0)))
    });
    // Time that the machine's host took is in neither figure: each try has a window of its own.
    let is_marked = |least: Duration| {
        let before = engine.snapshot().unwrap();
        thread::sleep(least);
        let after = engine.snapshot().unwrap();
        window(&before, &after).unwrap().generator_bound
    };
    eventually("it is marked", || is_marked(Duration::from_millis(50)));
    engine.shared.flows.set_stopping();
    thread.join().unwrap();

    let paced = ours.with(|load| load.rate = Some(Rate::BitsPerSecond(100_000)));
    let (engine, thread) = alone(&paced, |shared, socket| {
        Box::new(UdpSender::new(shared, socket, 0))
    });
    let before = engine.snapshot().unwrap();
    // A thread that waits for a core does not sleep: the longer the window, the less of it.
    eventually("it is not marked", || {
        thread::sleep(Duration::from_millis(300));
        let after = engine.snapshot().unwrap();
        !window(&before, &after).unwrap().generator_bound
    });
    engine.shared.flows.set_stopping();
    thread.join().unwrap();
}
