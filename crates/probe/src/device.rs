//! The MTU of this host's own device towards a destination.

use std::io;
use std::net::{IpAddr, SocketAddr};

use wirecost_sys::socket::read_error_queue;

use crate::error::ProbeError;
use crate::flow::{self, EMSGSIZE};
use crate::survey::{Endpoints, LARGEST};

/// The longest IP packet without jumbograms, bytes (RFC 791, section 3.1).
const MAX_IP_BYTES: u32 = 65_535;
const ENOBUFS: i32 = 105;

/// The largest IP packet that this host's own device sends towards `to`, bytes: the MTU of the device that the route
/// leads to, whatever MTU the route or a too-big message set. The kernel names it when it refuses the largest UDP
/// datagram. Nothing leaves the host unless that datagram fits, as on a loopback device; the result is then 65535.
///
/// # Errors
/// There is no route, or `from` is not an address of this host.
pub fn device_mtu(from: IpAddr, to: SocketAddr) -> Result<u32, ProbeError> {
    let endpoints = Endpoints {
        from,
        first_port: 0,
        to,
    };
    endpoints.check(1)?;
    let socket = flow::open(0, endpoints.source(0), to)?;
    let Err(refused) = socket.send(&vec![0; LARGEST]) else {
        return Ok(MAX_IP_BYTES);
    };
    let failed = |source| ProbeError::Socket { to, source };
    // The datagram fits, and was dropped further down, as by a veth whose peer takes less
    // (`ip_send_skb` in net/ipv4/ip_output.c reports that where errors are queued).
    if refused.raw_os_error() == Some(ENOBUFS) {
        return Ok(MAX_IP_BYTES);
    }
    if refused.raw_os_error() != Some(EMSGSIZE) {
        return Err(failed(refused));
    }
    let queued = read_error_queue(&socket).map_err(failed)?;
    let mtu = queued.and_then(|error| error.mtu);
    mtu.map(|mtu| mtu.min(MAX_IP_BYTES)).ok_or_else(|| {
        failed(io::Error::other(
            "the kernel refused a large datagram and named no MTU",
        ))
    })
}
