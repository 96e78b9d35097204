//! Captures what arrives for a survey before this host's own filter: ICMP messages about its
//! probes, and acknowledgements. Uses a packet socket, and so needs `CAP_NET_RAW`.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::SockFilter;
use wirecost_sys::socket::PacketCapture;

use crate::flow::Refusal;
use crate::message::{Acknowledgement, Secret};

const SNAP_BYTES: usize = 1280;
const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const UDP: u8 = 17;
const V4_BYTES: usize = 20;
const V6_BYTES: usize = 40;

/// An ICMP message about a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpMessage {
    /// The datagram is too big.
    TooBig {
        /// Source of the message.
        by: IpAddr,
        /// MTU that the message names, bytes; 0 if it names none.
        mtu: u32,
    },
    /// The datagram does not get through.
    Refused(Refusal),
}

/// The ICMP messages and acknowledgements that were captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedMessages {
    /// Sources of too-big messages, with the smallest MTU that each named, bytes.
    pub too_big: BTreeMap<IpAddr, u32>,
    /// The last message that refused the probes.
    pub refusal: Option<Refusal>,
    /// Number of acknowledgements of this run.
    pub acknowledgements: u32,
}

/// Captures until it is dropped.
#[derive(Debug)]
pub(crate) struct MessageCapture {
    to: SocketAddr,
    capture: PacketCapture,
}

impl MessageCapture {
    pub(crate) fn open(to: SocketAddr) -> io::Result<Self> {
        let ether_type = if to.is_ipv4() { ETHER_IPV4 } else { ETHER_IPV6 };
        let capture = PacketCapture::open_cooked(ether_type, &filter(to), SNAP_BYTES)?;
        Ok(Self { to, capture })
    }

    /// Everything that was captured since the last read.
    pub(crate) fn read(&self, secret: &Secret) -> CapturedMessages {
        let mut captured = CapturedMessages::default();
        let mut buffer = [0; SNAP_BYTES];
        while let Ok(Some((copied, _))) = self.capture.recv(&mut buffer) {
            let packet = &buffer[..copied];
            match icmp(packet, self.to) {
                Some(IcmpMessage::TooBig { by, mtu }) => {
                    let known = captured.too_big.entry(by).or_insert(mtu);
                    *known = (*known).min(mtu);
                }
                Some(IcmpMessage::Refused(refusal)) => captured.refusal = Some(refusal),
                None => {
                    let at = if self.to.is_ipv4() {
                        V4_BYTES
                    } else {
                        V6_BYTES
                    };
                    let payload = packet.get(at + 8..).unwrap_or_default();
                    let ours = Acknowledgement::parse(payload, secret).is_some();
                    captured.acknowledgements += u32::from(ours);
                }
            }
        }
        captured
    }
}

/// Filter for ICMP, and for UDP from the far port, without IP options or extension headers.
fn filter(to: SocketAddr) -> Vec<SockFilter> {
    // Classic BPF (linux/bpf_common.h): load byte, load half-word, jump if equal, return.
    const LOAD_B: u16 = 0x30;
    const LOAD_H: u16 = 0x28;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let of = SockFilter::new;
    let (protocol, icmp, header) = match to {
        SocketAddr::V4(_) => (9, ICMP, V4_BYTES),
        SocketAddr::V6(_) => (6, ICMP6, V6_BYTES),
    };
    vec![
        of(LOAD_B, 0, 0, protocol),
        of(IF_EQUAL, 3, 0, icmp.into()),
        of(IF_EQUAL, 0, 3, UDP.into()),
        of(LOAD_H, 0, 0, header as u32),
        of(IF_EQUAL, 0, 1, to.port().into()),
        of(RETURN, 0, 0, SNAP_BYTES as u32),
        of(RETURN, 0, 0, 0),
    ]
}

