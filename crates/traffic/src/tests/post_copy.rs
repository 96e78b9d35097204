//! Migrations that end after their machine has gone on at its destination, on loopback.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use wirecost_model::end_window::End;
use wirecost_model::load::{DirtyOrder, Migration};
use wirecost_model::machine_move::{MachineMove, MoveOutcome};
use wirecost_sys::missing_pages::MissingPages;
use wirecost_sys::shared_memory::SharedMemory;

use super::migration::{LONG, MIB, can_track, head, moved, options, pages, pair, told_to};
use crate::migration::destination_machine::DestinationMachine;
use crate::migration::pages::PAGE;
use crate::migration::receiver::MigrationReceiver;
use crate::migration::record::{HEAD_BYTES, Kind, Reply, decode_reply, encode_switch};
use crate::storage::session::Step;
use crate::{Client, Load, Options, Rate, Server, TrafficError, WaitMode};

fn post_copy(change: impl FnOnce(&mut Load, &mut Migration)) -> Options {
    options(|load, migration| {
        migration.post_copy = true;
        migration.working_set = 100;
        change(load, migration);
    })
}

/// It writes to all of its pages, and takes so long to be sent that it waits for some.
fn slow(bits_per_second: u64) -> Options {
    post_copy(|load, migration| {
        migration.memory = 8 * MIB;
        migration.dirty_rate = 2_000_000_000;
        load.rate = Some(Rate::BitsPerSecond(bits_per_second));
    })
}

fn can_wait() -> bool {
    if !can_track() {
        return false;
    }
    match MissingPages::check() {
        Ok(()) => true,
        Err(error) => wirecost_skips::skip(format!("pages cannot be waited for here: {error}")),
    }
}

fn run(options: &Options) -> Vec<MachineMove> {
    let (server, client) = pair(options);
    moved(server, client, options)
}

#[test]
fn machines_go_on_at_their_destination_as_they_would_have_at_their_source() {
    if !can_wait() {
        return;
    }
    for order in [DirtyOrder::Sequential, DirtyOrder::Random] {
        for (machines, channels, threads, spins) in [
            (1, 1, None, false),
            (1, 4, None, false),
            (3, 3, Some(2), false),
            (2, 2, Some(1), true),
        ] {
            let options = post_copy(|load, migration| {
                (load.streams, load.threads) = (machines, threads);
                if spins {
                    load.waiting = WaitMode::Spin;
                }
                migration.channels = channels;
                migration.dirty_order = order;
                migration.zero_pages = 25;
                migration.at_once = (machines == 3).then_some(1);
            });
            let moves = run(&options);
            assert_eq!(moves.len(), machines as usize);
            for one in moves {
                let [first, second] = &one.rounds[..] else {
                    panic!("two rounds: {one:?}")
                };
                assert_eq!(one.outcome, MoveOutcome::Moved, "{one:?}");
                assert_eq!((first.pages, first.zero_pages), (768, 256), "{one:?}");
                // The rest was sent once, each page of it.
                assert!(
                    second.pages >= first.dirtied && second.pages <= 768,
                    "{one:?}"
                );
                assert_eq!(one.sent_bytes, (768 + second.pages) * PAGE as u64);
                assert!(one.downtime_s > 0.0 && one.downtime_s <= one.total_s);
                assert_eq!(one.predicted, None);
            }
        }
    }
}

#[test]
fn a_machine_that_outruns_its_network_arrives_and_has_waited_for_pages() {
    if !can_wait() {
        return;
    }
    let moves = run(&slow(40_000_000));
    let [one] = &moves[..] else {
        panic!("one machine: {moves:?}")
    };
    assert_eq!(one.outcome, MoveOutcome::Moved, "{one:?}");
    assert!(one.fetched_pages > 0, "{one:?}");
    assert!(one.fetched_pages <= one.rounds[1].pages, "{one:?}");
    assert_eq!(one.fetched(), one.fetched_pages);
}

