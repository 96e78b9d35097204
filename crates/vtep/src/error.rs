//! Why a tunnel endpoint is not there.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

/// What went wrong, with the thing it went wrong with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoint cannot be as it was asked for.
    #[error("{0}")]
    Config(String),
    /// A device is missing or cannot be read or made.
    #[error("device {device}: {source}")]
    Device {
        /// Its name.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No route leads to a remote.
    #[error("no route to {address} by {device}: {source}")]
    Route {
        /// The remote.
        address: IpAddr,
        /// The underlay's device.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// eBPF is not allowed here.
    #[error(
        "the kernel does not let this process load eBPF programs: run as root outside of user namespaces (CAP_BPF, CAP_NET_ADMIN)"
    )]
    NotAllowed,
    /// The object with the programs could not be loaded.
    #[error("eBPF maps cannot be made: {0}")]
    Load(#[source] Box<EbpfError>),
    /// The kernel's verifier refused a program; its log is in the text.
    #[error(
        "the kernel refuses the eBPF program `{program}` (Linux 5.13 or later is needed): {source}"
    )]
    Refused {
        /// Which one.
        program: &'static str,
        /// With the verifier's log.
        source: Box<ProgramError>,
    },
    /// A program cannot be attached to a device.
    #[error("eBPF program `{program}` on {device}: {source}")]
    Attach {
        /// Which one.
        program: &'static str,
        /// To what.
        device: String,
        /// Why.
        source: Box<ProgramError>,
    },
    /// A table of the programs cannot be read or written.
    #[error("eBPF map `{map}`: {source}")]
    Map {
        /// Which one.
        map: &'static str,
        /// Why.
        source: Box<MapError>,
    },
    /// What was attached cannot be left to the kernel.
    #[error("pinning {}: {source}", path.display())]
    Pin {
        /// Its name on the BPF file system.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A table has no room left.
    #[error("no more than {most} {what}")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many there is room for.
        most: usize,
    },
    /// Something was named that the endpoint does not have.
    #[error("{0} is not attached to this endpoint")]
    Unknown(String),
}
