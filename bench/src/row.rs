//! What is compared: a load on a network, against whom, and what has to hold.

mod load;

use wirecost_model::cell::Network;
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::logical::Logical;
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{Cores, Encapsulation, Vxlan};
use wirecost_model::steering::{Rps, Steering};
use wirecost_model::transit::Transit;
use wirecost_model::units::format_rate;

use crate::bound::Bound;
use crate::peer::{BARE, NEWER};
use crate::report::CountedBy;

pub(crate) use load::{EXPORT_MIB, Load};

/// MTU of the guests' devices in bytes: the one with the most segments for each byte.
pub(crate) const GUEST_MTU: u32 = 1500;
/// MTU of the underlay in bytes, as in the built-in plan.
const UNDERLAY_MTU: u32 = 9000;
/// Line rate of the rows that have one, bits per second: about what one stream reaches with nothing offloaded.
const LINE_RATE: u64 = 10_000_000_000;
/// Bytes per write of a bulk stream.
const BULK: u32 = 128 << 10;
/// Bytes of a datagram that fills the guest's MTU, behind headers of IPv4 and UDP.
const DATAGRAM: u32 = GUEST_MTU - 28;
/// The lower bound against every peer.
const AS_GOOD: f64 = 0.97;
/// Likewise where one way of reading and writing in every cell is worth more than the last percent: bulk streams and
/// TCP's requests.
const NEARLY: f64 = 0.93;

/// Likewise of storage.
const STORAGE: f64 = 0.95;

/// Against whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opponents {
    /// Every peer that can, and the bare system calls.
    Peers,
    /// Debian's iperf3, and a newer one where there is one.
    Iperf3,
    /// These, and what is no generator: datagrams sent and read, and nothing else.
    Iperf3AndBare,
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
    /// What has to hold beside a newer iperf3, where that is not `bound`.
    pub(crate) newer: Option<Bound>,
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
        links: 1,
        underlay_ip: IpVersion::Ipv4,
        encapsulation: if vxlan {
            Encapsulation::Vxlan(Vxlan::default())
        } else {
            Encapsulation::None
        },
        datapath: Datapath::Kernel,
        logical: Logical::default(),
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
        rows.extend(storage(cores));
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
            newer: None,
            judges_cpu: true,
            least_seconds: 0.0,
        }
    }

    /// What has to hold beside the opponent of this name.
    pub(crate) fn bound_against(&self, opponent: &str) -> Bound {
        match self.newer {
            _ if opponent == BARE => Bound::Shown,
            Some(newer) if opponent == NEWER => newer,
            _ => self.bound,
        }
    }

    /// What has to hold, in words.
    pub(crate) fn bounds(&self) -> String {
        match self.newer {
            Some(newer) => format!("{}, beside a newer iperf3 {newer}", self.bound),
            None => self.bound.to_string(),
        }
    }

    /// How CPU is counted in this row where it was asked for `by`. A load that is compared with itself asleep has to
    /// sleep on cores that do, and 1024 streams are compared with nobody.
    pub(crate) fn cpu(&self, by: CountedBy) -> CountedBy {
        match self.opponents {
            Opponents::Peers | Opponents::Iperf3 | Opponents::Iperf3AndBare => by,
            Opponents::OurselvesAsleep | Opponents::Nobody => CountedBy::Idle,
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
            for (profile, rate) in [
                (Profile::None, None),
                (Profile::Tunnel, Some(LINE_RATE)),
                (Profile::Tunnel, None),
            ] {
                let name = format!("tcp-stream {count}");
                let network = network(cores, vxlan, rate);
                rows.push(Row {
                    bound: Bound::AtLeast(NEARLY),
                    ..Row::stream(&name, bulk(count), network, profile)
                });
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
        let tcp = Load::TcpRr { connections };
        let udp = Load::UdpRr { connections };
        for (name, load, profile, bound) in [
            ("tcp-rr", tcp, Profile::None, NEARLY),
            ("tcp-rr", tcp, Profile::Tunnel, NEARLY),
            ("udp-rr", udp, Profile::None, AS_GOOD),
        ] {
            let name = format!("{name} {connections}");
            let network = network(cores, false, None);
            rows.push(Row {
                bound: Bound::AtLeast(bound),
                judges_cpu: false,
                // One connection's rate changes from window to window by more than generators differ.
                least_seconds: if connections == 1 { 2.0 } else { 0.0 },
                ..Row::stream(&name, load, network, profile)
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
                judges_cpu: false,
                ..Row::stream(name, load, network, Profile::None)
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
    let good = Bound::AtLeast(AS_GOOD);
    let rows = [
        // Where both cores are full of the stack's own work, twice another generator's rate is a bound on what that one
        // costs itself: Debian's is the one that it was set for. A newer one costs less.
        (64, false, kernel.clone(), Bound::AtLeast(2.0), Some(good)),
        // By eBPF either gets more through, and what a generator costs itself decides less.
        (64, false, ebpf.clone(), good, None),
        (64, true, kernel.clone(), Bound::AtLeast(3.0), None),
        (64, true, ebpf, Bound::AtLeast(3.0), None),
        // The largest that the tunnel's guests send unfragmented, where a newer iperf3 can use both too.
        (DATAGRAM, true, kernel, Bound::Shown, None),
    ];
    rows.into_iter()
        .map(|(message, segmentation, network, bound, newer)| {
            let load = Load::UdpStream {
                message,
                segmentation,
            };
            let (how, profile, opponents) = if segmentation {
                (" GSO", Profile::Tunnel, Opponents::Iperf3)
            } else {
                ("", Profile::None, Opponents::Iperf3AndBare)
            };
            let name = format!("udp-stream 1 of {message} B{how}");
            Row {
                opponents,
                bound,
                newer,
                judges_cpu: false,
                ..Row::stream(&name, load, network, profile)
            }
        })
        .collect()
}

/// Random reads of 4 KiB, 32 outstanding on each connection, beside what others take to measure storage without a disk.
fn storage(cores: Cores) -> impl Iterator<Item = Row> {
    [1, 4].into_iter().map(move |connections| {
        let load = Load::Storage {
            connections,
            depth: 32,
        };
        let network = network(cores, false, None);
        let name = format!("storage {connections}");
        Row {
            bound: Bound::AtLeast(STORAGE),
            ..Row::stream(&name, load, network, Profile::None)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_what_it_is_and_what_has_to_hold() {
        let rows: Vec<String> = Row::all(Cores::Split)
            .iter()
            .map(|row| format!("{}: {}", row.name, row.bounds()))
            .collect();
        insta::assert_snapshot!(rows.join("\n"));
    }

    #[test]
    fn twice_is_asked_beside_the_iperf3_of_the_distribution_and_no_less_beside_any_other() {
        let rows = Row::all(Cores::Split);
        let named = |name: &str| rows.iter().find(|row| row.name == name).expect("a row");
        let small = named("udp-stream 1 of 64 B, vxlan, offload none");
        assert_eq!(small.bound_against("iperf3"), Bound::AtLeast(2.0));
        assert_eq!(small.bound_against(NEWER), Bound::AtLeast(AS_GOOD));
        assert_eq!(small.bound_against(BARE), Bound::Shown);
        let segmented = named("udp-stream 1 of 64 B GSO, vxlan, offload tunnel");
        assert_eq!(segmented.bound_against(NEWER), Bound::AtLeast(3.0));
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
