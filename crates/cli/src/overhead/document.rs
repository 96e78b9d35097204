//! The JSON document of `wirecost overhead`, from which the text is made too.

use std::error::Error;

use serde::Serialize;
use wirecost_model::ip::IpVersion;
use wirecost_wire::overhead::{Frame, FrameScope, MtuError, Part, Path, Stack, shown};

/// The guest packet that fills the shortest Ethernet frame, bytes: 64 less header (14) and FCS (4).
const SHORT_PACKET: u32 = 46;

/// Guest MTUs, bytes, for which the needed underlay MTU is always reported.
const USUAL_GUEST_MTUS: [u32; 2] = [1500, 9000];

/// The options that apply to every encapsulation.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) underlay: IpVersion,
    pub(super) guest: IpVersion,
    pub(super) rate_bps: Option<u64>,
    pub(super) sizes: Sizes,
}

/// The MTUs that are given, bytes; those of the other side are computed.
#[derive(Debug, Clone)]
pub(super) enum Sizes {
    Underlay(Vec<u32>),
    Guest(Vec<u32>),
}

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) underlay_ip: IpVersion,
    pub(super) guest_ip: IpVersion,
    pub(super) rate_bps: Option<u64>,
    /// The side whose MTUs were given: `underlay` or `guest`.
    pub(super) given: &'static str,
    pub(super) encapsulations: Vec<OverheadEntry>,
}

#[derive(Debug, Serialize)]
pub(super) struct OverheadEntry {
    /// The encapsulation, as written on the command line.
    pub(super) name: String,
    pub(super) description: String,
    /// One entry for each MTU that was given, in the same order.
    pub(super) sizes: Vec<Size>,
    /// Underlay MTUs that usual guest MTUs need.
    pub(super) needs: Vec<RequiredUnderlayMtu>,
    pub(super) notes: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub(super) struct RequiredUnderlayMtu {
    pub(super) guest_mtu: u32,
    pub(super) underlay_mtu: u32,
}

/// One pair of MTUs, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Size {
    Fits(FullSizeFrame),
    Impossible {
        #[serde(skip_serializing_if = "Option::is_none")]
        underlay_mtu: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        guest_mtu: Option<u32>,
        error: String,
    },
}

/// The frame of a guest packet of `guest_mtu` bytes, and the goodput of such frames.
#[derive(Debug, Serialize)]
pub(super) struct FullSizeFrame {
    pub(super) underlay_mtu: u32,
    pub(super) guest_mtu: u32,
    /// Headers, trailers and padding within the underlay's MTU.
    pub(super) overhead_bytes: u32,
    /// Bytes of the underlay MTU that are unused, because the next larger packet would not fit.
    pub(super) unused_bytes: u32,
    /// Length of the frame from Ethernet header to FCS.
    pub(super) frame_bytes: u32,
    /// Length of the frame on the line, with preamble and inter-frame gap.
    pub(super) line_bytes: u32,
    /// TCP goodput with timestamps as a share of the line's rate, 0 to 1.
    pub(super) tcp_goodput_share: f64,
    pub(super) tcp_goodput_bps: Option<f64>,
    pub(super) frames_per_s: Option<f64>,
    pub(super) short: MinimumFrame,
    pub(super) parts: Vec<FramePart>,
}

/// The frame of a minimum-size guest packet: the highest packet rate that the line carries.
#[derive(Debug, Serialize)]
pub(super) struct MinimumFrame {
    pub(super) guest_bytes: u32,
    pub(super) line_bytes: u32,
    pub(super) frames_per_s: Option<f64>,
}

/// One part of the frame: a header, a trailer, padding, or the guest packet.
#[derive(Debug, Serialize)]
pub(super) struct FramePart {
    pub(super) name: &'static str,
    pub(super) bytes: u32,
    pub(super) source: &'static str,
    /// Number of encapsulations around the part.
    pub(super) depth: usize,
    /// Where the part counts: `line` only, `underlay` towards the underlay's MTU too, or `guest`.
    pub(super) counts: &'static str,
}

impl Document {
    /// The document of one encapsulation. An MTU that does not fit is an error.
    pub(super) fn of_one(stack: &Stack, question: &Question) -> Result<Self, Box<dyn Error>> {
        let path = stack.over(question.underlay, question.guest)?;
        let sizes: Result<Vec<Size>, MtuError> = question.fits(&path).into_iter().collect();
        Ok(Self::new(
            question,
            vec![OverheadEntry::new(&path, sizes?, question)],
        ))
    }

