//! One frame on the line, part by part, outermost first.

use wirecost_model::ip::IpVersion;

use super::catalogue::{FCS, GAP, Header, LINE_ETHERNET, PREAMBLE};

/// Shortest Ethernet frame, header to FCS, tags included (IEEE 802.3, 4.4.2, minFrameSize).
const MIN_FRAME_BYTES: u32 = 64;

/// TCP's header and its timestamps with their padding (RFC 9293, 3.1; RFC 7323, 3.2 and appendix A).
const TCP_BYTES: u32 = 20 + 12;

/// The MTU that a part of a frame counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameScope {
    /// On the line only: no part of an IP MTU.
    Line,
    /// In the underlay's IP MTU.
    Underlay,
    /// The guest's own packet.
    Guest,
}

/// A header, a trailer, padding, or the guest's packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// Its length in bytes.
    pub bytes: u32,
    /// Where that is defined; empty for the guest's packet.
    pub source: &'static str,
    /// How many encapsulations it stands in: 0 on the line.
    pub depth: usize,
    /// Where it counts.
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

/// A frame with a guest's packet in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    parts: Vec<Part>,
    guest_bytes: u32,
}

impl Frame {
    /// Frames what the underlay carries, padded to the shortest frame that Ethernet allows.
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

    /// Everything that passes the line for this frame, outermost first.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The guest's IP packet in bytes.
    pub const fn guest_bytes(&self) -> u32 {
        self.guest_bytes
    }

    /// What counts towards the underlay's IP MTU, in bytes.
    pub fn underlay_bytes(&self) -> u32 {
        self.sum(|part| part.place != FrameScope::Line)
    }

    /// Ethernet header to FCS, in bytes: what a switch's frame size limit is about.
    pub fn frame_bytes(&self) -> u32 {
        self.line_bytes() - PREAMBLE.bytes - GAP.bytes
    }

    /// What the frame occupies on the line, preamble and gap included, in bytes.
    pub fn line_bytes(&self) -> u32 {
        self.sum(|_| true)
    }

    /// Such frames per second that fill a line of `rate_bps` bits per second.
    pub fn per_second(&self, rate_bps: u64) -> f64 {
        rate_bps as f64 / 8.0 / f64::from(self.line_bytes())
    }

    /// The share of the line's rate, 0 to 1, that is TCP payload when the line is full of such frames, each a segment
    /// with timestamps. Acknowledgements go the other way of a full-duplex line and are not counted.
    pub fn tcp_goodput_share(&self, guest: IpVersion) -> f64 {
        let headers = guest.header_bytes() + TCP_BYTES;
        f64::from(self.guest_bytes.saturating_sub(headers)) / f64::from(self.line_bytes())
    }

    fn sum(&self, counts: impl Fn(&Part) -> bool) -> u32 {
        let counted = self.parts.iter().filter(|part| counts(part));
        counted.map(|part| part.bytes).sum()
    }
}
