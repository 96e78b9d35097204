//! What is known of each kind of encapsulation, whatever its options: one row per kind. Plans, computed sizes, devices,
//! proofs, the doctor and the guard before verdicts read it here.

use super::{Encapsulation, Geneve, Gre, Ipip, Vlan, Vxlan, Wireguard};
use crate::datapath::Datapath;

/// A kind of encapsulation: one row of the table.
#[derive(Debug)]
pub struct Description {
    /// The kind's word in plans, labels and records.
    pub word: &'static str,
    /// The protocol's name, for people.
    pub title: &'static str,
    /// The kind's name in the catalogue of `wirecost overhead`, without options.
    pub stack: &'static str,
    /// What the kind carries across the underlay, and in what.
    pub carries: PayloadKind,
    /// Bytes of headers and trailers between the outer IP header and what is carried, without what options add and
    /// without the padding of [`Description::pads_to`].
    pub header_bytes: u32,
    /// A multiple of this many bytes, to which what is carried is padded, but not beyond the MTU of the tunnel's
    /// device; 1 without padding.
    pub pads_to: u32,
    /// The kernel's drivers, the one for an IPv4 underlay first; empty where no device encapsulates.
    pub drivers: &'static [Driver],
    /// The `ethtool -k` features with which a device on the underlay segments this encapsulation (net/ethtool/common.c,
    /// `netdev_features_strings`).
    pub segmentation: &'static [&'static str],
    /// The datapaths that can build the kind, as far as its options allow.
    pub datapaths: &'static [Datapath],
    /// Why other datapaths cannot; empty where all can.
    pub only: &'static str,
    /// Whether the tunnel's device cuts super-packets into frames before it sends them, whatever the offloads.
    pub cuts: bool,
    /// Whether the kernel encapsulates and decapsulates on all cores of the machine, whichever core sent or received.
    pub on_all_cores: bool,
    /// The kind with its default options.
    pub usual: fn() -> Encapsulation,
}

/// What crosses the underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadKind {
    /// Guests' frames on the underlay itself, untagged or with a VLAN tag.
    OnTheLine,
    /// Guests' frames inside the hosts' IP packets.
    Frames,
    /// Guests' IP packets inside the hosts' IP packets; the hosts route for their guests instead of bridging.
    Packets,
}

/// A kernel driver for tunnel or VLAN devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driver {
    /// The device type (`ip link add ... type`); in capitals where the device is named after it.
    pub kind: &'static str,
    /// The driver's kernel module.
    pub module: &'static str,
    /// A function of the driver in `/proc/kallsyms`, or the beginning of its name.
    pub symbol: &'static str,
    /// The kernel's configuration option for the driver.
    pub option: &'static str,
}

/// The datapaths of kinds that every datapath can build.
const ANYBODY: &[Datapath] = &Datapath::ALL;
const KERNEL: &[Datapath] = &[Datapath::Kernel];
const KERNELS_GRE: &str = "GRE and IP in IP are the kernel's devices alone";

/// Defaults of a row: what most kinds have in common.
const USUAL: Description = Description {
    word: "",
    title: "",
    stack: "",
    carries: PayloadKind::Frames,
    header_bytes: 0,
    pads_to: 1,
    drivers: &[],
    segmentation: &[],
    datapaths: ANYBODY,
    only: "",
    cuts: false,
    on_all_cores: false,
    usual: || Encapsulation::None,
};

const UDP_TUNNEL: &[&str] = &["tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation"];
const GRE_TUNNEL: &[&str] = &["tx-gre-segmentation", "tx-gre-csum-segmentation"];

/// Row: no encapsulation.
pub const NONE: Description = Description {
    word: "none",
    title: "no encapsulation",
    stack: "none",
    carries: PayloadKind::OnTheLine,
    ..USUAL
};

