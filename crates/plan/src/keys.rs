//! The keys of a plan, declared once: what each takes, its range, its default, what it means.
//! The decoder reads by this table, and a schema or a reference page can be made from it.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::LazyLock;

use wirecost_model::cell::{MAX_GUESTS, MAX_LINKS};
use wirecost_model::ip::IpVersion;
use wirecost_model::load::Workload;
use wirecost_model::plan::{Description, GeneveOptions};
use wirecost_model::published::{Outcome, Rule};
use wirecost_model::transit::MAX_PATHS;

mod key;
mod options;

pub use key::{Key, Kind, Presence};
use options::workload_key;
pub(crate) use options::{TELLING, options};

/// Longest name of a plan, which becomes part of a directory's, in characters.
pub(crate) const NAME_MAX: usize = 64;
/// Longest name of a factor and label of a level that a plan makes, in characters.
pub(crate) const LABEL_MAX: usize = 60;
/// The last part of the path of what stands below names of one's own.
pub(crate) const ANY_NAME: &str = "*";
/// Longest name of a load of a mix, and of a host, in characters.
pub(crate) const LOAD_NAME_MAX: usize = 32;
/// Longest name of a congestion control: `TCP_CA_NAME_MAX` less the final 0 (include/net/tcp.h).
pub(crate) const CONGESTION_MAX: usize = 15;

/// Every key of a plan, outer before inner, in the order of the documentation.
pub fn keys() -> &'static [&'static Key] {
    static ALL: LazyLock<Vec<&Key>> = LazyLock::new(|| {
        let mut all = Vec::new();
        for key in KEYS {
            all.push(*key);
            if key.path == LOAD.path {
                for workload in Workload::ALL {
                    all.push(workload_key(workload));
                    all.extend(options(workload));
                }
            }
        }
        all
    });
    &ALL
}

const fn from_to(low: f64, high: f64) -> (Bound<f64>, Bound<f64>) {
    (Included(low), Included(high))
}

const fn above_to(low: f64, high: f64) -> (Bound<f64>, Bound<f64>) {
    (Excluded(low), Included(high))
}

const BASE: Key = Key {
    path: "",
    kind: Kind::Word,
    words: &[],
    range: (Unbounded, Unbounded),
    presence: Presence::Optional,
    factor: false,
    example: "",
    doc: "",
};

/// The smallest MTU is IPv4's; that IPv6 wants more takes two keys to see.
const MTU: (Bound<f64>, Bound<f64>) = from_to(IpVersion::Ipv4.min_mtu() as f64, 65535.0);
const IP: &[&str] = &[IpVersion::Ipv4.key(), IpVersion::Ipv6.key()];
const ON_OFF: &[&str] = &["on", "off"];
const RULES: [&str; Rule::ALL.len()] = {
    let mut words = [""; Rule::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = Rule::ALL[at].0;
        at += 1;
    }
    words
};
const ICMP: &[&str] = &["sent", "filtered"];

macro_rules! keys {
    ($($name:ident $path:literal $kind:ident { $($field:ident: $value:expr),* $(,)? } $doc:literal;)*) => {
        $(pub(crate) static $name: Key = Key {
            path: $path,
            kind: Kind::$kind,
            doc: $doc,
            $($field: $value,)*
            ..BASE
        };)*
        static KEYS: &[&Key] = &[$(&$name),*];
    };
}

use Presence::{Default, Required, Until};

