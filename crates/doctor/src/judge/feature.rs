//! What a kernel may have or lack: a table, and one way to judge it.

use wirecost_model::encapsulation::description::{self, Description};

use crate::check::{Check, Group, Status};
use crate::evidence::{Evidence, Kind, Machine, Outcome, Trial, Tried};
use crate::judge::advice;

// include/uapi/asm-generic/errno-base.h and errno.h
pub(super) const EPERM: i32 = 1;
pub(super) const ENOENT: i32 = 2;
pub(super) const ENXIO: i32 = 6;
pub(super) const EACCES: i32 = 13;
pub(super) const ENODEV: i32 = 19;
pub(super) const EINVAL: i32 = 22;
pub(super) const ENOSPC: i32 = 28;
pub(super) const ENOSYS: i32 = 38;
pub(super) const EUSERS: i32 = 87;
pub(super) const EOPNOTSUPP: i32 = 95;
pub(super) const EAFNOSUPPORT: i32 = 97;
pub(super) const ENOBUFS: i32 = 105;

/// One thing that is tried, and how to read the kernel's answer.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) trial: Trial,
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) group: Group,
    /// Whether the built-in plan needs it.
    pub(super) essential: bool,
    pub(super) needed_for: &'static str,
    /// The kernel's configuration option.
    pub(super) option: &'static str,
    pub(super) module: Option<&'static str>,
    /// The first kernel version that has it, where that is recent.
    pub(super) since: Option<&'static str>,
    /// Answers that mean the kernel has no such thing, or has not loaded it.
    pub(super) absent: &'static [i32],
}

