//! Steps after the creation of a device of any kind: set it up, make it a bridge port, compare it with what was wanted.

use crate::device::{self, Change};
use crate::error::{BuildError, Context, same};
use crate::netlink::Netlink;

pub(crate) fn has_queues(
    name: &str,
    device: &device::Device,
    queues: u32,
) -> Result<(), BuildError> {
    for (which, found) in [
        ("transmit", device.tx_queues),
        ("receive", device.rx_queues),
    ] {
        // A number that the kernel does not report is not compared.
        let found = found.unwrap_or(queues);
        same(|| format!("{which} queues of `{name}`"), &queues, &found)?;
    }
    Ok(())
}

pub(crate) fn up(netlink: &mut Netlink, name: &str) -> Result<(), BuildError> {
    Change {
        up: true,
        ..Change::default()
    }
    .apply(netlink, name)
    .with_context(|| format!("setting `{name}` up"))?;
    let device = device::read(netlink, name).with_context(|| format!("reading `{name}` back"))?;
    same(|| format!("state of `{name}`"), &true, &device.up)
}

pub(crate) fn enslave(netlink: &mut Netlink, name: &str, bridge: u32) -> Result<(), BuildError> {
    Change {
        controller: Some(bridge),
        up: true,
        ..Change::default()
    }
    .apply(netlink, name)
    .with_context(|| format!("making `{name}` a port of the bridge"))?;
    let device = device::read(netlink, name).with_context(|| format!("reading `{name}` back"))?;
    same(
        || format!("bridge of `{name}`"),
        &bridge,
        &device.controller.unwrap_or(0),
    )
}