/// Parses an ICMP message about a datagram to this address and port. With port 0, about an echo
/// request or a datagram to any port, and port unreachable is not reported. `None` for any other
/// packet. `packet` begins with its IP header.
pub fn icmp(packet: &[u8], to: SocketAddr) -> Option<IcmpMessage> {
    let half = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    let address = |at: usize| -> Option<IpAddr> {
        match to {
            SocketAddr::V4(_) => Some((*packet.get(at..)?.first_chunk::<4>()?).into()),
            SocketAddr::V6(_) => Some((*packet.get(at..)?.first_chunk::<16>()?).into()),
        }
    };
    let six = to.is_ipv6();
    let (by, at) = if six {
        (address(8)?, V6_BYTES)
    } else {
        (address(12)?, usize::from(packet.first()? & 0x0f) * 4)
    };
    let protocol = *packet.get(if six { 6 } else { 9 })?;
    if protocol != if six { ICMP6 } else { ICMP } {
        return None;
    }
    let (kind, code) = (*packet.get(at)?, *packet.get(at + 1)?);
    // The datagram that the message quotes, from its IP header on.
    let quoted = at + 8;
    let (destination, header, carried) = if six {
        (address(quoted + 24)?, V6_BYTES, *packet.get(quoted + 6)?)
    } else {
        let header = usize::from(packet.get(quoted)? & 0x0f) * 4;
        (address(quoted + 16)?, header, *packet.get(quoted + 9)?)
    };
    let port = half(quoted + header + 2)?;
    let echo = to.port() == 0 && carried == if six { ICMP6 } else { ICMP };
    if destination != to.ip() || !(carried == UDP || echo) {
        return None;
    }
    let refused = matches!((six, kind, code), (false, 3, 0..=3 | 5..) | (true, 1, _));
    // A rule or a route that refuses concerns every port, also that of acknowledgements that leave
    // this host, and the few messages that a router's rate limit allows may be about these.
    let any_port = refused && !matches!((six, code), (false, 3) | (true, 4));
    let is_asked = port == to.port() || (to.port() == 0 && !refused);
    if !is_asked && !any_port {
        return None;
    }
    // Destination unreachable and, over IPv6, packet too big (RFC 792, RFC 1191, RFC 4443).
    match (six, kind, code) {
        (false, 3, 4) => Some(IcmpMessage::TooBig {
            by,
            mtu: half(at + 6)?.into(),
        }),
        (true, 2, _) => Some(IcmpMessage::TooBig {
            by,
            mtu: word(at + 4)?,
        }),
        (false, 3, _) | (true, 1, _) => Some(IcmpMessage::Refused(Refusal { by, code })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(six: bool, kind: u8, code: u8, rest: [u8; 4]) -> Vec<u8> {
        let (mut outer, mut inner) = if six {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, ICMP6, 64];
            header.extend([[0xfd; 16], [0xfe; 16]].concat());
            let mut inner = header.clone();
            inner[6] = UDP;
            (header, inner)
        } else {
            let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, ICMP, 0, 0];
            header.extend([10, 0, 1, 1, 10, 0, 2, 2]);
            let mut inner = header.clone();
            inner[9] = UDP;
            (header, inner)
        };
        inner.extend([0x80, 0, 0x12, 0xb5, 0, 8, 0, 0]);
        outer.extend([kind, code, 0, 0]);
        outer.extend(rest);
        outer.extend(inner);
        outer
    }

    #[test]
    fn messages_about_a_datagram_are_read_and_no_others() {
        let four: SocketAddr = "10.0.2.2:4789".parse().expect("an address");
        let six = SocketAddr::new([0xfe; 16].into(), 4789);
        let router: IpAddr = [10, 0, 1, 1].into();
        let too_big = message(false, 3, 4, [0, 0, 0x05, 0x78]);
        assert_eq!(
            icmp(&too_big, four),
            Some(IcmpMessage::TooBig {
                by: router,
                mtu: 1400
            })
        );
        assert_eq!(
            icmp(&message(true, 2, 0, [0, 0, 0x05, 0x78]), six),
            Some(IcmpMessage::TooBig {
                by: [0xfd; 16].into(),
                mtu: 1400
            })
        );
        assert_eq!(
            icmp(&message(false, 3, 13, [0; 4]), four),
            Some(IcmpMessage::Refused(Refusal {
                by: router,
                code: 13
            }))
        );
        assert_eq!(icmp(&message(false, 11, 0, [0; 4]), four), None);
        let any = SocketAddr::new(four.ip(), 0);
        assert!(icmp(&too_big, any).is_some());
        assert_eq!(icmp(&message(false, 3, 3, [0; 4]), any), None);
        let mut of_echo = too_big.clone();
        of_echo[V4_BYTES + 8 + 9] = ICMP;
        assert!(icmp(&of_echo, any).is_some());
        assert_eq!(icmp(&of_echo, four), None);
        let other: SocketAddr = "10.0.2.2:4790".parse().expect("an address");
        assert!(icmp(&message(false, 3, 13, [0; 4]), other).is_some());
        assert_eq!(icmp(&message(false, 3, 3, [0; 4]), other), None);
        assert_eq!(
            icmp(&too_big, "10.0.2.2:4790".parse().expect("an address")),
            None
        );
        for end in 0..too_big.len() - 4 {
            assert_eq!(icmp(&too_big[..end], four), None, "cut at {end}");
        }
    }
}
