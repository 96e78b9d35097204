use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::*;
use crate::epoll::Waker;

const LONG: Option<Duration> = Some(Duration::from_secs(10));
const EACH: usize = 64;

/// A ring over one end of each pair; `None`, said aloud, where this machine refuses rings.
fn ring(pairs: &[(UnixStream, UnixStream)], wake: &Waker, message: &[u8]) -> Option<Ring> {
    let sockets: Vec<_> = pairs.iter().map(|(near, _)| near.as_fd()).collect();
    match Ring::new(&sockets, wake.as_fd(), EACH, message) {
        Ok(ring) => Some(ring),
        Err(error) => {
            wirecost_skips::skip(format!("no rings here: {error}"));
            None
        }
    }
}

fn pairs(count: usize) -> Vec<(UnixStream, UnixStream)> {
    (0..count).map(|_| UnixStream::pair().unwrap()).collect()
}

/// What is over next, waiting for it.
fn next(ring: &mut Ring) -> Completion {
    for _ in 0..100 {
        if let Some(done) = ring.next_completion() {
            return done;
        }
        ring.wait(LONG).unwrap();
    }
    panic!("nothing was ever over");
}

#[test]
fn what_is_sent_arrives_and_what_arrives_is_told_of_its_socket() {
    let (pairs, wake) = (pairs(40), Waker::new().unwrap());
    let Some(mut ring) = ring(&pairs, &wake, b"message") else {
        return;
    };
    for _ in 0..20 {
        for socket in 0..pairs.len() {
            ring.send(socket, 7).unwrap();
            ring.receive(socket, EACH).unwrap();
            assert!(ring.is_receiving(socket) && ring.is_sending(socket));
        }
        let mut open = 2 * pairs.len();
        while open > 0 {
            match next(&mut ring) {
                Completion::Sent(socket, sent) => {
                    assert_eq!(sent.unwrap(), 7);
                    let mut bytes = [0; 7];
                    let mut far = &pairs[socket].1;
                    far.read_exact(&mut bytes).unwrap();
                    assert_eq!(&bytes, b"message");
                    far.write_all(&[socket as u8; 5]).unwrap();
                }
                Completion::Received(socket, received) => {
                    assert_eq!(received.unwrap(), 5);
                    assert_eq!(ring.buffer(socket)[..5], [socket as u8; 5]);
                }
                Completion::Woken => panic!("nobody raised it"),
            }
            open -= 1;
        }
    }
}

#[test]
fn a_socket_that_does_not_block_is_waited_for_all_the_same() {
    let (pairs, wake) = (pairs(1), Waker::new().unwrap());
    pairs[0].0.set_nonblocking(true).unwrap();
    let Some(mut ring) = ring(&pairs, &wake, &vec![1; 1 << 20]) else {
        return;
    };
    ring.receive(0, 1).unwrap();
    ring.wait(Some(Duration::from_millis(1))).unwrap();
    assert!(ring.next_completion().is_none() && ring.is_receiving(0));
    assert!(ring.buffer(0).is_empty());
    assert_eq!(
        ring.receive(0, 1).unwrap_err().kind(),
        io::ErrorKind::ResourceBusy
    );
    (&pairs[0].1).write_all(&[9, 9]).unwrap();
    assert!(matches!(next(&mut ring), Completion::Received(0, Ok(1))));
    // More than the socket takes at once: told in parts, or when there is room.
    let mut sent = 0;
    for _ in 0..1_000 {
        if sent == 1 << 20 {
            break;
        }
        if !ring.is_sending(0) {
            ring.send(0, (1 << 20) - sent).unwrap();
        }
        ring.wait(Some(Duration::from_millis(1))).unwrap();
        while let Some(done) = ring.next_completion() {
            match done {
                Completion::Sent(0, Ok(bytes)) => sent += bytes,
                other => panic!("{other:?}"),
            }
        }
        let mut some = vec![0; 1 << 16];
        pairs[0].1.set_nonblocking(true).unwrap();
        while (&pairs[0].1).read(&mut some).is_ok() {}
    }
    assert_eq!(sent, 1 << 20);
}

