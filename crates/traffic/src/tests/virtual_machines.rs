//! Virtual machines on loopback: they arrive as their writes have made them, or stay.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use wirecost_model::load::{DirtyOrder, Fallback, Migration, MoveEngine};
use wirecost_model::machine_move::{MachineMove, MoveOutcome};

use super::migration::moved;
use crate::{Client, Load, Options, Server, Workload};

const LONG: Duration = Duration::from_mins(1);
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn options(change: impl FnOnce(&mut Load, &mut Migration)) -> Options {
    Options::new(Workload::Migration, *b"0123456789abcdef").with(|load| {
        let mut migration = Migration {
            engine: MoveEngine::Qemu,
            memory: 16 << 20,
            dirty_rate: 100_000_000,
            ..Migration::USUAL
        };
        change(load, &mut migration);
        load.migration = Some(migration);
    })
}

fn can_run() -> bool {
    wirecost_qemu::host_qemu().map_or_else(wirecost_skips::skip, |_| true)
}

/// Moves all machines, and ends the load: the destination's memory is held against the guest's writes then.
fn run(options: &Options) -> Vec<MachineMove> {
    let server = Server::listen(LOOPBACK, options).unwrap();
    let client = Client::connect(server.address(), options, LONG).unwrap();
    server.wait_connected(LONG).unwrap();
    let moves = moved(server, client, options);
    for one in &moves {
        assert_eq!(one.downtime_s > 0.0, one.outcome.is_there(), "{one:?}");
    }
    moves
}

#[test]
fn machines_arrive_as_their_writes_have_made_them() {
    if !can_run() {
        return;
    }
    for (channels, order, at_once, post_copy) in [
        (1, DirtyOrder::Random, None, false),
        (3, DirtyOrder::Sequential, Some(1), false),
        (1, DirtyOrder::Random, None, true),
    ] {
        let options = options(|load, migration| {
            load.streams = 2;
            // A first round of a second: a guest gets a core in it, and writes.
            load.rate = Some(crate::Rate::BitsPerSecond(100_000_000));
            migration.channels = channels;
            migration.dirty_order = order;
            migration.at_once = at_once;
            migration.post_copy = post_copy;
            migration.zero_pages = 25;
        });
        let moves = run(&options);
        assert_eq!(moves.len(), 2);
        for one in moves {
            assert_eq!(one.outcome, MoveOutcome::Moved, "{one:?}");
            assert!(one.dirty_reached > 0.0, "{one:?}");
            assert!(one.downtime_s <= one.total_s, "{one:?}");
            assert_eq!(one.predicted.is_none(), post_copy, "{one:?}");
        }
    }
}

#[test]
fn a_machine_that_writes_faster_than_it_may_be_sent_stays_and_goes_on() {
    if !can_run() {
        return;
    }
    let options = options(|load, migration| {
        // A first round of 2.7 s: a guest gets a core in it, and writes.
        load.rate = Some(crate::Rate::BitsPerSecond(50_000_000));
        migration.dirty_rate = 2_000_000_000;
        migration.working_set = 100;
        migration.max_downtime = Duration::from_millis(1);
        migration.fallback = Fallback::GiveUp;
        migration.max_rounds = 3;
    });
    let [one] = &run(&options)[..] else {
        panic!("one machine")
    };
    assert_eq!(one.outcome, MoveOutcome::NotConverged, "{one:?}");
    assert!(one.rounds.len() >= 3, "{one:?}");
}

#[test]
fn a_move_within_which_the_load_is_stopped_has_no_result_and_post_copy_ends_first() {
    if !can_run() {
        return;
    }
    for post_copy in [false, true] {
        let options = options(|load, migration| {
            load.rate = Some(crate::Rate::BitsPerSecond(100_000_000));
            migration.memory = 32 << 20;
            migration.dirty_rate = 2_000_000_000;
            migration.max_downtime = Duration::from_millis(1);
            migration.max_rounds = 1000;
            migration.post_copy = post_copy;
        });
        let server = Server::listen(LOOPBACK, &options).unwrap();
        let client = Client::connect(server.address(), &options, LONG).unwrap();
        server.wait_connected(LONG).unwrap();
        client.start().unwrap();
        // Until a first round is over with post-copy, and into the first round without.
        let enough = if post_copy { 33 << 20 } else { 1 << 20 };
        let until = Instant::now() + LONG;
        while server.bytes() < enough {
            assert!(Instant::now() < until, "nothing is sent");
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = client.stop(LONG).unwrap();
        let answered = server.finish(LONG).unwrap();
        assert!(asked.drained() && answered.drained());
    }
}

#[test]
fn what_qemu_is_too_old_for_is_refused_with_its_version() {
    if !can_run() {
        return;
    }
    let found = wirecost_qemu::host_qemu().unwrap();
    let options = options(|_, migration| migration.switchover_bandwidth = Some(10_000_000_000));
    let server = Server::listen(LOOPBACK, &options).unwrap();
    let opened = Client::connect(server.address(), &options, LONG);
    if (found.version.major, found.version.minor) >= (8, 2) {
        assert!(opened.is_ok());
    } else {
        let error = opened.expect_err("too old").to_string();
        assert!(error.contains("avail-switchover-bandwidth"), "{error}");
        assert!(error.contains(&found.version.to_string()), "{error}");
    }
}
