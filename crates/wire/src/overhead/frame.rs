//! One frame on the line as its parts, outermost first.

use wirecost_model::ip::IpVersion;

use super::catalogue::{FCS, GAP, Header, LINE_ETHERNET, PREAMBLE};

/// Length of the shortest Ethernet frame from header to FCS, tags included, bytes (IEEE 802.3, 4.4.2, minFrameSize).
const MIN_FRAME_BYTES: u32 = 64;

/// Length of the TCP header with timestamps and their padding, bytes (RFC 9293, 3.1; RFC 7323, 3.2 and appendix A).
const TCP_BYTES: u32 = 20 + 12;

/// The MTU towards which a part of a frame counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameScope {
    /// None: on the line only.
    Line,
    /// The underlay's IP MTU.
    Underlay,
    /// The guest's IP MTU: the guest's own packet.
    Guest,
}

/// A header, a trailer, padding, or the guest's packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name of the part.
    pub name: &'static str,
    /// Length in bytes.
    pub bytes: u32,
    /// Source of the length; empty for the guest's packet.
    pub source: &'static str,
    /// Number of encapsulations around the part: 0 on the line.
    pub depth: usize,
    /// The MTU towards which the part counts.
    pub place: FrameScope,
}

impl Part {
    pub(super) const fn of(header: Header, depth: usize, place: FrameScope) -> Self {
        Self {
            name: header.name,
            bytes: header.bytes,
            source: header.source,
            depth,
            place,
        }
    }
}

/// A frame that carries a guest's packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    parts: Vec<Part>,
    guest_bytes: u32,
}

impl Frame {
    /// Puts the underlay's packet into a frame, padded to the minimum length of Ethernet.
    pub(super) fn around(
        payload: Vec<Part>,
        guest_bytes: u32,
        tags: impl Iterator<Item = Header>,
    ) -> Self {
        let line = |header| Part::of(header, 0, FrameScope::Line);
        let mut parts = vec![line(PREAMBLE), line(LINE_ETHERNET)];
        parts.extend(tags.map(line));
        parts.extend(payload);
        let bytes: u32 = parts.iter().skip(1).map(|part| part.bytes).sum();
        let padding = MIN_FRAME_BYTES.saturating_sub(bytes + FCS.bytes);
        if padding > 0 {
            parts.push(line(Header {
                name: "padding to the shortest frame",
                bytes: padding,
                source: "IEEE 802.3, 4.4.2",
            }));
        }
        parts.extend([line(FCS), line(GAP)]);
        Self { parts, guest_bytes }
    }

    /// All parts of the frame on the line, interframe gap included, outermost first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Length of the guest's IP packet, bytes.
    pub const fn guest_bytes(&self) -> u32 {
        self.guest_bytes
    }

    /// Bytes that count towards the underlay's IP MTU.
    pub fn underlay_bytes(&self) -> u32 {
        self.sum(|part| part.place != FrameScope::Line)
    }

    /// Length of the frame from Ethernet header to FCS, bytes: what a switch limits.
    pub fn frame_bytes(&self) -> u32 {
        self.line_bytes() - PREAMBLE.bytes - GAP.bytes
    }

    /// Bytes that the frame occupies on the line, preamble and interframe gap included.
    pub fn line_bytes(&self) -> u32 {
        self.sum(|_| true)
    }

    /// Frames of this size per second on a full line of `rate_bps` bit/s.
    pub fn per_second(&self, rate_bps: u64) -> f64 {
        rate_bps as f64 / 8.0 / f64::from(self.line_bytes())
    }

    /// Share of the line's rate (0..=1) that is TCP payload when the line is full of such frames,
    /// each a segment with timestamps. Acknowledgements use the other direction of a full-duplex
    /// line and are not counted.
    pub fn tcp_goodput_share(&self, guest: IpVersion) -> f64 {
        let headers = guest.header_bytes() + TCP_BYTES;
        f64::from(self.guest_bytes.saturating_sub(headers)) / f64::from(self.line_bytes())
    }

    fn sum(&self, counts: impl Fn(&Part) -> bool) -> u32 {
        let counted = self.parts.iter().filter(|part| counts(part));
        counted.map(|part| part.bytes).sum()
    }
}
