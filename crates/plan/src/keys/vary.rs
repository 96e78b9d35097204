//! Keys of the plan's own factors, and of excluded combinations.

use super::Presence::Default;
use super::{BASE, Key, Kind, MTU, from_to};

keys! {
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
        "The device that `mtu`, `rx_ring`, `tx_ring`, `queues`, `rps` and the features of `underlay` are of, on \
         existing hosts; without it the one with the measured address. A device of another network namespace is \
         written as that namespace's file and the device's name: `/run/netns/blue/vxlan0`, `/proc/1/ns/net/eth0`.";
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
        "That device's root queueing discipline, with the kernel's default options. Afterwards the one that was \
         there is restored: the kernel's default, or a `pfifo`, `bfifo`, `fq_codel` or `fq` with its options. Where \
         the device has any other, the run does not begin.";
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
}
