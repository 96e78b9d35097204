//! Many connections on one thread with a ring: as with epoll in every way but its cost.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use wirecost_sys::epoll::Waker;
use wirecost_sys::ring::{Ring, refuse_here};

use crate::handshake::{Answer, HEADER_BYTES};
use crate::{
    Client, Finished, Limit, Load, Multiplexing, Options, Rate, Server, TrafficError, Workload,
    window_until_end,
};

const LONG: Duration = Duration::from_secs(30);

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// `streams` connections on one thread.
fn options(streams: u32) -> Options {
    Options::new(Workload::TcpRr, *b"fedcba9876543210").with(|load| {
        load.streams = streams;
        load.threads = Some(1);
    })
}

/// Whether this machine has rings; said aloud where it has none.
fn has_rings() -> bool {
    let wake = Waker::new().unwrap();
    let made = Ring::new(&[], wake.as_fd(), 1, b"x");
    if let Err(error) = &made {
        wirecost_skips::skip(format!("no rings here: {error}"));
    }
    made.is_ok()
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn pair(options: &Options) -> (Server, Client) {
    let server = Server::listen(loopback(), options).unwrap();
    let client = Client::connect(server.address(), options, LONG).unwrap();
    server.wait_connected(LONG).unwrap();
    (server, client)
}

/// What a load did.
struct Done {
    asked: Finished,
    answered: Finished,
    /// Requests sent, responses received, latencies at the client; requests received, responses sent at the server.
    counts: [u64; 5],
    /// Whether each of both ends' threads had a ring.
    rings: bool,
}

/// Runs a load to its own end.
fn run(options: &Options) -> Done {
    let (server, client) = pair(options);
    let before = [client.snapshot().unwrap(), server.snapshot().unwrap()];
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    eventually("the server has seen the end of each flow", || {
        let snapshot = server.snapshot().unwrap();
        snapshot.flows.iter().all(|flow| flow.ended.is_some())
    });
    let after = [client.snapshot().unwrap(), server.snapshot().unwrap()];
    let [near, far] = [0, 1].map(|end| window_until_end(&before[end], &after[end]).unwrap());
    let rings = [client.rings(), server.rings()].concat();
    assert!(after[0].threads.iter().all(|thread| thread.polls == 0));
    Done {
        counts: [
            near.counts().sent,
            near.counts().received,
            near.latency.count(),
            far.counts().received,
            far.counts().sent,
        ],
        rings: rings.iter().all(|waits| *waits > 0),
        asked: client.stop(LONG).unwrap(),
        answered: server.finish(LONG).unwrap(),
    }
}

#[test]
fn many_connections_of_one_thread_have_a_ring_and_do_what_they_do_with_epoll() {
    let rings = has_rings();
    for streams in [16, 64] {
        let limited = options(streams).with(|load| load.limit = Some(Limit::Transactions(3_000)));
        let [best, epoll] = [Multiplexing::Auto, Multiplexing::Epoll].map(|multiplexing| {
            let done = run(&Options {
                multiplexing,
                ..limited.clone()
            });
            assert!(done.asked.drained() && done.answered.drained());
            assert_eq!((done.asked.strays, done.answered.strays), (0, 0));
            done
        });
        assert_eq!((best.rings, epoll.rings), (rings, false));
        assert_eq!(best.counts, [3_000; 5]);
        assert_eq!(best.counts, epoll.counts);
        assert_eq!(best.asked.bytes, epoll.asked.bytes);
        assert_eq!(best.answered.bytes, epoll.answered.bytes);
    }
}

#[test]
fn whole_messages_of_any_size_and_depth_go_through_a_ring() {
    let rings = has_rings();
    for (request, response, depth) in [
        (1, 1, 1),
        (1, 16_384, 1),
        (16_384, 1, 4),
        (16_384, 16_384, 64),
        (3, 7, 1024),
        (9_000, 11_000, 16),
    ] {
        for streams in [1, 5] {
            let done = run(&Options {
                load: Load {
                    request,
                    response,
                    depth,
                    // Less than is outstanding at once: writes are taken in parts.
                    socket_buffer: Some(32 << 10),
                    limit: Some(Limit::Transactions(2_000)),
                    ..options(streams).load
                },
                multiplexing: Multiplexing::Ring,
                ..options(streams)
            });
            assert_eq!(done.counts, [2_000; 5], "{request} {response} {depth}");
            assert_eq!(done.asked.bytes, u64::from(request + response) * 2_000);
            assert_eq!(done.asked.bytes, done.answered.bytes);
            // A load that may block where each has its own thread does so.
            assert!(done.rings == rings || streams == 1);
        }
    }
}

#[test]
fn larger_messages_and_requests_by_a_clock_are_left_to_epoll() {
    let large = options(4).with(|load| load.response = 16_385);
    let paced = options(4).with(|load| load.rate = Some(Rate::RequestsPerSecond(2_000.0)));
    let thinking = options(4).with(|load| load.think_time = Duration::from_micros(50));
    for options in [large, paced, thinking] {
        let done = run(&options
            .clone()
            .with(|load| load.limit = Some(Limit::Transactions(300))));
        assert_eq!((done.counts, done.rings), ([300; 5], false), "{options:?}");
        // And yet a ring could have carried those.
        let forced = run(&Options {
            load: Load {
                limit: Some(Limit::Transactions(300)),
                ..options.load
            },
            multiplexing: Multiplexing::Ring,
            ..options
        });
        assert_eq!(forced.counts, [300; 5]);
    }
}

#[test]
fn a_machine_that_refuses_rings_has_epoll() {
    thread::spawn(|| {
        refuse_here().unwrap();
        for multiplexing in [Multiplexing::Auto, Multiplexing::Ring] {
            let done = run(&Options {
                load: Load {
                    limit: Some(Limit::Transactions(500)),
                    ..options(8).load
                },
                multiplexing,
                ..options(8)
            });
            assert_eq!((done.counts, done.rings), ([500; 5], false));
        }
    })
    .join()
    .unwrap();
}

/// Takes so many flows by hand.
fn take(listener: &TcpListener, count: usize) -> Vec<TcpStream> {
    let take = |_| {
        let (mut taken, _) = listener.accept().unwrap();
        taken.read_exact(&mut [0; HEADER_BYTES]).unwrap();
        taken.write_all(&Answer::Accepted.encode()).unwrap();
        taken
    };
    (0..count).map(take).collect()
}

#[test]
fn one_peer_that_vanishes_in_the_middle_is_named_and_the_others_go_on() {
    for within_a_response in [false, true] {
        let listener = TcpListener::bind(loopback()).unwrap();
        let address = listener.local_addr().unwrap();
        let ours = Options {
            load: Load {
                response: 4,
                ..options(3).load
            },
            multiplexing: Multiplexing::Ring,
            ..options(3)
        };
        let serving = thread::spawn(move || {
            let mut flows = take(&listener, 3);
            let mut request = [0; 1];
            for _ in 0..50 {
                for flow in &mut flows {
                    flow.read_exact(&mut request).unwrap();
                    flow.write_all(&[1; 4]).unwrap();
                }
            }
            let mut gone = flows.remove(1);
            if within_a_response {
                gone.write_all(&[1; 2]).unwrap();
            }
            drop(gone);
            for _ in 0..50 {
                for flow in &mut flows {
                    flow.read_exact(&mut request).unwrap();
                    flow.write_all(&[1; 4]).unwrap();
                }
            }
            flows
        });
        let client = Client::connect(address, &ours, LONG).unwrap();
        client.start().unwrap();
        let flows = serving.join().unwrap();
        eventually("it is noticed", || client.snapshot().is_err());
        let error = client.stop(Duration::from_millis(1)).unwrap_err();
        drop(flows);
        assert!(
            matches!(error, TrafficError::PeerVanished { flow: 1, .. }),
            "{error}"
        );
    }
}

#[test]
fn whichever_end_is_given_up_the_other_is_told() {
    for multiplexing in [Multiplexing::Ring, Multiplexing::Epoll] {
        let ours = Options {
            multiplexing,
            ..options(16)
        };
        let (server, client) = pair(&ours);
        client.start().unwrap();
        eventually("it moves", || server.bytes() > 1_000);
        drop(server);
        eventually("it is noticed", || client.snapshot().is_err());
        assert!(matches!(
            client.stop(LONG).unwrap_err(),
            TrafficError::PeerVanished { .. }
        ));

        let (server, client) = pair(&ours);
        client.start().unwrap();
        eventually("it moves", || server.bytes() > 1_000);
        drop(client);
        // Each flow ends by itself, in order or not.
        let _ = server.finish(LONG);
    }
}

#[test]
fn a_load_that_was_never_started_ends_in_order() {
    let ours = Options {
        multiplexing: Multiplexing::Ring,
        ..options(16)
    };
    let (server, client) = pair(&ours);
    assert!(client.stop(LONG).unwrap().drained());
    assert!(server.finish(LONG).unwrap().drained());
}
