//! Every workload in every way its threads may be driven, on loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::end_window::{Counts, WaitMethod};

use wirecost_model::end_window::EndWindow;

use crate::{
    Client, Limit, Options, Rate, Receiving, Segmentation, Sending, Server, Snapshot, TrafficError,
    WaitMode, Workload, window, window_until_end,
};

const LONG: Duration = Duration::from_secs(30);
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn options(workload: Workload, streams: u32) -> Options {
    Options::new(workload, *b"fedcba9876543210").with(|load| load.streams = streams)
}

/// Those that go on until they are stopped.
fn endless() -> impl Iterator<Item = Workload> {
    let all = Workload::ALL.into_iter();
    all.filter(|workload| !workload.is_migration())
}

fn pair(options: &Options) -> (Server, Client) {
    let server = Server::listen(LOOPBACK, options).unwrap();
    let client = Client::connect(server.address(), options, LONG).unwrap();
    server.wait_connected(LONG).unwrap();
    (server, client)
}

fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn moves(snapshot: &Snapshot) -> bool {
    snapshot.flows.iter().all(|flow| flow.counts.bytes() > 0)
}

/// A figure of all flows together, since they began.
fn total(snapshot: &Snapshot, figure: impl Fn(&Counts) -> u64) -> u64 {
    snapshot.flows.iter().map(|flow| figure(&flow.counts)).sum()
}

/// Runs a load until every flow has moved at both ends, and returns what both ends did from then on, until each flow
/// has moved again: client first.
fn run(options: &Options) -> [EndWindow; 2] {
    let (server, client) = pair(options);
    client.start().unwrap();
    eventually("every flow moves at both ends", || {
        moves(&client.snapshot().unwrap()) && moves(&server.snapshot().unwrap())
    });
    let before = [client.snapshot().unwrap(), server.snapshot().unwrap()];
    let gained = |before: &Snapshot, after: &Snapshot| {
        before
            .flows
            .iter()
            .zip(&after.flows)
            .all(|(before, after)| after.counts.bytes() > before.counts.bytes())
    };
    // A flow gains with each part of a request; a transaction is counted at each end when it is over there.
    let answered = |asking: &Snapshot, answering: &Snapshot| {
        let sent = |snapshot| total(snapshot, |counts| counts.sent);
        !options.load.workload.is_request_response()
            || asking.latency.count() > before[0].latency.count()
                && sent(answering) > sent(&before[1])
    };
    eventually("every flow gains at both ends", || {
        let [asking, answering] = [client.snapshot().unwrap(), server.snapshot().unwrap()];
        gained(&before[0], &asking)
            && gained(&before[1], &answering)
            && answered(&asking, &answering)
    });
    let after = [client.snapshot().unwrap(), server.snapshot().unwrap()];
    let windows = [0, 1].map(|end| window(&before[end], &after[end]).unwrap());
    let asked = client.stop(LONG).unwrap();
    let answered = server.finish(LONG).unwrap();
    assert!(
        asked.drained() && answered.drained(),
        "{asked:?} {answered:?}"
    );
    assert_eq!((asked.strays, answered.strays), (0, 0));
    if !options.load.workload.is_udp() {
        assert_eq!(asked.bytes, answered.bytes);
    }
    windows
}

#[test]
fn every_workload_runs_however_its_threads_are_driven() {
    for workload in endless() {
        // One thread for each flow, one for several, as many as are usual.
        for (streams, threads) in [
            (1, None),
            (2, Some(2)),
            (3, Some(1)),
            (5, Some(2)),
            (100, None),
        ] {
            let options = options(workload, streams).with(|load| load.threads = threads);
            let [client, server] = run(&options);
            assert_eq!(client.flows.len(), streams as usize);
            assert!(client.seconds > 0.0 && server.counts().bytes() > 0);
            if workload.is_request_response() {
                // Counted a moment later than the transactions: exactly as many only once all is over.
                assert!(client.latency.count() > 0, "{workload:?}");
                assert!(client.latency.percentile(50.0).unwrap() <= client.latency.max().unwrap());
                assert_eq!(server.latency.count(), 0);
            }
            let sockets = client
                .flows
                .iter()
                .filter(|flow| flow.tcp.is_some())
                .count();
            let stays = !workload.is_udp() && workload != Workload::TcpCrr;
            assert_eq!(sockets, if stays { streams as usize } else { 0 });
        }
    }
}

