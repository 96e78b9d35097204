//! Link-local addresses, each of which belongs to the link of one device.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use wirecost_agent::link::Link;
use wirecost_agent::protocol::{PathReply, PathRequest, Reply, Request};
use wirecost_model::host::{HostAddress, Location};

use super::{AddressError, HostsError};
use crate::timeouts::PROMPT;

/// The link-local address of a device: `address` where that is given. From then on the agent binds its sockets at this
/// address to the device.
///
/// # Errors
/// Where the device does not have the address, or no link-local address.
pub fn on_device(
    link: &mut Link,
    place: &Location,
    (device, address): (&str, Option<IpAddr>),
    interrupt: &AtomicBool,
) -> Result<IpAddr, HostsError> {
    let request = PathRequest::OnLink {
        device: device.to_owned(),
        address,
    };
    let request = Request::Path(Box::new(request));
    if let Reply::Path(reply) = link.call(&request, PROMPT, interrupt)?
        && let PathReply::OnLink(found) = *reply
    {
        return found.ok_or_else(|| {
            let missing = AddressError::NotOnLink {
                host: place.to_string(),
                device: device.to_owned(),
                address,
            };
            missing.into()
        });
    }
    Err(link.unexpected_reply("OnLink").into())
}

/// The addresses of both hosts where both are link-local; `None`: neither is.
///
/// # Errors
/// Where only one is, or a device does not have its address.
pub fn link_local(
    hosts: [&HostAddress; 2],
    links: [&mut Link; 2],
    interrupt: &AtomicBool,
) -> Result<Option<[IpAddr; 2]>, HostsError> {
    let devices = hosts.map(|host| host.device.as_deref());
    let [Some(first), Some(second)] = devices else {
        return match devices.iter().position(Option::is_some) {
            None => Ok(None),
            Some(linked) => {
                let host = hosts[1 - linked].place.to_string();
                Err(AddressError::NoLink { host }.into())
            }
        };
    };
    let [a, b] = hosts;
    let [a_link, b_link] = links;
    Ok(Some([
        on_device(a_link, &a.place, (first, a.data), interrupt)?,
        on_device(b_link, &b.place, (second, b.data), interrupt)?,
    ]))
}
