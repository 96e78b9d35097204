//! Addresses in a VRF: a socket has to be bound to the VRF's device first (Documentation/networking/vrf.rst). Otherwise
//! the kernel finds neither the VRF's addresses nor its routes.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{PoisonError, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use nix::net::if_::{if_nameindex, if_nametoindex};
use socket2::{Domain, Protocol, Socket, Type};

use crate::ethtool::Ethtool;

/// Name of the VRF driver (drivers/net/vrf.c).
const DRIVER: &str = "vrf";

/// Devices of link-local addresses, as set by [`use_link_device`]: the same address may be on several devices.
static LINKS: RwLock<Vec<(IpAddr, String)>> = RwLock::new(Vec::new());

/// Makes [`bind_here`] bind every socket of this process with this link-local address to the device first.
pub fn use_link_device(address: IpAddr, device: &str) {
    let mut links = LINKS.write().unwrap_or_else(PoisonError::into_inner);
    links.retain(|(known, _)| *known != address);
    links.push((address, device.to_owned()));
}

/// Device that [`use_link_device`] has set for a link-local address.
pub fn link_device(address: IpAddr) -> Option<String> {
    let links = LINKS.read().unwrap_or_else(PoisonError::into_inner);
    let mut known = links.iter().filter(|(known, _)| *known == address);
    known.next().map(|(_, device)| device.clone())
}

/// Binds a socket to an address of this host; where the address is in a VRF, or link-local, to its device first. Waits
/// for an IPv6 address that is still tentative.
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

/// Waits until duplicate address detection of an address of the calling thread's namespace is over (RFC 4862, section
/// 5.4: a tentative address cannot be bound, for a second or two). `false`: the address is not tentative, or stays so
/// for too long.
fn was_tentative(address: IpAddr) -> bool {
    const TIMEOUT: Duration = Duration::from_secs(4);
    const INTERVAL: Duration = Duration::from_millis(20);
    let IpAddr::V6(address) = address else {
        return false;
    };
    let began = Instant::now();
    while is_tentative(address) {
        if began.elapsed() > TIMEOUT {
            return false;
        }
        sleep(INTERVAL);
    }
    began.elapsed() >= INTERVAL
}

/// Whether an address is tentative. The file has one line per address: its digits, and as the fifth word its flags
/// (net/ipv6/addrconf.c, `if6_seq_show`).
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

/// VRF of the calling thread's namespace that has an address. `None`: no VRF has it.
///
/// # Errors
/// Fails where the devices cannot be listed, or a socket cannot be created.
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

/// Index of the device of the VRF that has an address, or of a link-local address's own device. `None`: there is
/// neither, or that cannot be determined.
pub fn vrf_index(address: IpAddr) -> Option<u32> {
    let device = link_device(address).or_else(|| vrf_of(address).ok().flatten())?;
    if_nametoindex(device.as_str()).ok()
}

/// Source address of datagrams to `target`, by the kernel's own lookup: connecting a socket sends nothing. Without a
/// route the VRFs are tried.
///
/// # Errors
/// Fails where neither the namespace nor a VRF has a route.
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
