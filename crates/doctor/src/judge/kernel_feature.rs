//! The table of kernel features that are tried.

use wirecost_model::encapsulation::description::{self, Description};

use crate::check::Group;
use crate::evidence::{EncapsulationKind, MachineFacts, Trial};

// include/uapi/asm-generic/errno-base.h and errno.h
pub(super) const EPERM: i32 = 1;
pub(super) const ENOENT: i32 = 2;
pub(super) const ENXIO: i32 = 6;
pub(super) const EACCES: i32 = 13;
pub(super) const ENODEV: i32 = 19;
pub(super) const EINVAL: i32 = 22;
pub(super) const ENOSPC: i32 = 28;
pub(super) const EROFS: i32 = 30;
pub(super) const ENOSYS: i32 = 38;
pub(super) const EUSERS: i32 = 87;
pub(super) const EOPNOTSUPP: i32 = 95;
pub(super) const EAFNOSUPPORT: i32 = 97;
pub(super) const ENOBUFS: i32 = 105;

/// A kernel feature that is tried, and how to read the kernel's answer.
#[derive(Debug)]
pub(super) struct KernelFeature {
    pub(super) trial: Trial,
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) group: Group,
    /// Whether the built-in plan needs the feature.
    pub(super) essential: bool,
    pub(super) needed_for: &'static str,
    /// The kernel's configuration option for the feature.
    pub(super) option: &'static str,
    pub(super) module: Option<&'static str>,
    /// The first kernel version with the feature, where that is recent.
    pub(super) since: Option<&'static str>,
    /// Error numbers that mean that the kernel lacks the feature, or has not loaded its module.
    pub(super) absent: &'static [i32],
}

const LAB: KernelFeature = KernelFeature {
    trial: Trial::Veth,
    id: "",
    title: "",
    group: Group::Essentials,
    essential: true,
    needed_for: "every lab",
    option: "",
    module: None,
    since: None,
    absent: &[EOPNOTSUPP],
};

const DEVICE: KernelFeature = KernelFeature {
    group: Group::Encapsulations,
    essential: false,
    ..LAB
};

/// Feature of the driver of a kind of encapsulation.
const fn device(kind: &'static Description, needed_for: &'static str) -> KernelFeature {
    let driver = kind.drivers[0];
    KernelFeature {
        trial: Trial::Encapsulation(EncapsulationKind(kind.word)),
        id: kind.word,
        title: kind.title,
        needed_for,
        option: driver.option,
        module: Some(driver.module),
        ..DEVICE
    }
}

const SOCKET: KernelFeature = KernelFeature {
    group: Group::Sockets,
    absent: &[ENOSYS],
    ..DEVICE
};

