//! Over the loopback device, where nothing is lost.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream};

use super::*;
use crate::message::Secret;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECRET: Secret = Secret {
    probe: [7; 16],
    acknowledgement: [9; 8],
};

fn receiver() -> Receiver {
    Receiver::start((HERE, 0).into(), SECRET).expect("a port")
}

#[test]
fn everything_arrives_where_nothing_is_lost() {
    let receiver = receiver();
    let amount = TransferSize {
        bytes: 3_000_001,
        limit: Duration::from_mins(1),
    };
    let sent = transfer(HERE, receiver.address(), amount, &SECRET).expect("a socket");
    let arrived = receiver.finish();
    assert_eq!(sent.heartbeats, HEARTBEATS);
    assert!(sent.mss_before > 1000 && !sent.congestion_control.is_empty());
    assert_eq!(arrived.heartbeats, HEARTBEATS);
    assert_eq!(arrived.bytes, 3_000_001);
    assert!(arrived.ended, "{arrived:?}");
}

#[test]
fn a_stranger_is_hung_up_on_and_the_next_one_is_served() {
    let receiver = receiver();
    let mut stranger = TcpStream::connect(receiver.address()).expect("it listens");
    stranger.write_all(&[0; 64]).expect("sent");
    let amount = TransferSize {
        bytes: 10,
        limit: Duration::from_mins(1),
    };
    let sent = transfer(HERE, receiver.address(), amount, &SECRET).expect("a socket");
    assert_eq!(sent.heartbeats, HEARTBEATS);
    assert_eq!(receiver.finish().bytes, 10);
}

#[test]
fn nobody_there_is_told_and_no_error() {
    let address = receiver().address();
    let amount = TransferSize {
        bytes: 10,
        limit: Duration::from_secs(1),
    };
    let sent = transfer(HERE, address, amount, &SECRET).expect("a socket");
    assert_eq!(sent.heartbeats, 0);
    assert_eq!(receiver().finish(), ReceiverResult::default());
}
