//! A stack between two IP versions: guest MTU to underlay MTU and back, and the frames on the line.

use wirecost_model::ip::IpVersion;

use super::MAX_MTU;
use super::catalogue::{ENCAPLIMIT, ESP_PADDING, Header, Piece, WIREGUARD_PADDING, ip_header};
use super::error::{MtuError, StackError};
use super::frame::{Frame, FrameScope, Part};
use super::stack::{Layer, Stack};

/// Smallest MTU of an IP version, bytes (RFC 791, 3.2; RFC 8200, 5).
pub const fn min_mtu(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::Ipv4 => 68,
        IpVersion::Ipv6 => 1280,
    }
}

/// A stack of encapsulations between guests and an underlay, each with its IP version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    stack: Stack,
    underlay: IpVersion,
    guest: IpVersion,
}

impl Stack {
    /// The stack for guests of IP version `guest` over an underlay of IP version `underlay`, which
    /// is that of all outer packets.
    ///
    /// # Errors
    /// An option of the stack requires the other IP version.
    pub fn over(&self, underlay: IpVersion, guest: IpVersion) -> Result<Path, StackError> {
        let limited = |layer: &&Layer| layer.options.words.contains(&ENCAPLIMIT);
        if underlay == IpVersion::Ipv4
            && let Some(layer) = self.layers.iter().find(limited)
        {
            return Err(StackError {
                expression: self.to_string(),
                problem: format!(
                    "`{}:{ENCAPLIMIT}` is an IPv6 option (RFC 2473), and the underlay speaks IPv4",
                    layer.of.name
                ),
                help: "leave it out, or ask for an IPv6 underlay (--ipv6)".into(),
            });
        }
        Ok(Path::new(self.clone(), underlay, guest))
    }
}

impl Path {
    pub(super) const fn new(stack: Stack, underlay: IpVersion, guest: IpVersion) -> Self {
        Self {
            stack,
            underlay,
            guest,
        }
    }

    /// The stack of encapsulations.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Size of the largest guest IP packet, bytes, that an underlay of this IP MTU carries unfragmented.
    ///
    /// # Errors
    /// The underlay MTU is out of range, or leaves less than the smallest MTU of a guest.
    pub fn guest_mtu(&self, underlay_mtu: u32) -> Result<u32, MtuError> {
        check("underlay", underlay_mtu, self.underlay)?;
        let left = self.largest(underlay_mtu);
        let min = min_mtu(self.guest);
        left.filter(|left| *left >= min)
            .ok_or_else(|| MtuError::TooSmall {
                stack: self.stack.to_string(),
                underlay_mtu,
                left,
                guest_ip: self.guest,
                min,
                needed: self.underlay_bytes(min).max(min_mtu(self.underlay)),
            })
    }

    /// Smallest IP MTU of an underlay, bytes, that carries guest packets of `guest_mtu` bytes unfragmented.
    ///
    /// # Errors
    /// The guest MTU is out of range, or no underlay MTU is large enough.
    pub fn underlay_mtu(&self, guest_mtu: u32) -> Result<u32, MtuError> {
        check("guest", guest_mtu, self.guest)?;
        let needed = self.underlay_bytes(guest_mtu);
        if needed > MAX_MTU {
            return Err(MtuError::TooLarge {
                stack: self.stack.to_string(),
                guest_mtu,
                needed,
            });
        }
        Ok(needed.max(min_mtu(self.underlay)))
    }

    /// The frame of a guest packet of `packet` bytes, IP header included, on a path configured for
    /// a guest MTU of `guest_mtu` bytes.
    pub fn frame(&self, packet: u32, guest_mtu: u32) -> Frame {
        let (_, full) = self.wrap(guest_mtu, None);
        let (parts, _) = self.wrap(packet, Some(&full));
        Frame::around(parts, packet, self.stack.line_tags())
    }

