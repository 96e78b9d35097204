//! What no load can have, in words: one rule each. Plans and the traffic engine hold loads against the same ones.

mod elsewhere;

use std::time::Duration;

use super::{
    DATAGRAM_HEADER, Limit, Load, MAX_DATAGRAM, MAX_DEPTH, MAX_EXPORT, MAX_FLUSH_EVERY, MAX_IO,
    MAX_MESSAGE, MAX_SOCKET_BUFFER, MAX_STREAMS, MIN_SOCKET_BUFFER, MoveEngine, Rate, Receiving,
    SECTOR, Sending, Waiting, Workload,
};

/// The longest that may be waited for one response: histograms end at 137 s, and nobody waits so long.
pub const MAX_REPLY_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest time between a response and the next request.
pub const MAX_THINK_TIME: Duration = Duration::from_mins(1);

/// One thing about a load that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The option that it is about, as plans write it: `depth`, `request`.
    pub option: &'static str,
    /// What is wrong with it, in words.
    pub message: String,
}

type Rule = fn(&Load) -> Option<Fault>;

const RULES: &[Rule] = &[
    streams,
    message,
    response,
    storage,
    flushes,
    network_share,
    elsewhere::elsewhere,
    elsewhere::path,
    elsewhere::overwrite,
    elsewhere::job_threads,
    migration,
    threads,
    socket_buffer,
    depth,
    rate,
    limit,
    zero_copy,
    discard,
    segmentation,
    dscp,
    reply_timeout,
    think_time,
    congestion,
];

impl Load {
    /// Everything about it that no load can have; empty where it can be run.
    pub fn faults(&self) -> Vec<Fault> {
        RULES.iter().filter_map(|rule| rule(self)).collect()
    }
}

fn unless(holds: bool, option: &'static str, message: impl FnOnce() -> String) -> Option<Fault> {
    (!holds).then(|| Fault {
        option,
        message: message(),
    })
}

fn streams(load: &Load) -> Option<Fault> {
    unless((1..=MAX_STREAMS).contains(&load.streams), "streams", || {
        format!("streams is {}: 1 to {MAX_STREAMS}", load.streams)
    })
}

/// What a load's messages are called: those of a stream are not requests.
const fn message_option(workload: Workload) -> &'static str {
    if workload.is_storage() {
        "io_size"
    } else if workload.is_request_response() {
        "request"
    } else {
        "message"
    }
}

fn message(load: &Load) -> Option<Fault> {
    size(load.workload, message_option(load.workload), load.request)
}

fn response(load: &Load) -> Option<Fault> {
    let has_one = load.workload.is_request_response() && !load.workload.is_storage();
    has_one
        .then(|| size(load.workload, "response", load.response))
        .flatten()
}

fn size(workload: Workload, option: &'static str, bytes: u32) -> Option<Fault> {
    if workload.is_udp() {
        return unless(
            (DATAGRAM_HEADER..=MAX_DATAGRAM).contains(&bytes),
            option,
            || {
                format!(
                    "a datagram of {bytes} bytes: {DATAGRAM_HEADER} to {MAX_DATAGRAM}, since each carries \
                 {DATAGRAM_HEADER} bytes that tell its run, flow and number (smaller messages go over tcp-rr or \
                 tcp-stream)"
                )
            },
        );
    }
    if workload.is_storage() {
        let fits = (SECTOR..=MAX_IO).contains(&bytes) && bytes.is_multiple_of(SECTOR);
        return unless(fits, option, || {
            format!("an I/O of {bytes} bytes: a multiple of {SECTOR}, at most {MAX_IO}")
        });
    }
    unless((1..=MAX_MESSAGE).contains(&bytes), option, || {
        format!("a {option} of {bytes} bytes: 1 to {MAX_MESSAGE}")
    })
}

/// What only storage has.
fn storage(load: &Load) -> Option<Fault> {
    let storage = load.storage?;
    if !(1..=99).contains(&storage.reads) {
        return unless(false, "reads", || {
            format!("reads is {} %: 1 to 99 of a mix", storage.reads)
        });
    }
    // All of what is there: how much that is shows when it is opened.
    if load.path.is_some() && storage.size == 0 {
        return None;
    }
    let sectors = storage.size.is_multiple_of(u64::from(SECTOR));
    let fits = (u64::from(load.request)..=MAX_EXPORT).contains(&storage.size) && sectors;
    unless(fits, "size", || {
        format!(
            "an export of {} bytes: a multiple of {SECTOR}, one I/O at least, {MAX_EXPORT} at most",
            storage.size
        )
    })
}

