//! Migrations on loopback: machines that write meanwhile arrive as they are, or are said not to have converged.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use wirecost_model::load::{DirtyOrder, Fallback, Migration};
use wirecost_model::machine_move::{MachineMove, MoveOutcome, MoveRound, predict};

use crate::migration::destination_machine::DestinationMachine;
use crate::migration::pages::{Digest, PAGE, PageRange};
use crate::migration::receiver::MigrationReceiver;
use crate::migration::record::{HEAD_BYTES, Kind, Reply, decode_reply, encode};
use crate::storage::session::Step;
use crate::{Client, Finished, Load, Observer, Options, Server, TrafficError, WaitMode, Workload};

pub(super) const LONG: Duration = Duration::from_mins(1);
pub(super) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
pub(super) const MIB: u64 = 1 << 20;

pub(super) fn options(change: impl FnOnce(&mut Load, &mut Migration)) -> Options {
    Options::new(Workload::Migration, *b"fedcba9876543210").with(|load| {
        let mut migration = Migration {
            memory: 4 * MIB,
            dirty_rate: 400_000_000,
            ..Migration::USUAL
        };
        change(load, &mut migration);
        load.migration = Some(migration);
    })
}

/// Whether this kernel can track writes.
pub(super) fn can_track() -> bool {
    match wirecost_sys::dirty_pages::DirtyPages::check() {
        Ok(()) => true,
        Err(error) => {
            wirecost_skips::skip(format!("writes cannot be tracked: {error}"));
            false
        }
    }
}

pub(super) fn pair(options: &Options) -> (Server, Client) {
    let server = Server::listen(LOOPBACK, options).unwrap();
    let client = client_of(&server, options);
    (server, client)
}

fn client_of(server: &Server, options: &Options) -> Client {
    let client = Client::connect(server.address(), options, LONG).unwrap();
    server.wait_connected(LONG).unwrap();
    client.observe(Observer::here(LOOPBACK.ip()).unwrap());
    client
}

/// Moves all machines, and ends the load: their memory is compared then.
pub(super) fn run(options: &Options) -> Vec<MachineMove> {
    let (server, client) = pair(options);
    moved(server, client, options)
}

/// Moves the machines of both ends, and ends the load: what one sent the other has.
pub(super) fn moved(server: Server, client: Client, options: &Options) -> Vec<MachineMove> {
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let moves = client.snapshot().unwrap().moves;
    let asked = client.stop(LONG).unwrap();
    let answered: Finished = server.finish(LONG).unwrap();
    assert!(asked.drained() && answered.drained(), "{:?}", options.load);
    assert_eq!(asked.bytes, answered.bytes, "{:?}", options.load);
    let sent: u64 = moves.iter().map(|one| one.sent_bytes).sum();
    assert_eq!(sent, asked.bytes);
    moves
}

#[test]
fn machines_that_write_meanwhile_arrive_as_they_are() {
    if !can_track() {
        return;
    }
    let mut written = 0.0;
    for order in [DirtyOrder::Sequential, DirtyOrder::Random] {
        for (machines, channels, threads, spins) in [
            (1, 1, None, false),
            (1, 4, None, false),
            (3, 3, Some(2), false),
            (2, 2, Some(1), true),
        ] {
            let options = options(|load, migration| {
                (load.streams, load.threads) = (machines, threads);
                if spins {
                    load.waiting = WaitMode::Spin;
                }
                migration.channels = channels;
                migration.dirty_order = order;
                migration.working_set = 100;
                migration.zero_pages = 25;
            });
            let moves = run(&options);
            assert_eq!(moves.len(), machines as usize);
            for one in moves {
                let [first, .., last] = &one.rounds[..] else {
                    panic!("two rounds at least: {one:?}")
                };
                assert_eq!(one.outcome, MoveOutcome::Moved, "{one:?}");
                assert_eq!((first.pages, first.zero_pages), (768, 256), "{one:?}");
                assert_eq!(last.dirtied, 0);
                let later = one.rounds[1..].iter().map(|round| round.pages);
                assert_eq!(one.sent_bytes, (768 + later.sum::<u64>()) * PAGE as u64);
                assert!(one.bandwidth > 0.0);
                written += one.dirty_reached;
                assert!(one.downtime_s > 0.0 && one.downtime_s < one.total_s);
                assert!(one.setup_s > 0.0 && one.setup_s < one.total_s);
                // On a busy machine the bandwidth may be less than the machine writes.
                let migration = options.load.migration.as_ref().unwrap();
                assert!(one.predicted.is_some(), "{one:?}");
                assert_eq!(one.predicted, predict(migration, one.bandwidth), "{one:?}");
            }
        }
    }
    assert!(written > 0.0, "none wrote while it moved");
}