#[test]
fn a_wait_ends_by_its_time_and_by_its_wake() {
    let (pairs, wake) = (pairs(2), Waker::new().unwrap());
    let Some(mut ring) = ring(&pairs, &wake, b"x") else {
        return;
    };
    for time in [Duration::ZERO, Duration::from_millis(2)] {
        let began = Instant::now();
        ring.wait(Some(time)).unwrap();
        assert!(began.elapsed() >= time && ring.next_completion().is_none());
    }
    for _ in 0..3 {
        wake.raise();
        assert!(matches!(next(&mut ring), Completion::Woken));
        wake.lower();
        ring.arm_wake().unwrap();
    }
    // Again only once it is asked for again.
    wake.raise();
    assert!(matches!(next(&mut ring), Completion::Woken));
    ring.wait(Some(Duration::from_millis(1))).unwrap();
    assert!(ring.next_completion().is_none());
}

#[test]
fn what_is_taken_back_comes_back() {
    let (pairs, wake) = (pairs(3), Waker::new().unwrap());
    let Some(mut ring) = ring(&pairs, &wake, b"x") else {
        return;
    };
    ring.receive(1, EACH).unwrap();
    ring.cancel(1).unwrap();
    ring.cancel(2).unwrap();
    match next(&mut ring) {
        Completion::Received(1, Err(error)) => {
            assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_that_is_gone_is_an_end_or_an_error_and_no_signal() {
    let (mut pairs, wake) = (pairs(2), Waker::new().unwrap());
    let Some(mut ring) = ring(&pairs, &wake, b"x") else {
        return;
    };
    ring.receive(0, EACH).unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    drop(pairs.remove(0).1);
    assert!(matches!(next(&mut ring), Completion::Received(0, Ok(0))));
    ring.send(0, 1).unwrap();
    match next(&mut ring) {
        Completion::Sent(0, Err(error)) => assert_eq!(error.kind(), io::ErrorKind::BrokenPipe),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dropping_a_ring_lets_go_of_its_sockets() {
    let (pairs, wake) = (pairs(8), Waker::new().unwrap());
    let Some(mut ring) = ring(&pairs, &wake, b"x") else {
        return;
    };
    for socket in 0..pairs.len() {
        ring.receive(socket, EACH).unwrap();
    }
    ring.wait(Some(Duration::ZERO)).unwrap();
    drop(ring);
    for (near, mut far) in pairs {
        // What comes now is nobody's but ours.
        far.write_all(&[1, 2, 3]).unwrap();
        let mut bytes = [0; 3];
        (&near).read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
        drop(near);
        assert_eq!(far.read(&mut bytes).unwrap(), 0);
    }
}

#[test]
fn more_sockets_than_a_ring_has_room_for_are_refused() {
    let (pairs, wake) = (pairs(1), Waker::new().unwrap());
    let sockets = vec![pairs[0].0.as_fd(); 1 << 14];
    assert!(Ring::new(&sockets, wake.as_fd(), 1, b"x").is_err());
}

#[test]
fn a_thread_that_may_have_no_ring_is_told_so() {
    std::thread::spawn(|| {
        refuse_here().unwrap();
        let wake = Waker::new().unwrap();
        let error = Ring::new(&[], wake.as_fd(), 1, b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    })
    .join()
    .unwrap();
}

#[test]
fn a_kernel_that_is_busy_or_has_no_memory_now_is_no_error() {
    for error in [libc::EBUSY, libc::EAGAIN] {
        // A filter of system calls stays for as long as its thread.
        let waited = std::thread::spawn(move || {
            let (pairs, wake) = (pairs(1), Waker::new().unwrap());
            let Some(mut ring) = ring(&pairs, &wake, b"message") else {
                return;
            };
            refusal::refuse(libc::SYS_io_uring_enter, error).unwrap();
            ring.wait(LONG).unwrap();
            assert!(ring.next_completion().is_none());
        });
        waited.join().unwrap();
    }
}
