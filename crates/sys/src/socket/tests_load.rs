use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket};

use super::*;

const LONG: Duration = Duration::from_secs(10);

fn bound() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

fn connected(far: &UdpSocket) -> UdpSocket {
    let near = bound();
    near.connect(far.local_addr().unwrap()).unwrap();
    near
}

/// Receives until `count` messages are there, as (bytes, segment).
fn receive(batch: &mut ReceiveBatch, socket: &UdpSocket, count: usize) -> Vec<(Vec<u8>, usize)> {
    let mut all = Vec::new();
    while all.len() < count {
        let received = batch.receive(socket, true, true).unwrap();
        for index in 0..received {
            let one = batch.get(index);
            all.push((one.bytes.to_vec(), one.segment.unwrap_or(one.length)));
        }
    }
    all
}

#[test]
fn a_batch_arrives_as_it_was_sent_and_can_be_answered() {
    let far = bound();
    let near = connected(&far);
    let mut out = SendBatch::new(5, 100);
    for index in 0..5 {
        out.message(index)[0] = index as u8;
    }
    out.set_length(4, 10);
    let mut sent = 0;
    while sent < 5 {
        sent += out.send(&near, sent, 5, true).unwrap();
    }
    let mut batch = ReceiveBatch::new(8, 100, false);
    let mut back = SendBatch::new(1, 3);
    let mut seen = Vec::new();
    while seen.len() < 5 {
        for index in 0..batch.receive(&far, true, true).unwrap() {
            let one = batch.get(index);
            seen.push((one.bytes[0], one.length));
            back.message(0).copy_from_slice(&[9, 9, one.bytes[0]]);
            back.address(0, one.from, 3);
            assert_eq!(back.send(&far, 0, 1, true).unwrap(), 1);
        }
    }
    assert_eq!(seen, [(0, 100), (1, 100), (2, 100), (3, 100), (4, 10)]);
    let mut answer = [0; 8];
    assert_eq!(near.recv(&mut answer).unwrap(), 3);
    assert_eq!(answer[..3], [9, 9, 0]);
}

#[test]
fn who_sent_is_told_apart() {
    let far = bound();
    let (one, other) = (connected(&far), connected(&far));
    let mut batch = ReceiveBatch::new(1, 10, false);
    let mut from = |socket: &UdpSocket| {
        socket.send(b"x").unwrap();
        batch.receive(&far, true, true).unwrap();
        *batch.get(0).from
    };
    let first = from(&one);
    assert_eq!(from(&one), first);
    assert_ne!(from(&other), first);
}

#[test]
fn a_batch_that_must_not_wait_says_so() {
    let mut batch = ReceiveBatch::new(2, 10, false);
    let error = batch.receive(&bound(), false, true).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn the_length_is_the_datagrams_though_the_buffer_holds_only_its_head() {
    let far = bound();
    let mut out = SendBatch::new(1, 500);
    out.send(&connected(&far), 0, 1, true).unwrap();
    let mut batch = ReceiveBatch::new(1, 16, false);
    batch.receive(&far, true, true).unwrap();
    let one = batch.get(0);
    assert_eq!((one.bytes.len(), one.length), (16, 500));
}

#[test]
fn one_send_is_cut_into_datagrams_and_they_may_arrive_together() {
    let far = bound();
    set_udp_gro(&far).unwrap();
    let near = connected(&far);
    set_udp_segment(&near, 100).unwrap();
    let mut out = SendBatch::new(1, 250);
    out.message(0)[200] = 7;
    assert_eq!(out.send(&near, 0, 1, true).unwrap(), 1);
    let mut batch = ReceiveBatch::new(4, 1 << 16, true);
    let mut bytes = Vec::new();
    while bytes.len() < 250 {
        for (part, segment) in receive(&mut batch, &far, 1) {
            assert!(segment <= 100, "{segment}");
            bytes.extend(part);
        }
    }
    assert_eq!((bytes.len(), bytes[200]), (250, 7));
}

#[test]
fn a_dscp_is_set_for_both_families_and_no_other_value() {
    let v4 = bound();
    set_dscp(&v4, 46).unwrap();
    assert_eq!(dscp(&v4).unwrap(), 46);
    let v6 = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    set_dscp(&v6, 10).unwrap();
    assert_eq!(dscp(&v6).unwrap(), 10);
    assert!(set_dscp(&v4, 64).is_err());
}

#[test]
fn what_is_discarded_is_counted_and_gone() {
    use std::io::{Read, Write};
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(LONG)).unwrap();
    near.write_all(&[1; 1000]).unwrap();
    near.write_all(&[2; 3]).unwrap();
    let mut discarded = 0;
    while discarded < 1000 {
        discarded += receive_discarding(&far, 1000 - discarded).unwrap();
    }
    let mut rest = [0; 3];
    far.read_exact(&mut rest).unwrap();
    assert_eq!(rest, [2; 3]);
    drop(near);
    assert_eq!(receive_discarding(&far, 10).unwrap(), 0);
}

#[test]
fn what_is_sent_is_received_and_nothing_beyond_the_buffer() {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    assert_eq!(send(&near, b"abcdef").unwrap(), 6);
    let mut bytes = [0; 8];
    assert_eq!(super::receive(&far, &mut bytes[..4]).unwrap(), 4);
    assert_eq!(&bytes, b"abcd\0\0\0\0");
    assert_eq!(super::receive(&far, &mut bytes).unwrap(), 2);
    assert_eq!(&bytes, b"efcd\0\0\0\0");
    far.set_nonblocking(true).unwrap();
    let nothing = super::receive(&far, &mut bytes).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    drop(near);
    assert_eq!(super::receive(&far, &mut bytes).unwrap(), 0);
}

#[test]
fn every_zero_copy_send_is_completed() {
    use std::io::Read;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    enable_zero_copy(&near).unwrap();
    let data = vec![5; 20_000];
    let mut all = Completions::default();
    for _ in 0..3 {
        let sent = send_zero_copy(&near, &data).unwrap().unwrap();
        far.read_exact(&mut vec![0; sent]).unwrap();
    }
    let deadline = Instant::now() + LONG;
    while all.completed < 3 && Instant::now() < deadline {
        let some = read_completions(&near).unwrap();
        all.completed += some.completed;
        all.copied += some.copied;
        poll_readable(&[near.as_fd()], Duration::from_millis(10)).unwrap();
    }
    assert_eq!(all.completed, 3);
    assert!(all.copied <= 3);
}

#[test]
fn a_single_datagram_between_connected_sockets_is_as_one_of_many() {
    let far = bound();
    let near = connected(&far);
    far.connect(near.local_addr().unwrap()).unwrap();
    let mut out = SendBatch::new(1, 100);
    let mut batch = ReceiveBatch::new(1, 40, false);
    let error = batch.receive(&far, false, false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    for length in [0, 1, 40, 100] {
        out.message(0).fill(length as u8);
        out.set_length(0, length);
        assert_eq!(out.send(&near, 0, 1, true).unwrap(), 1);
        assert_eq!(batch.receive(&far, true, false).unwrap(), 1);
        let one = batch.get(0);
        assert_eq!((one.length, one.segment), (length, None));
        assert_eq!(one.bytes, vec![length as u8; length.min(40)]);
    }
    drop(near);
    let error = out
        .send(&far, 0, 1, true)
        .and_then(|_| out.send(&far, 0, 1, true));
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}
