//! What is compared: a load on a network, against whom, and what has to hold.

use wirecost_model::cell::Network;
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{Cores, Encapsulation, Vxlan};
use wirecost_model::steering::{Rps, Steering};
use wirecost_model::transit::Transit;
use wirecost_model::units::format_rate;

use crate::bound::Bound;
use crate::report::CountedBy;

/// MTU of the guests' devices in bytes: the one with the most segments for each byte.
pub(crate) const GUEST_MTU: u32 = 1500;
/// MTU of the underlay in bytes, as in the built-in plan.
const UNDERLAY_MTU: u32 = 9000;
/// Line rate where everything is offloaded, bits per second: without one such a lab is bistable (docs/facts.md).
const LINE_RATE: u64 = 10_000_000_000;
/// Bytes per write of a bulk stream.
const BULK: u32 = 128 << 10;
/// Bytes of a request and of a response: sockperf's smallest is 14, a datagram of ours 16.
const EXCHANGE: u32 = 16;
/// Bytes of a datagram that fills the guest's MTU, behind headers of IPv4 and UDP.
const DATAGRAM: u32 = GUEST_MTU - 28;
/// The lower bound against every peer.
const AS_GOOD: f64 = 0.97;

/// What runs between the guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// TCP from guest a to guest b.
    Stream {
        /// Connections.
        streams: u32,
        /// Bytes per write.
        message: u32,
        /// `TCP_NODELAY`.
        nodelay: bool,
    },
    /// Requests and responses of [`Load::message`] bytes each, one outstanding on each connection.
    TcpRr {
        /// Connections.
        connections: u32,
    },
    /// Likewise in datagrams.
    UdpRr {
        /// Pairs of ports.
        connections: u32,
    },
    /// Datagrams from guest a to guest b, as fast as they go.
    UdpStream {
        /// Bytes of payload.
        message: u32,
        /// Whether those who can segment and aggregate datagrams (`UDP_SEGMENT`, `UDP_GRO`).
        segmentation: bool,
    },
}

impl Load {
    /// Bytes of a write, a request, a response or a datagram.
    pub(crate) fn message(self) -> u32 {
        match self {
            Self::Stream { message, .. } | Self::UdpStream { message, .. } => message,
            Self::TcpRr { .. } | Self::UdpRr { .. } => EXCHANGE,
        }
    }

    /// Connections or pairs of ports.
    pub(crate) fn flows(self) -> u32 {
        match self {
            Self::Stream { streams, .. } => streams,
            Self::TcpRr { connections } | Self::UdpRr { connections } => connections,
            Self::UdpStream { .. } => 1,
        }
    }

    /// Whether it goes over UDP.
    pub(crate) fn is_udp(self) -> bool {
        matches!(self, Self::UdpRr { .. } | Self::UdpStream { .. })
    }

    /// Whether it is made of requests and responses.
    pub(crate) fn is_exchange(self) -> bool {
        matches!(self, Self::TcpRr { .. } | Self::UdpRr { .. })
    }

    /// What its figure counts.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Stream { .. } => Unit::Gbps,
            Self::TcpRr { .. } | Self::UdpRr { .. } => Unit::Transactions,
            Self::UdpStream { .. } => Unit::Datagrams,
        }
    }
}

/// What a row's figure counts, with what its CPU is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Gbit/s of payload.
    Gbps,
    /// Thousand transactions per second.
    Transactions,
    /// Thousand datagrams per second.
    Datagrams,
}

impl Unit {
    /// As it stands behind a figure.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gbps => "Gbit/s",
            Self::Transactions => "k transactions/s",
            Self::Datagrams => "k datagrams/s",
        }
    }
}