keys! {
    NAME "name" Name { presence: Required, example: "jumbo-or-not" }
        "The plan's name; it names the run directory.";
    DESCRIPTION "description" Text { example: "What jumbo frames are worth here." }
        "A paragraph that the report shows.";
    HOSTS "hosts" Map {
        words: &["lab"], presence: Default("lab"), example: "{ a: \"ssh:db1=10.0.0.1\", b: \"ssh:db2=10.0.0.2\" }",
    }
        "Where the hosts come from: `lab` is two network namespaces on this machine; `a`, `b` and others are existing hosts \
         (docs/hosts.md), whose network is measured as `network` says. `--hosts` names them on the command line.";
    HOST_A "hosts.a" Text { presence: Required, example: "ssh:db1=10.0.0.1" }
        "Host a: `local`, `netns:NAME`, `ssh:[USER@]HOST[:PORT]` or `exec:COMMAND`, with `=ADDRESS` for the address that is \
         measured.";
    HOST_B "hosts.b" Text { presence: Required, example: "ssh:db2=10.0.0.2" }
        "Host b likewise.";
    HOST_MORE "hosts.*" Text { example: "ssh:db3=10.0.0.3" }
        "Further hosts, by names of your choice: letters, digits, `_` and `-`. `pairs` says which of them are measured.";
    PAIRS "pairs" Names { factor: true, example: "[[a, b], [a, c]]" }
        "Which two hosts are measured, where there are more than two: a pair, or a list of pairs, which are compared. The \
         first host of a pair is host a in its cells and the second host b, for loads, `on: a` and `on: b`. Without `hosts` \
         they are `a`, `b`, `c` and so on, in the order of `--hosts`.";
    NETWORK "network" Word { words: &["lab", "existing", "tunnel"], example: "existing" }
        "`lab` builds the network; `existing` measures what is there between two hosts and builds nothing; `tunnel` builds \
         guests and tunnels on two hosts, which go over the hosts' own network (docs/hosts.md). Without it, `existing` where \
         `hosts` names hosts.";
    ALLOW_HOST_CHANGES "allow_host_changes" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether `vary` may change settings of existing hosts. Each change is listed before the run, and undone after each \
         sample.";
    MAX_RATE "max_rate" Rate { words: &["auto", "none"], range: from_to(1e6, 1e13), presence: Default("auto"), example: "5gbit" }
        "The most that each stream load sends between existing hosts, in bit/s. `auto` is half of the slower device's \
         speed, 1 Gbit/s where that is unknown, and no limit between hosts of one machine; `none` is no limit.";
    CORES "cores" Word { words: &["split", "shared"], presence: Default("split"), example: "split" }
        "Whether each host has half of the cores, so that sender and receiver CPU can be separated, or both share all. \
         With `split`, three cores or more and a line (`underlay.rate`), the last core is the line's own and the hosts \
         have the others: from Linux 6.3, or as root.";
    SEED "seed" Whole { range: (Included(0.0), Unbounded), example: "1" }
        "Seed of the random order; without it each run draws its own.";

    UNDERLAY "underlay" Map { example: "{ mtu: 9000, rate: 10gbit }" }
        "The network between the hosts.";
    UNDERLAY_MTU "underlay.mtu" Whole { range: MTU, presence: Default("1500"), factor: true, example: "9000" }
        "MTU of the underlay's devices in bytes; at least 1280 where tunnels run over IPv6 (RFC 8200).";
    UNDERLAY_RATE "underlay.rate" Rate {
        words: &["none"], range: from_to(1e8, 1e13), presence: Default("none"), factor: true, example: "10gbit",
    }
        "Line rate, counted with the framing of 38 bytes a frame; `none` sets no limit. Below 100mbit the bucket that a \
         super-packet needs would hold more than 10 ms of the line.";
    UNDERLAY_LINKS "underlay.links" Whole {
        range: from_to(1.0, MAX_LINKS as f64), presence: Default("1"), factor: true, example: "2",
    }
        "Links between the hosts, each a line of `rate` of its own, among which flows are divided as a bond of Linux divides \
         them (`xmit_hash_policy layer3+4`): one flow has one link. Only beside a `rate`, and as root: an eBPF program divides \
         them.";
    UNDERLAY_RELEASE "underlay.release" Seconds {
        range: from_to(1e-5, 1e-3), presence: Default("100us"), example: "100us",
    }
        "How often the line releases queued packets, the same in all cells, as a card's interrupt moderation does. Where \
         the kernel has no fq, or eBPF is not allowed, packets are let out one by one, and the result says so. Only beside a \
         `rate`.";
    UNDERLAY_IP "underlay.ip" Word { words: IP, presence: Default("ipv4"), factor: true, example: "[ipv4, ipv6]" }
        "Which IP carries the tunnels. Without encapsulation nothing is carried in it: such a cell is measured once and \
         compared with the tunnels over either.";
    UNDERLAY_HOPS "underlay.hops" Choices { example: "[{ switch: { mtu: 9000 } }, { router: { mtu: 8950 } }]" }
        "What packets pass from host a to host b, in this order: switches, which drop what is too large without a word, and \
         routers, which say so. Without it the hosts are joined by one wire.";
    SWITCH "underlay.hops.switch" Map { example: "{ mtu: 8950 }" }
        "A switch. It cuts super-packets into frames.";
    SWITCH_MTU "underlay.hops.switch.mtu" Whole { range: MTU, presence: Required, example: "9000" }
        "Most bytes of IP that it passes on, in either direction.";
    SWITCH_MTU_FROM_A "underlay.hops.switch.mtu_from_a" Whole { range: MTU, example: "1500" }
        "Most bytes of what comes from host a, where that is something else than `mtu`.";
    SWITCH_MTU_FROM_B "underlay.hops.switch.mtu_from_b" Whole { range: MTU, example: "1500" }
        "Most bytes of what comes from host b, where that is something else than `mtu`.";
    SWITCH_ICMP "underlay.hops.switch.icmp" Word { words: ICMP, presence: Default("sent"), example: "filtered" }
        "Whether ICMP gets through it.";
    SWITCH_DROP "underlay.hops.switch.drop_udp_port" Whole { range: from_to(1.0, 65535.0), example: "4789" }
        "A destination port of UDP that is dropped silently, in both directions.";
    SWITCH_LOSS "underlay.hops.switch.loss" Share { range: from_to(0.0, 1.0), presence: Default("0%"), example: "5%" }
        "Packets that are lost at random, in either direction.";
    SWITCH_DELAY "underlay.hops.switch.delay" Seconds { range: from_to(0.0, 10.0), presence: Default("0"), example: "1ms" }
        "Delay in either direction; the kernel must have netem.";
    ROUTER "underlay.hops.router" Map { example: "{ mtu: 8950, icmp: filtered }" }
        "A router. Only tunnels get across: every host then has a subnet of its own.";
    ROUTER_MTU "underlay.hops.router.mtu" Whole { range: MTU, presence: Required, example: "9000" }
        "Most bytes of IP that it passes on, in either direction.";
    ROUTER_MTU_FROM_A "underlay.hops.router.mtu_from_a" Whole { range: MTU, example: "1500" }
        "Most bytes of what comes from host a, where that is something else than `mtu`.";
    ROUTER_MTU_FROM_B "underlay.hops.router.mtu_from_b" Whole { range: MTU, example: "1500" }
        "Most bytes of what comes from host b, where that is something else than `mtu`.";
    ROUTER_ICMP "underlay.hops.router.icmp" Word { words: ICMP, presence: Default("sent"), example: "filtered" }
        "Whether its own messages, those about packets that are too large among them, leave it.";
    ROUTER_DROP "underlay.hops.router.drop_udp_port" Whole { range: from_to(1.0, 65535.0), example: "4789" }
        "A destination port of UDP that is dropped silently, in both directions.";
    ROUTER_LOSS "underlay.hops.router.loss" Share { range: from_to(0.0, 1.0), presence: Default("0%"), example: "5%" }
        "Packets that are lost at random, in either direction.";
    ROUTER_DELAY "underlay.hops.router.delay" Seconds { range: from_to(0.0, 10.0), presence: Default("0"), example: "1ms" }
        "Delay in either direction; the kernel must have netem.";
    UNDERLAY_PATHS "underlay.paths" Members { range: from_to(2.0, MAX_PATHS as f64), example: "4" }
        "Equal-cost routed paths between the last hop and host b, among which flows are divided by a hash of addresses and \
         ports: how many, or each on its own. Only tunnels get across.";
    PATH_MTU "underlay.paths.mtu" Whole { range: MTU, example: "1500" }
        "Most bytes of IP that this path passes on; without it, whatever the hosts send.";
    PATH_ICMP "underlay.paths.icmp" Word { words: ICMP, presence: Default("sent"), example: "filtered" }
        "Whether the path's router says what is too large.";
    UNDERLAY_OVERSIZE "underlay.oversize" Word { words: &["refuse", "send"], presence: Default("refuse"), example: "send" }
        "What becomes of a `guest_mtu` that a hop or a path does not carry: `refuse` makes it an error of the plan; `send` \
         builds it, and the record says what the path was found to carry.";

    ENCAPSULATION "encapsulation" Choice {
        words: Description::WORDS, presence: Default("none"), factor: true,
        example: "{ vxlan: { udp_checksum: on } }",
    }
        "How what guests send crosses the underlay: bridged as it is, with a VLAN tag, or in a tunnel. `gre`, `ipip` \
         and `wireguard` carry IP packets and no frames: with them the hosts route for their guests instead of bridging.";
    VLAN "encapsulation.vlan" Map { example: "{ id: 100 }" }
        "Options of a VLAN (IEEE 802.1Q): every frame on the underlay has a tag of 4 bytes, which the IP MTU does not count.";
    VLAN_ID "encapsulation.vlan.id" Whole { range: from_to(1.0, 4094.0), presence: Default("42"), example: "100" }
        "VLAN identifier.";
    VXLAN "encapsulation.vxlan" Map { example: "{ udp_checksum: on }" }
        "Options of a VXLAN tunnel (RFC 7348).";
    VXLAN_VNI "encapsulation.vxlan.vni" Whole {
        range: from_to(0.0, 16_777_215.0), presence: Default("42"), example: "42",
    }
        "VXLAN network identifier.";
    VXLAN_PORT "encapsulation.vxlan.port" Whole {
        range: from_to(1.0, 65535.0), presence: Default("4789"), example: "4789",
    }
        "UDP destination port.";
    VXLAN_DF "encapsulation.vxlan.df" Word {
        words: &["unset", "set", "inherit"], presence: Default("unset"), example: "set",
    }
        "The outer IPv4 header's don't-fragment bit; IPv6 has none, and no router fragments it. eBPF always sets it (RFC \
         7348, section 4.3), and the record says `set`.";
    VXLAN_CHECKSUM "encapsulation.vxlan.udp_checksum" Word { words: ON_OFF, example: "on" }
        "Whether this level computes the outer UDP checksum, regardless of the plan's `udp_checksum`.";
    VXLAN_PORTS "encapsulation.vxlan.source_ports" Ports { words: &["auto"], presence: Default("auto"), example: "49152-65535" }
        "Outer UDP source ports, from the first to the last, chosen by a hash over the inner flow. `auto` is what the \
         datapath takes: the kernel `net.ipv4.ip_local_port_range`, eBPF 49152 to 65535, Open vSwitch in userspace 32768 to 61000.";
    VXLAN_TAG "encapsulation.vxlan.inner_vlan" Whole {
        words: &["none"], range: from_to(1.0, 4094.0), presence: Default("none"), example: "100",
    }
        "A VLAN tag that every frame carries inside the tunnel: 4 bytes more of the underlay's MTU.";
    GENEVE "encapsulation.geneve" Map { example: "{ options: ovn }" }
        "Options of a Geneve tunnel (RFC 8926).";
    GENEVE_VNI "encapsulation.geneve.vni" Whole {
        range: from_to(0.0, 16_777_215.0), presence: Default("42"), example: "42",
    }
        "Virtual network identifier.";
    GENEVE_PORT "encapsulation.geneve.port" Whole {
        range: from_to(1.0, 65535.0), presence: Default("6081"), example: "6081",
    }
        "UDP destination port.";
    GENEVE_OPTIONS "encapsulation.geneve.options" Whole {
        words: &["ovn"], range: from_to(0.0, GeneveOptions::MOST_BYTES as f64), presence: Default("0"), example: "ovn",
    }
        "Bytes of options in every packet, a multiple of 4, of an experimental class; `ovn` is the option that OVN sends \
         (class 0x0102, type 0x80, critical): 8 bytes. The kernel's own device sends none.";
    GENEVE_DF "encapsulation.geneve.df" Word {
        words: &["unset", "set", "inherit"], presence: Default("unset"), example: "set",
    }
        "As for `vxlan`.";
    GENEVE_CHECKSUM "encapsulation.geneve.udp_checksum" Word { words: ON_OFF, example: "on" }
        "As for `vxlan`.";
    GENEVE_PORTS "encapsulation.geneve.source_ports" Ports { words: &["auto"], presence: Default("auto"), example: "49152-65535" }
        "As for `vxlan`; the kernel's device takes no range.";
    GENEVE_TAG "encapsulation.geneve.inner_vlan" Whole {
        words: &["none"], range: from_to(1.0, 4094.0), presence: Default("none"), example: "100",
    }
        "As for `vxlan`.";
    GRE "encapsulation.gre" Map { example: "{ key: 42 }" }
        "Options of a tunnel of IP packets in GRE (RFC 2784, RFC 2890), by the kernel's own device: 4 bytes and the outer IP \
         header.";
    GRE_KEY "encapsulation.gre.key" Whole {
        words: &["none"], range: from_to(0.0, u32::MAX as f64), presence: Default("none"), example: "42",
    }
        "The key in every packet, which distinguishes tunnels between two hosts: 4 bytes more.";
    GRE_TTL "encapsulation.gre.ttl" Whole {
        words: &["inherit"], range: from_to(1.0, 255.0), presence: Default("inherit"), example: "64",
    }
        "TTL or hop limit of the outer IP header; `inherit` is the inner packet's. With a number the kernel also sets \
         the don't-fragment bit over IPv4.";
    GRE_DF "encapsulation.gre.df" Word { words: &["unset", "set", "inherit"], example: "inherit" }
        "The outer IPv4 header's don't-fragment bit; IPv6 has none. Without this key the kernel's default, which sets \
         it.";
    GRETAP "encapsulation.gretap" Map { example: "{ key: 42 }" }
        "Options of a tunnel of Ethernet frames in GRE, by the kernel's own device: those of `gre`, and an Ethernet header of \
         14 bytes.";
    GRETAP_KEY "encapsulation.gretap.key" Whole {
        words: &["none"], range: from_to(0.0, u32::MAX as f64), presence: Default("none"), example: "42",
    }
        "As for `gre`.";
    GRETAP_TTL "encapsulation.gretap.ttl" Whole {
        words: &["inherit"], range: from_to(1.0, 255.0), presence: Default("inherit"), example: "64",
    }
        "As for `gre`.";
    GRETAP_DF "encapsulation.gretap.df" Word { words: &["unset", "set", "inherit"], example: "inherit" }
        "As for `gre`.";
    IPIP "encapsulation.ipip" Map { example: "{ ttl: 64 }" }
        "Options of a tunnel of IP packets in IP packets, by the kernel's own device, which is `ipip` (RFC 2003), for IPv6 \
         guests over IPv4 `sit` (RFC 4213), over IPv6 `ip6tnl` (RFC 2473): the outer IP header and nothing else.";
    IPIP_TTL "encapsulation.ipip.ttl" Whole {
        words: &["inherit"], range: from_to(1.0, 255.0), presence: Default("inherit"), example: "64",
    }
        "As for `gre`.";
    IPIP_DF "encapsulation.ipip.df" Word { words: &["set", "inherit"], example: "inherit" }
        "As for `gre`; the kernel cannot leave it unset.";
    WIREGUARD "encapsulation.wireguard" Map { example: "{ port: 51821 }" }
        "Options of a WireGuard tunnel of IP packets, by the kernel's own device: UDP, 32 bytes of header and authentication tag, \
         and the outer IP header. Packets are padded to a multiple of 16 bytes, full ones are not. Keys are made for each lab.";
    WIREGUARD_PORT "encapsulation.wireguard.port" Whole {
        range: from_to(1.0, 65535.0), presence: Default("51820"), example: "51821",
    }
        "UDP port of both hosts.";
    UDP_CHECKSUM "udp_checksum" Word { words: ON_OFF, presence: Default("off"), factor: true, example: "[off, on]" }
        "Whether tunnels compute the outer UDP checksum. `off` sends zero over IPv6 too, as RFC 6935 allows to tunnels, so \
         that `underlay.ip` changes nothing else; the kernel's own default is on. As a list it measures the cost of \
         the checksum separately from that of the header; a cell without a tunnel is measured once and compared with \
         tunnels of both levels.";
    DATAPATH "datapath" Word {
        words: &["auto", "kernel", "ebpf", "ovs", "ovs-kernel", "ovn", "ovn-kernel"],
        presence: Default("auto"), factor: true, example: "ebpf",
    }
        "What encapsulates: the kernel's devices and bridge, Wirecost's eBPF programs, which need root, or an Open \
         vSwitch private to each host, which needs root and the package openvswitch-switch: `ovs` switches in userspace, \
         `ovs-kernel` in the kernel's openvswitch module (docs/encapsulations.md). `ovn` and `ovn-kernel` are the same \
         switches programmed by an OVN of the lab's own, which needs the packages ovn-central and ovn-host as well \
         (docs/ovn.md). \
         `auto` is the same datapath for all cells, so that encapsulations are compared on the same code: the first \
         of `kernel` and `ebpf` that can build every cell on this machine. Only the kernel builds GRE, IP in IP and WireGuard.";

    TOPOLOGY "topology" Word {
        words: &["switched", "routed"], presence: Default("switched"), factor: true, example: "[switched, routed]",
    }
        "How OVN joins the guests (`datapath: ovn`): as ports of one logical switch, or with a logical switch and a subnet \
         for each host's and a distributed logical router between them, which needs a tunnel. A cell of another datapath \
         is measured once, whatever the topology.";
    ACL "acl" Word {
        words: &["none", "allow-related"], presence: Default("none"), factor: true, example: "[none, allow-related]",
    }
        "What of OVN filters the guests' packets: nothing, or the rules of a security group. `allow-related` allows what \
         guests send to each other together with what answers it and drops everything else, so that every packet passes \
         connection tracking at both hosts. As for `topology`.";

    GUEST_MTU "guest_mtu" Whole {
        words: &["max"], range: MTU, presence: Default("max"), factor: true, example: "8900",
    }
        "MTU of the guests' devices in bytes; `max` is the underlay's less the encapsulation's overhead.";

    GUEST_IP "guest_ip" Word { words: IP, presence: Default("ipv4"), factor: true, example: "[ipv4, ipv6]" }
        "IP version of the guests; `ipv6` needs a `guest_mtu` of at least 1280 (RFC 8200).";

    GUESTS "guests" Whole { range: from_to(1.0, MAX_GUESTS as f64), presence: Default("1"), factor: true, example: "16" }
        "Number of guests of each host, each in its own network namespace behind the host's bridge. Guest i of host a \
         talks to guest i of host b.";

    OFFLOAD "offload" Map {
        words: &["none", "plain", "tunnel"], presence: Default("tunnel"), factor: true,
        example: "{ profile: tunnel, tso: off }",
    }
        "Offloads, the same on every device of the path: a profile, or a profile with single switches changed.";
    OFFLOAD_PROFILE "offload.profile" Word {
        words: &["none", "plain", "tunnel"], presence: Default("tunnel"), example: "none",
    }
        "The profile to start from.";
    OFFLOAD_TSO "offload.tso" Word { words: ON_OFF, example: "off" }
        "TCP segmentation offload.";
    OFFLOAD_GSO "offload.gso" Word { words: ON_OFF, example: "on" }
        "Generic segmentation offload, of datagrams sent with `segmentation_offload`; TCP ignores it.";
    OFFLOAD_GRO "offload.gro" Word { words: ON_OFF, example: "on" }
        "Generic receive offload, by the receiving guest's device, where frames arrive one by one.";
    OFFLOAD_TUNNEL "offload.tunnel_segmentation" Word { words: ON_OFF, example: "off" }
        "Segmentation of super-packets inside a tunnel.";
    OFFLOAD_CHECKSUM "offload.checksum" Word { words: &["software", "hardware"], example: "software" }
        "Where checksums are computed and verified.";

    STEERING "steering" Map { example: "{ queues: [1, 2], rps: [own, off] }" }
        "How received packets are spread over queues and cores.";
    STEERING_QUEUES "steering.queues" Whole {
        range: from_to(1.0, 64.0), presence: Default("1"), factor: true, example: "2",
    }
        "Transmit and receive queues of every veth of the path: the underlay's, and between guest and host.";
    STEERING_RPS "steering.rps" Mask {
        words: &["own", "off", "all"], presence: Default("own"), factor: true, example: "0x3",
    }
        "Receive packet steering of the underlay's devices: `own` is each host's own cores (none where `cores` is \
         `shared`), `off` none, `all` every core of the run. Where receive work may leave the host's own cores, \
         sender and receiver CPU cannot be separated, and the result says so.";

    LOAD "load" Choice {
        words: &Workload::NAMES,
        presence: Default("tcp-stream"), factor: true, example: "{ tcp-rr: { streams: [1, 64] } }",
    }
        "The workload: a name, a name with options, or a mix of several at once. The loads of a list are measured \
         separately and never compared with each other.";
    MIX "load.mix" Mix { example: "{ bulk: [none, tcp-stream], ping: { tcp-rr: { request: 128 } } }" }
        "Several loads at once, each under a name of your choice with its own figures; CPU is not attributed to any \
         of them. A list of `none` and a load, as `bulk: [none, tcp-stream]`, is a factor with the \
         load's name: the others are measured without it and with it, and compared.";

    REPEAT "repeat" Map { example: "{ rounds: 8, seconds: 1.0 }" }
        "How often and how long.";
    ROUNDS "repeat.rounds" Whole { range: from_to(1.0, 1000.0), presence: Default("8"), example: "8" }
        "A fixed number of rounds: every cell is measured once in each; an interval needs two. Excludes the keys of \
         an adaptive run (`precision`, `budget`, `min_rounds`, `max_rounds`, `ask`).";
    PRECISION "repeat.precision" Share { range: above_to(0.0, 1.0), presence: Until("2%"), example: "2%" }
        "Adaptive (sequential) run: it stops when every effect in `ask` has its verdict against `worth`, or an \
         interval whose half-width is at most this.";
    BUDGET "repeat.budget" Seconds { range: from_to(1.0, 604_800.0), presence: Until("5min"), example: "5min" }
        "Adaptive run: the time that it may take, building included. A round that is not expected to fit is not \
         begun, and none is cut; `min_rounds` are measured in any case.";
    MIN_ROUNDS "repeat.min_rounds" Whole { range: from_to(4.0, 1000.0), presence: Until("6"), example: "6" }
        "Adaptive run: the fewest rounds.";
    MAX_ROUNDS "repeat.max_rounds" Whole { range: from_to(4.0, 1000.0), presence: Until("60"), example: "60" }
        "Adaptive run: the most rounds.";
    ASK "repeat.ask" Word { words: &["all", "throughput", "latency", "cpu"], presence: Until("all"), example: "throughput" }
        "Adaptive run: the figures whose effects have to be known before it stops. An effect without a valid pair of \
         samples is not waited for.";
    SECONDS "repeat.seconds" Seconds { range: from_to(0.05, 3600.0), presence: Default("1.0"), example: "1.5" }
        "Measured window of one sample. A cell with a line that its load would fill has two windows in each sample, with the \
         line and without it: each has half of this, and half of `warmup`.";
    WARMUP "repeat.warmup" Seconds { range: from_to(0.0, 60.0), presence: Default("0.2"), example: "200ms" }
        "Load before the window that is not measured.";
    WORTH "repeat.worth" Share { range: above_to(0.0, 1.0), presence: Default("5%"), example: "5%" }
        "The smallest change worth having: the margin of the verdicts.";

    SELF_TEST "self_test" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether the first cell is measured twice in every round (A/A test). If the two differ, the result begins \
         with that.";

    VARY "vary" Named {
        example: "{ tcp metrics: [{ label: kept }, { label: not kept, sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }] }",
    }
        "Any setting as a factor: each name is a factor whose levels are settings of the hosts. They are applied \
         before each sample, read back, and undone after it, in the same rounds as everything else.";
    VARY_LEVELS "vary.*" Maps { example: "[{ label: kept }, { sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }]" }
        "The levels of the factor; the first is the reference. A level with only a label changes nothing.";
    VARY_LABEL "vary.*.label" Label { example: "not kept" }
        "Name of the level; without it, what it changes.";
    VARY_SYSCTL "vary.*.sysctl" Sysctls { example: "{ net.ipv4.tcp_no_metrics_save: 1 }" }
        "Sysctls and their values. Only `net.*`, of which each namespace has its own; what belongs to the machine needs \
         `on: machine`.";
    VARY_ETHTOOL "vary.*.ethtool" Map { example: "{ underlay: { rx-gro: off } }" }
        "Device features, in addition to `offload`.";
    VARY_UNDERLAY "vary.*.ethtool.underlay" Features { example: "{ rx-gro: off }" }
        "Features of the hosts' underlay devices, by the kernel's names (`ethtool -k`).";
    VARY_TUNNEL "vary.*.ethtool.tunnel" Features { example: "{ rx-gro: off }" }
        "Features of the tunnel's devices; only in cells that have a tunnel.";
    VARY_GUEST "vary.*.ethtool.guest" Features { example: "{ tx-tcp-segmentation: off }" }
        "Features of the guests' devices.";
    VARY_GUEST_PORT "vary.*.ethtool.guest_port" Features { example: "{ rx-gro: off }" }
        "Features of the hosts' ends of the guests' devices.";
    VARY_DEVICE "vary.*.device" Text { example: "vxlan0" }
        "The device that `mtu`, `rx_ring`, `tx_ring`, `queues`, `rps` and the features of `underlay` are of, on existing hosts; \
         without it the one with the measured address. One of another network namespace is written behind that one's file: \
         `/run/netns/blue/vxlan0`, `/proc/1/ns/net/eth0`.";
    VARY_MTU "vary.*.mtu" Whole { range: MTU, example: "9000" }
        "MTU of the device with the measured address, in bytes; only on existing hosts.";
    VARY_RX_RING "vary.*.rx_ring" Whole { range: from_to(1.0, 65536.0), example: "4096" }
        "That device's descriptors for received packets (`ethtool -G`).";
    VARY_TX_RING "vary.*.tx_ring" Whole { range: from_to(1.0, 65536.0), example: "4096" }
        "That device's descriptors for packets to send.";
    VARY_QUEUES "vary.*.queues" Whole { range: from_to(1.0, 1024.0), example: "4" }
        "That device's queues for both directions (`ethtool -L DEV combined`).";
    VARY_RPS "vary.*.rps" Mask { words: &["off"], example: "0x3" }
        "Cores that packets received by that device are steered to, on every queue.";
    VARY_QDISC "vary.*.qdisc" Word {
        words: &["pfifo", "bfifo", "pfifo_fast", "fq_codel", "fq", "sfq", "cake", "noqueue"], example: "fq_codel",
    }
        "That device's root queueing discipline, with the kernel's default options. What was there comes back as it was read: \
         the kernel's default, or a `pfifo`, `bfifo`, `fq_codel` or `fq` with its options; where it is another, the run does not \
         begin.";
    VARY_BEFORE "vary.*.before" Command { example: "ip link set underlay txqueuelen 100" }
        "A command run before each sample, in each namespace of `on`, as the user who runs wirecost; it has 10 s, and \
         a sample whose command fails is not valid.";
    VARY_AFTER "vary.*.after" Command { example: "ip link set underlay txqueuelen 1000" }
        "The command that undoes `before`, required with it: run after each sample, also after one that failed, if \
         `before` itself failed, and if the run is killed.";
    VARY_ON "vary.*.on" Word {
        words: &["guests", "hosts", "both", "a", "b", "machine"], presence: Default("both"), example: "guests",
    }
        "Where sysctls and commands apply: in the guests' namespaces, the hosts', both, or once on this machine \
         outside of the lab, where a sysctl needs root and affects everything on it. `a` and `b` are one host and its \
         guests: `ethtool` too then sets the devices of that host alone.";

    EXCLUDE "exclude" LevelSets { example: "[{ encapsulation: none, offload: plain }]" }
        "Combinations to leave out: a cell that matches every level of an entry is dropped.";

    PUBLISHED "published" Map { example: "{ source: who, figures: [{ where: { guest_mtu: 1500 }, gbps: 7.4 }] }" }
        "What others published of these cells, shown beside what is measured.";
    SOURCE "published.source" Text { presence: Required, example: "who measured what on which hardware" }
        "Who published it, and what was measured on which hardware.";
    PUBLISHED_TITLE "published.title" Text { example: "Jumbo frames and VXLAN performance" }
        "The study's title.";
    PUBLISHED_ENVIRONMENT "published.environment" Text { example: "ESXi on 12 cores without VXLAN offload" }
        "Offloads, cores, kernel and datapath that the study had: shown where a comparison differs.";
    PUBLISHED_SCALED "published.scaled" Text { example: "machines of 32 MiB instead of 24 GB" }
        "What the plan scales down, and by which key.";
    PUBLISHED_OVN "published.ovn" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether the study is about OVN. Where the plan names no `datapath`, a run then takes the first of `ovn-kernel`, \
         `ovn` and `ebpf`, which imitates OVN's header, that builds every cell, and says which and why.";
    PUBLISHED_RULE "published.rule" Word { words: &RULES, example: "trimmed" }
        "How the study made one figure of several runs: the mean of all, sets of three runs whose standard deviation is \
         within 5 % of their mean, the mean without the highest and the lowest, or the worst. What that makes of this \
         run's samples stands beside our ratio; verdicts do not follow from it.";
    FIGURES "published.figures" Maps { example: "[{ where: { guest_mtu: 1500 }, gbps: 7.4 }]" }
        "Published throughputs, each for the cells that match its levels.";
    WHERE "published.figures.where" Levels { presence: Required, example: "{ guest_mtu: 1500 }" }
        "The cells that a figure is compared with.";
    GBPS "published.figures.gbps" Gbps { range: above_to(0.0, 1e5), presence: Required, example: "7.4" }
        "Throughput in Gbit/s.";
    NOTE "published.figures.note" Text { example: "measured with a VLAN" }
        "How the published configuration differs from the cell.";
    COMPARISONS "published.comparisons" Maps {
        example: "[{ what: larger frames, metric: throughput, from: { guest_mtu: 1500 }, to: { guest_mtu: max }, ratio: 2 }]",
    }
        "Published comparisons of two cells. The result says of each whether it agrees: the same side of `repeat.worth` in \
         the same direction.";
    COMPARED_WHAT "published.comparisons.what" Text { presence: Required, example: "larger frames" }
        "What is compared, in words.";
    COMPARED_METRIC "published.comparisons.metric" Word {
        words: &Outcome::WORDS, presence: Required, example: "throughput",
    }
        "Which figure. `hosts-cpu` is the busy time of the hosts' cores, the average of both hosts in percent of all their \
         cores, `client-host-cpu` and `server-host-cpu` that of one of them; `within-500us` the percentage of responses within \
         500 us; `wire-frames` frames per second on the wire.";
    COMPARED_WHERE "published.comparisons.where" Levels { example: "{ guest_mtu: 1500 }" }
        "Levels that both cells have.";
    COMPARED_FROM "published.comparisons.from" Levels { presence: Required, example: "{ guest_mtu: 1500 }" }
        "Levels of the cell compared with; with `where` those of exactly one cell.";
    COMPARED_TO "published.comparisons.to" Levels { presence: Required, example: "{ guest_mtu: max }" }
        "Levels of the cell that is compared.";
    COMPARED_VALUES "published.comparisons.values" Pair { range: above_to(0.0, 1e12), example: "[4.6, 9.33]" }
        "The published figures of both cells, in the figure's unit.";
    COMPARED_RATIO "published.comparisons.ratio" Number { range: above_to(0.0, 1e9), example: "2" }
        "The published ratio of the second cell's figure to the first's.";
    COMPARED_DIFFERENCE "published.comparisons.difference" Number { range: from_to(-1e12, 1e12), example: "60" }
        "The published difference, the second less the first, in the figure's unit. Only its direction is compared.";
    COMPARED_AT_MOST "published.comparisons.at_most" Number { range: from_to(-1e12, 1e12), example: "10" }
        "The most that the second was published to lie above the first, in the figure's unit.";
    COMPARED_INFERRED "published.comparisons.inferred" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether it was inferred from what was published.";
    COMPARED_NOTE "published.comparisons.note" Text { example: "the second run was at line rate" }
        "What has to be known of it.";
    UNMEASURED "published.unmeasured" Maps { example: "[{ what: a second testbed, why: it has disks }]" }
        "What was published and is not measured here: listed as not comparable.";
    UNMEASURED_WHAT "published.unmeasured.what" Text { presence: Required, example: "a second testbed" }
        "What was published.";
    UNMEASURED_WHY "published.unmeasured.why" Text { presence: Required, example: "it has disks" }
        "Why it is not measured.";
    CHARTS "published.charts" Maps { example: "[{ title: by MTU, metric: throughput, by: guest_mtu }]" }
        "The study's own charts, as bars on the page: the published figures (`values`) beside those measured.";
    CHART_TITLE "published.charts.title" Text { presence: Required, example: "by MTU" }
        "What it shows.";
    CHART_METRIC "published.charts.metric" Word {
        words: &Outcome::WORDS, presence: Required, example: "throughput",
    }
        "Which figure.";
    CHART_BY "published.charts.by" Text { presence: Required, example: "guest_mtu" }
        "The factor whose levels are the groups of bars.";
    CHART_SERIES "published.charts.series" Text { example: "encapsulation" }
        "The factor whose levels are the bars of a group, or several with commas between: each combination is a bar.";
    CHART_WHERE "published.charts.where" Levels { example: "{ guest_mtu: 1500 }" }
        "The cells in it.";
}

#[cfg(test)]
mod tests;
