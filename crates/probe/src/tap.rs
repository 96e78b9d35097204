//! Receives and answers on a UDP port that another socket owns: a packet socket receives, a raw
//! socket answers in its name.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use wirecost_sys::socket::{PacketCapture, link_device, vrf_of};

use crate::message::{ProbeMessage, Secret};

/// Bytes captured of a packet: whole datagrams, whose checksums are verified.
const SNAP_BYTES: usize = 1 << 16;
const UDP: u8 = 17;
/// Protocol number of IPv6's fragment header, and the header's length in bytes (RFC 8200, section 4.5).
const FRAGMENT: u8 = 44;
const FRAGMENT_BYTES: usize = 8;
const UDP_BYTES: usize = 8;
const V4_BYTES: usize = 20;
const V6_BYTES: usize = 40;
const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
/// `IPPROTO_RAW`: the sender writes the IP header, and nothing is ever received (raw(7)).
const RAW: i32 = 255;

/// The packet socket that receives and the raw socket that answers.
#[derive(Debug)]
pub(crate) struct Tap {
    address: SocketAddr,
    capture: PacketCapture,
    answers: Socket,
}

/// A captured datagram to a port that another socket owns.
#[derive(Debug, PartialEq, Eq)]
pub struct TappedDatagram<'a> {
    /// Source address and port.
    pub from: SocketAddr,
    /// Size of the IP packet if it is a first fragment, bytes.
    pub fragment: Option<u32>,
    /// UDP payload, as far as it was captured.
    pub payload: &'a [u8],
}

impl Tap {
    /// Opens both sockets in the calling thread's namespace.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let (domain, ether_type) = match address {
            SocketAddr::V4(_) => (Domain::IPV4, ETHER_IPV4),
            SocketAddr::V6(_) => (Domain::IPV6, ETHER_IPV6),
        };
        let filter = match address {
            SocketAddr::V4(_) => v4_filter(address.port()),
            SocketAddr::V6(_) => v6_filter(address.port()),
        };
        let answers = Socket::new(domain, Type::RAW, Some(Protocol::from(RAW)))?;
        let device = link_device(address.ip());
        if let Some(vrf) = device.map_or_else(|| vrf_of(address.ip()), |it| Ok(Some(it)))? {
            answers.bind_device(Some(vrf.as_bytes()))?;
        }
        Ok(Self {
            address,
            capture: PacketCapture::open_cooked(ether_type, &filter, SNAP_BYTES)?,
            answers,
        })
    }

    /// The next packet, without waiting: the number of bytes in the buffer, and whether its
    /// checksum has to be verified.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, bool)>> {
        self.capture.recv_checked(buffer)
    }

    /// Parses a packet; `None` if it is not for this address, or if the kernel drops it because its
    /// checksum, where `checked`, is wrong.
    pub(crate) fn parse<'a>(&self, packet: &'a [u8], checked: bool) -> Option<TappedDatagram<'a>> {
        let heard = parse_datagram(packet, self.address)?;
        let spoiled = checked && heard.fragment.is_none() && !has_right_checksum(packet, &heard);
        (!spoiled).then_some(heard)
    }

    pub(crate) fn answer(&self, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
        let packet = packet(self.address, to, payload);
        // A raw socket's address has no port.
        self.answers
            .send_to(&packet, &SocketAddr::new(to.ip(), 0).into())
            .map(|_| ())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.capture.as_fd()
    }
}

/// What arrived for a responder's port, before this host's own filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// Number of probes of this run with a right checksum.
    pub probes: u32,
    /// Source address and port of each flow's probes.
    pub sources: BTreeMap<u32, SocketAddr>,
}

/// Captures what arrives for a responder, and answers nothing.
#[derive(Debug)]
pub struct ArrivalCapture {
    tap: Tap,
    secret: Secret,
}

impl ArrivalCapture {
    /// Opens the capture in the calling thread's namespace.
    ///
    /// # Errors
    /// `CAP_NET_RAW` is missing.
    pub fn open(address: SocketAddr, secret: Secret) -> io::Result<Self> {
        Ok(Self {
            tap: Tap::open(address)?,
            secret,
        })
    }

    /// What has arrived since the listener was opened or last read.
    pub fn read(&self) -> Arrivals {
        let mut arrivals = Arrivals::default();
        let mut buffer = vec![0; SNAP_BYTES];
        while let Ok(Some((copied, checked))) = self.tap.receive(&mut buffer) {
            let Some(heard) = self.tap.parse(&buffer[..copied], checked) else {
                continue;
            };
            if let Some(probe) = ProbeMessage::parse(heard.payload, &self.secret) {
                arrivals.probes += 1;
                arrivals.sources.entry(probe.flow).or_insert(heard.from);
            }
        }
        arrivals
    }
}