/// Row: `vlan`.
pub const VLAN: Description = Description {
    word: "vlan",
    title: "VLAN (802.1Q)",
    stack: "outer-vlan",
    carries: PayloadKind::OnTheLine,
    drivers: &[Driver {
        kind: "VLAN",
        module: "8021q",
        symbol: "vlan_dev_",
        option: "CONFIG_VLAN_8021Q",
    }],
    usual: || Encapsulation::Vlan(Vlan::default()),
    ..USUAL
};

/// Row: `vxlan`.
pub const VXLAN: Description = Description {
    word: "vxlan",
    title: "VXLAN",
    stack: "vxlan",
    // UDP and VXLAN (RFC 7348, section 5).
    header_bytes: 8 + 8,
    drivers: &[Driver {
        kind: "vxlan",
        module: "vxlan",
        symbol: "vxlan_newlink",
        option: "CONFIG_VXLAN",
    }],
    segmentation: UDP_TUNNEL,
    usual: || Encapsulation::Vxlan(Vxlan::default()),
    ..USUAL
};

/// Row: `geneve`.
pub const GENEVE: Description = Description {
    word: "geneve",
    title: "Geneve",
    stack: "geneve",
    // UDP and Geneve (RFC 8926, section 3).
    header_bytes: 8 + 8,
    drivers: &[Driver {
        kind: "geneve",
        module: "geneve",
        symbol: "geneve_newlink",
        option: "CONFIG_GENEVE",
    }],
    segmentation: UDP_TUNNEL,
    usual: || Encapsulation::Geneve(Geneve::default()),
    ..USUAL
};

/// Row: `gre`.
pub const GRE: Description = Description {
    word: "gre",
    title: "GRE",
    stack: "gre",
    carries: PayloadKind::Packets,
    // RFC 2784, section 2.1.
    header_bytes: 4,
    drivers: &[
        Driver {
            kind: "gre",
            ..IP_GRE
        },
        Driver {
            kind: "ip6gre",
            ..IP6_GRE
        },
    ],
    segmentation: GRE_TUNNEL,
    datapaths: KERNEL,
    only: KERNELS_GRE,
    usual: || Encapsulation::Gre(Gre::default()),
    ..USUAL
};

/// Row: `gretap`.
pub const GRETAP: Description = Description {
    word: "gretap",
    title: "Ethernet in GRE",
    stack: "gretap",
    carries: PayloadKind::Frames,
    drivers: &[
        Driver {
            kind: "gretap",
            ..IP_GRE
        },
        Driver {
            kind: "ip6gretap",
            ..IP6_GRE
        },
    ],
    usual: || Encapsulation::Gretap(Gre::default()),
    ..GRE
};

const IP_GRE: Driver = Driver {
    kind: "",
    module: "ip_gre",
    symbol: "ipgre_newlink",
    option: "CONFIG_NET_IPGRE",
};

const IP6_GRE: Driver = Driver {
    kind: "",
    module: "ip6_gre",
    symbol: "ip6gre_newlink",
    option: "CONFIG_IPV6_GRE",
};

/// Row: `ipip`.
pub const IPIP: Description = Description {
    word: "ipip",
    title: "IP in IP",
    stack: "ipip",
    carries: PayloadKind::Packets,
    drivers: &[
        Driver {
            kind: "ipip",
            module: "ipip",
            symbol: "ipip_newlink",
            option: "CONFIG_NET_IPIP",
        },
        Driver {
            kind: "sit",
            module: "sit",
            symbol: "ipip6_newlink",
            option: "CONFIG_IPV6_SIT",
        },
        Driver {
            kind: "ip6tnl",
            module: "ip6_tunnel",
            symbol: "ip6_tnl_newlink",
            option: "CONFIG_IPV6_TUNNEL",
        },
    ],
    segmentation: &["tx-ipxip4-segmentation", "tx-ipxip6-segmentation"],
    datapaths: KERNEL,
    only: KERNELS_GRE,
    usual: || Encapsulation::Ipip(Ipip::default()),
    ..USUAL
};