#[test]
fn every_workload_runs_while_its_threads_spin() {
    for workload in endless() {
        for streams in [1, 6] {
            let options = options(workload, streams).with(|load| {
                load.waiting = WaitMode::Spin;
                load.threads = Some(1);
            });
            let (server, client) = pair(&options);
            client.start().unwrap();
            let spins =
                |snapshot: &Snapshot| snapshot.threads.iter().all(|thread| thread.polls > 0);
            eventually("every flow moves and every thread looks", || {
                let ends = [client.snapshot().unwrap(), server.snapshot().unwrap()];
                ends.iter().all(moves) && ends.iter().all(spins)
            });
            let (asked, answered) = (client.stop(LONG).unwrap(), server.finish(LONG).unwrap());
            assert!(asked.drained() && answered.drained(), "{workload:?}");
        }
    }
}

#[test]
fn both_directions_move_at_once() {
    let options = options(Workload::TcpBidirectional, 2);
    let (server, client) = pair(&options);
    client.start().unwrap();
    let both = |snapshot: Snapshot| {
        snapshot
            .flows
            .iter()
            .all(|flow| flow.counts.sent_bytes > 0 && flow.counts.read_bytes > 0)
    };
    eventually("both ways on each connection", || {
        both(client.snapshot().unwrap()) && both(server.snapshot().unwrap())
    });
    let asked = client.stop(LONG).unwrap();
    let answered = server.finish(LONG).unwrap();
    assert!(asked.drained() && answered.drained());
    assert_eq!(asked.bytes, answered.bytes);
}

#[test]
fn messages_of_any_size_are_exchanged_whole() {
    for (request, response, depth) in [
        (1, 1, 1),
        (1, 100_000, 1),
        (100_000, 1, 4),
        (1 << 20, 1 << 20, 1),
        (70_000, 70_000, 16),
        (3, 7, 1024),
    ] {
        for workload in [Workload::TcpRr, Workload::TcpCrr] {
            let depth = if workload == Workload::TcpRr {
                depth
            } else {
                1
            };
            let options = options(workload, 2).with(|load| {
                load.request = request;
                load.response = response;
                load.depth = depth;
            });
            let [client, server] = run(&options);
            assert!(client.counts().received > 0 && client.latency.count() > 0);
            assert!(server.counts().sent > 0);
        }
    }
}

#[test]
fn a_limit_of_transactions_is_met_exactly_by_all_flows_together() {
    for workload in [Workload::TcpRr, Workload::TcpCrr, Workload::UdpRr] {
        let options = options(workload, 3).with(|load| load.limit = Some(Limit::Transactions(500)));
        let (server, client) = pair(&options);
        let before = client.snapshot().unwrap();
        client.start().unwrap();
        client.wait_ended(LONG).unwrap();
        let window = window_until_end(&before, &client.snapshot().unwrap()).unwrap();
        let done = window.counts().received + window.counts().timeouts;
        assert_eq!((window.counts().sent, done), (500, 500), "{workload:?}");
        assert_eq!(window.latency.count(), window.counts().received);
        client.stop(LONG).unwrap();
        server.finish(LONG).unwrap();
    }
}

