//! The Geneve header and its options (RFC 8926, sections 3.4 and 3.5).

mod error;
#[cfg(test)]
mod tests;

pub use error::{BuildError, ReadError};

use wirecost_model::plan::GeneveOptions;

/// Identifies one overlay segment on an underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeneveId {
    /// UDP destination port; IANA's is [`PORT`].
    pub port: u16,
    /// Virtual network identifier, below 2^24.
    pub vni: u32,
}

/// IANA's UDP destination port.
pub const PORT: u16 = 6081;
/// Length of the header without options, in bytes.
pub const HEADER_BYTES: usize = 8;
/// Largest length of all options, bytes: the header counts them in six bits, in words of four bytes.
pub const MOST_OPTION_BYTES: usize = 63 * 4;
/// Largest length of the data of one option, bytes: counted in five bits, in words of four bytes.
pub const MOST_DATA_BYTES: usize = 31 * 4;
/// Protocol type of an Ethernet frame inside (Transparent Ethernet Bridging).
pub const ETHERNET: u16 = 0x6558;

const OPTION_HEADER_BYTES: usize = 4;
const FLAG_CONTROL: u8 = 0x80;
const FLAG_CRITICAL: u8 = 0x40;
const TYPE_CRITICAL: u8 = 0x80;
/// First class for experiments (RFC 8926, section 7).
const EXPERIMENTAL: u16 = 0xff00;

/// One option; its data is in frame format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeneveOption<'a> {
    /// Option class: the organisation that defines the type.
    pub class: u16,
    /// Option type. If its highest bit is set, an endpoint that does not know the option drops the packet.
    pub kind: u8,
    /// Data of the option; its length is a multiple of four bytes, at most [`MOST_DATA_BYTES`].
    pub data: &'a [u8],
}

impl GeneveOption<'_> {
    /// Whether an endpoint that does not know the option must drop the packet.
    pub const fn is_critical(&self) -> bool {
        self.kind & TYPE_CRITICAL != 0
    }
}

/// Well-formed options in frame format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Options {
    bytes: Vec<u8>,
}

impl Options {
    /// No options.
    pub const fn none() -> Self {
        Self { bytes: Vec::new() }
    }

    /// The option that OVN puts into every packet, with ingress and egress logical port
    /// (ovn-architecture(7), "Tunnel Encapsulations"): class 0x0102, type 0x80, four bytes of data,
    /// critical.
    pub fn ovn(ingress: u16, egress: u16) -> Self {
        let value = u32::from(ingress & 0x7fff) << 16 | u32::from(egress);
        let mut options = Self::none();
        options
            .push(GeneveOption {
                class: 0x0102,
                kind: 0x80,
                data: &value.to_be_bytes(),
            })
            .expect("eight bytes fit");
        options
    }

    /// Options of an experimental class that take `bytes` of the header, to measure their cost.
    /// They are not critical, and their data is zero.
    ///
    /// # Errors
    /// `bytes` is not a multiple of four, or above [`MOST_OPTION_BYTES`].
    pub fn of_size(bytes: usize) -> Result<Self, BuildError> {
        if !bytes.is_multiple_of(4) {
            return Err(BuildError::NotWords(bytes));
        }
        if bytes > MOST_OPTION_BYTES {
            return Err(BuildError::TooMany(bytes));
        }
        let mut options = Self::none();
        while options.bytes.len() < bytes {
            let data = (bytes - options.bytes.len() - OPTION_HEADER_BYTES).min(MOST_DATA_BYTES);
            options.push(GeneveOption {
                class: EXPERIMENTAL,
                kind: 0x01,
                data: &[0; MOST_DATA_BYTES][..data],
            })?;
        }
        Ok(options)
    }

    /// Appends an option.
    ///
    /// # Errors
    /// The length of its data is not a multiple of four bytes or too large, or no room is left.
    pub fn push(&mut self, option: GeneveOption<'_>) -> Result<(), BuildError> {
        let data = option.data.len();
        if !data.is_multiple_of(4) {
            return Err(BuildError::NotWords(data));
        }
        if data > MOST_DATA_BYTES {
            return Err(BuildError::DataTooLong(data));
        }
        let total = self.bytes.len() + OPTION_HEADER_BYTES + data;
        if total > MOST_OPTION_BYTES {
            return Err(BuildError::TooMany(total));
        }
        self.bytes.extend(option.class.to_be_bytes());
        self.bytes.extend([option.kind, (data / 4) as u8]);
        self.bytes.extend(option.data);
        Ok(())
    }