#[test]
fn a_machine_that_writes_nothing_has_nothing_to_wait_for() {
    if !can_wait() {
        return;
    }
    let moves = run(&post_copy(|_, migration| {
        (migration.dirty_rate, migration.channels) = (0, 2);
    }));
    assert_eq!(moves[0].sent_bytes, 4 * MIB);
    assert_eq!(moves[0].fetched_pages, 0);
}

#[test]
fn an_observer_hears_each_machine_where_it_runs() {
    if !can_wait() {
        return;
    }
    let mut options = slow(100_000_000);
    if let Some(migration) = &mut options.load.migration {
        migration.watch = true;
    }
    let moves = run(&options);
    let seen = moves[0].seen.expect("seen");
    assert!(seen.from_machine_s > 0.0, "{moves:?}");
    assert!(seen.answered >= 2, "{moves:?}");
}

/// What stopping a load says after a fault was planted in the memory at its destination.
fn with_fault(options: &Options, plant: impl FnOnce(&Server)) -> String {
    let (server, client) = pair(options);
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    plant(&server);
    let error = client.stop(LONG).unwrap_err();
    error.to_string()
}

#[test]
fn a_page_that_is_not_what_the_machine_s_writes_make_of_it_is_found_out() {
    if !can_wait() {
        return;
    }
    let differs = "the memory of machine 0 is not the same";
    // One that is not written to.
    let half = post_copy(|_, migration| migration.working_set = 50);
    let found = with_fault(&half, |server| {
        let words = server.shared().destination_machines[0].memory.words();
        words[600 * PAGE / 8].fetch_xor(1, Relaxed);
    });
    assert!(found.contains(differs), "{found}");
    // One write that is lost, or is another.
    for value in [0, 1] {
        let found = with_fault(&post_copy(|_, _| ()), |server| {
            let machine = &server.shared().destination_machines[0];
            let running = machine.post_copy.as_ref().unwrap();
            while running.writes() == 0 {
                std::thread::yield_now();
            }
            let writes = running.halt().unwrap();
            let last = writes << 1 | 1;
            let words = machine.memory.words().iter();
            let last = words.into_iter().find(|word| word.load(Relaxed) == last);
            last.expect("the last write").store(value, Relaxed);
        });
        assert!(found.contains(differs), "{found}");
    }
    // Two pages that changed places.
    let found = with_fault(&half, |server| {
        let words = server.shared().destination_machines[0].memory.words();
        for word in 0..PAGE / 8 {
            let [one, other] = [700, 701].map(|page| &words[page * PAGE / 8 + word]);
            let kept = one.load(Relaxed);
            one.store(other.load(Relaxed), Relaxed);
            other.store(kept, Relaxed);
        }
    });
    assert!(found.contains(differs), "{found}");
}

/// Ends of a load whose machine runs at its destination and waits for a page there.
fn while_it_waits() -> (Server, Client, [Weak<SharedMemory>; 2]) {
    let (server, client) = pair(&slow(40_000_000));
    client.start().unwrap();
    let machine = &server.shared().destination_machines[0];
    let running = machine.post_copy.as_ref().unwrap();
    let until = Instant::now() + LONG;
    while running.fetched(0) == 0 {
        assert!(Instant::now() < until, "it waits for nothing");
        std::thread::sleep(Duration::from_micros(100));
    }
    // An observer is answered where it runs.
    assert!(server.shared().guest_liveness(End::Server, 0).is_some() && running.left(0) > 0);
    assert!(client.shared().guest_liveness(End::Client, 0).is_none());
    let memories = [
        Arc::downgrade(&machine.memory),
        Arc::downgrade(&client.shared().sources.machines[0].memory),
    ];
    (server, client, memories)
}

/// Whoever has a memory has its threads and descriptors: when all are gone, so are these.
fn are_gone(memories: &[Weak<SharedMemory>]) -> bool {
    memories.iter().all(|memory| memory.upgrade().is_none())
}

