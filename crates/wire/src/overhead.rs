//! What an encapsulation costs, header by header: guest MTU, bytes on the line, what is left of the line's rate.
//!
//! An encapsulation is written from the guest outwards, `NAME[:OPTION[,OPTION]]` joined by `+`: each is carried by the
//! one to its right, so that `geneve:ovn+esp` is Geneve inside ESP. `vlan` and `qinq` right behind an encapsulation
//! that carries Ethernet frames tag the frame inside it and so take from the MTU (`vxlan+vlan`); `outer-vlan` and
//! `outer-qinq`, written last, tag the frame on the line and take nothing from the MTU. A single `vlan` is a tagged
//! line. What reads two ways is refused, with both ways to write it.
//!
//! The catalogue is data: per encapsulation its headers and trailers, each with its bytes and where they are defined.
//! Padding depends on the size of what is padded, so a guest MTU is searched for and not subtracted.

mod catalogue;
mod error;
mod frame;
mod parse;
mod path;
mod stack;

pub use catalogue::{Encapsulation, Header, every, shown};
pub use error::{MtuError, StackError};
pub use frame::{Frame, FrameScope, Part};
pub use path::{Path, min_mtu};
pub use stack::Stack;

/// The longest IP packet in bytes, without jumbograms (RFC 791, 3.1).
pub const MAX_MTU: u32 = 65_535;

#[cfg(test)]
mod tests;
