//! What this host's own device takes towards a destination.

use std::io;
use std::net::{IpAddr, SocketAddr};

use wirecost_sys::socket::read_error_queue;

use crate::error::ProbeError;
use crate::flow::{self, EMSGSIZE};
use crate::survey::{Endpoints, LARGEST};

/// The longest IP packet without jumbograms, bytes (RFC 791, section 3.1).
const LONGEST: u32 = 65_535;
const ENOBUFS: i32 = 105;

/// The largest IP packet that this host's own device sends towards `to`, bytes: the MTU of the device that the route
/// leads to, whatever MTU the route or a too-big message set. It is what the kernel says when it refuses the largest
/// datagram there is; nothing leaves, unless that fits (a loopback device), and then 65535.
///
/// # Errors
/// Where there is no route, or `from` is not this host's.
pub fn device_mtu(from: IpAddr, to: SocketAddr) -> Result<u32, ProbeError> {
    let endpoints = Endpoints {
        from,
        first_port: 0,
        to,
    };
    endpoints.check(1)?;
    let socket = flow::open(0, endpoints.source(0), to)?;
    let Err(refused) = socket.send(&vec![0; LARGEST]) else {
        return Ok(LONGEST);
    };
    let failed = |source| ProbeError::Socket { to, source };
    // It fits, and was dropped further down, as by a veth whose other end takes less (net/ipv4/ip_output.c,
    // `ip_send_skb` tells that where errors are queued).
    if refused.raw_os_error() == Some(ENOBUFS) {
        return Ok(LONGEST);
    }
    if refused.raw_os_error() != Some(EMSGSIZE) {
        return Err(failed(refused));
    }
    let queued = read_error_queue(&socket).map_err(failed)?;
    let mtu = queued.and_then(|error| error.mtu);
    mtu.map(|mtu| mtu.min(LONGEST)).ok_or_else(|| {
        failed(io::Error::other(
            "the kernel refused a large datagram and named no MTU",
        ))
    })
}
