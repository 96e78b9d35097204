//! Addresses in a VRF: its sockets have to be bound to its device first (Documentation/networking/vrf.rst). Neither an
//! address of it nor a route is found otherwise.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use nix::net::if_::{if_nameindex, if_nametoindex};
use socket2::{Domain, Protocol, Socket, Type};

use crate::ethtool::Ethtool;

/// What the driver calls itself (drivers/net/vrf.c).
const DRIVER: &str = "vrf";

/// Binds a socket to an address of this host; where that is in a VRF, to its device first.
///
/// # Errors
/// `EADDRNOTAVAIL` where neither the host nor a VRF of it has the address.
pub fn bind_here(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match socket.bind(&address.into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            let Some(vrf) = vrf_of(address.ip())? else {
                return Err(error);
            };
            socket.bind_device(Some(vrf.as_bytes()))?;
            socket.bind(&address.into())
        }
        bound => bound,
    }
}

/// The VRF that has an address, of the calling thread's namespace. `None`: the address is in none.
///
/// # Errors
/// Where the devices cannot be listed, or no socket be made.
pub fn vrf_of(address: IpAddr) -> io::Result<Option<String>> {
    let at = SocketAddr::new(address, 0);
    if datagrams(at)?.bind(&at.into()).is_ok() {
        return Ok(None);
    }
    for vrf in vrfs()? {
        let socket = datagrams(at)?;
        socket.bind_device(Some(vrf.as_bytes()))?;
        if socket.bind(&at.into()).is_ok() {
            return Ok(Some(vrf));
        }
    }
    Ok(None)
}

/// The index of the device of the VRF that has an address; `None`: it is in none, or that cannot be determined.
pub fn vrf_index(address: IpAddr) -> Option<u32> {
    let vrf = vrf_of(address).ok().flatten()?;
    if_nametoindex(vrf.as_str()).ok()
}

/// The address that datagrams to `target` leave with, by the kernel's own lookup: connecting a socket sends nothing.
/// Where there is no route, a VRF may have one.
///
/// # Errors
/// Where nobody has one.
pub fn source_towards(target: SocketAddr) -> io::Result<IpAddr> {
    let source = |vrf: Option<&str>| -> io::Result<IpAddr> {
        let socket = datagrams(target)?;
        socket.bind_device(vrf.map(str::as_bytes))?;
        let socket = UdpSocket::from(socket);
        socket.connect(target)?;
        Ok(socket.local_addr()?.ip())
    };
    let plain = source(None);
    match &plain {
        Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable => {
            let vrfs = vrfs().unwrap_or_default();
            let mut found = vrfs.iter().filter_map(|vrf| source(Some(vrf)).ok());
            found.next().map_or(plain, Ok)
        }
        _ => plain,
    }
}

fn vrfs() -> io::Result<Vec<String>> {
    let ethtool = Ethtool::open()?;
    let devices = if_nameindex()?;
    let names = devices
        .iter()
        .map(|device| device.name().to_string_lossy().into_owned());
    Ok(names
        .filter(|name| ethtool.driver(name).is_ok_and(|driver| driver == DRIVER))
        .collect())
}

fn datagrams(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )
}