/// Against whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opponents {
    /// Every peer that can.
    Peers,
    /// Debian's iperf3, and a newer one where there is one.
    Iperf3,
    /// The same load of ours whose threads sleep, while this one's spin.
    OurselvesAsleep,
    /// Nobody: it only has to work.
    Nobody,
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// As `--row` takes it.
    pub(crate) name: String,
    pub(crate) load: Load,
    pub(crate) network: Network,
    pub(crate) offload: Offload,
    pub(crate) opponents: Opponents,
    pub(crate) bound: Bound,
    /// Whether CPU for each unit must not be above the best peer's.
    pub(crate) judges_cpu: bool,
    /// Seconds of its window at least, whatever `--seconds` says.
    pub(crate) least_seconds: f64,
}

/// A network by what differs between rows.
fn network(cores: Cores, vxlan: bool, rate: Option<u64>) -> Network {
    Network {
        underlay_mtu: UNDERLAY_MTU,
        rate,
        underlay_ip: IpVersion::Ipv4,
        encapsulation: if vxlan {
            Encapsulation::Vxlan(Vxlan::default())
        } else {
            Encapsulation::None
        },
        datapath: Datapath::Kernel,
        guest_ip: IpVersion::Ipv4,
        guests: 1,
        transit: Transit::wire(),
        cores,
        steering: Steering::default(),
    }
}

impl Row {
    /// All of them, in the order of the table.
    pub(crate) fn all(cores: Cores) -> Vec<Self> {
        let mut rows = Vec::new();
        rows.extend(streams(cores));
        rows.extend(exchanges(cores));
        rows.extend(datagrams(cores));
        // Its rate is measured first.
        let slow = network(cores, false, None);
        let name = "tcp-stream 1 at half rate";
        rows.push(Self {
            opponents: Opponents::Iperf3,
            bound: Bound::Agree(0.01),
            judges_cpu: false,
            // Losses at the line, each a dip for a while, have to be many.
            least_seconds: 3.0,
            ..Self::stream(name, bulk(1), slow, Profile::None)
        });
        let many = network(cores, false, None);
        rows.push(Self {
            opponents: Opponents::Nobody,
            bound: Bound::Memory(64 << 20),
            least_seconds: 10.0,
            ..Self::stream("tcp-stream 1024", bulk(1024), many, Profile::None)
        });
        rows
    }

    fn stream(name: &str, load: Load, network: Network, profile: Profile) -> Self {
        let offload = Offload::profile(profile);
        let rate = network
            .rate
            .map_or_else(String::new, |rate| format!(", {}", format_rate(rate)));
        let steered = match network.steering.rps {
            Rps::Own => String::new(),
            _ => format!(", receive steering {}", network.steering.rps),
        };
        let by = match network.datapath {
            Datapath::Kernel => String::new(),
            datapath => format!(" by {}", datapath.key()),
        };
        Self {
            name: format!(
                "{name}, {}{by}, offload {offload}{rate}{steered}",
                network.encapsulation
            ),
            load,
            network,
            offload,
            opponents: Opponents::Peers,
            bound: Bound::AtLeast(AS_GOOD),
            judges_cpu: true,
            least_seconds: 0.0,
        }
    }

    /// How CPU is counted in this row where it was asked for `by`. A load that is compared with itself asleep has to sleep
    /// on cores that do, and 1024 streams are compared with nobody.
    pub(crate) fn cpu(&self, by: CountedBy) -> CountedBy {
        match self.opponents {
            Opponents::Peers | Opponents::Iperf3 => by,
            Opponents::OurselvesAsleep | Opponents::Nobody => CountedBy::Idle,
        }
    }

    /// A row whose CPU is shown and judged by nobody.
    fn counted(name: &str, load: Load, network: Network) -> Self {
        Self {
            judges_cpu: false,
            ..Self::stream(name, load, network, Profile::None)
        }
    }
}

fn bulk(streams: u32) -> Load {
    Load::Stream {
        streams,
        message: BULK,
        nodelay: false,
    }
}

