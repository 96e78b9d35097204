//! The datagrams of a proof as they appear on the underlay: their size, as `wire` computes it, and the tunnel's header
//! fields.

use wirecost_model::cell::Network;
use wirecost_model::logical::Topology;
use wirecost_model::plan::{Encapsulation, GeneveOptions};
use wirecost_model::sample::CapturedFrame;
use wirecost_probe::message::ProbeMessage;
use wirecost_wire::frame::{CapturedDatagram, GeneveId, GreId, TunnelId, VxlanId, innermost_udp};
use wirecost_wire::geneve::Options;
use wirecost_wire::overhead::Stack;

use crate::error::{Context, Result};
use crate::protocol::Secret;

/// Length of the frame check sequence, which a capture does not include, bytes.
const FCS_BYTES: u32 = 4;

/// Message type 4 as 32 bits, little-endian (drivers/net/wireguard/messages.h, `MESSAGE_DATA`).
const WIREGUARD_DATA: [u8; 4] = [4, 0, 0, 0];

/// The full-size datagrams of one proof, as expected on the underlay.
#[derive(Debug)]
pub(crate) struct ExpectedDatagram {
    secret: Secret,
    /// Length of UDP header and payload, bytes.
    udp_bytes: u32,
    /// The possible ids of the tunnel's packets; without a tunnel the only one is `None`.
    tunnels: Vec<Option<TunnelId>>,
    /// UDP port of a tunnel that encrypts its payload.
    sealed: Option<u16>,
    vlan: Option<u16>,
    inner_vlan: Option<u16>,
    options: Options,
    /// Whether the option data are OVN's port numbers, which differ by guest and direction.
    by_ovn: bool,
    outer_ip_bytes: u32,
    frame_bytes: u32,
}

impl ExpectedDatagram {
    /// Datagrams of `size` bytes of IP with this secret.
    ///
    /// # Errors
    /// The size of the network's encapsulation cannot be computed.
    pub(crate) fn of(network: &Network, size: u32, secret: Secret) -> Result<Self> {
        let encapsulation = &network.encapsulation;
        let stack: Stack = encapsulation
            .stack()
            .parse()
            .context(format!("{encapsulation}"))?;
        let frame = stack
            .over(network.underlay_ip, network.guest_ip)
            .context(format!("{encapsulation}"))?
            .frame(size, network.tunnel_mtu().max(size));
        let options = match encapsulation {
            Encapsulation::Geneve(geneve) => geneve.options,
            _ => GeneveOptions::NONE,
        };
        let udp = encapsulation.udp();
        Ok(Self {
            secret,
            udp_bytes: size - network.guest_ip.header_bytes(),
            tunnels: tunnels(network),
            sealed: match encapsulation {
                Encapsulation::Wireguard(tunnel) => Some(tunnel.port),
                _ => None,
            },
            vlan: match encapsulation {
                Encapsulation::Vlan(vlan) => Some(vlan.id),
                _ => None,
            },
            inner_vlan: udp.and_then(|udp| udp.inner_vlan),
            options: Options::of_plan(options).context("Geneve options")?,
            by_ovn: network.datapath.is_ovn(),
            outer_ip_bytes: frame.underlay_bytes(),
            frame_bytes: frame.frame_bytes() - FCS_BYTES,
        })
    }

    /// Sizes of a captured frame that carries such a datagram; `None` for any other frame, or one with other header
    /// fields. `original` is the frame's length on the wire, bytes.
    pub(crate) fn sizes_of(&self, captured: &[u8], original: usize) -> Option<CapturedFrame> {
        let mut tunnels = self.tunnels.iter();
        tunnels.find_map(|tunnel| self.sizes_in_tunnel(captured, original, *tunnel))
    }

    fn sizes_in_tunnel(
        &self,
        captured: &[u8],
        original: usize,
        tunnel: Option<TunnelId>,
    ) -> Option<CapturedFrame> {
        let seen = innermost_udp(captured, original as u32, tunnel).ok()?;
        let ours = match self.sealed {
            Some(port) => self.is_sealed(&seen, port),
            None => {
                seen.udp_bytes == self.udp_bytes
                    && ProbeMessage::parse(seen.payload, &self.secret).is_some()
            }
        };
        (ours && self.is_marked_so(&seen)).then_some(CapturedFrame {
            outer_ip_bytes: seen.outer_ip_bytes,
            frame_bytes: seen.frame_bytes,
            expected_outer_ip_bytes: self.outer_ip_bytes,
            expected_frame_bytes: Some(self.frame_bytes),
            fragment: seen.fragment,
        })
    }

