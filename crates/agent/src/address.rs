//! A host's own addresses, and the source address that the kernel would use.

use std::io;
use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

use wirecost_sys::socket::{source_towards, use_link_device};

use crate::protocol::OwnAddress;

/// UDP port of a connected socket that sends nothing; any would do. This is the discard port (RFC 863).
pub(crate) const DISCARD: u16 = 9;

/// The host's addresses that other hosts may reach, of devices that are up: neither loopback nor link-local addresses.
pub(crate) fn own() -> io::Result<Vec<OwnAddress>> {
    let mut own = Vec::new();
    for entry in getifaddrs()? {
        // The loopback device is included: on routers it may have addresses that the whole network routes to.
        let usable = entry.flags.contains(InterfaceFlags::IFF_UP);
        let address = entry.address.as_ref().and_then(ip).filter(is_global);
        if let (true, Some(address)) = (usable, address) {
            own.push(OwnAddress {
                device: entry.interface_name,
                address,
                prefix: entry.netmask.as_ref().and_then(ip).map_or(0, ones),
            });
        }
    }
    Ok(own)
}

/// Name of the device that has this address; `None` where no device has it.
pub(crate) fn device_of(address: IpAddr) -> io::Result<Option<String>> {
    let found = getifaddrs()?.find(|entry| entry.address.as_ref().and_then(ip) == Some(address));
    Ok(found.map(|entry| entry.interface_name))
}

/// The link-local address of a device, or `wanted` where the device has that; `None` where it has none such. From then
/// on, sockets at this address use this device.
pub(crate) fn on_link(device: &str, wanted: Option<IpAddr>) -> io::Result<Option<IpAddr>> {
    let link_local =
        |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let found = getifaddrs()?
        .filter(|entry| entry.interface_name == device)
        .filter_map(|entry| entry.address.as_ref().and_then(ip))
        .find(|address| link_local(address) && wanted.is_none_or(|wanted| wanted == *address));
    if let Some(address) = found {
        use_link_device(address, device);
    }
    Ok(found)
}

/// The source address of packets to `target`, from the kernel's route lookup: nothing is sent.
pub(crate) fn towards(target: IpAddr) -> io::Result<IpAddr> {
    source_towards(SocketAddr::new(target, DISCARD))
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}

fn is_global(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}

/// Length of a prefix in bits, from its mask.
fn ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(v4) => v4.to_bits().leading_ones(),
        IpAddr::V6(v6) => v6.to_bits().leading_ones(),
    };
    ones as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_loopback_is_the_loopback_and_it_is_no_address_for_others() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(towards(loopback).expect("lo is up"), loopback);
        let own = own().expect("addresses");
        assert!(own.iter().all(|own| own.address != loopback), "{own:?}");
    }

    #[test]
    fn a_mask_is_as_long_as_its_ones() {
        assert_eq!(ones([255, 255, 240, 0].into()), 20);
        assert_eq!(ones("ffff:ffff:ffff:ffff::".parse().expect("mask")), 64);
    }
}
