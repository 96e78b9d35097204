//! Storage on loopback: every pattern and size, contents that are lost, and peers that keep to no protocol.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_model::load::{Address, Backing, Pattern, Storage};
use wirecost_nbd::reply::simple;
use wirecost_nbd::request::{REQUEST_BYTES, Request};

use crate::{Client, Limit, Load, Options, PlainTarget, Rate, Server, TrafficError, Workload};

const LONG: Duration = Duration::from_secs(30);
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn options(change: impl FnOnce(&mut Load)) -> Options {
    Options::new(Workload::Storage, *b"fedcba9876543210").with(|load| {
        load.storage = Some(Storage {
            size: 8 << 20,
            ..Storage::USUAL
        });
        change(load);
    })
}

fn storage(load: &mut Load) -> &mut Storage {
    load.storage.as_mut().expect("storage")
}

/// Runs a load until so many I/Os were answered, and ends it: contents are verified then.
fn run(options: &Options, count: u64) {
    run_at(LOOPBACK.into(), options, count);
}

fn run_at(bind: Address, options: &Options, count: u64) {
    let server = Server::listen(bind, options).unwrap();
    let client = Client::connect(server.address(), options, LONG).unwrap();
    server.wait_connected(LONG).unwrap();
    client.start().unwrap();
    let deadline = Instant::now() + LONG;
    while client.snapshot().unwrap().latency.count() < count {
        server.snapshot().unwrap();
        assert!(Instant::now() < deadline, "it stalls: {:?}", options.load);
        thread::sleep(Duration::from_millis(1));
    }
    let (asked, answered) = (client.stop(LONG).unwrap(), server.finish(LONG).unwrap());
    assert!(
        asked.drained() && answered.drained(),
        "{asked:?} {answered:?}"
    );
    assert_eq!((asked.strays, answered.strays), (0, 0));
    assert_eq!(asked.bytes, answered.bytes, "{:?}", options.load);
    assert!(asked.bytes >= count * u64::from(options.load.request));
}

#[test]
fn every_pattern_and_size_is_answered_and_verified() {
    for pattern in Pattern::ALL {
        for target in [Backing::Memory, Backing::Discard] {
            for (size, depth, streams) in [
                (512, 1, 1),
                (4 << 10, 32, 1),
                (4 << 10, 1, 3),
                (68 << 10, 5, 2),
                (4 << 20, 4, 1),
            ] {
                let options = options(|load| {
                    (load.request, load.depth, load.streams) = (size, depth, streams);
                    storage(load).pattern = pattern;
                    storage(load).target = target;
                });
                run(&options, 20);
            }
        }
    }
}

#[test]
fn a_unix_socket_carries_every_kind_of_io_and_leaves_no_file() {
    for (number, pattern) in Pattern::ALL.into_iter().enumerate() {
        for (size, depth, streams) in [(4 << 10, 32, 2), (1 << 20, 4, 1), (512, 1, 1)] {
            let options = options(|load| {
                (load.request, load.depth, load.streams) = (size, depth, streams);
                storage(load).pattern = pattern;
            });
            let name = format!("wirecost-test-{}-{number}-{size}", std::process::id());
            run_at(Address::Abstract(name), &options, 20);
        }
    }
    let taken = Address::Abstract(format!("wirecost-test-{}-taken", std::process::id()));
    let options = options(|_| ());
    let _first = Server::listen(taken.clone(), &options).expect("free");
    let error = Server::listen(taken, &options).expect_err("taken");
    assert!(
        error.to_string().contains("Unix socket @wirecost-test"),
        "{error}"
    );
    let datagrams = Options::new(Workload::UdpRr, [1; 16]);
    let nowhere = Address::Path("/nowhere".to_owned());
    let error = Client::connect(nowhere.clone(), &datagrams, LONG).expect_err("no UDP there");
    assert!(error.to_string().contains("goes over IP only"), "{error}");
    let error = Client::connect(nowhere, &options, LONG).expect_err("nobody is there");
    assert!(
        error.to_string().contains("Unix socket /nowhere"),
        "{error}"
    );
}