#[test]
fn a_limit_of_bytes_is_met_exactly_by_all_flows_together() {
    let limit = 10_000_019_u64;
    for (workload, sent) in [
        (Workload::TcpStream, limit),
        // Of datagrams, as many as hold it.
        (Workload::UdpStream, limit.div_ceil(1_400) * 1_400),
    ] {
        let options = options(workload, 3).with(|load| load.limit = Some(Limit::Bytes(limit)));
        let (server, client) = pair(&options);
        client.start().unwrap();
        client.wait_ended(LONG).unwrap();
        assert_eq!(client.stop(LONG).unwrap().bytes, sent, "{workload:?}");
        server.finish(LONG).unwrap();
    }
}

#[test]
fn a_limit_of_both_directions_is_of_what_the_client_sends_and_the_other_half_never_ends_it() {
    let limit = 5_000_011;
    for threads in [1, 4] {
        let options = options(Workload::TcpBidirectional, 2).with(|load| {
            load.limit = Some(Limit::Bytes(limit));
            load.threads = Some(threads);
        });
        // Where the way back is the faster one its server has sent so much long before.
        let soon = options
            .clone()
            .with(|load| load.limit = Some(Limit::Bytes(1)));
        let server = Server::listen(LOOPBACK, &soon).unwrap();
        let client = Client::connect(server.address(), &options, LONG).unwrap();
        server.wait_connected(LONG).unwrap();
        client.start().unwrap();
        client.wait_ended(LONG).unwrap();
        let counts = client.snapshot().unwrap();
        let sent = total(&counts, |counts| counts.sent_bytes);
        assert_eq!(sent, limit);
        let there = server.snapshot().unwrap();
        assert_eq!(total(&there, |counts| counts.read_bytes), limit);
        let (asked, answered) = (client.stop(LONG).unwrap(), server.finish(LONG).unwrap());
        assert!(asked.drained() && answered.drained());
        assert_eq!(asked.bytes, answered.bytes);
    }
}

#[test]
fn a_limit_of_time_ends_the_wait_and_one_that_is_not_met_is_named() {
    let timed = options(Workload::TcpStream, 1)
        .with(|load| load.limit = Some(Limit::Time(Duration::from_millis(20))));
    let (server, client) = pair(&timed);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    assert!(client.stop(LONG).unwrap().drained());
    server.finish(LONG).unwrap();

    let (_server, client) = pair(&options(Workload::TcpStream, 1));
    client.start().unwrap();
    let error = client.wait_ended(Duration::from_millis(5)).unwrap_err();
    assert!(matches!(error, TrafficError::NotOver { .. }), "{error}");
}

#[test]
fn zero_copy_sends_are_counted_and_completed_and_arrive_whole() {
    for threads in [1, 2] {
        let options = options(Workload::TcpStream, 2).with(|load| {
            load.sending = Sending::ZeroCopy;
            load.threads = Some(threads);
        });
        let (server, client) = pair(&options);
        client.start().unwrap();
        eventually("bytes arrive and sends are completed", || {
            server.bytes() > 10_000_000
                && client.snapshot().unwrap().flows[0]
                    .counts
                    .zero_copy_completed
                    > 0
        });
        let counts = client.snapshot().unwrap().flows[0].counts;
        assert!(counts.zero_copy_completed <= counts.zero_copy, "{counts:?}");
        // Loopback copies all of them.
        assert_eq!(counts.zero_copy_copied, counts.zero_copy_completed);
        assert_eq!(
            client.stop(LONG).unwrap().bytes,
            server.finish(LONG).unwrap().bytes
        );
    }
}

#[test]
fn what_is_discarded_is_counted_like_what_is_read() {
    for workload in [
        Workload::TcpStream,
        Workload::TcpBidirectional,
        Workload::UdpStream,
    ] {
        let options = options(workload, 2).with(|load| load.receiving = Receiving::Discard);
        let [_, server] = run(&options);
        let read = server.counts().read_bytes;
        // In both directions either may be the one that moved.
        assert!(read > 0 || workload == Workload::TcpBidirectional);
    }
    // Of datagrams the whole length counts. Only what is over has figures that fit each other.
    let options = options(Workload::UdpStream, 2).with(|load| {
        load.receiving = Receiving::Discard;
        load.limit = Some(Limit::Transactions(2_000));
    });
    let (server, client) = pair(&options);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    client.stop(LONG).unwrap();
    let counts = server.snapshot().unwrap();
    let received = total(&counts, |counts| counts.received);
    let read = total(&counts, |counts| counts.read_bytes);
    assert!(received > 0);
    assert_eq!(read, received * 1_400);
    server.finish(LONG).unwrap();
}