#[test]
fn an_observer_hears_each_machine_at_its_source_and_then_at_its_destination() {
    if !can_track() {
        return;
    }
    for machines in [1, 3] {
        let options = options(|load, migration| {
            load.streams = machines;
            migration.channels = 2;
            migration.watch = true;
        });
        let moves = run(&options);
        assert_eq!(moves.len(), machines as usize);
        for one in moves {
            let seen = one.seen.expect("seen");
            // Of a machine that is gone for less than a millisecond no request need be lost.
            assert!(
                seen.to_machine_s >= 0.0 && seen.from_machine_s > 0.0,
                "{seen:?}"
            );
            assert!(
                seen.answered >= 2 && seen.answered <= 2 * seen.asked,
                "{seen:?}"
            );
        }
    }
    let unwatched = run(&options(|_, _| ()));
    assert!(unwatched.iter().all(|one| one.seen.is_none()));
}

#[test]
fn machines_of_two_loads_at_one_address_can_be_watched() {
    if !can_track() {
        return;
    }
    let both = [*b"fedcba9876543210", *b"0123456789abcdef"].map(|secret| Options {
        secret,
        ..options(|_, migration| migration.watch = true)
    });
    let servers = Server::listen_all(LOOPBACK, &both).unwrap();
    for (server, options) in servers.into_iter().zip(&both) {
        let client = client_of(&server, options);
        let moves = moved(server, client, options);
        assert!(moves.iter().all(|one| one.seen.is_some()), "{moves:?}");
    }
}

#[test]
fn a_watched_migration_shares_its_port_with_other_loads() {
    if !can_track() {
        return;
    }
    let other = Options::new(Workload::TcpRr, *b"0123456789abcdef");
    let watched = options(|_, migration| migration.watch = true);
    let mut servers = Server::listen_all(LOOPBACK, &[other, watched.clone()]).unwrap();
    assert_eq!(servers[0].address(), servers[1].address());
    let server = servers.remove(1);
    let client = client_of(&server, &watched);
    let moves = moved(server, client, &watched);
    assert!(moves.iter().all(|one| one.seen.is_some()), "{moves:?}");
}

#[test]
fn a_machine_is_sent_no_faster_than_it_may_be() {
    if !can_track() {
        return;
    }
    let moves = run(&options(|load, migration| {
        (migration.channels, migration.dirty_rate) = (2, 0);
        load.rate = Some(crate::Rate::BitsPerSecond(200_000_000));
    }));
    // 4 MiB at 200 Mbit/s take 168 ms; what TCP sends before it is paced is little.
    assert!(moves[0].total_s > 0.1, "{moves:?}");
}

#[test]
fn a_machine_that_writes_nothing_is_sent_once() {
    if !can_track() {
        return;
    }
    let moves = run(&options(|_, migration| migration.dirty_rate = 0));
    assert_eq!(moves[0].sent_bytes, 4 * MIB);
    assert_eq!(
        moves[0].dirty_reached.total_cmp(&0.0),
        std::cmp::Ordering::Equal
    );
}

#[test]
fn what_does_not_converge_stays_is_forced_or_slowed_down_and_is_no_error() {
    if !can_track() {
        return;
    }
    // It writes as fast as it can, and a round takes long enough for that.
    let hopeless = |fallback| {
        options(|_, migration| {
            migration.memory = 64 * MIB;
            migration.dirty_rate = 80_000_000_000;
            migration.working_set = 100;
            migration.dirty_order = DirtyOrder::Sequential;
            migration.max_downtime = Duration::from_nanos(1);
            migration.max_rounds = if fallback == Fallback::Throttle { 3 } else { 1 };
            migration.fallback = fallback;
        })
    };
    let stayed = run(&hopeless(Fallback::GiveUp)).remove(0);
    assert_eq!(stayed.outcome, MoveOutcome::NotConverged, "{stayed:?}");
    assert_eq!(stayed.downtime_s.total_cmp(&0.0), std::cmp::Ordering::Equal);
    assert!(stayed.rounds.len() == 1 && stayed.predicted.is_some_and(|model| !model.converges));
    let forced = run(&hopeless(Fallback::Stop)).remove(0);
    assert_eq!(forced.outcome, MoveOutcome::Forced, "{forced:?}");
    assert!(forced.downtime_s > 0.0);
    // A guest that gets little of a busy core writes little: then it is not slowed down.
    let is_slowed = (0..20).any(|_| {
        let slowed = run(&hopeless(Fallback::Throttle)).remove(0);
        assert_eq!(slowed.predicted, None);
        let (_, before) = slowed.rounds.split_last().expect("rounds");
        let too_fast = |round: &&MoveRound| 2 * round.dirtied > round.pages + round.zero_pages;
        let expected = [0, 20, 30][before.iter().filter(too_fast).count()];
        assert_eq!(slowed.throttle, expected, "{slowed:?}");
        expected > 0
    });
    assert!(is_slowed);
}

