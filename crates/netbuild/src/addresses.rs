//! Addresses inside a lab's own namespaces, where they cannot clash with others. They are reserved for benchmarks:
//! 198.18.0.0/15 (RFC 2544, appendix C.2.2) and 2001:2::/48 (RFC 5180, section 8).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirecost_model::ip::IpVersion;

use crate::names::Side;

/// An end of a link between hosts or routers. Links are numbered; host a is on link 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkEnd {
    link: u8,
    /// The link's end towards host a, or the one towards host b.
    end: Side,
}

impl LinkEnd {
    /// The end of a link that is nearer to host a.
    pub(crate) const fn near_a(link: u8) -> Self {
        Self { link, end: Side::A }
    }

    /// The end of a link that is nearer to host b.
    pub(crate) const fn near_b(link: u8) -> Self {
        Self { link, end: Side::B }
    }

    /// The other end of the same link.
    pub(crate) const fn across(self) -> Self {
        Self {
            link: self.link,
            end: self.end.other(),
        }
    }

    /// Hardware address of this end, locally administered: fixed, so that the others know it without asking.
    pub(crate) const fn mac(self) -> [u8; 6] {
        [2, 0, 0, 0, self.link, self.end.number()]
    }

    /// Address of this end in an IP version.
    pub(crate) fn address(self, ip: IpVersion) -> IpAddr {
        let end = self.end.number();
        match ip {
            IpVersion::Ipv4 => Ipv4Addr::new(198, 18, self.link, end).into(),
            IpVersion::Ipv6 => {
                let subnet = match self.link {
                    0 => 0x18,
                    link => 0x1800 | u16::from(link),
                };
                Ipv6Addr::new(0x2001, 2, 0, subnet, 0, 0, 0, end.into()).into()
            }
        }
    }
}

/// Prefix of all underlay addresses, with its length in bits.
pub(crate) fn underlay_range(ip: IpVersion) -> (IpAddr, u8) {
    match ip {
        IpVersion::Ipv4 => (Ipv4Addr::new(198, 18, 0, 0).into(), 16),
        IpVersion::Ipv6 => (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0).into(), 48),
    }
}

/// Address of a host's guest by its number. All guests share one subnet: the last octet is odd for those of host a.
pub(crate) fn guest(ip: IpVersion, side: Side, number: u32) -> IpAddr {
    let last = 2 * number as u8 + side.number();
    match ip {
        IpVersion::Ipv4 => Ipv4Addr::new(198, 19, 0, last).into(),
        IpVersion::Ipv6 => Ipv6Addr::new(0x2001, 2, 0, 0x19, 0, 0, 0, last.into()).into(),
    }
}

/// Address of a host's guest where each host's guests have a subnet of their own.
pub(crate) fn routed_guest(ip: IpVersion, side: Side, number: u32) -> IpAddr {
    routed(ip, side, number as u8 + 1)
}

/// Address of the logical router between these subnets, in the subnet of one side.
pub(crate) fn logical_router(ip: IpVersion, side: Side) -> IpAddr {
    routed(ip, side, 254)
}

/// Subnet of one side's guests, with its prefix length in bits.
pub(crate) fn routed_range(ip: IpVersion, side: Side) -> (IpAddr, u8) {
    (routed(ip, side, 0), guest_range(ip).1)
}

fn routed(ip: IpVersion, side: Side, last: u8) -> IpAddr {
    let subnet = side.number();
    match ip {
        IpVersion::Ipv4 => Ipv4Addr::new(198, 19, subnet, last).into(),
        IpVersion::Ipv6 => {
            let subnet = 0x1900 | u16::from(subnet);
            Ipv6Addr::new(0x2001, 2, 0, subnet, 0, 0, 0, last.into()).into()
        }
    }
}

/// Subnet that all guests share where they are not routed, with its prefix length in bits.
pub(crate) fn guest_range(ip: IpVersion) -> (IpAddr, u8) {
    match ip {
        IpVersion::Ipv4 => (Ipv4Addr::new(198, 19, 0, 0).into(), 24),
        IpVersion::Ipv6 => (Ipv6Addr::new(0x2001, 2, 0, 0x19, 0, 0, 0, 0).into(), 64),
    }
}

/// Hardware address of a guest's port on its host, where the guest has to know it.
pub(crate) const fn port_mac(side: Side, number: u32) -> [u8; 6] {
    [2, 0, 0, 2, number as u8, side.number()]
}

/// Hardware address of a logical router in the guests' subnet of one side.
pub(crate) const fn logical_router_mac(side: Side) -> [u8; 6] {
    [2, 0, 0, 3, 0, side.number()]
}

/// Hardware address of a host's guest by its number, locally administered; no link of the underlay has it.
pub(crate) const fn guest_mac(side: Side, number: u32) -> [u8; 6] {
    [2, 0, 0, 1, number as u8, side.number()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wirecost_model::cell::MAX_GUESTS;

    use super::*;

    #[test]
    fn every_address_is_another_and_of_a_range_for_benchmarks() {
        let (mut all, mut wanted) = (BTreeSet::new(), 0);
        for ip in IpVersion::ALL {
            let links =
                (0..=u8::MAX).flat_map(|link| [LinkEnd::near_a(link), LinkEnd::near_b(link)]);
            let places = links.map(|place| place.address(ip));
            let guests = (0..MAX_GUESTS)
                .flat_map(|number| [Side::A, Side::B].map(|side| guest(ip, side, number)));
            let routed = (0..MAX_GUESTS)
                .flat_map(|number| [Side::A, Side::B].map(|side| routed_guest(ip, side, number)));
            let routers = [Side::A, Side::B].map(|side| logical_router(ip, side));
            for address in places.chain(guests).chain(routed).chain(routers) {
                match address {
                    IpAddr::V4(v4) => assert_eq!(v4.to_bits() >> 17, 198 << 7 | 18 >> 1),
                    IpAddr::V6(v6) => assert_eq!(v6.to_bits() >> 80, 0x2001_0002_0000),
                }
                all.insert(address);
                wanted += 1;
            }
        }
        assert_eq!(all.len(), wanted);
    }

    #[test]
    fn every_hardware_address_is_another() {
        let links = (0..=u8::MAX).flat_map(|link| [LinkEnd::near_a(link), LinkEnd::near_b(link)]);
        let numbered = (0..MAX_GUESTS).flat_map(|number| [(Side::A, number), (Side::B, number)]);
        let guests =
            numbered.flat_map(|(side, number)| [guest_mac(side, number), port_mac(side, number)]);
        let routers = [Side::A, Side::B].map(logical_router_mac);
        let all: Vec<[u8; 6]> = links
            .map(LinkEnd::mac)
            .chain(guests)
            .chain(routers)
            .collect();
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn the_two_ends_of_a_link_see_each_other() {
        let place = LinkEnd::near_a(7);
        assert_eq!(place.across().across(), place);
        assert_eq!(place.across(), LinkEnd::near_b(7));
        assert_ne!(place.mac(), place.across().mac());
        let (near, far) = (
            place.address(IpVersion::Ipv6),
            place.across().address(IpVersion::Ipv6),
        );
        assert_eq!(near.to_string(), "2001:2:0:1807::1");
        assert_eq!(far.to_string(), "2001:2:0:1807::2");
    }
}