#[test]
fn datagrams_are_counted_one_by_one_though_they_travel_together() {
    for (send, receive) in [(true, false), (false, true), (true, true)] {
        for request in [16, 64, 1_400] {
            let options = options(Workload::UdpStream, 2).with(|load| {
                load.request = request;
                load.segmentation = Segmentation { send, receive };
                load.rate = Some(Rate::BitsPerSecond(u64::from(request) * 8 * 20_000));
                load.limit = Some(Limit::Transactions(2_000));
            });
            let (server, client) = pair(&options);
            client.start().unwrap();
            client.wait_ended(LONG).unwrap();
            let sent = client.stop(LONG).unwrap();
            assert_eq!(sent.bytes, 2_000 * u64::from(request));
            let counts = server.snapshot().unwrap();
            let received = total(&counts, |counts| counts.received);
            let expected = total(&counts, |counts| counts.expected);
            assert_eq!(expected, 2_000);
            // A busy machine may still lose some of them to a full buffer.
            assert!(received > 0 && received <= 2_000);
            let read = total(&counts, |counts| counts.read_bytes);
            assert_eq!(read, received * u64::from(request));
            server.finish(LONG).unwrap();
        }
    }
}

#[test]
fn a_rate_is_not_exceeded() {
    let per_second = 8_000_000;
    for workload in [Workload::UdpStream, Workload::TcpStream] {
        let options = options(workload, 1).with(|load| {
            load.rate = Some(Rate::BitsPerSecond(per_second));
            load.request = 1_000;
            load.nodelay = true;
        });
        let (server, client) = pair(&options);
        let began = client.start().unwrap();
        eventually("some arrives", || server.bytes() > 400_000);
        let (bytes, seconds) = (server.bytes() as f64, began.elapsed().as_secs_f64());
        // What may be ahead of the rate: 10 ms, and a batch of datagrams.
        let ahead = if workload == Workload::TcpStream {
            10_001.0
        } else {
            250_000.0
        };
        let most = seconds * per_second as f64 / 8.0 + ahead;
        assert!(bytes <= most, "{workload:?}: {bytes} bytes in {seconds} s");
        client.stop(LONG).unwrap();
        server.finish(LONG).unwrap();
    }
}

#[test]
fn a_slow_stream_is_over_when_it_is_to_be() {
    for workload in [Workload::TcpStream, Workload::TcpBidirectional] {
        for nodelay in [false, true] {
            let options = options(workload, 2).with(|load| {
                load.rate = Some(Rate::BitsPerSecond(20_000));
                load.request = 100_000;
                load.nodelay = nodelay;
            });
            let (server, client) = pair(&options);
            client.start().unwrap();
            eventually("some arrives", || server.bytes() > 0);
            // A buffer full of it would be half a minute.
            let sent = client.stop(Duration::from_secs(8)).unwrap();
            assert!(sent.drained(), "{workload:?} {nodelay}: {sent:?}");
            server.finish(LONG).unwrap();
        }
    }
}

#[test]
fn requests_by_a_schedule_or_with_time_to_think_are_answered() {
    for workload in [Workload::TcpRr, Workload::TcpCrr, Workload::UdpRr] {
        for depth in [1, 4] {
            let depth = if workload == Workload::TcpCrr {
                1
            } else {
                depth
            };
            let scheduled = options(workload, 2).with(|load| {
                load.rate = Some(Rate::RequestsPerSecond(2_000.0));
                load.depth = depth;
            });
            run(&scheduled);
            let thinking = options(workload, 2).with(|load| {
                load.think_time = Duration::from_micros(300);
                load.depth = depth;
            });
            let began = Instant::now();
            let [client, _] = run(&thinking);
            let most = began.elapsed().as_secs_f64() / 300e-6 * f64::from(depth * 2);
            assert!(client.counts().received as f64 <= most + f64::from(depth * 2));
        }
    }
}