#[test]
fn the_highest_dirty_rate_that_converges_is_looked_for() {
    if !can_track() {
        return;
    }
    let moved = run_searching(&options(|_, migration| {
        migration.find_limit = true;
        migration.memory = 16 * MIB;
        migration.channels = 2;
        migration.working_set = 100;
        migration.max_downtime = Duration::from_millis(1);
    }));
    let limit = moved.limit.expect("a limit");
    assert!(limit.moves > 1, "{moved:?}");
    if let (Some(low), Some(high)) = (limit.converges, limit.fails) {
        assert!(low < high, "{limit:?}");
    }
    assert_eq!(
        moved.dirty_rate.total_cmp(&4e8),
        std::cmp::Ordering::Equal,
        "of the first move"
    );
}

/// The same for one machine that moves several times.
fn run_searching(options: &Options) -> MachineMove {
    let (server, client) = pair(options);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let mut moves = client.snapshot().unwrap().moves;
    let (asked, answered) = (client.stop(LONG).unwrap(), server.finish(LONG).unwrap());
    assert!(asked.drained() && answered.drained());
    assert_eq!(asked.bytes, answered.bytes);
    assert_eq!(moves.len(), 1);
    moves.remove(0)
}

#[test]
fn no_more_machines_move_at_once_than_may() {
    if !can_track() {
        return;
    }
    let options = options(|load, migration| {
        load.streams = 4;
        migration.at_once = Some(1);
    });
    let (server, client) = pair(&options);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let after = client.snapshot().unwrap();
    let began = after.started.expect("a start");
    let ends = after.flows.iter().map(|flow| flow.ended.expect("an end"));
    let all = ends.max().expect("machines") - began;
    let sum: f64 = after.moves.iter().map(|one| one.total_s).sum();
    // One after the other, they take no longer together than all of it.
    assert_eq!(after.moves.len(), 4);
    assert!(sum <= all.as_secs_f64(), "{sum} {all:?}");
    client.stop(LONG).unwrap();
    server.finish(LONG).unwrap();
}

#[test]
fn a_page_that_differs_at_the_destination_is_found_out() {
    if !can_track() {
        return;
    }
    let options = options(|load, migration| (load.streams, migration.channels) = (2, 2));
    let (server, client) = pair(&options);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let words = server.shared().destination_machines[1].memory.words();
    words[(300 * PAGE) / 8].fetch_xor(1, Relaxed);
    let error = client.stop(LONG).unwrap_err().to_string();
    assert!(
        error.contains("the memory of machine 1 is not the same"),
        "{error}"
    );
}

#[test]
fn a_destination_that_is_gone_is_an_error_and_a_load_that_is_stopped_is_none() {
    if !can_track() {
        return;
    }
    // It writes faster than it can be given up, and its first round takes half a minute.
    let options = options(|load, migration| {
        load.rate = Some(crate::Rate::BitsPerSecond(20_000_000));
        migration.memory = 64 * MIB;
        migration.dirty_rate = 8_000_000_000;
        migration.max_downtime = Duration::from_nanos(1);
    });
    let (server, client) = pair(&options);
    client.start().unwrap();
    while server.bytes() == 0 {
        std::thread::yield_now();
    }
    drop(server);
    let error = client.wait_ended(LONG).unwrap_err();
    assert!(
        matches!(error, TrafficError::PeerVanished { .. }),
        "{error}"
    );
    let (server, client) = pair(&options);
    client.start().unwrap();
    let (asked, answered) = (client.stop(LONG).unwrap(), server.finish(LONG).unwrap());
    assert!(asked.drained() && answered.drained());
}

/// What a destination of a machine of 1 MiB says to these bytes, after which the source is gone.
fn told(bytes: &[u8]) -> (io::Result<Step>, Vec<u8>, Box<[DestinationMachine]>) {
    told_to(bytes, &options(|_, migration| migration.memory = MIB))
}

