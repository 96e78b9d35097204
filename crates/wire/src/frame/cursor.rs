//! A cursor that parses one header after another, with the offset of every error.

use etherparse::err::{LenError, ipv4, ipv6};
use etherparse::{
    EtherType, Ethernet2HeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice,
    Ipv6HeaderSlice, SingleVlanHeaderSlice, UdpHeader, UdpHeaderSlice,
};

use super::{FrameError, GeneveId, GreId, Layer, Problem, VxlanId};
use crate::{geneve, gre, vxlan};

/// An offset in a frame, and the bytes after it.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

/// Fields of an IP header.
pub(super) struct Ip {
    pub(super) bytes: u32,
    pub(super) df: bool,
    more_fragments: bool,
    /// Offset of this fragment's payload in its packet, bytes.
    fragment_offset: u32,
    protocol: IpNumber,
}

/// Fields of a UDP header.
pub(super) struct Udp {
    pub(super) src_port: u16,
    pub(super) dst_port: u16,
    /// Length of header and payload of all fragments together, bytes.
    pub(super) bytes: u32,
}

impl Ip {
    pub(super) fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset > 0
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(frame: &'a [u8]) -> Self {
        Self { rest: frame, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Parses the Ethernet header and VLAN tags. Returns the Ethernet type of the payload and the
    /// first tag's identifier.
    pub(super) fn ethernet(&mut self) -> Result<(EtherType, Option<u16>), FrameError> {
        let header = Ethernet2HeaderSlice::from_slice(self.rest)
            .map_err(|short| self.short(Layer::Ethernet, &short))?;
        self.skip(header.slice().len());
        let mut ether_type = header.ether_type();
        let mut first = None;
        while matches!(
            ether_type,
            EtherType::VLAN_TAGGED_FRAME | EtherType::PROVIDER_BRIDGING
        ) {
            let tag = SingleVlanHeaderSlice::from_slice(self.rest)
                .map_err(|short| self.short(Layer::Vlan, &short))?;
            self.skip(tag.slice().len());
            first.get_or_insert(tag.vlan_identifier().value());
            ether_type = tag.ether_type();
        }
        Ok((ether_type, first))
    }

    /// Parses the IP header, and cuts the rest to the packet's end.
    pub(super) fn ip(&mut self, ether_type: EtherType) -> Result<Ip, FrameError> {
        match ether_type {
            EtherType::IPV4 => self.ipv4(),
            EtherType::IPV6 => self.ipv6(),
            EtherType(other) => Err(self.error(Layer::Ip, Problem::NotIp(other))),
        }
    }

    fn ipv4(&mut self) -> Result<Ip, FrameError> {
        let header = Ipv4HeaderSlice::from_slice(self.rest).map_err(|error| match error {
            ipv4::HeaderSliceError::Len(short) => self.short(Layer::Ip, &short),
            ipv4::HeaderSliceError::Content(_) => self.error(Layer::Ip, Problem::Malformed),
        })?;
        let payload = header
            .payload_len()
            .map_err(|_| self.error(Layer::Ip, Problem::Malformed))?;
        self.skip(header.slice().len());
        self.end_after(payload.into());
        Ok(Ip {
            bytes: header.total_len().into(),
            df: header.dont_fragment(),
            more_fragments: header.more_fragments(),
            fragment_offset: u32::from(header.fragments_offset().value()) * 8,
            protocol: header.protocol(),
        })
    }

    fn ipv6(&mut self) -> Result<Ip, FrameError> {
        let header = Ipv6HeaderSlice::from_slice(self.rest).map_err(|error| match error {
            ipv6::HeaderSliceError::Len(short) => self.short(Layer::Ip, &short),
            ipv6::HeaderSliceError::Content(_) => self.error(Layer::Ip, Problem::Malformed),
        })?;
        self.skip(header.slice().len());
        self.end_after(header.payload_length().into());
        let mut ip = Ip {
            bytes: header.slice().len() as u32 + u32::from(header.payload_length()),
            df: true,
            more_fragments: false,
            fragment_offset: 0,
            protocol: header.next_header(),
        };
        if ip.protocol == IpNumber::IPV6_FRAGMENTATION_HEADER {
            let fragment = Ipv6FragmentHeaderSlice::from_slice(self.rest)
                .map_err(|short| self.short(Layer::Ip, &short))?;
            self.skip(fragment.slice().len());
            ip.more_fragments = fragment.more_fragments();
            ip.fragment_offset = u32::from(fragment.fragment_offset().value()) * 8;
            ip.protocol = fragment.next_header();
        }
        Ok(ip)
    }

    /// Parses the UDP header after `ip`, and cuts the rest to the datagram's end.
    pub(super) fn udp(&mut self, ip: &Ip) -> Result<Udp, FrameError> {
        if ip.protocol != IpNumber::UDP {
            return Err(self.error(Layer::Udp, Problem::NotUdp(ip.protocol.0)));
        }
        if ip.fragment_offset > 0 {
            let problem = Problem::LaterFragment(ip.fragment_offset);
            return Err(self.error(Layer::Udp, problem));
        }
        let header = UdpHeaderSlice::from_slice(self.rest)
            .map_err(|short| self.short(Layer::Udp, &short))?;
        let payload = usize::from(header.length())
            .checked_sub(UdpHeader::LEN)
            .ok_or_else(|| self.error(Layer::Udp, Problem::Malformed))?;
        self.skip(UdpHeader::LEN);
        self.end_after(payload);
        Ok(Udp {
            src_port: header.source_port(),
            dst_port: header.destination_port(),
            bytes: header.length().into(),
        })
    }

    /// Parses the VXLAN header of a datagram to `port`.
    pub(super) fn vxlan(&mut self, id: VxlanId, port: u16) -> Result<(), FrameError> {
        if port != id.port {
            return Err(self.error(Layer::Vxlan, Problem::OtherPort(port)));
        }
        let Some(header) = self.rest.first_chunk() else {
            let problem = Problem::Truncated {
                needed: vxlan::HEADER_BYTES,
                captured: self.rest.len(),
            };
            return Err(self.error(Layer::Vxlan, problem));
        };
        let vni = vxlan::vni(header);
        if vni != Some(id.vni) {
            return Err(self.error(Layer::Vxlan, Problem::OtherVni(vni)));
        }
        self.skip(vxlan::HEADER_BYTES);
        Ok(())
    }

    /// Parses the Geneve header of a datagram to `port`, and returns its options.
    pub(super) fn geneve(&mut self, id: GeneveId, port: u16) -> Result<&'a [u8], FrameError> {
        if port != id.port {
            return Err(self.error(Layer::Geneve, Problem::OtherPort(port)));
        }
        let truncated = |needed| Problem::Truncated {
            needed,
            captured: self.rest.len(),
        };
        let found = geneve::read(self.rest).map_err(|error| {
            let problem = match error {
                geneve::ReadError::Short(_) => truncated(geneve::HEADER_BYTES),
                geneve::ReadError::OptionsBeyondPacket { said, .. } => {
                    truncated(geneve::HEADER_BYTES + said)
                }
                geneve::ReadError::Version(_) | geneve::ReadError::OptionBeyondOptions { .. } => {
                    Problem::Malformed
                }
            };
            self.error(Layer::Geneve, problem)
        })?;
        if found.vni != id.vni {
            return Err(self.error(Layer::Geneve, Problem::OtherVni(Some(found.vni))));
        }
        if found.control {
            return Err(self.error(Layer::Geneve, Problem::Control));
        }
        if found.protocol != geneve::ETHERNET {
            return Err(self.error(Layer::Geneve, Problem::NotEthernet(found.protocol)));
        }
        let header = self.rest.len() - found.payload.len();
        let options = &self.rest[geneve::HEADER_BYTES..header];
        self.skip(header);
        Ok(options)
    }

    /// Parses the GRE header after `ip`. Returns the Ethernet type of the IP packet that follows, `None` for a frame.
    pub(super) fn gre(&mut self, id: GreId, ip: &Ip) -> Result<Option<EtherType>, FrameError> {
        self.protocol(ip, &[IpNumber::GRE], Layer::Gre)?;
        let found = gre::read(self.rest).map_err(|error| {
            let problem = match error {
                gre::ReadError::Short { needed } => Problem::Truncated {
                    needed,
                    captured: self.rest.len(),
                },
                gre::ReadError::Unknown => Problem::Malformed,
            };
            self.error(Layer::Gre, problem)
        })?;
        if found.key != id.key {
            return Err(self.error(Layer::Gre, Problem::OtherKey(found.key)));
        }
        let protocol = EtherType(found.protocol);
        let is_ip = matches!(protocol, EtherType::IPV4 | EtherType::IPV6);
        if id.frames && found.protocol != gre::ETHERNET {
            return Err(self.error(Layer::Gre, Problem::NotEthernet(found.protocol)));
        }
        if !id.frames && !is_ip {
            return Err(self.error(Layer::Gre, Problem::NotIp(found.protocol)));
        }
        self.skip(self.rest.len() - found.payload.len());
        Ok((!id.frames).then_some(protocol))
    }

    /// Returns the Ethernet type of the IP packet that `ip` carries.
    pub(super) fn ip_in_ip(&mut self, ip: &Ip) -> Result<EtherType, FrameError> {
        self.protocol(ip, &[IpNumber::IPV4, IpNumber::IPV6], Layer::Ip)?;
        Ok(match ip.protocol {
            IpNumber::IPV4 => EtherType::IPV4,
            _ => EtherType::IPV6,
        })
    }

    /// Fails unless `ip` carries one of these protocols from its beginning.
    fn protocol(&self, ip: &Ip, wanted: &[IpNumber], layer: Layer) -> Result<(), FrameError> {
        if !wanted.contains(&ip.protocol) {
            return Err(self.error(layer, Problem::OtherProtocol(ip.protocol.0)));
        }
        if ip.fragment_offset > 0 {
            return Err(self.error(layer, Problem::LaterFragment(ip.fragment_offset)));
        }
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.at += bytes;
    }

    fn end_after(&mut self, bytes: usize) {
        self.rest = self.rest.get(..bytes).unwrap_or(self.rest);
    }

    fn short(&self, layer: Layer, error: &LenError) -> FrameError {
        let problem = Problem::Truncated {
            needed: error.required_len,
            captured: self.rest.len(),
        };
        self.error(layer, problem)
    }

    fn error(&self, layer: Layer, problem: Problem) -> FrameError {
        FrameError {
            layer,
            offset: self.at,
            problem,
        }
    }
}