/// Every feature; within a group, in the order of printing.
pub(super) const FEATURES: &[KernelFeature] = &[
    KernelFeature {
        trial: Trial::Veth,
        id: "veth",
        title: "veth",
        needed_for: "every lab: its underlay and its guests' devices",
        option: "CONFIG_VETH",
        module: Some("veth"),
        ..LAB
    },
    KernelFeature {
        trial: Trial::Bridge,
        id: "bridge",
        title: "Bridge",
        needed_for: "every lab: guests are behind one",
        option: "CONFIG_BRIDGE",
        module: Some("bridge"),
        ..LAB
    },
    KernelFeature {
        trial: Trial::Vxlan,
        id: "vxlan",
        title: "VXLAN",
        needed_for: "plans with encapsulation vxlan, such as the built-in one",
        option: "CONFIG_VXLAN",
        module: Some("vxlan"),
        ..LAB
    },
    KernelFeature {
        trial: Trial::RateLimit,
        id: "tbf",
        title: "Rate limit (tbf)",
        needed_for: "plans whose underlay has a rate, such as the built-in one",
        option: "CONFIG_NET_SCH_TBF",
        module: Some("sch_tbf"),
        absent: &[ENOENT, EOPNOTSUPP],
        ..LAB
    },
    KernelFeature {
        trial: Trial::Offloads,
        id: "offloads",
        title: "Offload settings (ethtool)",
        needed_for: "every lab: each cell sets its offloads and reads them back",
        option: "CONFIG_VETH",
        ..LAB
    },
    KernelFeature {
        trial: Trial::Congestion,
        id: "cubic",
        title: "Congestion control cubic",
        needed_for: "plans that name no other, such as the built-in one",
        option: "CONFIG_TCP_CONG_CUBIC",
        module: Some("tcp_cubic"),
        absent: &[ENOENT],
        ..LAB
    },
    KernelFeature {
        trial: Trial::Capture,
        id: "packet-socket",
        title: "Packet sockets",
        needed_for: "every lab: the proof that probes cross the underlay unfragmented",
        option: "CONFIG_PACKET",
        module: Some("af_packet"),
        absent: &[EAFNOSUPPORT],
        ..LAB
    },
    KernelFeature {
        trial: Trial::Steering,
        id: "receive-steering",
        title: "Receive steering (RPS)",
        needed_for: "plans with cores: split, such as the built-in one, on two cores or more",
        option: "CONFIG_RPS",
        since: Some("6.3"),
        absent: &[ENOENT],
        ..LAB
    },
    KernelFeature {
        trial: Trial::Ipv6,
        id: "ipv6",
        title: "IPv6",
        needed_for: "underlays and guests with IPv6 addresses; the built-in plan uses IPv4",
        option: "CONFIG_IPV6",
        module: Some("ipv6"),
        absent: &[ENOENT, EAFNOSUPPORT, EOPNOTSUPP],
        ..DEVICE
    },
    device(
        &description::GENEVE,
        "plans with `encapsulation: geneve` by the kernel; eBPF builds it as well",
    ),
    device(
        &description::GRE,
        "plans with `encapsulation: gre` or `gretap`; over IPv6 CONFIG_IPV6_GRE",
    ),
    device(
        &description::IPIP,
        "plans with `encapsulation: ipip`; with IPv6 CONFIG_IPV6_SIT and CONFIG_IPV6_TUNNEL",
    ),
    device(
        &description::WIREGUARD,
        "plans with `encapsulation: wireguard`",
    ),
    device(
        &description::VLAN,
        "plans with `encapsulation: vlan` by the kernel; eBPF builds it as well",
    ),
    KernelFeature {
        trial: Trial::Tap,
        id: "tun",
        title: "TUN/TAP",
        needed_for: "Open vSwitch's userspace datapath; giving a virtual machine a device, which no plan of this version does",
        option: "CONFIG_TUN",
        module: Some("tun"),
        absent: &[ENOENT, ENODEV, ENXIO],
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::OpenVswitch,
        id: "open-vswitch",
        title: "Open vSwitch",
        needed_for: "plans with `datapath: ovs`; `ovs-kernel` needs the kernel's openvswitch module as well",
        option: "CONFIG_OPENVSWITCH",
        module: Some("openvswitch"),
        absent: &[],
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::Ovn,
        id: "ovn",
        title: "OVN",
        needed_for: "plans with `datapath: ovn`, which need Open vSwitch too; `ovn-kernel` needs the kernel's openvswitch \
                     module as well",
        option: "CONFIG_TMPFS",
        absent: &[],
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::Ifb,
        id: "ifb",
        title: "IFB",
        needed_for: "shaping what a device receives; no plan of this version does",
        option: "CONFIG_IFB",
        module: Some("ifb"),
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::Netem,
        id: "netem",
        title: "Delay (netem)",
        needed_for: "plans with `delay` between the hosts",
        option: "CONFIG_NET_SCH_NETEM",
        module: Some("sch_netem"),
        absent: &[ENOENT, EOPNOTSUPP],
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::Fq,
        id: "fq",
        title: "Pacing (fq)",
        needed_for: "pacing of each UDP flow by the kernel; TCP paces itself without it",
        option: "CONFIG_NET_SCH_FQ",
        module: Some("sch_fq"),
        absent: &[ENOENT, EOPNOTSUPP],
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::Ebpf,
        id: "ebpf",
        title: "eBPF programs",
        needed_for: "plans with `datapath: ebpf`, and those whose encapsulations the kernel lacks",
        option: "CONFIG_BPF_SYSCALL",
        ..SOCKET
    },
    KernelFeature {
        trial: Trial::Tcx,
        id: "tcx",
        title: "eBPF at a device (tcx)",
        needed_for: "encapsulation by eBPF; without it by clsact",
        option: "CONFIG_NET_XGRESS",
        since: Some("6.6"),
        absent: &[EINVAL],
        ..SOCKET
    },
    KernelFeature {
        trial: Trial::AfXdp,
        id: "af-xdp",
        title: "AF_XDP sockets",
        needed_for: "loads that bypass the kernel's network stack; no plan of this version has them",
        option: "CONFIG_XDP_SOCKETS",
        absent: &[EAFNOSUPPORT],
        ..SOCKET
    },
    KernelFeature {
        trial: Trial::IoUring,
        id: "io-uring",
        title: "io_uring",
        needed_for: "storage loads at a path; without it by io_submit(2)",
        option: "CONFIG_IO_URING",
        ..SOCKET
    },
    KernelFeature {
        trial: Trial::Userfaultfd,
        id: "userfaultfd",
        title: "userfaultfd",
        needed_for: "migrations: which pages a machine has written to is tracked by it",
        option: "CONFIG_USERFAULTFD",
        ..SOCKET
    },
    KernelFeature {
        trial: Trial::Kvm,
        id: "kvm",
        title: "KVM",
        group: Group::Machine,
        needed_for: "migrations with `engine: qemu` at the processor's speed",
        option: "CONFIG_KVM",
        module: Some("kvm"),
        absent: &[ENOENT, ENODEV, ENXIO],
        ..DEVICE
    },
    KernelFeature {
        trial: Trial::Qemu,
        id: "qemu",
        title: "QEMU",
        group: Group::Machine,
        needed_for: "migrations with `engine: qemu`; `engine: memory` needs none",
        option: "CONFIG_MEMFD_CREATE",
        absent: &[],
        ..DEVICE
    },
];

/// Whether a lab on this machine needs the feature: on one core nothing is steered.
pub(super) fn is_essential(feature: &KernelFeature, machine: &MachineFacts) -> bool {
    feature.essential && !(feature.trial == Trial::Steering && machine.allowed.len() < 2)
}