// Classic BPF (linux/bpf_common.h): load byte, load half-word, load half-word at X, X = 4 * (byte &
// 15), jumps, return.
const LOAD_B: u16 = 0x30;
const LOAD_H: u16 = 0x28;
const LOAD_H_X: u16 = 0x48;
const X_HEADER: u16 = 0xb1;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Filter for UDP to `port` over IPv4, without later fragments.
fn v4_filter(port: u16) -> Vec<SockFilter> {
    let of = SockFilter::new;
    vec![
        of(LOAD_B, 0, 0, 9),
        of(IF_EQUAL, 0, 6, UDP.into()),
        of(LOAD_H, 0, 0, 6),
        of(IF_ANY, 4, 0, 0x1fff),
        of(X_HEADER, 0, 0, 0),
        of(LOAD_H_X, 0, 0, 2),
        of(IF_EQUAL, 0, 1, port.into()),
        of(RETURN, 0, 0, SNAP_BYTES as u32),
        of(RETURN, 0, 0, 0),
    ]
}

/// Filter for UDP to `port` over IPv6, also after a fragment header, without later fragments.
fn v6_filter(port: u16) -> Vec<SockFilter> {
    let of = SockFilter::new;
    vec![
        of(LOAD_B, 0, 0, 6),
        of(IF_EQUAL, 7, 0, UDP.into()),
        of(IF_EQUAL, 0, 9, FRAGMENT.into()),
        of(LOAD_B, 0, 0, V6_BYTES as u32),
        of(IF_EQUAL, 0, 7, UDP.into()),
        of(LOAD_H, 0, 0, V6_BYTES as u32 + 2),
        of(IF_ANY, 5, 0, 0xfff8),
        of(LOAD_H, 0, 0, (V6_BYTES + FRAGMENT_BYTES) as u32 + 2),
        of(JUMP, 0, 0, 1),
        of(LOAD_H, 0, 0, V6_BYTES as u32 + 2),
        of(IF_EQUAL, 0, 1, port.into()),
        of(RETURN, 0, 0, SNAP_BYTES as u32),
        of(RETURN, 0, 0, 0),
    ]
}

/// Parses a packet from its IP header on; `None` if it is not UDP to this address and port, or too short.
pub fn parse_datagram(packet: &[u8], to: SocketAddr) -> Option<TappedDatagram<'_>> {
    let half = |at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    let (from, at, destination, fragment): (IpAddr, usize, IpAddr, Option<u32>) = match to {
        SocketAddr::V4(_) => {
            let header = usize::from(packet.first()? & 0x0f) * 4;
            let cut = half(6)?;
            let more = cut & 0x2000 > 0;
            if header < V4_BYTES || *packet.get(9)? != UDP || cut & 0x1fff > 0 {
                return None;
            }
            let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
            (
                address(12)?.into(),
                header,
                address(16)?.into(),
                more.then_some(half(2)?.into()),
            )
        }
        SocketAddr::V6(_) => {
            let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
            let size = u32::from(half(4)?) + V6_BYTES as u32;
            let (at, fragment) = match *packet.get(6)? {
                UDP => (V6_BYTES, None),
                FRAGMENT if *packet.get(V6_BYTES)? == UDP && half(V6_BYTES + 2)? & 0xfff8 == 0 => {
                    (V6_BYTES + FRAGMENT_BYTES, Some(size))
                }
                _ => return None,
            };
            (address(8)?.into(), at, address(24)?.into(), fragment)
        }
    };
    let wanted = destination == to.ip() && half(at + 2)? == to.port();
    let heard = TappedDatagram {
        from: SocketAddr::new(from, half(at)?),
        fragment,
        payload: packet.get(at + UDP_BYTES..)?,
    };
    wanted.then_some(heard)
}

/// Whether a datagram's UDP checksum is right, or over IPv4 absent (RFC 768; RFC 8200, section 8.1).
fn has_right_checksum(packet: &[u8], heard: &TappedDatagram<'_>) -> bool {
    let at = packet.len() - heard.payload.len() - UDP_BYTES;
    let six = heard.from.is_ipv6();
    let addresses = if six { 8..40 } else { 12..20 };
    let (Some(udp), Some(addresses)) = (packet.get(at..), packet.get(addresses)) else {
        return false;
    };
    let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
    // The datagram may be followed by padding of a short Ethernet frame.
    let Some(datagram) = udp.get(..length).filter(|_| length >= UDP_BYTES) else {
        return false;
    };
    if datagram[6..8] == [0, 0] {
        return !six;
    }
    let covered = [
        addresses,
        &[0, UDP],
        &(length as u16).to_be_bytes(),
        datagram,
    ]
    .concat();
    crate::one_sided::checksum(&covered) == [0, 0]
}

