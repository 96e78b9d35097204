//! A stack between two IP versions: guest MTU to underlay MTU and back, and the frames on the line.

use wirecost_model::ip::IpVersion;

use super::MAX_MTU;
use super::catalogue::{ENCAPLIMIT, ESP_PADDING, Header, Piece, WIREGUARD_PADDING, ip_header};
use super::error::{MtuError, StackError};
use super::frame::{Frame, FrameScope, Part};
use super::stack::{Layer, Stack};

/// The smallest MTU in bytes that IP can run over (RFC 791, 3.2; RFC 8200, 5).
pub const fn min_mtu(ip: IpVersion) -> u32 {
    match ip {
        IpVersion::Ipv4 => 68,
        IpVersion::Ipv6 => 1280,
    }
}

/// Encapsulations between guests and an underlay, each with its IP version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    stack: Stack,
    underlay: IpVersion,
    guest: IpVersion,
}

impl Stack {
    /// The stack over an underlay that speaks `underlay`, which all its tunnels' outer packets do, for guests that
    /// speak `guest`. Fails where an option is of the other IP version.
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

    /// What is between them.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The largest IP packet of a guest, in bytes, that an underlay of this IP MTU carries unfragmented.
    ///
    /// Fails where the underlay's MTU is none, or leaves less than the smallest MTU of a guest.
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

    /// The smallest IP MTU of an underlay, in bytes, that carries guest packets of `guest_mtu` bytes unfragmented.
    ///
    /// Fails where the guest's MTU is none, or where the underlay's would be.
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

    /// The frame of a guest's packet of `packet` bytes, IP header included, on a path that is set up for a guest MTU
    /// of `guest_mtu`.
    pub fn frame(&self, packet: u32, guest_mtu: u32) -> Frame {
        let (_, full) = self.wrap(guest_mtu, None);
        let (parts, _) = self.wrap(packet, Some(&full));
        Frame::around(parts, packet, self.stack.line_tags())
    }

    /// The largest guest packet that fits. A larger packet never needs less, so half of the sizes left can be ruled
    /// out at a time.
    fn largest(&self, underlay_mtu: u32) -> Option<u32> {
        // What is below `fit` fits, what is not below `end` does not.
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

    /// What a full-size packet takes of the underlay's MTU, in bytes.
    fn underlay_bytes(&self, guest_mtu: u32) -> u32 {
        self.frame(guest_mtu, guest_mtu).underlay_bytes()
    }

    /// A guest's packet in all its encapsulations, outermost first, and how many bytes each of them, innermost first,
    /// carries. `full` is the latter for a packet of the guest's MTU; without it, the packet is one.
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

    /// Puts one more encapsulation around what there is. `most` is what it carries of a full-size packet, in bytes.
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
                // The IP header that stays in front in transport mode is a multiple of 4 bytes long.
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

    /// Takes the IP header off a packet's front: a tunnel's, or the guest's own.
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
