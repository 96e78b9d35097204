//! Addresses in a VRF: its sockets have to be bound to its device first (Documentation/networking/vrf.rst). Neither an
//! address of it nor a route is found otherwise.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{PoisonError, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use nix::net::if_::{if_nameindex, if_nametoindex};
use socket2::{Domain, Protocol, Socket, Type};

use crate::ethtool::Ethtool;

/// What the driver calls itself (drivers/net/vrf.c).
const DRIVER: &str = "vrf";

/// Devices of link-local addresses, which are the same on several devices: as they were given for this process.
static LINKS: RwLock<Vec<(IpAddr, String)>> = RwLock::new(Vec::new());

/// Has every socket of this process that is bound to a link-local address of this host be bound to this device first.
pub fn use_link_device(address: IpAddr, device: &str) {
    let mut links = LINKS.write().unwrap_or_else(PoisonError::into_inner);
    links.retain(|(known, _)| *known != address);
    links.push((address, device.to_owned()));
}

/// The device that was given for a link-local address.
pub fn link_device(address: IpAddr) -> Option<String> {
    let links = LINKS.read().unwrap_or_else(PoisonError::into_inner);
    let mut known = links.iter().filter(|(known, _)| *known == address);
    known.next().map(|(_, device)| device.clone())
}

/// Binds a socket to an address of this host; where that is in a VRF, or link-local, to its device first. An IPv6 address
/// that is new is waited for.
///
/// # Errors
/// `EADDRNOTAVAIL` where neither the host nor a VRF of it has the address.
pub fn bind_here(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if let Some(device) = link_device(address.ip()) {
        socket.bind_device(Some(device.as_bytes()))?;
        return socket.bind(&address.into());
    }
    match socket.bind(&address.into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            if was_tentative(address.ip()) {
                return socket.bind(&address.into());
            }
            let Some(vrf) = vrf_of(address.ip())? else {
                return Err(error);
            };
            socket.bind_device(Some(vrf.as_bytes()))?;
            socket.bind(&address.into())
        }
        bound => bound,
    }
}

/// Waits for the end of duplicate address detection of an address of the calling thread's namespace (RFC 4862, section 5.4:
/// it cannot be bound before, for a second or two); `false`: there is none.
fn was_tentative(address: IpAddr) -> bool {
    const AT_MOST: Duration = Duration::from_secs(4);
    const OFTEN: Duration = Duration::from_millis(20);
    let IpAddr::V6(address) = address else {
        return false;
    };
    let began = Instant::now();
    while is_tentative(address) {
        if began.elapsed() > AT_MOST {
            return false;
        }
        sleep(OFTEN);
    }
    began.elapsed() >= OFTEN
}

/// One line an address: its digits, and as the fifth word its flags (net/ipv6/addrconf.c, `if6_seq_show`).
fn is_tentative(address: Ipv6Addr) -> bool {
    /// `IFA_F_TENTATIVE` without `IFA_F_DADFAILED` (linux/if_addr.h).
    const FLAGS: (u8, u8) = (0x48, 0x40);
    let digits = format!("{:032x}", address.to_bits());
    let all = fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    let mut own = all.lines().filter(|line| line.starts_with(&digits));
    own.any(|line| {
        let flags = line.split_whitespace().nth(4).unwrap_or_default();
        u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & FLAGS.0 == FLAGS.1)
    })
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

/// The index of the device of the VRF that has an address, or of a link-local address's own; `None`: it is in none, or
/// that cannot be determined.
pub fn vrf_index(address: IpAddr) -> Option<u32> {
    let device = link_device(address).or_else(|| vrf_of(address).ok().flatten())?;
    if_nametoindex(device.as_str()).ok()
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
