//! The configuration of a tunnel endpoint, fixed before its programs are loaded.

use std::net::IpAddr;

use wirecost_model::datapath::Datapath;
use wirecost_model::plan::Encapsulation;
use wirecost_wire::geneve::{self, Options};
use wirecost_wire::{vlan, vxlan};

use crate::error::Error;

const ETHERNET_BYTES: u32 = 14;
const UDP_BYTES: u32 = 8;

/// One tunnel endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the underlay device, which sends and receives encapsulated frames, in the calling thread's namespace.
    pub underlay: String,
    /// The encapsulation of guests' frames.
    pub format: Format,
    /// VLAN identifier, 1 to 4094, of a tag that the endpoint adds to and removes from every frame
    /// inside the tunnel. Without it a guest's own tag is carried.
    pub inner_vlan: Option<u16>,
    /// Size of the largest IP packet that the underlay's path carries, bytes, where that is less
    /// than device and route say.
    pub mtu: Option<u32>,
    /// How the programs are attached.
    pub hook: Hook,
}

/// Encapsulation of a guest's frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// None: guests are on the underlay itself, by the same programs.
    Plain,
    /// An IEEE 802.1Q tag.
    Vlan {
        /// VLAN identifier, 1 to 4094.
        id: u16,
    },
    /// VXLAN (RFC 7348).
    Vxlan(Tunnel),
    /// Geneve (RFC 8926) with these options in every packet. Their types are also the ones known on receipt.
    Geneve(Tunnel, Options),
}

/// The UDP tunnel of VXLAN or Geneve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Outer source address, one of the underlay's; remotes have the same IP version.
    pub local: IpAddr,
    /// Outer UDP destination port, of this endpoint and the remotes.
    pub port: u16,
    /// Whether outer UDP checksums are sent. Those of received packets are always verified; 0 means
    /// that there is none (RFC 6935 and 6936 for IPv6).
    pub udp_checksum: bool,
    /// Range of outer UDP source ports, both ends included; a hash over the inner flow selects one.
    pub source_ports: (u16, u16),
    /// Outer TTL or hop limit, above 0.
    pub hop_limit: u8,
}

/// Where the programs are attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hook {
    /// tcx if the kernel has it, else clsact.
    #[default]
    Best,
    /// tcx (Linux 6.6).
    Tcx,
    /// A clsact qdisc. The device's programs survive a killed process until the device is removed.
    Clsact,
}

impl Tunnel {
    /// VXLAN on IANA's port, without checksum, with the dynamic ports (RFC 6335) as source ports.
    pub const fn vxlan(local: IpAddr) -> Self {
        Self::on_port(local, 4789)
    }

    /// Geneve on IANA's port, otherwise like [`Tunnel::vxlan`].
    pub const fn geneve(local: IpAddr) -> Self {
        Self::on_port(local, geneve::PORT)
    }

    const fn on_port(local: IpAddr, port: u16) -> Self {
        Self {
            local,
            port,
            udp_checksum: false,
            source_ports: (49152, 65535),
            hop_limit: 64,
        }
    }
}

impl Format {
    /// The format for a plan's encapsulation; `local` is this endpoint's address. Where the plan
    /// leaves the source ports open, they are the dynamic ones.
    ///
    /// # Errors
    /// [`Error::Config`] for Geneve options that are not a multiple of four bytes, and for
    /// encapsulations that the programs do not support.
    pub fn of(encapsulation: &Encapsulation, local: IpAddr) -> Result<Self, Error> {
        if !encapsulation.kind().datapaths.contains(&Datapath::Ebpf) {
            let words = format!("no program here encapsulates in {encapsulation}");
            return Err(Error::Config(words));
        }
        let Some(udp) = encapsulation.udp() else {
            return Ok(match encapsulation {
                Encapsulation::Vlan(vlan) => Self::Vlan { id: vlan.id },
                _ => Self::Plain,
            });
        };
        let usual = Tunnel::on_port(local, udp.port);
        let tunnel = Tunnel {
            udp_checksum: udp.udp_checksum,
            source_ports: udp
                .source_ports
                .map_or(usual.source_ports, |ports| (ports.first, ports.last)),
            ..usual
        };
        let Encapsulation::Geneve(geneve) = encapsulation else {
            return Ok(Self::Vxlan(tunnel));
        };
        let options =
            Options::of_plan(geneve.options).map_err(|error| Error::Config(error.to_string()))?;
        Ok(Self::Geneve(tunnel, options))
    }

    /// The UDP tunnel; `None` for formats without one.
    pub const fn tunnel(&self) -> Option<&Tunnel> {
        match self {
            Self::Plain | Self::Vlan { .. } => None,
            Self::Vxlan(tunnel) | Self::Geneve(tunnel, _) => Some(tunnel),
        }
    }

    /// Length of the headers before the guest's frame, outer Ethernet header included, bytes. A
    /// VLAN tag is part of the frame.
    pub(crate) fn header_bytes(&self) -> u32 {
        let tunnel = match self {
            Self::Plain | Self::Vlan { .. } => return 0,
            Self::Vxlan(_) => vxlan::HEADER_BYTES,
            Self::Geneve(_, options) => geneve::HEADER_BYTES + options.bytes().len(),
        };
        let ip = self
            .tunnel()
            .map_or(0, |t| if t.local.is_ipv4() { 20 } else { 40 });
        ETHERNET_BYTES + ip + UDP_BYTES + tunnel as u32
    }
}

impl Config {
    /// A configuration with defaults for everything but device and format.
    pub fn new(underlay: &str, format: Format) -> Self {
        Self {
            underlay: underlay.to_owned(),
            format,
            inner_vlan: None,
            mtu: None,
            hook: Hook::Best,
        }
    }