#[test]
fn flushes_follow_so_many_writes_and_are_no_io() {
    for (pattern, every, depth) in [
        (Pattern::RandomWrite, 4, 8),
        (Pattern::SequentialWrite, 1, 1),
        (Pattern::RandomMix, 2, 3),
    ] {
        let options = options(|load| {
            load.depth = depth;
            load.limit = Some(Limit::Transactions(200));
            storage(load).pattern = pattern;
            storage(load).flush_every = every;
        });
        let server = Server::listen(LOOPBACK, &options).unwrap();
        let client = Client::connect(server.address(), &options, LONG).unwrap();
        client.start().unwrap();
        client.wait_ended(LONG).unwrap();
        let counted = client.snapshot().unwrap();
        assert_eq!(counted.latency.count(), 200);
        let flushes = counted.flushes.count();
        if pattern.is_mix() {
            assert!((10..100).contains(&flushes), "{flushes}");
        } else {
            // The last may not be due any more.
            let all = 200 / u64::from(every);
            assert!((all - 1..=all).contains(&flushes), "{flushes} of {all}");
        }
        client.stop(LONG).unwrap();
        server.finish(LONG).unwrap();
    }
    let said = ends_with(
        |load| {
            storage(load).pattern = Pattern::RandomWrite;
            storage(load).flush_every = 1;
        },
        answering(|_| Vec::new()),
    );
    assert!(said.contains("takes no flush"), "{said}");
}

#[test]
fn a_rate_is_kept_and_a_limit_met() {
    let options = options(|load| {
        load.rate = Some(Rate::RequestsPerSecond(400.0));
        load.limit = Some(Limit::Transactions(100));
        load.streams = 2;
        storage(load).pattern = Pattern::RandomMix;
    });
    let server = Server::listen(LOOPBACK, &options).unwrap();
    let client = Client::connect(server.address(), &options, LONG).unwrap();
    let start = client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    // 100 at random, 800 a second: 125 ms, of which 12.5 ms are one standard deviation.
    assert!(start.elapsed() >= Duration::from_millis(60));
    let after = client.snapshot().unwrap();
    assert_eq!((after.latency.count(), after.lateness.count()), (100, 100));
    client.stop(LONG).unwrap();
    server.finish(LONG).unwrap();
}

/// What ends a load against a server that does this with its connection.
fn ends_with(
    change: impl FnOnce(&mut Load),
    server: impl FnOnce(TcpStream) + Send + 'static,
) -> String {
    let (address, thread) = serve(server);
    let options = Options {
        export: Some(String::new()),
        ..options(change)
    };
    let error = attempt(address, &options).expect_err("it cannot have been well");
    thread.join().expect("the server");
    error.to_string()
}

fn serve(server: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(LOOPBACK).expect("a port");
    let address = listener.local_addr().expect("an address");
    let thread = thread::spawn(move || server(listener.accept().expect("a connection").0));
    (address, thread)
}

fn attempt(address: SocketAddr, options: &Options) -> Result<(), TrafficError> {
    let client = Client::connect(address, options, LONG)?;
    client.start()?;
    let deadline = Instant::now() + LONG;
    while client.snapshot()?.latency.count() < 2_000 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    client.stop(LONG)?;
    Ok(())
}

#[test]
fn a_target_that_loses_what_was_written_is_found_out() {
    let said = ends_with(
        |load| storage(load).pattern = Pattern::RandomWrite,
        |connection| {
            let lossy = PlainTarget::new(&Storage {
                target: Backing::Discard,
                size: 8 << 20,
                ..Storage::USUAL
            })
            .expect("memory");
            let _ = lossy.serve(&Socket::from(connection));
        },
    );
    assert!(
        said.contains("are not what was written there, from byte "),
        "{said}"
    );
}

/// A server that keeps to the protocol until the first request, which it answers with these bytes.
fn answering(
    answer: impl Fn(Request) -> Vec<u8> + Send + 'static,
) -> impl FnOnce(TcpStream) + Send {
    use wirecost_nbd::export::Export;
    use wirecost_nbd::server::{Next, ServerHandshake};
    move |mut connection| {
        let export = Export {
            size: 8 << 20,
            flags: 1,
            min_block: 1,
            max_block: 1 << 20,
        };
        let mut out = Vec::new();
        let mut handshake = ServerHandshake::new(export, "x", &mut out);
        let mut buffer = [0; 4096];
        let mut rest = Vec::new();
        loop {
            connection.write_all(&out).expect("sent");
            out.clear();
            let read = connection.read(&mut buffer).unwrap_or_default();
            if read == 0 {
                return;
            }
            let mut input = &buffer[..read];
            if handshake.receive(&mut input, &mut out) != Ok(Next::More) {
                rest.extend_from_slice(input);
                break;
            }
        }
        connection.write_all(&out).expect("sent");
        while rest.len() < REQUEST_BYTES {
            let read = connection.read(&mut buffer).unwrap_or_default();
            if read == 0 {
                return;
            }
            rest.extend_from_slice(&buffer[..read]);
        }
        let request = Request::decode(rest.first_chunk().expect("a request")).expect("a request");
        let _ = connection.write_all(&answer(request));
        // Until the client gives up, so that nothing is reset before it was read.
        while connection.read(&mut buffer).is_ok_and(|read| read > 0) {}
    }
}

