use std::time::Duration;

use super::*;
use crate::load::{Limit, MAX_MESSAGE, Rate, Receiving, Segmentation, Sending};

type Change = fn(&mut Load);

const DISCARD_AND_GRO: Change = |load| {
    load.receiving = Receiving::Discard;
    load.segmentation.receive = true;
};

const RATE_AND_THINKING: Change = |load| {
    load.rate = Some(Rate::RequestsPerSecond(1.0));
    load.think_time = Duration::from_secs(1);
};

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn every_fault_names_its_option_and_why() {
    use Workload::{TcpBidirectional, TcpCrr, TcpRr, TcpStream, UdpRr, UdpStream};
    let cases: &[(Workload, Change, &str, &str)] = &[
        (TcpRr, |l| l.streams = 1025, "streams", "1 to 1024"),
        (
            TcpRr,
            |l| l.request = MAX_MESSAGE + 1,
            "request",
            "1048577 bytes",
        ),
        (TcpRr, |l| l.response = 0, "response", "0 bytes"),
        (TcpStream, |l| l.request = 0, "message", "1 to 1048576"),
        (UdpStream, |l| l.request = 15, "message", "16 to 65507"),
        (UdpRr, |l| l.response = 65_508, "response", "16 to 65507"),
        (TcpRr, |l| l.threads = Some(0), "threads", "at least 1"),
        (TcpRr, |l| l.threads = Some(2), "threads", "at most 1 for"),
        (
            TcpBidirectional,
            |l| l.threads = Some(3),
            "threads",
            "at most 2 for",
        ),
        (
            TcpRr,
            |l| l.socket_buffer = Some(1 << 30),
            "socket_buffer",
            "4096 to 536870912",
        ),
        (TcpCrr, |l| l.depth = 2, "depth", "one request outstanding"),
        (UdpRr, |l| l.depth = 1025, "depth", "1 to 1024"),
        (
            TcpRr,
            |l| l.rate = Some(Rate::BitsPerSecond(800)),
            "rate",
            "requests per second",
        ),
        (
            UdpStream,
            |l| l.rate = Some(Rate::RequestsPerSecond(1.0)),
            "rate",
            "bits per second",
        ),
        (
            TcpStream,
            |l| l.rate = Some(Rate::BitsPerSecond(7)),
            "rate",
            "at least 8",
        ),
        (
            UdpRr,
            |l| l.rate = Some(Rate::RequestsPerSecond(f64::NAN)),
            "rate",
            "NaN",
        ),
        (UdpRr, RATE_AND_THINKING, "rate", "exclude"),
        (
            TcpStream,
            |l| l.limit = Some(Limit::Transactions(5)),
            "limit",
            "by bytes",
        ),
        (
            TcpRr,
            |l| l.limit = Some(Limit::Bytes(5)),
            "limit",
            "by transactions",
        ),
        (
            TcpRr,
            |l| l.limit = Some(Limit::Transactions(0)),
            "limit",
            "nothing",
        ),
        (
            UdpStream,
            |l| l.sending = Sending::ZeroCopy,
            "zero_copy",
            "TCP streams",
        ),
        (
            TcpRr,
            |l| l.receiving = Receiving::Discard,
            "discard_on_receive",
            "read what",
        ),
        (
            UdpStream,
            DISCARD_AND_GRO,
            "discard_on_receive",
            "cannot be discarded",
        ),
        (
            TcpStream,
            |l| {
                l.segmentation = Segmentation {
                    send: true,
                    receive: false,
                }
            },
            "segmentation_offload",
            "udp-stream",
        ),
        (TcpStream, |l| l.dscp = Some(64), "dscp", "0 to 63"),
        (
            TcpStream,
            |l| l.think_time = Duration::from_secs(1),
            "think_time",
            "request/response",
        ),
        (
            TcpRr,
            |l| l.think_time = Duration::from_secs(61),
            "think_time",
            "at most 60 s",
        ),
        (
            TcpRr,
            |l| l.congestion = Some(String::new()),
            "congestion",
            "1 to 15 characters",
        ),
        (
            UdpRr,
            |l| l.reply_timeout = Duration::ZERO,
            "reply_timeout",
            "above 0",
        ),
        (
            UdpRr,
            |l| l.congestion = Some("cubic".into()),
            "congestion",
            "no congestion",
        ),
    ];
    for (workload, change, option, words) in cases {
        let mut load = Load::new(*workload);
        change(&mut load);
        let faults = load.faults();
        let [fault] = &faults[..] else {
            panic!("{workload} {option}: {faults:?}");
        };
        assert_eq!(fault.option, *option, "{}", fault.message);
        assert!(fault.message.contains(words), "{}", fault.message);
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let load = Load {
        streams: 0,
        depth: 2,
        dscp: Some(64),
        ..Load::new(Workload::TcpCrr)
    };
    let options: Vec<&str> = load.faults().iter().map(|fault| fault.option).collect();
    assert_eq!(options, ["streams", "depth", "dscp"]);
}

#[test]
fn an_upper_bound_on_requests_is_a_number_above_nothing() {
    let faults = |most| {
        let load = Load {
            most_per_second: Some(most),
            ..Load::new(Workload::Storage)
        };
        load.faults().len()
    };
    assert_eq!([0.03, 1e9].map(faults), [0; 2]);
    assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(faults), [1; 4]);
}