/// An IP packet with a UDP datagram. Over IPv4 the kernel fills in length, identification and
/// checksum of the IP header (raw(7)).
fn packet(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let length = (UDP_BYTES + payload.len()) as u16;
    let mut udp = Vec::with_capacity(length.into());
    for field in [from.port(), to.port(), length, 0] {
        udp.extend(field.to_be_bytes());
    }
    udp.extend(payload);
    let (mut header, pseudo) = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0];
            header[2..4].copy_from_slice(&(V4_BYTES as u16 + length).to_be_bytes());
            header.extend(from.octets());
            header.extend(to.octets());
            let pseudo = [&from.octets()[..], &to.octets()].concat();
            (header, pseudo)
        }
        (from, to) => {
            let six = |address: IpAddr| match address {
                IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
                IpAddr::V6(six) => six.octets(),
            };
            let mut header = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
            header[4..6].copy_from_slice(&length.to_be_bytes());
            let addresses = [six(from), six(to)].concat();
            header.extend(&addresses);
            (header, addresses)
        }
    };
    // The pseudo-header of RFC 768 and RFC 8200: addresses, protocol, length; zeros do not change the sum.
    let covered = [&pseudo[..], &[0, UDP], &length.to_be_bytes(), &udp].concat();
    let sum = match crate::one_sided::checksum(&covered) {
        // A checksum of 0 would mean that there is none.
        [0, 0] => [0xff, 0xff],
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum);
    header.extend(udp);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(six: bool) -> [SocketAddr; 2] {
        let [from, to] = if six {
            ["[3fff::1]:50000", "[3fff::2]:4789"]
        } else {
            ["192.0.2.1:50000", "192.0.2.2:4789"]
        };
        [from.parse().expect("from"), to.parse().expect("to")]
    }

    #[test]
    fn what_is_sent_is_heard_and_nothing_else() {
        for six in [false, true] {
            let [from, to] = ends(six);
            let packet = packet(from, to, b"a probe");
            let expected = TappedDatagram {
                from,
                fragment: None,
                payload: b"a probe",
            };
            assert_eq!(parse_datagram(&packet, to), Some(expected));
            assert_eq!(parse_datagram(&packet, from), None, "for somebody else");
            for end in 0..packet.len() - 7 {
                assert_eq!(parse_datagram(&packet[..end], to), None, "cut at {end}");
            }
        }
    }

    #[test]
    fn a_datagram_that_the_kernel_drops_for_its_checksum_is_not_heard() {
        for six in [false, true] {
            let [from, to] = ends(six);
            let right = packet(from, to, b"a probe");
            let whole = parse_datagram(&right, to).expect("a datagram");
            assert!(has_right_checksum(&right, &whole));
            let padded = [&right[..], &[0; 6]].concat();
            assert!(has_right_checksum(
                &padded,
                &parse_datagram(&padded, to).expect("a datagram")
            ));
            for at in [right.len() - 1, right.len() - 8] {
                let mut wrong = right.clone();
                wrong[at] ^= 1;
                let heard = parse_datagram(&wrong, to).expect("a datagram");
                assert!(!has_right_checksum(&wrong, &heard), "{six} {at}");
            }
            let mut without = right.clone();
            let at = right.len() - 9;
            without[at..at + 2].copy_from_slice(&[0, 0]);
            let left_out = parse_datagram(&without, to).expect("a datagram");
            assert_eq!(has_right_checksum(&without, &left_out), !six);
        }
    }

    #[test]
    fn a_first_fragment_tells_its_size_and_a_later_one_is_none() {
        let [from, to] = ends(false);
        let mut first = packet(from, to, &[7; 100]);
        first[6] = 0x20;
        assert_eq!(
            parse_datagram(&first, to).and_then(|heard| heard.fragment),
            Some(128)
        );
        first[7] = 16;
        assert_eq!(parse_datagram(&first, to), None);

        let [from, to] = ends(true);
        let whole = packet(from, to, &[7; 100]);
        let mut first = [&whole[..40], &[UDP, 0, 0, 1, 0, 0, 0, 9], &whole[40..]].concat();
        first[6] = FRAGMENT;
        first[5] += 8;
        assert_eq!(
            parse_datagram(&first, to).and_then(|heard| heard.fragment),
            Some(156)
        );
        first[42] = 1;
        assert_eq!(parse_datagram(&first, to), None);
    }

    #[test]
    fn the_checksum_of_an_answer_is_right() {
        for six in [false, true] {
            let [from, to] = ends(six);
            let packet = packet(from, to, b"odd");
            let (addresses, at) = if six { (8..40, 40) } else { (12..20, 20) };
            let length = (packet.len() - at) as u16;
            let covered = [
                &packet[addresses],
                &[0, UDP],
                &length.to_be_bytes(),
                &packet[at..],
            ]
            .concat();
            assert_eq!(crate::one_sided::checksum(&covered), [0, 0]);
        }
    }
}
