//! Errors of probing: the step that failed, and what to do.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// Why a path could not be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The socket of a flow could not be opened.
    #[error("opening flow {flow} from {from} to {to}: {source}{}", hint(.source))]
    Flow {
        /// Number of the flow, from 0.
        flow: u32,
        /// Address to bind.
        from: SocketAddr,
        /// Destination address.
        to: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A socket of the responder could not be opened.
    #[error("opening a responder on {address}: {source}{}", hint(.source))]
    Responder {
        /// Address to bind.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// Receiving on a port that another socket owns is not possible.
    #[error(
        "listening on {address} beside the tunnel or program that has the port: {source} (this needs CAP_NET_RAW: run as \
         root, or take another port)"
    )]
    Tap {
        /// Address to listen on.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The socket for echo requests could not be opened.
    #[error(
        "sending echo requests to {to}: {source} (this needs CAP_NET_RAW, or a group in net.ipv4.ping_group_range: \
         `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`)"
    )]
    Echo {
        /// Destination address.
        to: IpAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// Source and destination have different IP versions.
    #[error("{from} and {to} are of different IP versions")]
    Versions {
        /// Source address.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
    },
    /// The flows need ports above 65535.
    #[error(
        "{flows} flows from port {first} need ports above 65535: take fewer flows, or a lower first port"
    )]
    Ports {
        /// Number of flows asked for.
        flows: u32,
        /// The first port.
        first: u16,
    },
    /// Reading or sending failed for a reason other than the path.
    #[error("probing {to}: {source}")]
    Socket {
        /// Destination address.
        to: SocketAddr,
        /// The kernel's error.
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