/// The same of the first machine of a load, and its first connection.
pub(super) fn told_to(
    bytes: &[u8],
    options: &Options,
) -> (io::Result<Step>, Vec<u8>, Box<[DestinationMachine]>) {
    let (here, mut there) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("a pair");
    let machines = DestinationMachine::of_load(options).expect("one");
    there.set_send_buffer_size(4 << 20).expect("room");
    there.write_all(bytes).expect("written");
    there.shutdown(std::net::Shutdown::Write).expect("an end");
    let (here, mut receiver) = (Arc::new(here), MigrationReceiver::new(0));
    let ended = loop {
        match receiver.poll(&here, &machines[0]) {
            Ok(Step::Again) => {}
            other => break other,
        }
    };
    // Whoever may still wait for a page has the socket as well.
    let _ = here.shutdown(std::net::Shutdown::Both);
    drop(here);
    let mut said = Vec::new();
    // What it left unread resets the connection: nothing was said then.
    let _ = io::Read::read_to_end(&mut there, &mut said);
    (ended, said, machines)
}

pub(super) fn head(kind: Kind, ranges: &[(PageRange, bool)]) -> Vec<u8> {
    let mut head = [0; HEAD_BYTES];
    encode(kind, ranges, &mut head);
    head.to_vec()
}

pub(super) fn pages(first: u32, count: u32) -> PageRange {
    PageRange { first, count }
}

#[test]
fn pages_are_put_where_they_belong_and_their_digest_is_told() {
    let mut bytes = head(Kind::Pages, &[(pages(7, 1), false), (pages(250, 2), false)]);
    for page in [1u8, 2, 3] {
        bytes.extend([page; PAGE]);
    }
    bytes.extend(head(Kind::Pages, &[(pages(250, 1), true)]));
    bytes.extend(head(Kind::End, &[]));
    bytes.extend(head(Kind::Verify, &[]));
    let (ended, said, machines) = told(&bytes);
    assert_eq!(ended.expect("an end"), Step::Over);
    let memory = &machines[0].memory;
    for (page, content) in [(6, 0), (7, 1), (8, 0), (250, 0), (251, 3)] {
        let mut found = [9; PAGE];
        memory.load(page * PAGE, &mut found);
        assert_eq!(found, [content; PAGE], "page {page}");
    }
    let mut digest = Digest::default();
    digest.add(memory, pages(0, 256));
    let replies: Vec<Reply> = said
        .as_chunks()
        .0
        .iter()
        .map(|reply| decode_reply(reply).expect("a reply"))
        .collect();
    assert_eq!(replies, [Reply::Done(0), Reply::Digest(digest.0)]);
}

#[test]
fn a_source_that_keeps_to_no_protocol_is_named_and_touches_nothing() {
    let mut beyond = head(Kind::Pages, &[(pages(255, 2), false)]);
    beyond.extend([1; 2 * PAGE]);
    let mut half = head(Kind::Pages, &[(pages(3, 1), false)]);
    half.extend([1; PAGE / 2]);
    let cases: [(&[u8], io::ErrorKind, &str); 5] = [
        (&[], io::ErrorKind::UnexpectedEof, "within a move"),
        (
            &[0x55; HEAD_BYTES],
            io::ErrorKind::InvalidData,
            "not a migration header",
        ),
        (&beyond, io::ErrorKind::InvalidData, "2 pages from 255"),
        (&half, io::ErrorKind::UnexpectedEof, "within a page"),
        (&half[..100], io::ErrorKind::UnexpectedEof, "within a head"),
    ];
    for (bytes, kind, words) in cases {
        let (ended, said, _) = told(bytes);
        let error = ended.expect_err("refused");
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(words), "{error}");
        assert!(said.is_empty());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    /// Whatever comes is an end, or an error of the protocol: nothing else, and no panic.
    #[test]
    fn an_exchange_with_changed_bytes_is_taken_or_refused(
        changes in proptest::collection::vec((0usize..2 * HEAD_BYTES + PAGE, 0u8..), 1..6), cut in 0usize..8_000,
    ) {
        let mut bytes = head(Kind::Pages, &[(pages(7, 1), false), (pages(250, 2), true)]);
        bytes.extend([1; PAGE]);
        bytes.extend(head(Kind::End, &[]));
        for (at, byte) in changes {
            // Heads are where most is decided.
            let at = if at < HEAD_BYTES { at % 40 } else { at };
            bytes[at] = byte;
        }
        bytes.truncate(cut);
        let (ended, said, _) = told(&bytes);
        if let Err(error) = ended {
            let known = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];
            proptest::prop_assert!(known.contains(&error.kind()), "{}", error);
        }
        proptest::prop_assert!(said.len().is_multiple_of(16));
    }
}