    /// The options that a plan asks for: OVN's, with ports 1 and 2, or a number of bytes.
    ///
    /// # Errors
    /// As [`Options::of_size`].
    pub fn of_plan(options: GeneveOptions) -> Result<Self, BuildError> {
        match options {
            GeneveOptions::Ovn => Ok(Self::ovn(1, 2)),
            GeneveOptions::Bytes(bytes) => Self::of_size(bytes.into()),
        }
    }

    /// The options in frame format; the length is a multiple of four bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The options in their order.
    pub fn iter(&self) -> impl Iterator<Item = GeneveOption<'_>> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (option, behind) = next_option(rest).ok()??;
            rest = behind;
            Some(option)
        })
    }

    /// Whether an option is critical: the header then has flag C.
    pub fn are_critical(&self) -> bool {
        self.iter().any(|option| option.is_critical())
    }
}

/// The header for an Ethernet frame in segment `vni` with `options`; only the low 24 bits of `vni` are used.
pub fn header(vni: u32, options: &Options) -> Vec<u8> {
    let words = (options.bytes.len() / 4) as u8;
    let flags = if options.are_critical() {
        FLAG_CRITICAL
    } else {
        0
    };
    let [p0, p1] = ETHERNET.to_be_bytes();
    let [_, v0, v1, v2] = vni.to_be_bytes();
    let mut bytes = vec![words, flags, p0, p1, v0, v1, v2, 0];
    bytes.extend(&options.bytes);
    bytes
}

/// A parsed header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geneve<'a> {
    /// Virtual network identifier, below 2^24.
    pub vni: u32,
    /// Flag O: a control packet, which carries no data of the overlay.
    pub control: bool,
    /// Flag C: some option is critical.
    pub critical: bool,
    /// Ethernet type of the payload.
    pub protocol: u16,
    /// The options in their order.
    pub options: Vec<GeneveOption<'a>>,
    /// The bytes after header and options.
    pub payload: &'a [u8],
}

/// Parses a header with all its options. Reserved bits are ignored, as the RFC requires.
///
/// # Errors
/// The packet or its options end too early, or the version is unknown.
pub fn read(bytes: &[u8]) -> Result<Geneve<'_>, ReadError> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(ReadError::Short(bytes.len()));
    };
    let [first, flags, p0, p1, v0, v1, v2, _] = *header;
    if first >> 6 != 0 {
        return Err(ReadError::Version(first >> 6));
    }
    let length = usize::from(first & 0x3f) * 4;
    let Some((mut behind, payload)) = rest.split_at_checked(length) else {
        return Err(ReadError::OptionsBeyondPacket {
            said: length,
            there: rest.len(),
        });
    };
    let mut options = Vec::new();
    while let Some((option, rest)) = next_option(behind)? {
        options.push(option);
        behind = rest;
    }
    Ok(Geneve {
        vni: u32::from_be_bytes([0, v0, v1, v2]),
        control: flags & FLAG_CONTROL != 0,
        critical: flags & FLAG_CRITICAL != 0,
        protocol: u16::from_be_bytes([p0, p1]),
        options,
        payload,
    })
}

/// Parses the first option and returns it with the bytes after it; `None` at the end.
fn next_option(bytes: &[u8]) -> Result<Option<(GeneveOption<'_>, &[u8])>, ReadError> {
    let Some((header, rest)) = bytes.split_first_chunk::<OPTION_HEADER_BYTES>() else {
        // All lengths are multiples of four, so fewer bytes than an option's header are none.
        return Ok(None);
    };
    let [c0, c1, kind, length] = *header;
    let said = usize::from(length & 0x1f) * 4;
    let Some((data, behind)) = rest.split_at_checked(said) else {
        return Err(ReadError::OptionBeyondOptions {
            said,
            there: rest.len(),
        });
    };
    let option = GeneveOption {
        class: u16::from_be_bytes([c0, c1]),
        kind,
        data,
    };
    Ok(Some((option, behind)))
}
