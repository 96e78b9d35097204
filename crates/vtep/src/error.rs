//! Errors of a tunnel endpoint.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

/// An error of a tunnel endpoint, with the object that it concerns.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(String),
    /// A device is missing, or cannot be read or made.
    #[error("device {device}: {source}")]
    Device {
        /// Name of the device.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// No route leads to a remote.
    #[error("no route to {address} by {device}: {source}")]
    Route {
        /// Address of the remote.
        address: IpAddr,
        /// Name of the underlay device.
        device: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// This process may not load eBPF programs.
    #[error(
        "the kernel does not let this process load eBPF programs: run as root outside of user namespaces (CAP_BPF, CAP_NET_ADMIN)"
    )]
    NotAllowed,
    /// The object with the maps and programs could not be loaded.
    #[error("eBPF maps cannot be made: {0}")]
    Load(#[source] Box<EbpfError>),
    /// The kernel's verifier refused a program; the text has its log.
    #[error(
        "the kernel refuses the eBPF program `{program}` (Linux 5.17 or later is needed): {source}"
    )]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// The kernel's error with the verifier's log.
        source: Box<ProgramError>,
    },
    /// A program cannot be attached to, or detached from, a device.
    #[error("eBPF program `{program}` on {device}: {source}")]
    Attach {
        /// Name of the program.
        program: &'static str,
        /// Name of the device.
        device: String,
        /// The cause.
        source: Box<ProgramError>,
    },
    /// The kernel has no hook whose programs end with the process.
    #[error(
        "the kernel has no tcx (Linux 6.6): a program that is attached to {device} in another way stays there if this \
         process is killed"
    )]
    NoTcx {
        /// Name of the device.
        device: String,
    },
    /// A map cannot be read or written.
    #[error("eBPF map `{map}`: {source}")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// The cause.
        source: Box<MapError>,
    },
    /// A link or map cannot be pinned.
    #[error("pinning {}: {source}", path.display())]
    Pin {
        /// Path on the BPF file system.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A map is full.
    #[error("no more than {most} {what}")]
    Full {
        /// What the map holds, in the plural.
        what: &'static str,
        /// Number of entries that the map holds at most.
        most: usize,
    },
    /// A device or remote does not belong to this endpoint.
    #[error("{0} is not attached to this endpoint")]
    Unknown(String),
}