#[test]
fn a_request_by_a_schedule_has_its_lateness_and_its_latency_apart() {
    for (workload, streams) in [
        (Workload::TcpRr, 3),
        (Workload::TcpCrr, 1),
        (Workload::UdpRr, 2),
    ] {
        let limit = 300;
        let options = options(workload, streams).with(|load| {
            load.rate = Some(Rate::RequestsPerSecond(2_000.0));
            load.limit = Some(Limit::Transactions(limit));
            // Every request is answered, however late.
            load.reply_timeout = LONG;
        });
        let (server, client) = pair(&options);
        let before = client.snapshot().unwrap();
        client.start().unwrap();
        client.wait_ended(LONG).unwrap();
        let after = client.snapshot().unwrap();
        let window = window_until_end(&before, &after).unwrap();
        assert_eq!(window.latency.count(), limit, "{workload}");
        assert_eq!(window.lateness.count(), limit, "{workload}");
        let schedule = window.schedule.unwrap();
        assert!((schedule.sent - limit as f64).abs() < 1e-9, "{schedule:?}");
        // All of it is sent once it was due, and there is no more of it.
        assert!((schedule.due - limit as f64).abs() < 1e-9, "{schedule:?}");
        assert!(schedule.backlog_after.abs() < 1e-9, "{schedule:?}");
        client.stop(LONG).unwrap();
        server.finish(LONG).unwrap();
    }
}

#[test]
fn a_schedule_that_nobody_keeps_leaves_a_backlog_and_no_latency_of_it() {
    let options =
        options(Workload::TcpRr, 1).with(|load| load.rate = Some(Rate::RequestsPerSecond(1e8)));
    let (server, client) = pair(&options);
    client.start().unwrap();
    let sent = |snapshot: &Snapshot| total(snapshot, |counts| counts.sent);
    eventually("requests are sent", || {
        sent(&client.snapshot().unwrap()) > 50
    });
    let before = client.snapshot().unwrap();
    eventually("more are sent", || {
        sent(&client.snapshot().unwrap()) > sent(&before) + 200
    });
    let after = client.snapshot().unwrap();
    let window = window(&before, &after).unwrap();
    let schedule = window.schedule.unwrap();
    assert!(schedule.due > 2.0 * schedule.sent, "{schedule:?}");
    assert!(
        schedule.backlog_after > schedule.backlog_before,
        "{schedule:?}"
    );
    // What waited is late, and its latency is that of the path.
    let median = |latency: &wirecost_model::latency::Latency| latency.percentile(50.0).unwrap();
    assert!(median(&window.latency) < median(&window.lateness));
    client.stop(LONG).unwrap();
    server.finish(LONG).unwrap();
}

#[test]
fn what_a_stream_with_a_rate_was_due_is_told_in_messages() {
    for workload in [Workload::TcpStream, Workload::UdpStream] {
        let options = options(workload, 2).with(|load| {
            load.request = 1_000;
            load.rate = Some(Rate::BitsPerSecond(80_000_000));
        });
        let [client, server] = run(&options);
        let schedule = client.schedule.unwrap();
        // 10,000 messages a second and flow.
        let due = 20_000.0 * client.seconds;
        assert!(
            (schedule.due - due).abs() < 2.0 + due * 1e-3,
            "{schedule:?}"
        );
        let sent = client.counts().sent_bytes as f64 / 1_000.0;
        assert!((schedule.sent - sent).abs() < 1e-6, "{schedule:?}");
        assert_eq!(client.lateness.count(), 0);
        assert_eq!(server.schedule, None);
    }
    let [client, _] = run(&options(Workload::TcpStream, 1));
    assert_eq!(client.schedule, None);
}

