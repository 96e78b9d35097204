//! Keys of the network between the hosts.

use wirecost_model::cell::MAX_LINKS;
use wirecost_model::transit::MAX_PATHS;

use super::Presence::{Default, Required};
use super::{BASE, IP, Key, Kind, MTU, from_to};

const ICMP: &[&str] = &["sent", "filtered"];

keys! {
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
        "Links between the hosts, each with the `rate`. Flows are divided among them as Linux's bonding driver \
         divides them (`xmit_hash_policy layer3+4`): one flow uses one link. Needs a `rate`, and root: an eBPF \
         program divides the flows.";
    UNDERLAY_RELEASE "underlay.release" Seconds {
        range: from_to(1e-5, 1e-3), presence: Default("100us"), example: "100us",
    }
        "How often the line releases queued packets, the same in all cells, as a card's interrupt moderation does. \
         Where the kernel has no fq, or eBPF is not allowed, packets are released one by one, and the result says \
         so. Needs a `rate`.";
    UNDERLAY_IP "underlay.ip" Word { words: IP, presence: Default("ipv4"), factor: true, example: "[ipv4, ipv6]" }
        "Which IP carries the tunnels. Without encapsulation nothing is carried in it: such a cell is measured once and \
         compared with the tunnels over either.";
    UNDERLAY_HOPS "underlay.hops" Choices { example: "[{ switch: { mtu: 9000 } }, { router: { mtu: 8950 } }]" }
        "What packets pass from host a to host b, in this order: switches, which silently drop packets that are \
         too large, and routers, which report them by ICMP. Without it the hosts are joined by one wire.";
    SWITCH "underlay.hops.switch" Map { example: "{ mtu: 8950 }" }
        "A switch. It cuts super-packets into frames.";
    SWITCH_MTU "underlay.hops.switch.mtu" Whole { range: MTU, presence: Required, example: "9000" }
        "The largest IP packet that it forwards, bytes, in either direction.";
    SWITCH_MTU_FROM_A "underlay.hops.switch.mtu_from_a" Whole { range: MTU, example: "1500" }
        "The largest IP packet from host a that it forwards, bytes, where that differs from `mtu`.";
    SWITCH_MTU_FROM_B "underlay.hops.switch.mtu_from_b" Whole { range: MTU, example: "1500" }
        "The largest IP packet from host b that it forwards, bytes, where that differs from `mtu`.";
    SWITCH_ICMP "underlay.hops.switch.icmp" Word { words: ICMP, presence: Default("sent"), example: "filtered" }
        "Whether it forwards ICMP.";
    SWITCH_DROP "underlay.hops.switch.drop_udp_port" Whole { range: from_to(1.0, 65535.0), example: "4789" }
        "A destination port of UDP that is dropped silently, in both directions.";
    SWITCH_LOSS "underlay.hops.switch.loss" Share { range: from_to(0.0, 1.0), presence: Default("0%"), example: "5%" }
        "Packets that are lost at random, in either direction.";
    SWITCH_DELAY "underlay.hops.switch.delay" Seconds { range: from_to(0.0, 10.0), presence: Default("0"), example: "1ms" }
        "Delay in either direction; the kernel must have netem.";
    ROUTER "underlay.hops.router" Map { example: "{ mtu: 8950, icmp: filtered }" }
        "A router. Only tunnels get across: every host then has a subnet of its own.";
    ROUTER_MTU "underlay.hops.router.mtu" Whole { range: MTU, presence: Required, example: "9000" }
        "The largest IP packet that it forwards, bytes, in either direction.";
    ROUTER_MTU_FROM_A "underlay.hops.router.mtu_from_a" Whole { range: MTU, example: "1500" }
        "The largest IP packet from host a that it forwards, bytes, where that differs from `mtu`.";
    ROUTER_MTU_FROM_B "underlay.hops.router.mtu_from_b" Whole { range: MTU, example: "1500" }
        "The largest IP packet from host b that it forwards, bytes, where that differs from `mtu`.";
    ROUTER_ICMP "underlay.hops.router.icmp" Word { words: ICMP, presence: Default("sent"), example: "filtered" }
        "Whether it sends ICMP messages, such as those about packets that are too large.";
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
        "The largest IP packet that this path carries, bytes; without it, whatever the hosts send.";
    PATH_ICMP "underlay.paths.icmp" Word { words: ICMP, presence: Default("sent"), example: "filtered" }
        "Whether the path's router reports packets that are too large by ICMP.";
    UNDERLAY_OVERSIZE "underlay.oversize" Word { words: &["refuse", "send"], presence: Default("refuse"), example: "send" }
        "What is done with a `guest_mtu` that a hop or a path does not carry: `refuse` makes it an error of the \
         plan; `send` builds it, and the record says what the path was found to carry.";
}
