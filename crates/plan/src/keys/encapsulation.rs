//! Keys of how guests' packets cross the underlay, and of the datapath that encapsulates them.

use wirecost_model::plan::{Description, GeneveOptions};

use super::Presence::Default;
use super::{BASE, Key, Kind, ON_OFF, from_to};

keys! {
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
        "Whether OVN filters the guests' packets: not at all, or by the rules of a security group. `allow-related` \
         allows what guests send to each other together with what answers it and drops everything else, so that \
         every packet passes connection tracking at both hosts. As for `topology`.";
}
