//! What no load can have, in words: one rule each.

use std::time::Duration;

use super::{
    Limit, MAX_DEPTH, MAX_MESSAGE, MAX_STREAMS, Options, Rate, Receiving, Sending, Workload,
};
use crate::datagram::DATAGRAM_BYTES;
use crate::error::TrafficError;

/// The largest UDP payload over IPv4: 65535 less 20 of IP and 8 of UDP.
const MAX_DATAGRAM: u32 = 65_507;
/// The longest that may be waited for one response: histograms end at 137 s, and nobody waits so long.
const MAX_REPLY_TIMEOUT: Duration = Duration::from_mins(1);

type Rule = fn(&Options) -> Option<String>;

const RULES: &[Rule] = &[
    streams,
    sizes,
    datagram_sizes,
    threads,
    depth,
    rate,
    limit,
    zero_copy,
    discard,
    segmentation,
    dscp,
    times,
    congestion,
];

impl Options {
    /// Refuses what no load can have; where there are several such things, all of them.
    pub fn validate(&self) -> Result<(), TrafficError> {
        let wrong: Vec<String> = RULES.iter().filter_map(|rule| rule(self)).collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(TrafficError::Options(wrong.join("; ")))
        }
    }
}

fn unless(holds: bool, words: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(words)
}

fn streams(options: &Options) -> Option<String> {
    unless((1..=MAX_STREAMS).contains(&options.streams), || {
        format!("streams is {}: 1 to {MAX_STREAMS}", options.streams)
    })
}

fn sizes(options: &Options) -> Option<String> {
    let sizes = 1..=MAX_MESSAGE;
    if !sizes.contains(&options.request) {
        return Some(format!(
            "a message of {} bytes: 1 to {MAX_MESSAGE}",
            options.request
        ));
    }
    let response = options.workload.is_request_response();
    unless(!response || sizes.contains(&options.response), || {
        format!(
            "a response of {} bytes: 1 to {MAX_MESSAGE}",
            options.response
        )
    })
}

fn datagram_sizes(options: &Options) -> Option<String> {
    if !options.workload.is_udp() {
        return None;
    }
    let range = DATAGRAM_BYTES as u32..=MAX_DATAGRAM;
    let response = options.workload == Workload::UdpRr;
    let wrong = |size: u32| !range.contains(&size);
    let size = if wrong(options.request) {
        options.request
    } else if response && wrong(options.response) {
        options.response
    } else {
        return None;
    };
    Some(format!(
        "a datagram of {size} bytes: {DATAGRAM_BYTES} to {MAX_DATAGRAM}, since each carries {DATAGRAM_BYTES} bytes that \
         tell its run, flow and number (smaller messages go over tcp-rr or tcp-stream)"
    ))
}

fn threads(options: &Options) -> Option<String> {
    let most = options.streams.max(1) * 2;
    unless(
        options
            .threads
            .is_none_or(|threads| (1..=most).contains(&threads)),
        || "threads: at least 1, and no more than there are flows".to_owned(),
    )
}

fn depth(options: &Options) -> Option<String> {
    let depth = options.depth;
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Some(format!("depth is {depth}: 1 to {MAX_DEPTH}"));
    }
    let many = matches!(options.workload, Workload::TcpRr | Workload::UdpRr);
    unless(depth == 1 || many, || {
        format!(
            "depth is {depth}, but {} has at most one request outstanding on a connection",
            options.workload.name()
        )
    })
}

fn rate(options: &Options) -> Option<String> {
    let rr = options.workload.is_request_response();
    match options.rate? {
        Rate::BitsPerSecond(_) if rr => {
            Some("request/response loads have a rate in requests per second".to_owned())
        }
        Rate::RequestsPerSecond(_) if !rr => {
            Some("streams have a rate in bits per second".to_owned())
        }
        Rate::BitsPerSecond(bits) => unless(bits >= 8, || "a rate below one byte a second".into()),
        Rate::RequestsPerSecond(requests) => {
            let possible = requests.is_finite() && (1e-3..=1e8).contains(&requests);
            if !possible {
                return Some(format!(
                    "{requests} requests per second: 0.001 to 100,000,000"
                ));
            }
            unless(options.think_time.is_zero(), || {
                "a rate of requests and a think time exclude each other".to_owned()
            })
        }
    }
}

fn limit(options: &Options) -> Option<String> {
    match options.limit? {
        Limit::Time(time) => unless(!time.is_zero(), || "a duration of no time".to_owned()),
        Limit::Bytes(0) | Limit::Transactions(0) => Some("a limit of nothing".to_owned()),
        Limit::Bytes(_) => unless(!options.workload.is_request_response(), || {
            "request/response loads are limited by transactions, not by bytes".to_owned()
        }),
        Limit::Transactions(_) => {
            let counts =
                options.workload.is_request_response() || options.workload == Workload::UdpStream;
            unless(counts, || {
                "TCP streams are limited by bytes: they have no transactions".to_owned()
            })
        }
    }
}

fn is_tcp_stream(options: &Options) -> bool {
    matches!(
        options.workload,
        Workload::TcpStream | Workload::TcpBidirectional
    )
}

fn zero_copy(options: &Options) -> Option<String> {
    unless(
        options.sending == Sending::Copy || is_tcp_stream(options),
        || {
            "zero copy is for TCP streams: datagrams are numbered in place, and small messages are copied faster than \
             their pages are pinned"
                .to_owned()
        },
    )
}