fn streams(cores: Cores) -> Vec<Row> {
    let mut rows = Vec::new();
    for count in [1, 4] {
        for vxlan in [false, true] {
            for (profile, rate) in [(Profile::None, None), (Profile::Tunnel, Some(LINE_RATE))] {
                let name = format!("tcp-stream {count}");
                let network = network(cores, vxlan, rate);
                rows.push(Row::stream(&name, bulk(count), network, profile));
            }
        }
    }
    let small = Load::Stream {
        streams: 1,
        message: 128,
        nodelay: true,
    };
    let network = network(cores, false, None);
    rows.push(Row::stream(
        "tcp-stream 1 of 128 B",
        small,
        network,
        Profile::None,
    ));
    rows
}

fn exchanges(cores: Cores) -> Vec<Row> {
    let mut rows = Vec::new();
    for connections in [1, 64] {
        for (name, load) in [
            ("tcp-rr", Load::TcpRr { connections }),
            ("udp-rr", Load::UdpRr { connections }),
        ] {
            let name = format!("{name} {connections}");
            let row = Row::counted(&name, load, network(cores, false, None));
            rows.push(Row {
                // One connection's rate changes from window to window by more than generators differ.
                least_seconds: if connections == 1 { 2.0 } else { 0.0 },
                ..row
            });
        }
    }
    for (name, load) in [
        ("tcp-rr 1 spin", Load::TcpRr { connections: 1 }),
        ("udp-rr 1 spin", Load::UdpRr { connections: 1 }),
    ] {
        // With its usual steering a host's core is not free: it is interrupted for each packet, which costs a virtual
        // machine more than all else, and spinning cannot help that.
        for (rps, bound) in [(Rps::Off, Bound::AtLeast(2.0)), (Rps::Own, Bound::Shown)] {
            let mut network = light(cores, false);
            network.steering.rps = rps;
            rows.push(Row {
                opponents: Opponents::OurselvesAsleep,
                bound,
                ..Row::counted(name, load, network)
            });
        }
    }
    rows
}

/// The network without bridges: guests, and tunnels, by eBPF. Of all that can be built here it costs least itself.
fn light(cores: Cores, vxlan: bool) -> Network {
    Network {
        datapath: Datapath::Ebpf,
        ..network(cores, vxlan, None)
    }
}

fn datagrams(cores: Cores) -> Vec<Row> {
    // Whoever is to send and receive several datagrams as one needs devices that do not take them apart.
    let (kernel, ebpf) = (network(cores, true, None), light(cores, true));
    let rows = [
        (64, false, kernel.clone(), Bound::AtLeast(2.0)),
        (64, false, ebpf.clone(), Bound::AtLeast(2.0)),
        (64, true, kernel.clone(), Bound::AtLeast(3.0)),
        (64, true, ebpf, Bound::AtLeast(3.0)),
        // The largest that the tunnel's guests send unfragmented, where a newer iperf3 can use both too.
        (DATAGRAM, true, kernel, Bound::Shown),
    ];
    rows.into_iter()
        .map(|(message, segmentation, network, bound)| {
            let load = Load::UdpStream {
                message,
                segmentation,
            };
            let (how, profile) = if segmentation {
                (" GSO", Profile::Tunnel)
            } else {
                ("", Profile::None)
            };
            let name = format!("udp-stream 1 of {message} B{how}");
            Row {
                opponents: Opponents::Iperf3,
                bound,
                judges_cpu: false,
                ..Row::stream(&name, load, network, profile)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_what_it_is_and_what_has_to_hold() {
        let rows: Vec<String> = Row::all(Cores::Split)
            .iter()
            .map(|row| format!("{}: {}", row.name, row.bound))
            .collect();
        insta::assert_snapshot!(rows.join("\n"));
    }

    #[test]
    fn names_tell_rows_apart() {
        let mut names: Vec<String> = Row::all(Cores::Split)
            .into_iter()
            .map(|row| row.name)
            .collect();
        let rows = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows);
    }
}