/// Row: `wireguard`.
pub const WIREGUARD: Description = Description {
    word: "wireguard",
    title: "WireGuard",
    stack: "wireguard",
    carries: PayloadKind::Packets,
    // UDP, header and authentication tag (drivers/net/wireguard/messages.h, `struct message_data`).
    header_bytes: 8 + 16 + 16,
    // `MESSAGE_PADDING_MULTIPLE`.
    pads_to: 16,
    drivers: &[Driver {
        kind: "wireguard",
        module: "wireguard",
        symbol: "wg_newlink",
        option: "CONFIG_WIREGUARD",
    }],
    datapaths: KERNEL,
    only: "WireGuard is the kernel's device alone",
    // drivers/net/wireguard/device.c, `wg_xmit`: every packet is encrypted by itself.
    cuts: true,
    // drivers/net/wireguard/queueing.h, `wg_cpumask_next_online`.
    on_all_cores: true,
    usual: || Encapsulation::Wireguard(Wireguard::default()),
    ..USUAL
};

impl Description {
    /// Every kind, in the order in which they are reported.
    pub const ALL: &'static [&'static Self] = &[
        &NONE, &VLAN, &VXLAN, &GENEVE, &GRE, &GRETAP, &IPIP, &WIREGUARD,
    ];
    /// The words of [`Self::ALL`], in the same order.
    pub const WORDS: &'static [&'static str] = &words();

    /// The kind whose word this is.
    pub fn by_word(word: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|kind| kind.word == word).copied()
    }

    /// Whether the guests' frames or packets travel inside IP packets of the hosts.
    pub const fn is_tunnel(&self) -> bool {
        !matches!(self.carries, PayloadKind::OnTheLine)
    }
}

const fn words() -> [&'static str; Description::ALL.len()] {
    let mut words = [""; Description::ALL.len()];
    let mut place = 0;
    while place < words.len() {
        words[place] = Description::ALL[place].word;
        place += 1;
    }
    words
}

impl Encapsulation {
    /// The description of this encapsulation's kind.
    pub const fn kind(&self) -> &'static Description {
        match self {
            Self::None => &NONE,
            Self::Vlan(_) => &VLAN,
            Self::Vxlan(_) => &VXLAN,
            Self::Geneve(_) => &GENEVE,
            Self::Gre(_) => &GRE,
            Self::Gretap(_) => &GRETAP,
            Self::Ipip(_) => &IPIP,
            Self::Wireguard(_) => &WIREGUARD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encapsulation::GeneveOptions;
    use crate::offload::Feature;

    #[test]
    fn a_record_and_a_label_have_the_word() {
        for kind in Description::ALL {
            let usual = (kind.usual)();
            assert_eq!(usual.kind().word, kind.word);
            assert_eq!(usual.to_string(), kind.word);
            let record = serde_json::to_value(&usual).expect("a record");
            let word = record.as_str().map(str::to_owned);
            let word = word.or_else(|| Some(record.as_object()?.keys().next()?.clone()));
            assert_eq!(word.as_deref(), Some(kind.word));
            assert_eq!(usual.stack(), kind.stack);
        }
    }

    #[test]
    fn the_switch_of_tunnels_has_the_features_of_all_of_them() {
        let mut all: Vec<&str> = Vec::new();
        for name in Description::ALL.iter().flat_map(|kind| kind.segmentation) {
            if !all.contains(name) {
                all.push(name);
            }
        }
        assert_eq!(Feature::TunnelSegmentation.ethtool(), all);
    }

    #[test]
    fn who_cannot_build_it_is_told_why() {
        for kind in Description::ALL {
            let everybody = kind.datapaths.len() == Datapath::ALL.len();
            assert_eq!(everybody, kind.only.is_empty(), "{}", kind.word);
            for datapath in Datapath::ALL {
                let able = kind.datapaths.contains(&datapath);
                let usual = match (kind.usual)() {
                    // OVN sends nothing else.
                    Encapsulation::Geneve(geneve) if datapath.is_ovn() => {
                        Encapsulation::Geneve(Geneve {
                            options: GeneveOptions::Ovn,
                            ..geneve
                        })
                    }
                    usual => usual,
                };
                assert_eq!(datapath.cannot(&usual).is_none(), able);
            }
        }
    }
}
