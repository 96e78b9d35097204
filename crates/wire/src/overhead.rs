//! The cost of an encapsulation, header by header: guest MTU, bytes on the line, and the share left
//! of the line's rate.
//!
//! An encapsulation is written from the guest outwards, as `NAME[:OPTION[,OPTION]]` joined by `+`.
//! Each is carried by the one to its right: `geneve:ovn+esp` is Geneve inside ESP. `vlan` and
//! `qinq` right after an encapsulation that carries Ethernet frames tag the inner frame and so
//! reduce the MTU (`vxlan+vlan`). `outer-vlan` and `outer-qinq`, written last, tag the frame on the
//! line and do not. A single `vlan` is a tagged line. Ambiguous expressions are refused, with both
//! ways to write them.
//!
//! The catalogue is data: for each encapsulation its headers and trailers, with their lengths and
//! sources. Padding depends on the size of what is padded, so guest MTUs are searched for and not
//! subtracted.

mod catalogue;
mod error;
mod frame;
mod parse;
mod path;
mod stack;

pub use catalogue::{CatalogueEntry, Header, every, shown};
pub use error::{MtuError, StackError};
pub use frame::{Frame, FrameScope, Part};
pub use path::{Path, min_mtu};
pub use stack::Stack;

/// The longest IP packet in bytes, without jumbograms (RFC 791, 3.1).
pub const MAX_MTU: u32 = 65_535;

#[cfg(test)]
mod tests;
