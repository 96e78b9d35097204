//! One end of a tunnel: the guest's device, and the eBPF programs between it and the underlay.

use wirecost_model::ip::IpVersion;
use wirecost_model::transit::Transit;
use wirecost_netbuild::host_tunnel::{self, GuestDevice};
use wirecost_netbuild::underlay::{self, Underlay};
use wirecost_netbuild::{Side, UNDERLAY_DEVICE};
use wirecost_sys::namespace::{self, Netns};
use wirecost_vtep::{Config, FdbDestination, Vtep, pinned, sending_end};

use super::state::{self, TunnelState};
use super::{bridge, within};
use crate::error::{AgentError, Context, Result};

/// MTU of a guest's device where no other is requested, bytes.
pub(super) const USUAL_MTU: u32 = 1500;

/// Makes both namespaces, and an underlay between them that carries the guests' MTU.
pub(super) fn join(made: &mut TunnelState, ip: IpVersion) -> Result<()> {
    let overhead = made.encapsulation.overhead_bytes(ip);
    let mut held = Vec::new();
    for number in 0..made.ends.len() {
        let Some(name) = made.ends[number].namespace.clone() else {
            continue;
        };
        create(made, number, &name)?;
        let netns = Netns::named(&name)?;
        let ready = netns.within(host_tunnel::prepare_namespace);
        ready??;
        held.push(netns);
    }
    let [a, b] = &held[..] else {
        return Err("a tunnel between namespaces has two".into());
    };
    let mtu = made.ends.iter().map(|end| end.mtu).max();
    let mtu = mtu.unwrap_or(USUAL_MTU) + overhead;
    let wire = Transit::wire();
    let laid = a.within(|| Underlay::between(&wire, mtu.max(ip.min_mtu()), ip, b));
    laid??;
    for step in [underlay::join_here, underlay::ready_here] {
        for (netns, side) in [(a, Side::A), (b, Side::B)] {
            netns.within(|| step(&wire, side, ip))??;
        }
    }
    for (netns, end) in held.iter().zip(&mut made.ends) {
        let found = netns.within(|| host_tunnel::find(UNDERLAY_DEVICE));
        let found = found?;
        end.underlay_index = found?;
    }
    Ok(())
}

/// Makes an end's namespace, after recording that it is ours to remove.
fn create(made: &mut TunnelState, number: usize, name: &str) -> Result<()> {
    let taken = || {
        AgentError::Refused(format!(
            "there is a network namespace {name} already: give the tunnel another `--name`, or remove that one by \
             `ip netns del {name}`"
        ))
    };
    if namespace::names().iter().any(|known| known == name) {
        return Err(taken());
    }
    made.ends[number].namespace_made = true;
    state::write(made)?;
    namespace::create_named(name).map_err(|error| {
        made.ends[number].namespace_made = false;
        match error.kind() {
            // The name was taken after the check above.
            std::io::ErrorKind::AlreadyExists => taken(),
            _ => AgentError::Refused(format!("making network namespace {name}: {error}")),
        }
    })
}