fn flushes(load: &Load) -> Option<Fault> {
    let storage = load.storage?;
    if storage.flush_every > MAX_FLUSH_EVERY {
        return unless(false, "flush_every", || {
            format!(
                "flush_every is {}: at most {MAX_FLUSH_EVERY}",
                storage.flush_every
            )
        });
    }
    let fits = storage.flush_every == 0 || storage.pattern.writes();
    unless(fits, "flush_every", || {
        format!("{} has no writes to flush", storage.pattern.name())
    })
}

/// Our own target can be asked at its host, and only while it counts a window.
fn network_share(load: &Load) -> Option<Fault> {
    if !load.storage?.network_share {
        return None;
    }
    let wrong = |words: &str| unless(false, "network_share", || words.to_owned());
    if !load.has_server() {
        return wrong(
            "the network's share is of our own target: another's server or a path has no second way to it",
        );
    }
    if load.limit.is_some() {
        return wrong(
            "a load with a limit has no second window: leave `limit` or `network_share` out",
        );
    }
    None
}

/// What only migrations have.
fn migration(load: &Load) -> Option<Fault> {
    let migration = load.migration?;
    if let Some((option, message)) = migration.fault(load.streams) {
        return Some(Fault { option, message });
    }
    // QEMU makes its connections, and has threads of its own for them.
    let options = [
        ("threads", load.threads.is_some()),
        ("spin", load.waiting == Waiting::Spin),
        ("socket_buffer", load.socket_buffer.is_some()),
        ("dscp", load.dscp.is_some()),
    ];
    let (option, _) = options
        .into_iter()
        .find(|(_, given)| *given && migration.engine == MoveEngine::Qemu)?;
    Some(Fault {
        option,
        message: format!(
            "{option} means nothing to QEMU, which makes its own connections: leave it out"
        ),
    })
}

fn threads(load: &Load) -> Option<Fault> {
    // Only streams in both directions have two halves to give to threads.
    let halves = match load.workload {
        Workload::TcpBidirectional => 2,
        _ => 1,
    };
    let most = load.connections().max(1).saturating_mul(halves);
    let fits = |threads: u32| (1..=most).contains(&threads);
    unless(load.threads.is_none_or(fits), "threads", || {
        format!(
            "threads is {}: at least 1, and no more than there are flows to serve, {most} here",
            load.threads.unwrap_or_default()
        )
    })
}

fn socket_buffer(load: &Load) -> Option<Fault> {
    let fits = |bytes: u32| (MIN_SOCKET_BUFFER..=MAX_SOCKET_BUFFER).contains(&bytes);
    unless(load.socket_buffer.is_none_or(fits), "socket_buffer", || {
        format!(
            "a socket buffer of {} bytes: {MIN_SOCKET_BUFFER} to {MAX_SOCKET_BUFFER}: the kernel gives no less, and keeps \
             twice as much in an int",
            load.socket_buffer.unwrap_or_default()
        )
    })
}

fn depth(load: &Load) -> Option<Fault> {
    let depth = load.depth;
    if !(1..=MAX_DEPTH).contains(&depth) {
        return unless(false, "depth", || {
            format!("depth is {depth}: 1 to {MAX_DEPTH}")
        });
    }
    unless(depth == 1 || load.workload.has_depth(), "depth", || {
        format!(
            "depth is {depth}, but {} has at most one request outstanding on a connection",
            load.workload
        )
    })
}

fn rate(load: &Load) -> Option<Fault> {
    let rr = load.workload.is_request_response();
    let wrong = |words: &str| unless(false, "rate", || words.to_owned());
    match load.rate? {
        Rate::BitsPerSecond(_) if rr => {
            wrong("request/response loads have a rate in requests per second")
        }
        Rate::RequestsPerSecond(_) if !rr => wrong("streams have a rate in bits per second"),
        Rate::BitsPerSecond(bits) => unless(bits >= 8, "rate", || {
            format!("{bits} bit/s for each flow: at least 8, a byte a second")
        }),
        Rate::RequestsPerSecond(requests) => {
            let possible = requests.is_finite() && (1e-3..=1e8).contains(&requests);
            if !possible {
                return unless(false, "rate", || {
                    format!("{requests} requests per second: 0.001 to 100,000,000")
                });
            }
            unless(load.think_time.is_zero(), "rate", || {
                "a rate of requests and a think time exclude each other".to_owned()
            })
        }
    }
}

