//! What is compared with what.

use wirecost_traffic::{Multiplexing, Options, Rate, Segmentation, WaitMode, Workload};

pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) options: Options,
}

pub(crate) struct Row {
    pub(crate) name: String,
    /// Whether the devices segment and aggregate.
    pub(crate) offloads: bool,
    /// Whether both ends may run on every processor; else each has one.
    pub(crate) anywhere: bool,
    /// Whether the figure is transactions or datagrams instead of bits.
    pub(crate) counts: bool,
    pub(crate) ways: Vec<Variant>,
}

fn way(name: &'static str, options: &Options, change: impl FnOnce(&mut Options)) -> Variant {
    let mut options = options.clone();
    change(&mut options);
    Variant { name, options }
}

fn base(workload: Workload, streams: u32) -> Options {
    Options::new(workload, [3; 16]).with(|load| {
        load.streams = streams;
        load.congestion = (!workload.is_udp()).then(|| "cubic".to_owned());
    })
}

/// The loads that threads matter to: a UDP stream has one for each processor in any case.
fn flowing() -> impl Iterator<Item = Workload> {
    let all = Workload::ALL.into_iter();
    all.filter(|workload| *workload != Workload::UdpStream && !workload.is_migration())
}

/// Threads that the scheduler puts where it likes.
fn anywhere() -> Vec<Row> {
    let mut rows = Vec::new();
    for workload in flowing() {
        for streams in [4, 16, 64] {
            let options = base(workload, streams);
            let ways = [
                ("one thread", 1),
                ("2 threads", 2),
                ("4 threads", 4),
                ("8 threads", 8),
                ("a thread each", streams),
            ];
            let fewer = |(name, count): &(&str, u32)| *count < streams || *name == "a thread each";
            let threads =
                |(name, count)| way(name, &options, |options| options.load.threads = Some(count));
            rows.push(Row {
                name: format!("{} {streams}, anywhere", workload.name()),
                offloads: false,
                anywhere: true,
                counts: workload.is_request_response(),
                ways: ways.into_iter().filter(fewer).map(threads).collect(),
            });
        }
    }
    rows
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for workload in flowing() {
        for (streams, offloads) in [(1, false), (4, false), (16, false), (64, false), (64, true)] {
            let options = base(workload, streams);
            let tasks = if workload == Workload::TcpBidirectional {
                2
            } else {
                1
            };
            let threads =
                |count: u32| move |options: &mut Options| options.load.threads = Some(count);
            let mut ways = vec![way("a thread each", &options, threads(streams * tasks))];
            if streams == 1 {
                ways.push(way("spinning", &options, |options| {
                    options.load.threads = Some(1);
                    options.load.waiting = WaitMode::Spin;
                }));
            }
            for (name, count) in [("one thread", 1), ("2 threads", 2), ("8 threads", 8)] {
                if count < streams * tasks {
                    ways.push(way(name, &options, threads(count)));
                }
            }
            rows.push(Row {
                name: format!(
                    "{} {streams}{}",
                    workload.name(),
                    if offloads { ", offloads" } else { "" }
                ),
                offloads,
                anywhere: false,
                counts: workload.is_request_response(),
                ways,
            });
        }
    }
    rows.extend(anywhere());
    for workload in [Workload::TcpStream, Workload::TcpRr, Workload::UdpRr] {
        rows.push(Row {
            name: format!("{} 1024", workload.name()),
            offloads: false,
            anywhere: false,
            counts: workload.is_request_response(),
            ways: vec![way("as usual", &base(workload, 1_024), |_| {})],
        });
    }
    rows.extend(several());
    for request in [64, 1_400] {
        let options = base(Workload::UdpStream, 1).with(|load| load.request = request);
        let segmented = |send, receive| {
            move |options: &mut Options| {
                options.load.segmentation = Segmentation { send, receive };
            }
        };
        rows.push(Row {
            name: format!("udp-stream 1 of {request}"),
            offloads: true,
            anywhere: false,
            counts: true,
            ways: vec![
                way("sendmmsg", &options, |_| {}),
                way("GSO", &options, segmented(true, false)),
                way("GRO", &options, segmented(false, true)),
                way("GSO and GRO", &options, segmented(true, true)),
            ],
        });
    }
    rows
}

/// The ways in which threads wait for several connections: on one thread; with deep queues, large messages and a
/// schedule; and with more threads than processors.
fn several() -> Vec<Row> {
    let one = base(Workload::TcpRr, 1).with(|load| load.threads = Some(1));
    let streams = |streams| one.clone().with(|load| load.streams = streams);
    let scheduled = |streams| {
        one.clone().with(|load| {
            load.streams = streams;
            load.rate = Some(Rate::RequestsPerSecond(1_000.0));
        })
    };
    let mut rows: Vec<(String, Options)> = [2, 4, 8, 16, 64]
        .into_iter()
        .map(|count| (format!("{count}"), streams(count)))
        .collect();
    let deep = streams(16).with(|load| load.depth = 8);
    let large = streams(16).with(|load| {
        load.request = 16 << 10;
        load.response = 16 << 10;
    });
    rows.push(("16, depth 8".to_owned(), deep));
    rows.push(("16 of 16 KiB".to_owned(), large));
    for (count, threads) in [(16, 2), (64, 8)] {
        rows.push((format!("{count} at 1000/s"), scheduled(count)));
        let more = streams(count).with(|load| load.threads = Some(threads));
        rows.push((format!("{count}, {threads} threads"), more));
    }
    let row = |(name, options): (String, Options)| {
        let waits = |multiplexing| move |options: &mut Options| options.multiplexing = multiplexing;
        Row {
            name: format!("several tcp-rr {name}"),
            offloads: false,
            anywhere: false,
            counts: true,
            ways: vec![
                way("epoll", &options, waits(Multiplexing::Epoll)),
                way("ring", &options, waits(Multiplexing::Ring)),
            ],
        }
    };
    rows.into_iter().map(row).collect()
}