fn discard(options: &Options) -> Option<String> {
    if options.receiving == Receiving::Copy {
        return None;
    }
    if options.workload.is_request_response() {
        return Some("request/response loads read what they receive".to_owned());
    }
    unless(!options.segmentation.receive, || {
        "datagrams that are received as one cannot be discarded: all but the first one's number would be lost"
            .to_owned()
    })
}

fn segmentation(options: &Options) -> Option<String> {
    let wanted = options.segmentation.send || options.segmentation.receive;
    unless(!wanted || options.workload == Workload::UdpStream, || {
        "segmentation_offload is for udp-stream (TCP's is the device's)".to_owned()
    })
}

fn dscp(options: &Options) -> Option<String> {
    unless(options.dscp.is_none_or(|dscp| dscp <= 63), || {
        "dscp: 0 to 63".to_owned()
    })
}

fn times(options: &Options) -> Option<String> {
    let reply = options.reply_timeout;
    if reply.is_zero() || reply > MAX_REPLY_TIMEOUT {
        return Some("reply_timeout: above 0, at most 60 s".to_owned());
    }
    unless(
        options.think_time.is_zero() || options.workload.is_request_response(),
        || "think_time is for request/response loads".to_owned(),
    )
}

fn congestion(options: &Options) -> Option<String> {
    unless(
        options.congestion.is_none() || !options.workload.is_udp(),
        || "UDP has no congestion control".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Segmentation, Waiting};
    use super::*;

    fn refusal(workload: Workload, change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new(workload, [0; 16]);
        change(&mut options);
        options.validate().unwrap_err().to_string()
    }

    #[test]
    fn every_workload_is_possible_as_it_is_usually_run() {
        for workload in Workload::ALL {
            Options::new(workload, [0; 16]).validate().unwrap();
            assert_eq!(Workload::by_name(workload.name()), Some(workload));
        }
    }

    #[test]
    fn one_byte_goes_over_tcp_and_is_refused_over_udp_with_the_reason() {
        let mut tcp = Options::new(Workload::TcpStream, [0; 16]);
        tcp.request = 1;
        tcp.validate().unwrap();
        insta::assert_snapshot!(refusal(Workload::UdpStream, |options| options.request = 1), @"the load's options: a datagram of 1 bytes: 16 to 65507, since each carries 16 bytes that tell its run, flow and number (smaller messages go over tcp-rr or tcp-stream)");
        insta::assert_snapshot!(refusal(Workload::UdpRr, |options| options.response = 65_508), @"the load's options: a datagram of 65508 bytes: 16 to 65507, since each carries 16 bytes that tell its run, flow and number (smaller messages go over tcp-rr or tcp-stream)");
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let text = refusal(Workload::TcpCrr, |options| {
            options.streams = 0;
            options.depth = 2;
            options.dscp = Some(64);
        });
        insta::assert_snapshot!(text, @"the load's options: streams is 0: 1 to 1024; depth is 2, but tcp-crr has at most one request outstanding on a connection; dscp: 0 to 63");
    }

    #[test]
    fn what_excludes_each_other_is_refused() {
        type Change = fn(&mut Options);
        let cases: &[(Workload, Change, &str)] = &[
            (
                Workload::UdpStream,
                |o| o.sending = Sending::ZeroCopy,
                "zero copy",
            ),
            (
                Workload::TcpRr,
                |o| o.receiving = Receiving::Discard,
                "read what they receive",
            ),
            (
                Workload::UdpStream,
                |o| {
                    o.receiving = Receiving::Discard;
                    o.segmentation = Segmentation {
                        send: false,
                        receive: true,
                    };
                },
                "cannot be discarded",
            ),
            (
                Workload::TcpStream,
                |o| {
                    o.segmentation = Segmentation {
                        send: true,
                        receive: false,
                    }
                },
                "udp-stream",
            ),
            (
                Workload::TcpStream,
                |o| o.think_time = Duration::from_secs(1),
                "think_time",
            ),
            (
                Workload::TcpStream,
                |o| o.limit = Some(Limit::Transactions(5)),
                "limited by bytes",
            ),
            (
                Workload::TcpRr,
                |o| o.limit = Some(Limit::Bytes(5)),
                "limited by transactions",
            ),
            (
                Workload::TcpRr,
                |o| o.rate = Some(Rate::BitsPerSecond(800)),
                "requests per second",
            ),
            (
                Workload::UdpStream,
                |o| o.rate = Some(Rate::RequestsPerSecond(1.0)),
                "bits per second",
            ),
            (
                Workload::UdpRr,
                |o| {
                    o.rate = Some(Rate::RequestsPerSecond(1.0));
                    o.think_time = Duration::from_secs(1);
                },
                "exclude",
            ),
            (
                Workload::UdpRr,
                |o| o.rate = Some(Rate::RequestsPerSecond(f64::NAN)),
                "NaN requests",
            ),
            (
                Workload::UdpRr,
                |o| o.congestion = Some("cubic".into()),
                "no congestion control",
            ),
            (
                Workload::UdpRr,
                |o| o.reply_timeout = Duration::ZERO,
                "reply_timeout",
            ),
            (Workload::TcpRr, |o| o.threads = Some(0), "threads"),
            (
                Workload::TcpRr,
                |o| o.request = MAX_MESSAGE + 1,
                "1048577 bytes",
            ),
        ];
        for (workload, change, words) in cases {
            let text = refusal(*workload, change);
            assert!(text.contains(words), "{text}");
        }
        let mut spinning = Options::new(Workload::UdpRr, [0; 16]);
        spinning.waiting = Waiting::Spin;
        spinning.validate().unwrap();
    }
}