#[test]
fn a_destination_that_is_gone_while_its_machine_waits_is_named_and_leaves_nothing() {
    if !can_wait() {
        return;
    }
    let (server, client, memories) = while_it_waits();
    drop(server);
    assert!(are_gone(&memories[..1]));
    let error = client.wait_ended(LONG).unwrap_err();
    assert!(
        matches!(error, TrafficError::PeerVanished { .. }),
        "{error}"
    );
    drop(client);
    assert!(are_gone(&memories));
}

#[test]
fn a_source_that_is_gone_while_its_machine_waits_is_named_and_leaves_nothing() {
    if !can_wait() {
        return;
    }
    let (server, client, memories) = while_it_waits();
    drop(client);
    assert!(are_gone(&memories[1..]));
    let error = server.finish(LONG).unwrap_err();
    assert!(
        matches!(
            error,
            TrafficError::PeerVanished { .. } | TrafficError::FlowBroke { .. }
        ),
        "{error}"
    );
    assert!(are_gone(&memories));
}

#[test]
fn a_load_that_is_stopped_while_its_machine_waits_is_no_error_and_leaves_nothing() {
    if !can_wait() {
        return;
    }
    let (server, client, memories) = while_it_waits();
    let (asked, answered) = (client.stop(LONG).unwrap(), server.finish(LONG).unwrap());
    assert!(asked.drained() && answered.drained());
    assert!(are_gone(&memories));
}

#[test]
fn a_load_that_is_dropped_before_it_began_leaves_nothing() {
    if !can_wait() {
        return;
    }
    let (server, client) = pair(&slow(40_000_000));
    let memories = [
        Arc::downgrade(&server.shared().destination_machines[0].memory),
        Arc::downgrade(&client.shared().sources.machines[0].memory),
    ];
    drop((server, client));
    assert!(are_gone(&memories));
}

fn switch(writes: u64) -> Vec<u8> {
    let mut head = [0; HEAD_BYTES];
    encode_switch(writes, &mut head);
    head.to_vec()
}

/// A machine of 1 MiB that writes nothing: nothing but what is said happens to it.
fn still() -> Options {
    post_copy(|_, migration| (migration.memory, migration.dirty_rate) = (MIB, 0))
}

#[test]
fn pages_that_were_missing_are_placed_and_the_machine_is_said_to_run_before() {
    if !can_wait() {
        return;
    }
    let mut bytes = head(Kind::Pages, &[(pages(7, 1), false)]);
    bytes.extend([1; PAGE]);
    bytes.extend(head(
        Kind::Missing,
        &[(pages(7, 2), false), (pages(250, 2), false)],
    ));
    bytes.extend(switch(5));
    bytes.extend(head(
        Kind::Pages,
        &[(pages(250, 1), false), (pages(8, 1), true)],
    ));
    bytes.extend([2; PAGE]);
    bytes.extend(head(
        Kind::Pages,
        &[(pages(7, 1), false), (pages(251, 1), false)],
    ));
    bytes.extend([3; PAGE]);
    bytes.extend([4; PAGE]);
    bytes.extend(head(Kind::End, &[]));
    bytes.extend(head(Kind::Verify, &[]));
    let (ended, said, machines) = told_to(&bytes, &still());
    assert_eq!(ended.expect("an end"), Step::Over);
    for (page, content) in [(6, 0), (7, 3), (8, 0), (250, 2), (251, 4)] {
        let mut found = [9; PAGE];
        machines[0].memory.load(page * PAGE, &mut found);
        assert_eq!(found, [content; PAGE], "page {page}");
    }
    assert!(machines[0].runs());
    let replies: Vec<Reply> = said
        .as_chunks()
        .0
        .iter()
        .map(|reply| decode_reply(reply).expect("a reply"))
        .collect();
    assert_eq!(replies[..3], [Reply::Runs, Reply::Done(0), Reply::Wrote(5)]);
}

