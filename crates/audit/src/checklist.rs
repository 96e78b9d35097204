//! The jumbo checklist: what must be set for guests of a given MTU, and for each item whether it is done, missing, or
//! not visible from the hosts. After "Jumbo frames and VXLAN performance" (vswitchzero.com), whose list is for guests
//! of 8900 bytes over VXLAN: every physical switch, router and device between the VTEPs at 9000 or more; the virtual
//! switch at 9000; the VTEPs at 9000; edge and distributed routers at 9000, though the guests' MTU suffices; the guests
//! that want large frames at 8900.

use serde::Serialize;

use crate::judge::{other_end, outside};
use crate::snapshot::{Device, HostStack, Namespace};

/// State of one item of the checklist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The requirement is met.
    Done,
    /// The requirement is not met.
    Missing,
    /// The hosts do not show whether it is met.
    CannotSee,
}

impl State {
    /// The state in words, for output.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Missing => "missing",
            Self::CannotSee => "cannot see",
        }
    }
}

/// One requirement of the checklist and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// Stable name in kebab case.
    pub id: &'static str,
    /// The requirement, as a sentence.
    pub what: String,
    /// Whether the requirement is met.
    pub state: State,
    /// What was read, or where to look.
    pub evidence: String,
}

/// The required MTUs, and the largest packet that probes have proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirements {
    /// MTU of the guests, bytes.
    pub guest_mtu: u32,
    /// Underlay MTU that this guest MTU needs, bytes.
    pub underlay_mtu: u32,
    /// The largest packet that was proven to pass the underlay in every direction and on every flow, bytes; `None`:
    /// not probed.
    pub proven: Option<u32>,
}

/// The checklist for one host.
pub fn checklist(stack: &HostStack, wanted: Requirements) -> Vec<Item> {
    vec![
        path(wanted),
        virtual_switch(stack, wanted),
        tunnel_ends(stack, wanted),
        routers(stack, wanted),
        guests(stack, wanted),
    ]
}

/// One item about a set of devices: done where each has an MTU of at least `least` bytes, else missing, with the
/// smaller devices as evidence. Without devices, `none` is the evidence.
fn all_of<'a>(
    id: &'static str,
    what: String,
    least: u32,
    devices: impl Iterator<Item = (&'a Namespace, &'a Device)>,
    none: &str,
) -> Item {
    let (mut seen, mut small) = (0, Vec::new());
    for (namespace, device) in devices {
        seen += 1;
        if device.mtu < least {
            small.push(format!(
                "{} ({}) has {}",
                device.name, namespace.label, device.mtu
            ));
        }
    }
    let (state, evidence) = match (seen, small.is_empty()) {
        (0, _) => (State::CannotSee, none.to_owned()),
        (_, true) => (State::Done, format!("{seen} devices")),
        (_, false) => (State::Missing, small.join(", ")),
    };
    Item {
        id,
        what,
        state,
        evidence,
    }
}

fn every(stack: &HostStack) -> impl Iterator<Item = (&Namespace, &Device)> {
    stack.namespaces.iter().flat_map(|namespace| {
        namespace
            .devices
            .iter()
            .filter(|device| device.up && !device.loopback)
            .map(move |device| (namespace, device))
    })
}

fn path(wanted: Requirements) -> Item {
    let what = format!(
        "every switch and router between the tunnel's ends carries {} bytes",
        wanted.underlay_mtu
    );
    let (state, evidence) = match wanted.proven {
        None => (
            State::CannotSee,
            "no probe was sent, and the hosts' settings do not show it".to_owned(),
        ),
        Some(mtu) if mtu >= wanted.underlay_mtu => {
            (State::Done, format!("{mtu} bytes were acknowledged"))
        }
        Some(mtu) => (
            State::Missing,
            format!("only {mtu} bytes were acknowledged"),
        ),
    };
    Item {
        id: "physical-path",
        what,
        state,
        evidence,
    }
}

fn virtual_switch(stack: &HostStack, wanted: Requirements) -> Item {
    let ports = every(stack).filter(|(namespace, device)| {
        device.kind == "bridge"
            || (device.tunnel.is_none()
                && device
                    .controller
                    .and_then(|index| namespace.device(index))
                    .is_some_and(|controller| controller.kind == "bridge"))
    });
    all_of(
        "virtual-switch",
        format!(
            "the virtual switch and its ports take {} bytes",
            wanted.guest_mtu
        ),
        wanted.guest_mtu,
        ports,
        "no Linux bridge here; another host's, or a hypervisor's switch, is not visible",
    )
}

fn tunnel_ends(stack: &HostStack, wanted: Requirements) -> Item {
    let tunnels = stack.namespaces.iter().flat_map(|namespace| {
        let tunnels = namespace.devices.iter();
        tunnels.filter_map(move |device| {
            let tunnel = device.tunnel.as_ref()?;
            Some((outside(stack, namespace, tunnel)?, tunnel))
        })
    });
    let under = tunnels.flat_map(|(there, tunnel)| {
        let remotes = tunnel.remotes.iter();
        remotes.filter_map(move |remote| Some((there, there.device(remote.device?)?)))
    });
    all_of(
        "tunnel-ends",
        format!(
            "the devices that tunnels leave through take {} bytes",
            wanted.underlay_mtu
        ),
        wanted.underlay_mtu,
        under,
        "no tunnel with a known other end here",
    )
}

fn routers(stack: &HostStack, wanted: Requirements) -> Item {
    // Interfaces of namespaces that forward between guests. Routers of the underlay belong to `path`.
    let routing = every(stack).filter(|(namespace, device)| {
        namespace.number("ipv4.ip_forward") == Some(1)
            && device.tunnel.is_none()
            && !device.physical
            && device.controller.is_none()
            && !device.addresses.is_empty()
    });
    all_of(
        "virtual-routers",
        format!(
            "edge and distributed routers' interfaces take {} bytes",
            wanted.guest_mtu
        ),
        wanted.guest_mtu,
        routing,
        "no router here; an edge elsewhere is not visible",
    )
}

fn guests(stack: &HostStack, wanted: Requirements) -> Item {
    let ends = every(stack).filter_map(|(namespace, device)| {
        let bridged = device
            .controller
            .and_then(|index| namespace.device(index))
            .is_some_and(|controller| controller.kind == "bridge");
        other_end(stack, device).filter(|_| bridged)
    });
    all_of(
        "guests",
        format!(
            "the guests that want large frames have an MTU of {}",
            wanted.guest_mtu
        ),
        wanted.guest_mtu,
        ends,
        "no guest's own device is visible: look inside the virtual machines",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_tunnel_leaves_through_a_device_of_its_sockets_namespace() {
        let text = include_str!("../fixtures/narrow-in-another-namespace.json");
        let fixture: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let stack: HostStack = serde_json::from_value(fixture["stack"].clone()).expect("a host");
        let wanted = Requirements {
            guest_mtu: 1450,
            underlay_mtu: 1500,
            proven: None,
        };
        let item = tunnel_ends(&stack, wanted);
        assert_eq!(
            (item.state, item.evidence.as_str()),
            (State::Missing, "eth0 (h1) has 1400")
        );
    }
}
