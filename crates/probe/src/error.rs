//! What went wrong while probing: the step, and what to do.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why a path could not be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A flow's socket.
    #[error("opening flow {flow} from {from} to {to}: {source}{}", hint(.source))]
    Flow {
        /// Counts from 0.
        flow: u32,
        /// Where it was to be bound.
        from: SocketAddr,
        /// Destination address.
        to: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The responder's socket.
    #[error("opening a responder on {address}: {source}{}", hint(.source))]
    Responder {
        /// Where.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Receiving on a port that another socket owns.
    #[error(
        "listening on {address} beside the tunnel or program that has the port: {source} (this needs CAP_NET_RAW: run as \
         root, or take another port)"
    )]
    Tap {
        /// Where.
        address: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The socket for echo requests.
    #[error(
        "sending echo requests to {to}: {source} (this needs CAP_NET_RAW, or a group in net.ipv4.ping_group_range: \
         `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`)"
    )]
    Echo {
        /// Destination address.
        to: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Source and destination are of different IP versions.
    #[error("{from} and {to} are of different IP versions")]
    Versions {
        /// The source.
        from: IpAddr,
        /// The destination.
        to: IpAddr,
    },
    /// There are not so many ports.
    #[error(
        "{flows} flows from port {first} need ports above 65535: take fewer flows, or a lower first port"
    )]
    Ports {
        /// How many were asked for.
        flows: u32,
        /// The first port.
        first: u16,
    },
    /// Reading or sending failed for a reason that is not the path's.
    #[error("probing {to}: {source}")]
    Socket {
        /// Destination address.
        to: SocketAddr,
        /// The kernel's answer.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            " (something else has the port: a tunnel's port is its own while the tunnel is there; take another)"
        }
        io::ErrorKind::AddrNotAvailable => " (this host has no such address: see `ip addr`)",
        io::ErrorKind::NetworkUnreachable => " (there is no route: see `ip route get`)",
        _ => "",
    }
}