#[test]
fn how_a_load_reads_and_writes_follows_from_its_options() {
    let io = |change: fn(&mut Options)| {
        let mut options = options(Workload::TcpStream, 1);
        change(&mut options);
        run(&options).map(|window| {
            let io = window.io.unwrap();
            (io.write_bytes, io.read_bytes, io.waits)
        })
    };
    let (large, socket) = (128 << 10, WaitMethod::Socket);
    assert_eq!(io(|_| {}), [(large, 0, socket), (0, large, socket)]);
    let odd = io(|options| options.load.request = 128_520);
    assert_eq!(odd[0], (large, 0, socket));
    let small = io(|options| {
        options.load.request = 100;
        options.load.nodelay = true;
    });
    assert_eq!(small, [(100, 0, socket), (0, 100, socket)]);
    let both = io(|options| options.load.workload = Workload::TcpBidirectional);
    assert_eq!(both, [(large, large, socket); 2]);
    let discarded = io(|options| options.load.receiving = Receiving::Discard);
    assert_eq!(discarded[1], (0, 1 << 20, socket));
    let shared = io(|options| {
        options.load.streams = 2;
        options.load.threads = Some(1);
    });
    assert_eq!(shared.map(|end| end.2), [WaitMethod::Epoll; 2]);
    let spinning = io(|options| options.load.waiting = WaitMode::Spin);
    assert_eq!(spinning.map(|end| end.2), [WaitMethod::Spin; 2]);
    let requests = io(|options| {
        options.load.workload = Workload::TcpRr;
        options.load.request = 10;
        options.load.response = 200;
        options.load.depth = 3;
        options.load.threads = Some(1);
    });
    assert_eq!(requests, [(30, 600, socket), (600, large, socket)]);
    let datagrams = io(|options| {
        options.load.workload = Workload::UdpStream;
        options.load.request = 1_000;
        options.load.segmentation.send = true;
    });
    assert_eq!(
        datagrams[0],
        (8 * 64_000, 0, socket),
        "as many as 512 KiB hold"
    );
}

#[test]
fn many_flows_begin_run_and_end_without_an_error() {
    for (workload, streams) in [
        (Workload::TcpStream, 512),
        (Workload::TcpBidirectional, 256),
        (Workload::TcpRr, 512),
        (Workload::TcpCrr, 256),
        (Workload::UdpStream, 256),
        (Workload::UdpRr, 512),
    ] {
        let options = options(workload, streams).with(|load| {
            load.rate = (workload == Workload::UdpStream).then_some(Rate::BitsPerSecond(1_000_000));
        });
        run(&options);
    }
}

#[test]
fn several_loads_run_beside_each_other_in_one_process() {
    let bulk = options(Workload::TcpStream, 2);
    let asking = Options {
        secret: [7; 16],
        ..options(Workload::UdpRr, 2)
    };
    let loads = [pair(&bulk), pair(&asking)];
    for (_, client) in &loads {
        client.start().unwrap();
    }
    for (server, client) in &loads {
        eventually("each of them moves", || {
            moves(&server.snapshot().unwrap()) && moves(&client.snapshot().unwrap())
        });
    }
    for (server, client) in loads {
        assert!(client.stop(LONG).unwrap().drained());
        assert!(server.finish(LONG).unwrap().drained());
    }
}

#[test]
fn nothing_is_sent_before_the_start() {
    for workload in Workload::ALL {
        let (server, client) = pair(&options(workload, 3));
        assert_eq!((client.bytes(), server.bytes()), (0, 0));
        let asked = client.stop(LONG).unwrap();
        let answered = server.finish(LONG).unwrap();
        assert!(
            asked.drained() && answered.drained(),
            "{workload:?} {asked:?} {answered:?}"
        );
        assert_eq!((asked.bytes, answered.bytes), (0, 0));
    }
}
