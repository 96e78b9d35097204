//! Tunnels made by hand, to try applications over an encapsulation: between two network namespaces, or between this
//! host and a peer. A tunnel outlives the command that made it: devices belong to the kernel, and eBPF programs are
//! pinned.
//!
//! Everything is recorded in a state file before it is made, so that `down` and `clean` find all of an incomplete
//! tunnel, too.

mod bridge;
mod down;
mod end;
mod state;
mod status;
mod up;

use std::io;
use std::net::IpAddr;

use wirecost_model::ip::IpVersion;
use wirecost_model::plan::Encapsulation;
use wirecost_sys::namespace::Netns;

use crate::error::Result;

pub use down::{CleanedTunnels, clean, down};
pub use state::{TunnelEnd, TunnelState};
pub use status::{TunnelStatus, all};
pub use up::up;

/// Upper bound on the length of a tunnel's name, bytes: its port's device is named with 2 characters more, and names of
/// devices have at most 15.
pub const NAME_MAX: usize = 13;

/// The tunnel to make.
#[derive(Debug, Clone)]
pub struct TunnelSpec {
    /// Name of the tunnel and of the guest's device: letters, digits and `-`, at most [`NAME_MAX`].
    pub name: String,
    /// Encapsulation of frames on the underlay.
    pub encapsulation: Encapsulation,
    /// MTU of the guest's device, bytes; `None`: 1500, or what the underlay leaves where that is less.
    pub mtu: Option<u32>,
    /// The places of the ends.
    pub between: TunnelEnds,
}

/// The places of a tunnel's ends.
#[derive(Debug, Clone)]
pub enum TunnelEnds {
    /// Two new network namespaces, NAME-a and NAME-b, joined by an underlay of their own.
    Namespaces {
        /// IP version of the underlay.
        underlay: IpVersion,
    },
    /// This host and a peer, where the same is done with the addresses exchanged.
    Peer {
        /// Address of the peer on the underlay.
        peer: IpAddr,
        /// Name of the underlay's device; `None`: the device with the source address of packets to the peer.
        underlay: Option<String>,
        /// Address of the guest, and the length of its prefix in bits.
        address: (IpAddr, u8),
        /// A bridge of this host's Open vSwitch that guest and tunnel become ports of, instead of eBPF.
        bridge: Option<String>,
    },
}

/// Checks that a tunnel's name can be the name of devices.
///
/// # Errors
/// The name is empty, too long, or has other characters than letters, digits and `-`.
pub fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fits) {
        return Err(format!(
            "a tunnel cannot be named `{name}`: use letters, digits and `-`, at most {NAME_MAX}; devices are named \
             after it"
        ).into());
    }
    Ok(())
}

/// Runs `work` in an end's namespace. `None`: the namespace is gone.
fn within<T>(end: &TunnelEnd, work: impl FnOnce() -> T) -> Result<Option<T>> {
    let Some(name) = &end.namespace else {
        return Ok(Some(work()));
    };
    let entered = Netns::named(name).and_then(|netns| netns.within(work));
    match entered {
        Ok(done) => Ok(Some(done)),
        // The name does not exist, or refers to no namespace any more.
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(format!("entering network namespace {name}: {error}").into()),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
    )
}
