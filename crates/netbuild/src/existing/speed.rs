//! Speed of a device's link: a limit, or a constant of its driver.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoVxlan, LinkAttribute, LinkInfo, LinkMessage};
use serde::{Deserialize, Serialize};

use crate::netlink::Netlink;

/// Kinds of devices whose speed is a constant of their driver (drivers/net/veth.c, drivers/net/tun.c).
const NOMINAL: [&str; 2] = ["veth", "tun"];
/// Kinds of devices that report the speed of the devices that they are made on.
const OF_LOWER: [&str; 7] = [
    "bridge", "vlan", "macvlan", "ipvlan", "bond", "team", "vxlan",
];
/// Most devices on top of one another (`MAX_NEST_DEV` of include/linux/netdevice.h).
const MAX_NEST: u32 = 8;

/// Speed of a device's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkSpeed {
    /// The speed in bit/s.
    Known(u64),
    /// The driver does not know it.
    Unknown,
    /// What is reported is a constant of a driver, of this device or of all devices beneath it, and limits nothing.
    Nominal,
}

impl LinkSpeed {
    /// The speed in bit/s, where it is known.
    #[must_use]
    pub const fn known(self) -> Option<u64> {
        match self {
            Self::Known(bits) => Some(bits),
            Self::Unknown | Self::Nominal => None,
        }
    }
}

/// What a device is made on, as far as that is in its own namespace.
#[derive(Debug, Default)]
struct Layer {
    index: u32,
    name: String,
    kind: String,
    /// Index of the device beneath.
    lower: Option<u32>,
    /// Index of the bridge, bond or team that the device is a port of.
    controller: Option<u32>,
}

impl Layer {
    fn of(message: LinkMessage) -> Self {
        let mut layer = Self {
            index: message.header.index,
            ..Self::default()
        };
        let mut is_elsewhere = false;
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => layer.name = name,
                LinkAttribute::Link(index) => layer.lower = Some(index),
                LinkAttribute::LinkNetNsId(_) => is_elsewhere = true,
                LinkAttribute::Controller(index) => layer.controller = Some(index),
                LinkAttribute::LinkInfo(info) => {
                    for info in &info {
                        layer.is(info);
                    }
                }
                _ => {}
            }
        }
        layer.lower = layer.lower.filter(|_| !is_elsewhere);
        layer
    }

    fn is(&mut self, info: &LinkInfo) {
        match info {
            LinkInfo::Kind(kind) => self.kind = kind.to_string(),
            LinkInfo::Data(InfoData::Vxlan(data)) => {
                let lower = data.iter().find_map(|data| match data {
                    InfoVxlan::Link(index) => Some(*index),
                    _ => None,
                });
                self.lower = lower.or(self.lower);
            }
            _ => {}
        }
    }
}

/// The speed of the device of this name; `reported` is what a device's driver says, bit/s.
pub(super) fn read(
    netlink: &mut Netlink,
    name: &str,
    reported: &dyn Fn(&str) -> Option<u64>,
) -> io::Result<LinkSpeed> {
    let all = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let layers: Vec<Layer> = all
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(Layer::of(link)),
            _ => None,
        })
        .collect();
    let top = layers.iter().find(|layer| layer.name == name);
    Ok(top.map_or(LinkSpeed::Unknown, |top| {
        speed(&layers, top, reported, MAX_NEST)
    }))
}

/// The speed of `top`, with at most `nest` devices beneath.
fn speed(
    layers: &[Layer],
    top: &Layer,
    reported: &dyn Fn(&str) -> Option<u64>,
    nest: u32,
) -> LinkSpeed {
    let kind = top.kind.as_str();
    if NOMINAL.contains(&kind) {
        return LinkSpeed::Nominal;
    }
    let own = || reported(&top.name).map_or(LinkSpeed::Unknown, LinkSpeed::Known);
    if !OF_LOWER.contains(&kind) || nest == 0 {
        return own();
    }
    let is_beneath =
        |layer: &&Layer| layer.controller == Some(top.index) || top.lower == Some(layer.index);
    let beneath: Vec<LinkSpeed> = layers
        .iter()
        .filter(is_beneath)
        .map(|layer| speed(layers, layer, reported, nest - 1))
        .collect();
    if beneath.is_empty() {
        return own();
    }
    if beneath.iter().all(|speed| *speed == LinkSpeed::Nominal) {
        return LinkSpeed::Nominal;
    }
    // A bond's members add up.
    if matches!(kind, "bond" | "team") {
        return own();
    }
    // A bridge reports the speed of its fastest port (net/bridge/br_device.c), which may be a nominal one, and a VLAN
    // that of the bridge beneath it.
    let known = beneath.into_iter().filter_map(LinkSpeed::known);
    known.min().map_or(LinkSpeed::Unknown, LinkSpeed::Known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(index: u32, kind: &str, lower: Option<u32>, controller: Option<u32>) -> Layer {
        Layer {
            index,
            name: index.to_string(),
            kind: kind.to_owned(),
            lower,
            controller,
        }
    }

    #[test]
    fn a_speed_that_is_a_constant_of_a_driver_is_none_whatever_lies_on_top() {
        let layers = [
            layer(1, "", None, Some(5)),
            layer(2, "veth", None, Some(5)),
            layer(3, "veth", None, Some(6)),
            layer(4, "tun", None, Some(6)),
            layer(5, "bridge", None, None),
            layer(6, "bridge", None, None),
            layer(7, "vlan", Some(6), None),
            layer(8, "vlan", Some(1), None),
            layer(9, "", None, None),
            layer(10, "macvlan", Some(3), None),
            layer(11, "bridge", None, None),
            layer(12, "vxlan", Some(2), None),
            layer(13, "vlan", Some(5), None),
        ];
        // As their drivers say: a card of 1 Gbit/s, one that does not know, and 10 Gbit/s for everything on a veth.
        let reported = |name: &str| match name {
            "1" | "8" => Some(1_000_000_000),
            "9" | "11" => None,
            _ => Some(10_000_000_000),
        };
        let one = LinkSpeed::Known(1_000_000_000);
        for (index, expected) in [
            (1, one),
            (2, LinkSpeed::Nominal),
            (4, LinkSpeed::Nominal),
            (5, one),
            (6, LinkSpeed::Nominal),
            (7, LinkSpeed::Nominal),
            (8, one),
            (9, LinkSpeed::Unknown),
            (10, LinkSpeed::Nominal),
            (11, LinkSpeed::Unknown),
            (12, LinkSpeed::Nominal),
            (13, one),
        ] {
            let top = &layers[index - 1];
            assert_eq!(
                speed(&layers, top, &reported, MAX_NEST),
                expected,
                "{top:?}"
            );
        }
    }
}
