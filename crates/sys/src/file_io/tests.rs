use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::thread;

use super::*;
use crate::block_file;
use crate::ring::refuse_here;

const EACH: usize = 4096;

fn scratch() -> Arc<File> {
    let directory = std::env::temp_dir();
    Arc::new(block_file::make_unnamed(&directory).expect("a file without a name"))
}

/// All that is over, waiting for `count`.
fn done(io: &mut FileIo, count: usize) -> Vec<(usize, io::Result<usize>)> {
    let mut all = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(20);
    while all.len() < count {
        assert!(Instant::now() < deadline, "{} of {count}", all.len());
        all.extend(std::iter::from_fn(|| io.next_completion()));
        if all.len() < count {
            io.wait(Duration::from_millis(200)).expect("wait");
        }
    }
    all
}

/// Writes, reads back, flushes, reads beyond the end, and fails on a file that is only read.
fn every_operation(has_ring: bool) {
    let file = scratch();
    let (mut io, refused) = FileIo::new(&file, 8, EACH).expect("slots");
    assert_eq!(refused.is_none(), has_ring, "{refused:?}");
    for slot in 0..8 {
        io.buffer(slot).fill(slot as u8 + 1);
        let offset = (slot * EACH) as u64;
        io.start(FileOperation::Write, slot, [0, EACH], offset)
            .expect("queued");
        assert!(io.buffer(slot).is_empty(), "the kernel has it");
        let again = io.start(FileOperation::Read, slot, [0, 1], 0);
        assert_eq!(again.expect_err("busy").kind(), io::ErrorKind::ResourceBusy);
    }
    for (_, moved) in done(&mut io, 8) {
        assert_eq!(moved.expect("written"), EACH);
    }
    io.start(FileOperation::Flush, 3, [0, 0], 0)
        .expect("queued");
    let flushed = done(&mut io, 1).remove(0);
    assert_eq!((flushed.0, flushed.1.expect("flushed")), (3, 0));
    let mut found = vec![0; 8 * EACH];
    file.read_exact_at(&mut found, 0).expect("content");
    for (slot, bytes) in found.chunks(EACH).enumerate() {
        assert!(bytes.iter().all(|byte| *byte == slot as u8 + 1));
    }
    // In the other order, half of each, into the middle of a slot.
    for slot in 0..8 {
        io.buffer(slot).fill(0);
        let offset = ((7 - slot) * EACH) as u64;
        io.start(FileOperation::Read, slot, [EACH / 2, EACH], offset)
            .expect("queued");
    }
    for (slot, moved) in done(&mut io, 8) {
        assert_eq!(moved.expect("read"), EACH / 2);
        let (before, after) = io.buffer(slot).split_at(EACH / 2);
        assert!(before.iter().all(|byte| *byte == 0));
        assert!(after.iter().all(|byte| *byte == 8 - slot as u8));
    }
    let end = (8 * EACH) as u64;
    io.start(FileOperation::Read, 0, [0, EACH], end)
        .expect("queued");
    assert_eq!(done(&mut io, 1).remove(0).1.expect("the end"), 0);
    let beyond = io.start(FileOperation::Read, 0, [0, EACH + 1], 0);
    assert_eq!(
        beyond.expect_err("too long").kind(),
        io::ErrorKind::InvalidInput
    );
    let null = OpenOptions::new().read(true).open("/proc/self/status");
    let (mut io, _) = FileIo::new(&Arc::new(null.expect("a file")), 1, EACH).expect("a slot");
    io.start(FileOperation::Write, 0, [0, EACH], 0)
        .expect("queued");
    let error = done(&mut io, 1).remove(0).1.expect_err("not to be written");
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
}

#[test]
fn every_operation_is_done_in_a_ring_and_without_one() {
    match RingQueue::new(&scratch(), 4) {
        Ok(_) => every_operation(true),
        Err(error) => {
            wirecost_skips::skip(format!("no rings here: {error}"));
        }
    }
    let without = thread::spawn(|| {
        refuse_here().expect("a filter");
        every_operation(false);
    });
    without.join().expect("done without a ring");
}

#[test]
fn a_drop_waits_for_what_is_under_way() {
    for _ in 0..20 {
        let file = scratch();
        let (mut io, _) = FileIo::new(&file, 64, EACH).expect("slots");
        for slot in 0..64 {
            io.start(FileOperation::Write, slot, [0, EACH], (slot * EACH) as u64)
                .expect("queued");
        }
        io.wait(Duration::ZERO).expect("submitted");
        drop(io);
    }
}