    /// Whether a packet is a data packet of a WireGuard tunnel with the size of a full-size datagram: the rest is
    /// encrypted.
    fn is_sealed(&self, seen: &CapturedDatagram<'_>, port: u16) -> bool {
        [seen.src_port, seen.dst_port] == [port; 2]
            && seen.payload.starts_with(&WIREGUARD_DATA)
            && seen.outer_ip_bytes == self.outer_ip_bytes
    }

    /// Whether the Geneve options are as expected, byte for byte; of OVN's, the last four bytes (port numbers) may
    /// differ.
    fn has_options(&self, found: &[u8]) -> bool {
        let wanted = self.options.bytes();
        let fixed = if self.by_ovn {
            wanted.len().saturating_sub(4)
        } else {
            wanted.len()
        };
        found.len() == wanted.len() && found[..fixed] == wanted[..fixed]
    }

    fn is_marked_so(&self, seen: &CapturedDatagram<'_>) -> bool {
        seen.vlan == self.vlan
            && seen.inner_vlan == self.inner_vlan
            && self.has_options(seen.options)
    }
}

/// The ids that packets of a network's tunnel may have.
fn tunnels(network: &Network) -> Vec<Option<TunnelId>> {
    let encapsulation = &network.encapsulation;
    let usual = tunnel(encapsulation);
    if !network.datapath.is_ovn() {
        return vec![usual];
    }
    let routed = network.logical.topology == Topology::Routed;
    let switches = if routed { 2 } else { 1 };
    match usual {
        // The guests of host b are ports of the second switch.
        Some(TunnelId::Geneve(id)) => {
            let each = (0..switches).map(|switch| {
                let vni = id.vni + switch;
                Some(GeneveId { vni, ..id }.into())
            });
            each.collect()
        }
        // The upper 12 of the VNI's 24 bits are the number of the destination port (OVN, `put_encapsulation`).
        Some(TunnelId::Vxlan(id)) => {
            let ports = 1..=2 * network.guests;
            let each = ports.flat_map(|port| {
                (0..switches).map(move |switch| {
                    let vni = port << 12 | (id.vni + switch);
                    Some(VxlanId { vni, ..id }.into())
                })
            });
            each.collect()
        }
        other => vec![other],
    }
}

/// The id of a tunnel's packets: UDP port and VNI, or GRE key.
fn tunnel(encapsulation: &Encapsulation) -> Option<TunnelId> {
    let gre = |key, frames| GreId { key, frames }.into();
    Some(match encapsulation {
        Encapsulation::None | Encapsulation::Vlan(_) | Encapsulation::Wireguard(_) => return None,
        Encapsulation::Vxlan(vxlan) => VxlanId {
            port: vxlan.port,
            vni: vxlan.vni,
        }
        .into(),
        Encapsulation::Geneve(geneve) => GeneveId {
            port: geneve.port,
            vni: geneve.vni,
        }
        .into(),
        Encapsulation::Gre(of) => gre(of.key, false),
        Encapsulation::Gretap(of) => gre(of.key, true),
        Encapsulation::Ipip(_) => TunnelId::IpInIp,
    })
}

#[cfg(test)]
mod tests {
    use wirecost_model::cell::Network;
    use wirecost_model::datapath::Datapath;
    use wirecost_model::ip::IpVersion;
    use wirecost_model::plan::{Cores, Geneve, Gre, Ipip, Vlan, Vxlan, Wireguard};
    use wirecost_model::steering::Steering;
    use wirecost_model::transit::Transit;

    use super::*;

    fn network(encapsulation: Encapsulation, underlay_ip: IpVersion) -> Network {
        Network {
            underlay_mtu: 9000,
            rate: None,
            links: 1,
            underlay_ip,
            encapsulation,
            datapath: Datapath::Ebpf,
            logical: wirecost_model::logical::Logical::default(),
            guest_ip: IpVersion::Ipv4,
            guests: 1,
            transit: Transit::wire(),
            cores: Cores::Shared,
            steering: Steering::default(),
        }
    }