    /// The document of every encapsulation of the catalogue. An error only where not even a packet without
    /// encapsulation fits.
    pub(super) fn of_all(question: &Question) -> Result<Self, MtuError> {
        let stacks = shown(question.underlay)
            .into_iter()
            .filter_map(|name| name.parse::<Stack>().ok());
        let mut encapsulations = Vec::new();
        for path in stacks.filter_map(|stack| stack.over(question.underlay, question.guest).ok()) {
            let fits = question.fits(&path);
            let sizes = if path.stack().is_none() {
                fits.into_iter().collect::<Result<_, _>>()?
            } else {
                let given = question.sizes.given();
                let pairs = fits.into_iter().zip(given);
                pairs
                    .map(|(fit, &mtu)| {
                        fit.unwrap_or_else(|error| question.sizes.impossible(mtu, &error))
                    })
                    .collect()
            };
            encapsulations.push(OverheadEntry::new(&path, sizes, question));
        }
        Ok(Self::new(question, encapsulations))
    }

    fn new(question: &Question, encapsulations: Vec<OverheadEntry>) -> Self {
        Self {
            underlay_ip: question.underlay,
            guest_ip: question.guest,
            rate_bps: question.rate_bps,
            given: match question.sizes {
                Sizes::Underlay(_) => "underlay",
                Sizes::Guest(_) => "guest",
            },
            encapsulations,
        }
    }
}

impl Sizes {
    fn given(&self) -> &[u32] {
        match self {
            Self::Underlay(given) | Self::Guest(given) => given,
        }
    }

    fn impossible(&self, mtu: u32, error: &MtuError) -> Size {
        let error = error.to_string();
        let (underlay_mtu, guest_mtu) = match self {
            Self::Underlay(_) => (Some(mtu), None),
            Self::Guest(_) => (None, Some(mtu)),
        };
        Size::Impossible {
            underlay_mtu,
            guest_mtu,
            error,
        }
    }
}

impl Question {
    /// The result for each MTU that was given.
    fn fits(&self, path: &Path) -> Vec<Result<Size, MtuError>> {
        let pair = |&mtu: &u32| match self.sizes {
            Sizes::Underlay(_) => path.guest_mtu(mtu).map(|guest| (mtu, guest)),
            Sizes::Guest(_) => path.underlay_mtu(mtu).map(|underlay| (underlay, mtu)),
        };
        let given = self.sizes.given().iter();
        given
            .map(|mtu| {
                pair(mtu).map(|(underlay, guest)| Size::Fits(self.fit(path, underlay, guest)))
            })
            .collect()
    }

    fn fit(&self, path: &Path, underlay_mtu: u32, guest_mtu: u32) -> FullSizeFrame {
        let frame = path.frame(guest_mtu, guest_mtu);
        let short = path.frame(SHORT_PACKET.min(guest_mtu), guest_mtu);
        let tcp_goodput_share = frame.tcp_goodput_share(self.guest);
        let per_second = |frame: &Frame| self.rate_bps.map(|rate| frame.per_second(rate));
        FullSizeFrame {
            underlay_mtu,
            guest_mtu,
            overhead_bytes: frame.underlay_bytes() - guest_mtu,
            unused_bytes: underlay_mtu - frame.underlay_bytes(),
            frame_bytes: frame.frame_bytes(),
            line_bytes: frame.line_bytes(),
            tcp_goodput_share,
            tcp_goodput_bps: self.rate_bps.map(|rate| tcp_goodput_share * rate as f64),
            frames_per_s: per_second(&frame),
            short: MinimumFrame {
                guest_bytes: short.guest_bytes(),
                line_bytes: short.line_bytes(),
                frames_per_s: per_second(&short),
            },
            parts: frame.parts().iter().map(FramePart::from).collect(),
        }
    }
}

impl OverheadEntry {
    fn new(path: &Path, sizes: Vec<Size>, question: &Question) -> Self {
        let stack = path.stack();
        let needs = USUAL_GUEST_MTUS.into_iter().filter_map(|guest_mtu| {
            let underlay_mtu = path.underlay_mtu(guest_mtu).ok()?;
            Some(RequiredUnderlayMtu {
                guest_mtu,
                underlay_mtu,
            })
        });
        Self {
            name: stack.to_string(),
            description: stack.describe(),
            sizes,
            needs: needs.collect(),
            notes: stack.notes(question.underlay),
        }
    }
}

impl From<&Part> for FramePart {
    fn from(part: &Part) -> Self {
        Self {
            name: part.name,
            bytes: part.bytes,
            source: part.source,
            depth: part.depth,
            counts: match part.place {
                FrameScope::Line => "line",
                FrameScope::Underlay => "underlay",
                FrameScope::Guest => "guest",
            },
        }
    }
}