#[test]
fn a_source_whose_pages_are_not_those_that_were_missing_is_named() {
    if !can_wait() {
        return;
    }
    let missing = || head(Kind::Missing, &[(pages(7, 2), false)]);
    let page = |number: u32| {
        let mut bytes = head(Kind::Pages, &[(pages(number, 1), false)]);
        bytes.extend([1; PAGE]);
        bytes
    };
    let all = |parts: &[Vec<u8>]| parts.concat();
    let end = || head(Kind::End, &[]);
    let cases: [(Vec<u8>, &str); 9] = [
        (
            all(&[missing(), switch(0), page(7), end()]),
            "1 pages are missing",
        ),
        (
            all(&[missing(), switch(0), page(7), page(7)]),
            "page 7 arrived",
        ),
        (all(&[missing(), switch(0), page(9)]), "page 9 arrived"),
        (
            all(&[missing(), missing()]),
            "page 7 was announced as missing twice",
        ),
        (all(&[switch(0), missing()]), "once the machine runs"),
        (all(&[switch(0), switch(0)]), "resume twice"),
        (all(&[page(7), end()]), "before the machine went on"),
        (
            all(&[missing(), switch(0), head(Kind::Verify, &[])]),
            "while 2 pages are missing",
        ),
        (all(&[missing(), switch(0), page(7)]), "within a move"),
    ];
    for (bytes, words) in cases {
        let (ended, ..) = told_to(&bytes, &still());
        let error = ended.expect_err("refused");
        let known = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];
        assert!(known.contains(&error.kind()), "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    // Of a machine that arrives before it runs, no page can be missing; of another connection's pages none is.
    let pre_copy = options(|_, migration| migration.memory = MIB);
    let error = told_to(&missing(), &pre_copy).0.expect_err("refused");
    assert!(error.to_string().contains("cannot resume"), "{error}");
    let two = post_copy(|_, migration| (migration.memory, migration.channels) = (MIB, 2));
    let other = head(Kind::Missing, &[(pages(60, 10), false)]);
    let error = told_to(&other, &two).0.expect_err("refused");
    assert!(error.to_string().contains("page 64"), "{error}");
}

#[test]
fn a_connection_is_heard_from_as_long_as_pages_are_missing() {
    if !can_wait() {
        return;
    }
    let (here, mut there) = Socket::pair(Domain::UNIX, Type::STREAM, None).expect("a pair");
    here.set_nonblocking(true).expect("a flag");
    let machines = DestinationMachine::of_load(&still()).expect("one");
    let (here, mut receiver) = (Arc::new(here), MigrationReceiver::new(0));
    let mut awaits = |bytes: &[u8]| {
        io::Write::write_all(&mut there, bytes).expect("written");
        loop {
            match receiver.poll(&here, &machines[0]).expect("taken") {
                Step::Again => {}
                Step::Read => return receiver.awaits(),
                step => panic!("{step:?}"),
            }
        }
    };
    let mut page = head(Kind::Pages, &[(pages(7, 1), false)]);
    page.extend([1; PAGE]);
    assert_eq!(awaits(&page), None);
    let missing = [head(Kind::Missing, &[(pages(7, 1), false)]), switch(0)].concat();
    let since = awaits(&missing).expect("pages are missing");
    let half = awaits(&page[..HEAD_BYTES + 100]).expect("one is missing");
    assert!(half > since);
    assert!(awaits(&page[HEAD_BYTES + 100..]).is_some_and(|later| later > half));
    assert_eq!(awaits(&head(Kind::End, &[])), None);
}

#[test]
fn a_machine_that_waits_in_vain_ends_with_its_connection() {
    if !can_wait() {
        return;
    }
    // It writes to nothing but pages that are missing.
    let options = post_copy(|_, migration| {
        (migration.memory, migration.dirty_rate) = (MIB, 8_000_000_000);
    });
    let bytes = [head(Kind::Missing, &[(pages(0, 64), false)]), switch(0)].concat();
    let (ended, _, machines) = told_to(&bytes, &options);
    let error = ended.expect_err("the source is gone");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let memory = Arc::downgrade(&machines[0].memory);
    drop(machines);
    assert!(are_gone(&[memory]));
}