    /// Size of the largest guest packet that fits, by bisection: a larger packet never needs less.
    fn largest(&self, underlay_mtu: u32) -> Option<u32> {
        // Invariant: sizes below `fit` fit, sizes from `end` on do not.
        let (mut fit, mut end) = (0, underlay_mtu + 1);
        while fit < end {
            let middle = fit.midpoint(end);
            if self.underlay_bytes(middle) <= underlay_mtu {
                fit = middle + 1;
            } else {
                end = middle;
            }
        }
        fit.checked_sub(1)
    }

    /// Bytes of the underlay's MTU that a full-size guest packet takes.
    fn underlay_bytes(&self, guest_mtu: u32) -> u32 {
        self.frame(guest_mtu, guest_mtu).underlay_bytes()
    }

    /// A guest packet in all its encapsulations, outermost first, and the bytes that each
    /// encapsulation carries, innermost first. `full` is these bytes for a packet of the guest MTU;
    /// `None` if the packet has that size.
    fn wrap(&self, packet: u32, full: Option<&[u32]>) -> (Vec<Part>, Vec<u32>) {
        let layers = &self.stack.layers;
        let guest = Header {
            name: "guest's IP packet",
            bytes: packet,
            source: "",
        };
        let mut parts = vec![Part::of(guest, layers.len() + 1, FrameScope::Guest)];
        let mut contents = Vec::new();
        for (at, layer) in layers.iter().enumerate() {
            let content: u32 = parts.iter().map(|part| part.bytes).sum();
            let most = full.map_or(content, |full| full[at]);
            contents.push(content);
            parts = self.lay(layer, layers.len() - at, parts, most);
        }
        (parts, contents)
    }

    /// Puts a further encapsulation around `content`. `most` is the bytes that it carries of a full-size packet.
    fn lay(&self, layer: &Layer, depth: usize, mut content: Vec<Part>, most: u32) -> Vec<Part> {
        let bytes: u32 = content.iter().map(|part| part.bytes).sum();
        let part = |header| Part::of(header, depth, FrameScope::Underlay);
        let padding = |rule: Header, bytes| part(Header { bytes, ..rule });
        let mut parts = Vec::new();
        for piece in layer.of.layout.iter().filter(|piece| layer.has(piece)) {
            match *piece {
                Piece::Ip => parts.push(part(ip_header(self.underlay))),
                Piece::CarriedIp => parts.push(self.take_ip_header(&mut content, depth)),
                Piece::Header(header) | Piece::With(_, header) => parts.push(part(header)),
                Piece::Times(header) => {
                    let bytes = header.bytes * layer.options.number;
                    parts.extend((bytes > 0).then(|| padding(header, bytes)));
                }
                Piece::Content => {
                    parts.extend(layer.inner_tags().map(part));
                    parts.append(&mut content);
                }
                // In transport mode the IP header at the front is a multiple of 4 bytes long.
                Piece::EspPadding => {
                    let end = bytes + 2;
                    parts.push(padding(ESP_PADDING, end.next_multiple_of(4) - end));
                }
                Piece::WireguardPadding => {
                    let padded = bytes.next_multiple_of(16).min(most.max(bytes));
                    parts.push(padding(WIREGUARD_PADDING, padded - bytes));
                }
            }
        }
        parts
    }

    /// Removes the IP header from the front of a packet: that of a tunnel, or the guest's own.
    fn take_ip_header(&self, content: &mut Vec<Part>, depth: usize) -> Part {
        if content[0].place == FrameScope::Guest {
            let mut header = Part::of(ip_header(self.guest), depth, FrameScope::Guest);
            header.bytes = header.bytes.min(content[0].bytes);
            content[0].bytes -= header.bytes;
            content[0].name = "rest of the guest's IP packet";
            return header;
        }
        let mut header = content.remove(0);
        header.depth = depth;
        header
    }
}

fn check(side: &'static str, mtu: u32, ip: IpVersion) -> Result<(), MtuError> {
    let min = min_mtu(ip);
    if (min..=MAX_MTU).contains(&mtu) {
        return Ok(());
    }
    Err(MtuError::OutOfRange { side, mtu, ip, min })
}