#[test]
fn a_hostile_server_is_an_error_that_says_what_it_did() {
    let none: fn(&mut Load) = |_| {};
    let garbage = |bytes: &'static [u8]| {
        move |mut connection: TcpStream| {
            connection.write_all(bytes).expect("sent");
            let _ = connection.shutdown(Shutdown::Write);
            let _ = connection.read_to_end(&mut Vec::new());
        }
    };
    let said = [
        ends_with(none, garbage(b"HTTP/1.1 400 Bad Request\r\n")),
        ends_with(none, garbage(b"NBDMAGICIHAV")),
        ends_with(none, answering(|_| vec![0; 32])),
        ends_with(none, answering(|_| simple(77, 0).to_vec())),
        ends_with(
            none,
            answering(|request| wirecost_nbd::reply::error_chunk(request.cookie, 5).to_vec()),
        ),
        ends_with(|load| load.request = 4 << 20, answering(|_| Vec::new())),
        ends_with(
            |load| {
                load.streams = 1;
                storage(load).pattern = Pattern::RandomWrite;
            },
            answering(|request| simple(request.cookie, 28).to_vec()),
        ),
    ]
    .map(|said| {
        // Where it was when it happened is a matter of time.
        let (before, after) = said.split_once(" after ").unwrap_or((&said, ""));
        let after = after.split_once(": ").map_or("", |(_, after)| after);
        let mut words = format!("{before} | {after}");
        if let Some(at) = words.find("at offset ") {
            words.truncate(at);
        }
        words
    })
    .join("\n");
    insta::assert_snapshot!(said);
}

/// What our target says of a client that sends these bytes and ends.
fn hostile_client(bytes: &[u8]) -> String {
    let listener = TcpListener::bind(LOOPBACK).expect("a port");
    let address = listener.local_addr().expect("an address");
    let target = thread::spawn(move || {
        let target = PlainTarget::new(&Storage {
            size: 1 << 20,
            ..Storage::USUAL
        })
        .expect("memory");
        let connection = listener.accept().expect("a connection").0;
        target.serve(&Socket::from(connection))
    });
    let mut client = TcpStream::connect(address).expect("connected");
    let _ = client.write_all(bytes);
    let _ = client.shutdown(Shutdown::Write);
    let _ = client.read_to_end(&mut Vec::new());
    match target.join().expect("no panic") {
        Ok(()) => "ended well".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_hostile_client_is_an_error_that_says_what_it_did() {
    let flags = 3u32.to_be_bytes();
    // By EXPORT_NAME, which needs no answer to go on.
    let chosen = [
        &flags[..],
        b"IHAVEOPT",
        &1u32.to_be_bytes(),
        &0u32.to_be_bytes(),
    ]
    .concat();
    let request = |command, length| Request {
        flags: 0,
        command,
        cookie: 1,
        offset: 0,
        length,
    };
    let after = |more: &[u8]| hostile_client(&[&chosen[..], more].concat());
    let said = [
        hostile_client(b"GET / HTTP/1.1\r\n\r\n"),
        hostile_client(&[&flags[..], b"IHAVEOPT\0\0\0\x07\x7f\xff\xff\xff"].concat()),
        after(&[9; 28]),
        after(&request(1, u32::MAX).encode()),
        after(&request(1, 4096).encode()),
        after(&request(0, 4096).encode()[..20]),
        after(
            &[
                request(0, 100).encode(),
                request(9, 0).encode(),
                request(2, 0).encode(),
            ]
            .concat(),
        ),
        after(&[]),
    ]
    .join("\n");
    insta::assert_snapshot!(said, @r"
    the client's flags 0x47455420 have bits that were not offered
    GO with 2147483647 bytes: at most 8192
    a request begins with 0x9090909 and not with its magic number
    a write of 4294967295 bytes: at most 4194304
    it ended within a request
    it ended within a request
    ended well
    it closed the connection without ending the session
    ");
}