    /// The configuration for a plan's encapsulation: [`Format::of`], and the inner VLAN tag.
    ///
    /// # Errors
    /// As [`Format::of`].
    pub fn of(underlay: &str, encapsulation: &Encapsulation, local: IpAddr) -> Result<Self, Error> {
        let tunnel = encapsulation.udp();
        Ok(Self {
            inner_vlan: tunnel.and_then(|tunnel| tunnel.inner_vlan),
            ..Self::new(underlay, Format::of(encapsulation, local)?)
        })
    }

    /// Bytes of the underlay's IP MTU that guests cannot use for their IP packets.
    pub fn overhead(&self) -> u32 {
        let tag = if self.inner_vlan.is_some() {
            vlan::TAG_BYTES as u32
        } else {
            0
        };
        // The outer Ethernet header does not count towards the underlay's IP MTU, the inner one does.
        self.format.header_bytes() + tag
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Config(what));
        if let Format::Vlan { id } = self.format
            && !(1..=vlan::LARGEST_ID).contains(&id)
        {
            return wrong(format!("VLAN {id}: must be 1 to {}", vlan::LARGEST_ID));
        }
        if let Some(id) = self.inner_vlan {
            if !(1..=vlan::LARGEST_ID).contains(&id) {
                return wrong(format!(
                    "inner VLAN {id}: must be 1 to {}",
                    vlan::LARGEST_ID
                ));
            }
            if self.format.tunnel().is_none() {
                return wrong(format!(
                    "inner VLAN {id}: only VXLAN and Geneve have an inside"
                ));
            }
        }
        if let Some(tunnel) = self.format.tunnel() {
            let (first, last) = tunnel.source_ports;
            if first == 0 || first > last {
                return wrong(format!(
                    "source ports {first} to {last}: the first must be above 0 and not above the last"
                ));
            }
            if tunnel.port == 0 {
                return wrong("destination port 0: must be above 0".to_owned());
            }
            if tunnel.local.is_unspecified() || tunnel.local.is_multicast() {
                return wrong(format!(
                    "{} is no source address for a tunnel",
                    tunnel.local
                ));
            }
            if tunnel.hop_limit == 0 {
                return wrong("hop limit 0: no packet would get anywhere".to_owned());
            }
        }
        if let Some(mtu) = self.mtu
            && mtu <= self.overhead() + 68
        {
            return wrong(format!(
                "MTU {mtu}: {} bytes of headers leave less than the 68 that IPv4 needs",
                self.overhead()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunnel() -> Tunnel {
        Tunnel::vxlan(IpAddr::from([192, 0, 2, 1]))
    }

    #[test]
    fn overheads_are_those_of_docs_overhead() {
        let six = Tunnel::geneve("2001:db8::1".parse().expect("address"));
        let of = |format| Config::new("u", format).overhead();
        assert_eq!(of(Format::Plain), 0);
        assert_eq!(of(Format::Vlan { id: 7 }), 0);
        assert_eq!(of(Format::Vxlan(tunnel())), 50);
        assert_eq!(of(Format::Geneve(tunnel(), Options::ovn(1, 2))), 58);
        assert_eq!(of(Format::Geneve(six.clone(), Options::none())), 70);
        let tagged = Config {
            inner_vlan: Some(9),
            ..Config::new("u", Format::Vxlan(six))
        };
        assert_eq!(tagged.overhead(), 74);
    }

    #[test]
    fn a_plans_encapsulation_takes_what_the_plan_says_of_it() {
        use wirecost_model::ip::IpVersion;
        use wirecost_model::plan::{Geneve, GeneveOptions, SourcePorts, Vlan, Vxlan};

        let local = IpAddr::from([192, 0, 2, 1]);
        for encapsulation in [
            Encapsulation::None,
            Encapsulation::Vlan(Vlan { id: 7 }),
            Encapsulation::Vxlan(Vxlan {
                inner_vlan: Some(9),
                ..Vxlan::default()
            }),
            Encapsulation::Geneve(Geneve {
                options: GeneveOptions::Ovn,
                udp_checksum: true,
                port: 6082,
                source_ports: SourcePorts::parse("1000-2000"),
                ..Geneve::default()
            }),
        ] {
            let config = Config::of("u", &encapsulation, local).expect("possible");
            assert_eq!(
                config.overhead(),
                encapsulation.overhead_bytes(IpVersion::Ipv4),
                "{encapsulation}"
            );
            config.validate().expect("possible");
            if let Format::Geneve(tunnel, options) = &config.format {
                assert_eq!((tunnel.port, tunnel.source_ports), (6082, (1000, 2000)));
                assert!(tunnel.udp_checksum && options.are_critical());
            }
        }
    }

    #[test]
    fn what_cannot_work_is_refused_in_words() {
        let said = |config: Config| config.validate().expect_err("wrong").to_string();
        assert_eq!(
            said(Config::new("u", Format::Vlan { id: 4095 })),
            "VLAN 4095: must be 1 to 4094"
        );
        let ports = Tunnel {
            source_ports: (9, 8),
            ..tunnel()
        };
        assert_eq!(
            said(Config::new("u", Format::Vxlan(ports))),
            "source ports 9 to 8: the first must be above 0 and not above the last"
        );
        let plain = Config {
            inner_vlan: Some(1),
            ..Config::new("u", Format::Plain)
        };
        assert_eq!(
            said(plain),
            "inner VLAN 1: only VXLAN and Geneve have an inside"
        );
        let small = Config {
            mtu: Some(118),
            ..Config::new("u", Format::Vxlan(tunnel()))
        };
        assert_eq!(
            said(small),
            "MTU 118: 50 bytes of headers leave less than the 68 that IPv4 needs"
        );
    }
}
