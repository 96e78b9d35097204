//! Storage at a path: files and directories here; block devices and mounts of others are tried with the whole program
//! and in emulated machines.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::load::{Address, Pattern, Storage, WaitMode};
use wirecost_model::path_access::PathKind;
use wirecost_sys::ring::refuse_here;

use crate::{Client, Limit, Load, Options, Rate, Snapshot, TrafficError, Workload};

const LONG: Duration = Duration::from_secs(30);

/// A directory of the test's own, removed with all that is in it.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wirecost-path-{}-{number}", process::id()));
        fs::create_dir(&path).expect("a directory");
        Self(path)
    }

    /// A file of so many bytes, all of them `byte`.
    fn file(&self, name: &str, bytes: usize, byte: u8) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, vec![byte; bytes]).expect("a file");
        path
    }

    fn entries(&self) -> usize {
        fs::read_dir(&self.0).expect("a directory").count()
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(path: &Path, size: u64, change: impl FnOnce(&mut Load)) -> Options {
    Options::new(Workload::Storage, *b"fedcba9876543210").with(|load| {
        load.path = Some(path.to_str().expect("a plain path").to_owned());
        load.storage = Some(Storage {
            size,
            ..Storage::USUAL
        });
        change(load);
    })
}

fn storage(load: &mut Load) -> &mut Storage {
    load.storage.as_mut().expect("storage")
}

fn writing(load: &mut Load) {
    storage(load).pattern = Pattern::RandomWrite;
    load.destructive = true;
}

fn connect(options: &Options) -> Result<Client, TrafficError> {
    let path = options.load.path.clone().expect("a path");
    Client::connect(Address::Path(path), options, LONG)
}

/// Runs a load until so many I/Os were over, and ends it: contents are verified then.
fn run(options: &Options, count: u64) -> Snapshot {
    let client = connect(options).unwrap();
    client.start().unwrap();
    let deadline = Instant::now() + LONG;
    let counted = loop {
        let counted = client.snapshot().unwrap();
        if counted.latency.count() >= count {
            break counted;
        }
        assert!(Instant::now() < deadline, "it stalls: {:?}", options.load);
        thread::sleep(Duration::from_millis(1));
    };
    let ended = client.stop(LONG).unwrap();
    assert!(ended.drained(), "{ended:?}");
    assert!(ended.bytes >= count * u64::from(options.load.request));
    counted
}

fn refused(options: &Options) -> String {
    connect(options).expect_err("refused").to_string()
}

#[test]
fn every_pattern_and_size_is_done_in_a_file_of_its_own_and_verified() {
    let scratch = ScratchDir::new();
    for pattern in Pattern::ALL {
        for (size, depth, streams) in [
            (4 << 10, 32, 1),
            (4 << 10, 1, 3),
            (64 << 10, 5, 2),
            (4 << 20, 4, 1),
        ] {
            let options = options(&scratch.0, 8 << 20, |load| {
                (load.request, load.depth, load.streams) = (size, depth, streams);
                storage(load).pattern = pattern;
                load.destructive = pattern.writes();
            });
            let counted = run(&options, 20);
            let path = counted.path.expect("how it was read");
            assert_eq!((path.kind, path.bytes), (PathKind::OwnFile, 8 << 20));
            let [read, written] = counted.flows.iter().fold([0, 0], |[read, written], flow| {
                [
                    read + flow.counts.read_bytes,
                    written + flow.counts.sent_bytes,
                ]
            });
            assert_eq!(read > 0, !pattern.writes() || pattern.is_mix());
            assert_eq!(written > 0, pattern.writes());
        }
    }
    assert_eq!(scratch.entries(), 0, "the files are gone");
}

#[test]
fn options_of_other_loads_are_those_of_a_path_too() {
    let scratch = ScratchDir::new();
    let flushing = options(&scratch.0, 1 << 20, |load| {
        writing(load);
        load.depth = 4;
        load.limit = Some(Limit::Transactions(100));
        storage(load).flush_every = 5;
    });
    let client = connect(&flushing).unwrap();
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let counted = client.snapshot().unwrap();
    assert_eq!(counted.latency.count(), 100);
    assert!(
        (19..=20).contains(&counted.flushes.count()),
        "{:?}",
        counted.flushes.count()
    );
    client.stop(LONG).unwrap();

    let timed = options(&scratch.0, 1 << 20, |load| {
        load.rate = Some(Rate::RequestsPerSecond(500.0));
        load.streams = 2;
    });
    let began = Instant::now();
    let counted = run(&timed, 100);
    assert!(
        began.elapsed() > Duration::from_millis(50),
        "100 of 1000 a second: 100 ms, of which 10 ms are one standard deviation"
    );
    assert_eq!(counted.lateness.count() > 0, counted.scheduled.is_some());

    let spinning = options(&scratch.0, 1 << 20, |load| load.waiting = WaitMode::Spin);
    run(&spinning, 50);
}

#[test]
fn a_file_is_read_as_far_as_was_said_and_stays_as_it_is() {
    let scratch = ScratchDir::new();
    let path = scratch.file("there", 1 << 20, 7);
    let counted = run(&options(&path, 0, |_| ()), 50);
    assert_eq!(
        counted.path.map(|path| (path.kind, path.bytes)),
        Some((PathKind::File, 1 << 20))
    );
    let counted = run(&options(&path, 64 << 10, |_| ()), 50);
    assert_eq!(counted.path.map(|path| path.bytes), Some(64 << 10));
    let bytes = fs::read(&path).expect("a file");
    assert!(bytes.len() == 1 << 20 && bytes.iter().all(|byte| *byte == 7));
}

#[test]
fn what_is_not_empty_is_written_only_where_it_was_named_twice_and_is_empty_then() {
    let scratch = ScratchDir::new();
    for (bytes, nonzero) in [(1 << 20, 0), (4 << 20, (4 << 20) - 1), (4 << 20, 600)] {
        let path = scratch.file("there", bytes, 0);
        let file = OpenOptions::new().write(true).open(&path).expect("a file");
        file.write_all_at(b"x", nonzero).expect("a byte");
        let once = options(&path, 0, writing);
        let said = refused(&once);
        assert!(
            said.contains("is not empty") && said.contains(&format!("byte {nonzero} ")),
            "{said}"
        );
        let before = fs::read(&path).expect("a file");
        assert_eq!(before.iter().filter(|byte| **byte != 0).count(), 1);
        let twice = options(&path, 0, |load| {
            writing(load);
            load.overwrite.clone_from(&load.path);
        });
        run(&twice, 100);
        // Its ends are zero now, whatever the load wrote there.
        run(&once, 100);
    }
    let path = scratch.file("image", 2 << 20, 0);
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    file.write_all_at(&[0x53, 0xef], 1080).expect("a signature");
    let said = refused(&options(&path, 0, writing));
    assert!(said.contains("ext4 file system"), "{said}");
}

#[test]
fn what_a_load_wrote_to_is_empty_though_the_load_ended_by_an_error() {
    let scratch = ScratchDir::new();
    let path = scratch.file("there", 4 << 20, 0);
    let once = options(&path, 0, writing);
    let client = connect(&once).unwrap();
    client.start().unwrap();
    let deadline = Instant::now() + LONG;
    while client.snapshot().unwrap().latency.count() < 100 {
        assert!(Instant::now() < deadline, "it stalls");
        thread::sleep(Duration::from_millis(1));
    }
    drop(client);
    run(&once, 100);
    // What no load has written to stays, also where it may be lost.
    let path = scratch.file("full", 4 << 20, 7);
    let twice = options(&path, 0, |load| {
        writing(load);
        load.overwrite.clone_from(&load.path);
    });
    drop(connect(&twice).unwrap());
    let bytes = fs::read(&path).expect("a file");
    assert!(bytes.len() == 4 << 20 && bytes.iter().all(|byte| *byte == 7));
}

#[test]
fn what_cannot_have_the_load_is_named() {
    let scratch = ScratchDir::new();
    let small = scratch.file("small", 4096, 0);
    let named = |path: &Path, size, change: fn(&mut Load)| refused(&options(path, size, change));
    for (said, words) in [
        (
            named(&scratch.0.join("absent"), 0, |_| ()),
            "nothing is there",
        ),
        (named(&scratch.0, 0, |_| ()), "that needs a `size`"),
        (
            named(&small, 8192, |_| ()),
            "has 4096 bytes, and the load's `size` is 8192: too small",
        ),
        (
            named(&small, 0, |load| load.request = 8192),
            "too small for one I/O of 8192",
        ),
        (
            named(Path::new("/dev/null"), 0, |_| ()),
            "neither a file nor a block device",
        ),
        (
            named(Path::new("/proc"), 1 << 20, |_| ()),
            "making a file there",
        ),
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(scratch.entries(), 1);
}

#[test]
fn without_a_ring_the_same_is_done_and_the_reason_told() {
    let scratch = ScratchDir::new();
    let path = scratch.0.clone();
    let without = thread::spawn(move || {
        refuse_here().expect("a filter");
        let options = options(&path, 4 << 20, |load| {
            storage(load).pattern = Pattern::RandomMix;
            storage(load).flush_every = 3;
            load.destructive = true;
            (load.streams, load.depth) = (2, 8);
        });
        let counted = run(&options, 200);
        counted.path.expect("how").no_ring.expect("why not")
    });
    let why = without.join().expect("done without a ring");
    assert!(why.contains("not permitted"), "{why}");
}

#[test]
fn content_that_is_not_what_was_written_and_a_file_that_shrinks_are_errors() {
    let scratch = ScratchDir::new();
    let path = scratch.file("there", 1 << 20, 0);
    let limited = options(&path, 0, |load| {
        writing(load);
        load.limit = Some(Limit::Transactions(50));
    });
    let client = connect(&limited).unwrap();
    client.start().unwrap();
    client.wait_ended(LONG).unwrap();
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    for offset in (0..1 << 20).step_by(4096) {
        file.write_all_at(b"!", offset + 100).expect("a byte");
    }
    file.sync_all().expect("on the disk");
    let error = client.stop(LONG).expect_err("changed").to_string();
    assert!(
        error.contains("are not what was written there, from byte 100"),
        "{error}"
    );

    let reading = options(&path, 0, |_| ());
    let client = connect(&reading).unwrap();
    client.start().unwrap();
    File::options()
        .write(true)
        .open(&path)
        .expect("a file")
        .set_len(4096)
        .expect("shorter");
    let deadline = Instant::now() + LONG;
    let error = loop {
        match client.snapshot() {
            Err(error) => break error.to_string(),
            Ok(_) => assert!(Instant::now() < deadline, "nothing happens"),
        }
        thread::sleep(Duration::from_millis(1));
    };
    assert!(
        error.contains("reading 4096 bytes at offset") && error.contains("there, job 0"),
        "{error}"
    );
}

#[test]
fn a_client_that_is_dropped_leaves_no_file() {
    let scratch = ScratchDir::new();
    let options = options(&scratch.0, 1 << 20, |load| load.streams = 4);
    drop(connect(&options).unwrap());
    let client = connect(&options).unwrap();
    client.start().unwrap();
    drop(client);
    assert_eq!(scratch.entries(), 0);
    let mut probe = File::create(scratch.0.join("probe")).expect("room");
    probe.write_all(b"x").expect("room");
}