const LAB: Feature = Feature {
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

const DEVICE: Feature = Feature {
    group: Group::Encapsulations,
    essential: false,
    ..LAB
};

/// Of the driver of a kind of encapsulation.
const fn device(kind: &'static Description, needed_for: &'static str) -> Feature {
    let driver = kind.drivers[0];
    Feature {
        trial: Trial::Encapsulation(Kind(kind.word)),
        id: kind.word,
        title: kind.title,
        needed_for,
        option: driver.option,
        module: Some(driver.module),
        ..DEVICE
    }
}

const SOCKET: Feature = Feature {
    group: Group::Sockets,
    absent: &[ENOSYS],
    ..DEVICE
};

/// In the order of printing.
pub(super) const FEATURES: &[Feature] = &[
    Feature {
        trial: Trial::Veth,
        id: "veth",
        title: "veth",
        needed_for: "every lab: its underlay and its guests' devices",
        option: "CONFIG_VETH",
        module: Some("veth"),
        ..LAB
    },
    Feature {
        trial: Trial::Bridge,
        id: "bridge",
        title: "Bridge",
        needed_for: "every lab: guests are behind one",
        option: "CONFIG_BRIDGE",
        module: Some("bridge"),
        ..LAB
    },
    Feature {
        trial: Trial::Vxlan,
        id: "vxlan",
        title: "VXLAN",
        needed_for: "plans with encapsulation vxlan, such as the built-in one",
        option: "CONFIG_VXLAN",
        module: Some("vxlan"),
        ..LAB
    },
    Feature {
        trial: Trial::RateLimit,
        id: "tbf",
        title: "Rate limit (tbf)",
        needed_for: "plans whose underlay has a rate, such as the built-in one",
        option: "CONFIG_NET_SCH_TBF",
        module: Some("sch_tbf"),
        absent: &[ENOENT, EOPNOTSUPP],
        ..LAB
    },
    Feature {
        trial: Trial::Offloads,
        id: "offloads",
        title: "Offload settings (ethtool)",
        needed_for: "every lab: each cell sets its offloads and reads them back",
        option: "CONFIG_VETH",
        ..LAB
    },
    Feature {
        trial: Trial::Congestion,
        id: "cubic",
        title: "Congestion control cubic",
        needed_for: "plans that name no other, such as the built-in one",
        option: "CONFIG_TCP_CONG_CUBIC",
        module: Some("tcp_cubic"),
        absent: &[ENOENT],
        ..LAB
    },
    Feature {
        trial: Trial::Capture,
        id: "packet-socket",
        title: "Packet sockets",
        needed_for: "every lab: the proof that probes cross the underlay unfragmented",
        option: "CONFIG_PACKET",
        module: Some("af_packet"),
        absent: &[EAFNOSUPPORT],
        ..LAB
    },
    Feature {
        trial: Trial::Steering,
        id: "receive-steering",
        title: "Receive steering (RPS)",
        needed_for: "plans with cores: split, such as the built-in one, on two cores or more",
        option: "CONFIG_RPS",
        since: Some("6.3"),
        absent: &[ENOENT],
        ..LAB
    },
    Feature {
        trial: Trial::Ipv6,
        id: "ipv6",
        title: "IPv6",
        needed_for: "underlays and guests with IPv6 addresses; the built-in plan uses IPv4",
        option: "CONFIG_IPV6",
        module: Some("ipv6"),
        absent: &[EAFNOSUPPORT, EOPNOTSUPP],
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
    Feature {
        trial: Trial::Tap,
        id: "tun",
        title: "TUN/TAP",
        needed_for: "Open vSwitch's userspace datapath; giving a virtual machine a device, which no plan of this version does",
        option: "CONFIG_TUN",
        module: Some("tun"),
        absent: &[ENOENT, ENODEV, ENXIO],
        ..DEVICE
    },
    Feature {
        trial: Trial::OpenVswitch,
        id: "open-vswitch",
        title: "Open vSwitch",
        needed_for: "plans with `datapath: ovs`; `ovs-kernel` needs the kernel's openvswitch module as well",
        option: "CONFIG_OPENVSWITCH",
        module: Some("openvswitch"),
        absent: &[],
        ..DEVICE
    },
    Feature {
        trial: Trial::Ifb,
        id: "ifb",
        title: "IFB",
        needed_for: "shaping what a device receives; no plan of this version does",
        option: "CONFIG_IFB",
        module: Some("ifb"),
        ..DEVICE
    },
    Feature {
        trial: Trial::Netem,
        id: "netem",
        title: "Delay (netem)",
        needed_for: "plans with `delay` between the hosts",
        option: "CONFIG_NET_SCH_NETEM",
        module: Some("sch_netem"),
        absent: &[ENOENT, EOPNOTSUPP],
        ..DEVICE
    },
    Feature {
        trial: Trial::Fq,
        id: "fq",
        title: "Pacing (fq)",
        needed_for: "datagrams that the kernel paces, one flow beside another; TCP paces itself without it",
        option: "CONFIG_NET_SCH_FQ",
        module: Some("sch_fq"),
        absent: &[ENOENT, EOPNOTSUPP],
        ..DEVICE
    },
    Feature {
        trial: Trial::Ebpf,
        id: "ebpf",
        title: "eBPF programs",
        needed_for: "plans with `datapath: ebpf`, and those whose encapsulations the kernel lacks",
        option: "CONFIG_BPF_SYSCALL",
        ..SOCKET
    },
    Feature {
        trial: Trial::Tcx,
        id: "tcx",
        title: "eBPF at a device (tcx)",
        needed_for: "encapsulation by eBPF; without it by clsact",
        option: "CONFIG_NET_XGRESS",
        since: Some("6.6"),
        absent: &[EINVAL],
        ..SOCKET
    },
    Feature {
        trial: Trial::AfXdp,
        id: "af-xdp",
        title: "AF_XDP sockets",
        needed_for: "loads that go round the kernel's stack; no plan of this version has them",
        option: "CONFIG_XDP_SOCKETS",
        absent: &[EAFNOSUPPORT],
        ..SOCKET
    },
    Feature {
        trial: Trial::IoUring,
        id: "io-uring",
        title: "io_uring",
        needed_for: "storage loads with deep queues; no plan of this version has them",
        option: "CONFIG_IO_URING",
        ..SOCKET
    },
    Feature {
        trial: Trial::Userfaultfd,
        id: "userfaultfd",
        title: "userfaultfd",
        needed_for: "loads like a live migration's; no plan of this version has them",
        option: "CONFIG_USERFAULTFD",
        ..SOCKET
    },
    Feature {
        trial: Trial::Kvm,
        id: "kvm",
        title: "KVM",
        group: Group::Machine,
        needed_for: "virtual machines as guests; no plan of this version has them",
        option: "CONFIG_KVM",
        module: Some("kvm"),
        absent: &[ENOENT, ENODEV, ENXIO],
        ..DEVICE
    },
];

/// Whether a lab on this machine needs it: on one core nothing is steered.
pub(super) fn is_essential(feature: &Feature, machine: &Machine) -> bool {
    feature.essential && !(feature.trial == Trial::Steering && machine.allowed.len() < 2)
}

pub(super) fn check(feature: &Feature, evidence: &Evidence) -> Check {
    let (status, seen, refusal) = merge(feature.trial, evidence);
    let advice = match (status, refusal) {
        (Status::Yes, _) | (_, None) => None,
        (_, Some(refusal)) => Some(advice::for_feature(feature, refusal, status, evidence)),
    };
    Check {
        id: feature.id,
        title: feature.title,
        group: feature.group,
        essential: is_essential(feature, &evidence.machine),
        status,
        seen,
        needed_for: feature.needed_for,
        advice,
    }
}

/// The answer of both ways together, and the refusal or half success that advice is about.
fn merge(trial: Trial, evidence: &Evidence) -> (Status, String, Option<&Outcome>) {
    let own = evidence.own.outcomes.get(&trial);
    let plain = evidence.plain.outcomes.get(&trial);
    if !evidence.caller.may_make_namespaces {
        // One user, two processes: what the one could not try for want of a namespace, the other did.
        let tried = own.filter(|own| !matches!(own, Outcome::NotTried(_)));
        return alone(tried.or(plain).or(own), &evidence.plain);
    }
    let (Some(own), Some(plain)) = (own, plain) else {
        return alone(own.or(plain), &evidence.own);
    };
    match (own, plain) {
        (Outcome::Works(seen), Outcome::Works(_)) => {
            (Status::Yes, format!("{seen}; with and without root"), None)
        }
        (Outcome::Works(seen), other) => {
            let seen = format!("as root: {seen}; as a plain user: {}", words(other));
            (Status::Limited, seen, Some(other))
        }
        (other, _) if words(other) == words(plain) => alone(Some(other), &evidence.own),
        (other, _) => {
            let (status, seen, refusal) = alone(Some(other), &evidence.own);
            let seen = format!("as root: {seen}; as a plain user: {}", words(plain));
            let status = if plain.works() {
                Status::Limited
            } else {
                status
            };
            (status, seen, refusal)
        }
    }
}

fn alone<'a>(outcome: Option<&'a Outcome>, tried: &Tried) -> (Status, String, Option<&'a Outcome>) {
    match outcome {
        None => {
            let why = tried.cut_short.as_deref().unwrap_or("it was not told");
            (
                Status::Unknown,
                format!("the probe said nothing: {why}"),
                None,
            )
        }
        Some(outcome) => {
            let status = match outcome {
                Outcome::Works(_) => Status::Yes,
                Outcome::Partly(_) => Status::Limited,
                Outcome::Refused { .. } => Status::No,
                Outcome::NotTried(_) => Status::Unknown,
            };
            let telling = matches!(outcome, Outcome::Partly(_) | Outcome::Refused { .. });
            (status, words(outcome), telling.then_some(outcome))
        }
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Works(seen) | Outcome::Partly(seen) => seen.clone(),
        Outcome::Refused { words, .. } => words.clone(),
        Outcome::NotTried(why) => format!("not tried, {why}"),
    }
}