fn limit(load: &Load) -> Option<Fault> {
    let wrong = |words: &str| unless(false, "limit", || words.to_owned());
    match load.limit? {
        _ if load.workload.is_migration() => {
            wrong("a migration is over when its machines have moved")
        }
        Limit::Time(time) if time.is_zero() => wrong("a duration of no time"),
        Limit::Bytes(0) | Limit::Transactions(0) => wrong("a limit of nothing"),
        Limit::Bytes(_) if load.workload.is_request_response() => {
            wrong("request/response loads are limited by transactions, not by bytes")
        }
        Limit::Transactions(_) if load.workload.is_tcp_stream() => {
            wrong("TCP streams are limited by bytes: they have no transactions")
        }
        Limit::Time(_) | Limit::Bytes(_) | Limit::Transactions(_) => None,
    }
}

fn zero_copy(load: &Load) -> Option<Fault> {
    let fits = load.sending == Sending::Copy || load.workload.is_tcp_stream();
    unless(fits, "zero_copy", || {
        "zero copy is for TCP streams: datagrams are numbered in place, and small messages are copied faster than \
         their pages are pinned"
            .to_owned()
    })
}

fn discard(load: &Load) -> Option<Fault> {
    if load.receiving == Receiving::Copy {
        return None;
    }
    let streams = !load.workload.is_request_response();
    if !streams {
        return unless(false, "discard_on_receive", || {
            "request/response loads read what they receive".to_owned()
        });
    }
    unless(!load.segmentation.receive, "discard_on_receive", || {
        "datagrams that are received as one cannot be discarded: all but the first one's number would be lost"
            .to_owned()
    })
}

fn segmentation(load: &Load) -> Option<Fault> {
    let wanted = load.segmentation.send || load.segmentation.receive;
    let fits = !wanted || load.workload == Workload::UdpStream;
    unless(fits, "segmentation_offload", || {
        "segmentation_offload is for udp-stream (TCP's is the device's)".to_owned()
    })
}

fn dscp(load: &Load) -> Option<Fault> {
    let dscp = load.dscp.unwrap_or_default();
    unless(dscp <= 63, "dscp", || format!("dscp is {dscp}: 0 to 63"))
}

fn reply_timeout(load: &Load) -> Option<Fault> {
    let time = load.reply_timeout;
    let fits = !time.is_zero() && time <= MAX_REPLY_TIMEOUT;
    unless(fits, "reply_timeout", || {
        format!(
            "reply_timeout is {} s: above 0, at most {} s",
            time.as_secs_f64(),
            MAX_REPLY_TIMEOUT.as_secs()
        )
    })
}

fn think_time(load: &Load) -> Option<Fault> {
    if load.think_time > MAX_THINK_TIME {
        let (asked, most) = (load.think_time.as_secs_f64(), MAX_THINK_TIME.as_secs());
        return unless(false, "think_time", || {
            format!("think_time is {asked} s: at most {most} s")
        });
    }
    let fits = load.think_time.is_zero() || load.workload.is_request_response();
    unless(fits, "think_time", || {
        "think_time is for request/response loads".to_owned()
    })
}

fn congestion(load: &Load) -> Option<Fault> {
    let fits = load.congestion.is_none() || !load.workload.is_udp();
    if !fits {
        return unless(false, "congestion", || {
            "UDP has no congestion control".to_owned()
        });
    }
    let name = load.congestion.as_deref();
    // TCP_CA_NAME_MAX, include/net/tcp.h, with the zero at its end.
    let possible = name.is_none_or(|name| (1..16).contains(&name.len()) && !name.contains('\0'));
    unless(possible, "congestion", || {
        "a congestion control has a name of 1 to 15 characters, such as cubic".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Segmentation;

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
            (TcpRr, |l| l.threads = Some(2), "threads", "1 here"),
            (
                TcpBidirectional,
                |l| l.threads = Some(3),
                "threads",
                "2 here",
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
}
