//! A tunnel by hand: for trying applications over an encapsulation, between two network namespaces or this host and
//! a peer. It outlives the command that made it: devices are the kernel's, the programs on them are pinned.
//!
//! What was made is noted before it is made, so that `down` and `clean` find all of it, a half of it included.

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

/// Longest name of a tunnel in bytes: its port's device has one letter and a sign more, and devices 15.
pub const NAME_MAX: usize = 13;

/// What a tunnel is to be.
#[derive(Debug, Clone)]
pub struct TunnelSpec {
    /// Letters, digits and `-`, at most [`NAME_MAX`]: the guest's device is called so.
    pub name: String,
    /// How frames cross the underlay.
    pub encapsulation: Encapsulation,
    /// MTU of the guest's device in bytes; `None` is 1500, or what the underlay leaves where that is less.
    pub mtu: Option<u32>,
    /// Where its ends are.
    pub between: TunnelEnds,
}

/// Where a tunnel's ends are.
#[derive(Debug, Clone)]
pub enum TunnelEnds {
    /// Two network namespaces that are made for it, NAME-a and NAME-b, joined by an underlay of their own.
    Namespaces {
        /// Which IP the underlay speaks.
        underlay: IpVersion,
    },
    /// This host and one where the same is done the other way round.
    Peer {
        /// The peer's address on the underlay.
        peer: IpAddr,
        /// The underlay's device; `None` is the one that has the address which packets to the peer leave with.
        underlay: Option<String>,
        /// The guest's own address, and the length of its network's prefix.
        address: (IpAddr, u8),
        /// A bridge of this host's own Open vSwitch that guest and tunnel become ports of, instead of eBPF.
        bridge: Option<String>,
    },
}

/// # Errors
/// In words: a name that devices cannot have.
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

/// Runs `work` in an end's namespace. `None`: it is gone.
fn within<T>(end: &TunnelEnd, work: impl FnOnce() -> T) -> Result<Option<T>> {
    let Some(name) = &end.namespace else {
        return Ok(Some(work()));
    };
    let entered = Netns::named(name).and_then(|netns| netns.within(work));
    match entered {
        Ok(done) => Ok(Some(done)),
        // The name is gone, or nothing is behind it any more.
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