    #[test]
    fn the_plans_overhead_is_the_catalogues() {
        let tagged = Vxlan {
            inner_vlan: Some(7),
            ..Vxlan::default()
        };
        let secret = Secret {
            probe: [1; 16],
            acknowledgement: [2; 8],
        };
        let geneve = |options| {
            Encapsulation::Geneve(Geneve {
                options,
                ..Geneve::default()
            })
        };
        let gre = |key| Gre {
            key,
            ..Gre::default()
        };
        for (encapsulation, overhead, tag) in [
            (Encapsulation::None, 0, 0),
            (Encapsulation::Vlan(Vlan::default()), 0, 4),
            (Encapsulation::Vxlan(Vxlan::default()), 50, 0),
            (Encapsulation::Vxlan(tagged), 54, 0),
            (geneve(GeneveOptions::NONE), 50, 0),
            (geneve(GeneveOptions::Ovn), 58, 0),
            (geneve(GeneveOptions::Bytes(252)), 302, 0),
            (Encapsulation::Gre(gre(None)), 24, 0),
            (Encapsulation::Gre(gre(Some(0))), 28, 0),
            (Encapsulation::Gretap(gre(None)), 38, 0),
            (Encapsulation::Gretap(gre(Some(7))), 42, 0),
            (Encapsulation::Ipip(Ipip::default()), 20, 0),
        ] {
            for ip in IpVersion::ALL {
                let network = network(encapsulation.clone(), ip);
                let wanted = ExpectedDatagram::of(&network, 1500, secret).expect("computed");
                let tunnelled = network.encapsulation.is_tunnel();
                let six = u32::from(tunnelled && ip == IpVersion::Ipv6) * 20;
                assert_eq!(wanted.outer_ip_bytes, 1500 + overhead + six, "{network}");
                assert_eq!(wanted.frame_bytes, wanted.outer_ip_bytes + 14 + tag);
                if tunnelled || ip == IpVersion::Ipv4 {
                    assert_eq!(network.overhead_bytes(), overhead + six);
                    assert_eq!(network.line_overhead_bytes(1500), overhead + six + tag);
                }
            }
        }
    }

    /// A frame over IPv4 with UDP from and to `port`, and behind it so many bytes that begin with `first`.
    fn frame(port: u16, first: [u8; 4], bytes: usize) -> Vec<u8> {
        let ip_bytes = (20 + 8 + bytes) as u16;
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend(ip_bytes.to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        frame.extend(port.to_be_bytes());
        frame.extend(port.to_be_bytes());
        frame.extend((ip_bytes - 20).to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(first);
        frame.resize(14 + usize::from(ip_bytes), 0xaa);
        frame
    }

    #[test]
    fn a_sealed_datagram_is_known_by_port_type_and_exact_size() {
        let secret = Secret {
            probe: [1; 16],
            acknowledgement: [2; 8],
        };
        let tunnel = Encapsulation::Wireguard(Wireguard { port: 51821 });
        let network = network(tunnel, IpVersion::Ipv4);
        // 16 of header and 16 of tag around what is padded to a multiple of 16, and to no more than 8940.
        for (size, padded) in [(1500, 1504), (1504, 1504), (8939, 8940), (8940, 8940)] {
            let wanted = ExpectedDatagram::of(&network, size, secret).expect("computed");
            let bytes = 32 + padded;
            let look = |frame: Vec<u8>| wanted.sizes_of(&frame, frame.len());
            let seen = look(frame(51821, WIREGUARD_DATA, bytes)).expect("ours");
            assert_eq!(seen.outer_ip_bytes, 28 + bytes as u32);
            assert_eq!(Some(seen.frame_bytes), seen.expected_frame_bytes);
            assert_eq!(network.padding_bytes(size), padded as u32 - size);
            // Another port, a handshake, another size.
            assert_eq!(look(frame(51820, WIREGUARD_DATA, bytes)), None);
            assert_eq!(look(frame(51821, [1, 0, 0, 0], bytes)), None);
            assert_eq!(look(frame(51821, WIREGUARD_DATA, bytes - 16)), None);
        }
    }
}