/// Attaches the programs of an end, and makes its guest's device.
pub(super) fn attach(made: &mut TunnelState, number: usize, mtu_asked: Option<u32>) -> Result<()> {
    let pins = made.pins(number);
    let encapsulation = made.encapsulation.clone();
    let end = &mut made.ends[number];
    let attached = within(&end.clone(), || -> Result<u32> {
        let config = Config::of(&end.underlay, &encapsulation, end.local)?;
        let mut vtep = Vtep::attach(config)?;
        let most = vtep.guest_mtu();
        if mtu_asked.is_some_and(|mtu_asked| mtu_asked > most) {
            return Err(format!(
                "an MTU of {} does not fit {encapsulation} over {}: the largest is {most}",
                end.mtu, end.underlay
            )
            .into());
        }
        let mtu = end.mtu.min(most);
        let (port, mac) = (end.port(), end.mac());
        let guest = GuestDevice {
            name: &end.device,
            port: &port,
            mtu,
            port_mtu: host_tunnel::PORT_MTU,
            mac,
            address: (end.address, end.prefix),
            // Between namespaces GSO packets arrive unsegmented.
            joins: end.namespace.is_none(),
        };
        guest.create()?;
        let vni = encapsulation.udp().map_or(0, |udp| udp.vni);
        vtep.add_guest(&port, vni)?;
        // The peer's guests are not known: frames to all other addresses go to the peer.
        vtep.set_fdb_entry(vni, mac, FdbDestination::Guest(port))?;
        if encapsulation.is_tunnel() {
            vtep.flood_to(vni, end.peer)?;
        }
        vtep.pin(&pins)?;
        Ok(mtu)
    })?;
    let gone = || format!("network namespace of {} is gone", end.device);
    end.mtu = attached.ok_or_else(gone)??;
    Ok(())
}

/// Removes the pinned programs of an end.
pub(super) fn unpin(made: &TunnelState, number: usize) -> Result<()> {
    let pins = made.pins(number);
    pinned::unpin(&pins).context(format!("removing {}", pins.display()))
}

/// Whether this user may not look at the pinned programs.
pub(super) fn pins_are_hidden(made: &TunnelState) -> bool {
    (0..made.ends.len()).any(|number| {
        let looked = std::fs::metadata(made.pins(number).join("underlay"));
        looked.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    })
}

/// Removes an end. Parts that are gone already are no error.
pub(super) fn detach(made: &TunnelState, number: usize) -> Result<()> {
    if made.ends[number].bridge.is_some() {
        return bridge::leave(&made.ends[number]);
    }
    unpin(made, number)?;
    let end = &made.ends[number];
    let devices = [end.port()]
        .into_iter()
        .chain(end.underlay_index.map(sending_end));
    let removed = within(end, || {
        let mut removed = Ok(());
        for device in devices {
            let one = host_tunnel::remove(&device).map_err(AgentError::from);
            removed = removed.and(one);
        }
        removed
    })?;
    removed.unwrap_or(Ok(()))
}

/// The missing parts of an end, as text.
pub(super) fn missing(made: &TunnelState, number: usize) -> Vec<String> {
    let end = &made.ends[number];
    let mut missing = bridge::missing(end);
    let pinned = made.pins(number).join("underlay");
    if end.bridge.is_none() && !pinned.exists() && !pins_are_hidden(made) {
        missing.push(format!("the programs on {}", end.underlay));
    }
    let found = within(end, || {
        [end.underlay.clone(), end.device.clone(), end.port()]
            .into_iter()
            .filter(|device| !matches!(host_tunnel::find(device), Ok(Some(_))))
            .map(|device| format!("the device {device}"))
            .collect::<Vec<_>>()
    });
    missing.extend(missing_inside(found, end.namespace.as_deref()));
    missing
}

/// The missing parts of an end by what was found in its namespace: the devices that are not there, or no namespace. An
/// error is of a namespace that this user may not enter: nothing is known to be missing in it.
fn missing_inside(found: Result<Option<Vec<String>>>, namespace: Option<&str>) -> Vec<String> {
    match (found, namespace) {
        (Ok(Some(devices)), _) => devices,
        (Ok(None), Some(name)) => vec![format!("network namespace {name}")],
        (Ok(None), None) | (Err(_), _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_may_not_be_entered_is_not_told_as_missing() {
        let denied = Err("entering network namespace x-a: Operation not permitted".into());
        let none: Vec<String> = Vec::new();
        assert_eq!(missing_inside(denied, Some("x-a")), none);
        assert_eq!(
            missing_inside(Ok(None), Some("x-a")),
            ["network namespace x-a"]
        );
        let device = vec!["the device x".to_owned()];
        assert_eq!(missing_inside(Ok(Some(device.clone())), None), device);
    }
}
