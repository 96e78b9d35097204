//! Frames on the wire, and the packets that the receiving stack made of them.

use crate::end_window::End;
use crate::sample::{LoadResult, Sample, Socket};

/// Prefix of the guests' devices in [`HostUsage::links`](crate::usage::HostUsage::links).
const GUEST_LINK: &str = "guest:";

impl Sample {
    /// The TCP sockets at the host of that name, `a` or `b`.
    fn sockets(&self, host: &str) -> impl Iterator<Item = &Socket> {
        self.loads.iter().flat_map(move |load| {
            let client = load.direction.host_of(End::Client) == host;
            load.flows.iter().filter_map(move |flow| {
                if client {
                    flow.sender.as_ref()
                } else {
                    flow.receiver.as_ref()
                }
            })
        })
    }

    /// Whether every TCP flow is one connection whose socket was read: false for `tcp-crr`.
    fn knows_its_sockets(&self) -> bool {
        let tcp = self.loads.iter().filter(|load| !load.workload.is_udp());
        tcp.flat_map(|load| &load.flows)
            .all(|flow| flow.sender.is_some() && flow.receiver.is_some())
    }
}

/// Frames on the wire per second, both directions: TCP segments out of both guests, retransmits and pure ACKs included,
/// and other packets. An IP-fragmented datagram counts once.
pub fn wire_frames_per_second(sample: &Sample) -> Option<f64> {
    if sample.loads.is_empty() {
        return None;
    }
    let exact = sample.knows_its_sockets();
    let one = |name: &str| {
        let usage = sample.host(name)?;
        let other = (usage.guest.udp_out + usage.guest.icmp_out) as f64 / usage.window_s;
        let tcp = if exact {
            sample.sockets_per_second(name)
        } else {
            (usage.guest.tcp_out + usage.guest.tcp_retransmitted) as f64 / usage.window_s
        };
        Some(tcp + other)
    };
    Some(one("a")? + one("b")? + beyond_super_packets(sample)?)
}

impl Sample {
    /// Segments sent per second by the sockets at the host of that name, each load in its own window.
    fn sockets_per_second(&self, host: &str) -> f64 {
        let of_load = |load: &LoadResult| {
            let client = load.direction.host_of(End::Client) == host;
            let sent = load.flows.iter().filter_map(|flow| {
                let socket = if client { &flow.sender } else { &flow.receiver };
                socket.as_ref().map(|socket| socket.segs_out)
            });
            let seconds = if client {
                load.client_seconds
            } else {
                load.seconds
            };
            sent.sum::<u64>() as f64 / seconds
        };
        self.loads.iter().map(of_load).sum()
    }
}

/// Datagrams per second that the kernel did not count: with `UDP_SEGMENT` it counts one datagram per send.
fn beyond_super_packets(sample: &Sample) -> Option<f64> {
    let more = |load: &LoadResult| {
        let datagrams = load.datagrams.as_ref()?;
        let usage = sample.host(load.direction.host_of(End::Client))?;
        let sent = datagrams.sent as f64 / load.client_seconds;
        let counted = usage.guest.udp_out as f64 / usage.window_s;
        Some((sent - counted).max(0.0))
    };
    let streams = sample.loads.iter().filter(|load| load.datagrams.is_some());
    streams.map(more).sum()
}

/// Packets per second that the receiving guest's TCP handled: fewer than frames where something aggregates. `None`
/// where no load is TCP.
pub fn stack_packets_per_second(sample: &Sample) -> Option<f64> {
    let tcp = sample.loads.iter().find(|load| !load.workload.is_udp());
    let host = match tcp {
        Some(load) => load.direction.host_of(End::Server),
        None if sample.loads.is_empty() => "b",
        None => return None,
    };
    let receiver = sample.host(host)?;
    Some(receiver.guest.tcp_in as f64 / receiver.window_s)
}

/// Segments on the wire per packet that the receiving guest's TCP handled; 1 where nothing aggregates.
pub fn segments_per_packet(sample: &Sample) -> Option<f64> {
    let load = sample.loads.iter().find(|load| !load.workload.is_udp())?;
    let host = load.direction.host_of(End::Server);
    let receiver = sample.host(host)?;
    let segments: u64 = sample.sockets(host).map(|socket| socket.segs_in).sum();
    let known = sample.knows_its_sockets() && receiver.guest.tcp_in > 0;
    known.then(|| segments as f64 / receiver.guest.tcp_in as f64)
}

/// Segments that the sending guest's TCP sent per packet that left its device; 1 where each segment leaves by itself.
/// `None` where the guests' devices were not read, or a load is not TCP.
pub fn segments_per_packet_sent(sample: &Sample) -> Option<f64> {
    let first = sample.loads.first()?;
    let tcp = sample.loads.iter().all(|load| !load.workload.is_udp());
    let host = first.direction.host_of(End::Client);
    let usage = sample.host(host)?;
    let guests = usage.links.iter();
    let packets: u64 = guests
        .filter(|(name, _)| name.starts_with(GUEST_LINK))
        .map(|(_, link)| link.tx_packets)
        .sum();
    let segments = sample.sockets_per_second(host) * usage.window_s;
    let known = tcp && sample.knows_its_sockets() && packets > 0;
    known.then(|| segments / packets as f64)
}

/// Segments retransmitted within the window by either end; `None` where not every TCP socket was read.
pub fn retransmits(sample: &Sample) -> Option<u64> {
    let tcp = sample.loads.iter().any(|load| !load.workload.is_udp());
    let both = sample.sockets("a").chain(sample.sockets("b"));
    (tcp && sample.knows_its_sockets()).then(|| both.map(|socket| socket.retransmits).sum())
}
