//! An end in a bridge of this host's Open vSwitch: the guest's device and the tunnel are two ports of the bridge.

use wirecost_model::ip::IpVersion;
use wirecost_model::plan::Encapsulation;
use wirecost_model::switch::OvsDatapath;
use wirecost_netbuild::host_tunnel::{self, GuestDevice};
use wirecost_ovs::{BridgePorts, ExistingBridge, SwitchSpec};

use super::state::TunnelEnd;
use crate::error::{AgentError, Context, Result};

/// Makes the guest's device and adds both ports to the bridge. `of` is the tunnel's name.
///
/// # Errors
/// The MTU does not fit, or a step failed; what was made before remains.
pub(super) fn join(
    end: &mut TunnelEnd,
    encapsulation: &Encapsulation,
    of: &str,
    mtu_asked: Option<u32>,
) -> Result<()> {
    let Some(name) = &end.bridge else {
        return Ok(());
    };
    let mut bridge = ExistingBridge::find(name)?;
    let underlay = host_tunnel::mtu(&end.underlay)?;
    let over = if end.local.is_ipv4() {
        IpVersion::Ipv4
    } else {
        IpVersion::Ipv6
    };
    let most = underlay.saturating_sub(encapsulation.overhead_bytes(over));
    if mtu_asked.is_some_and(|mtu_asked| mtu_asked > most) {
        return Err(format!(
            "an MTU of {} does not fit {encapsulation} over {}: the largest is {most}",
            end.mtu, end.underlay
        )
        .into());
    }
    end.mtu = end.mtu.min(most);
    let port = end.port();
    let guest = GuestDevice {
        name: &end.device,
        port: &port,
        mtu: end.mtu,
        port_mtu: end.mtu,
        mac: end.mac(),
        address: (end.address, end.prefix),
        joins: false,
    };
    guest.create()?;
    if bridge.datapath() == OvsDatapath::Userspace {
        host_tunnel::disable_offloads(&end.device)?;
    }
    let spec = SwitchSpec {
        encapsulation: encapsulation.clone(),
        underlay: end.underlay.clone(),
        underlay_mtu: underlay,
        guests: vec![port],
        local: end.local,
        peer: end.peer,
        mac: end.mac(),
        ovn: None,
    };
    let ports = BridgePorts {
        owner: of,
        tunnel: &end.tunnel_port(),
        spec: &spec,
    };
    bridge.add(&ports).map_err(AgentError::from)
}

/// Removes ports and devices. Those that are gone already are no error, nor is a missing switch.
pub(super) fn leave(end: &TunnelEnd) -> Result<()> {
    let Some(name) = &end.bridge else {
        return Ok(());
    };
    let removed = match ExistingBridge::find(name) {
        Ok(mut bridge) => bridge
            .remove(&[end.port(), end.tunnel_port()])
            .context(format!("removing the ports of bridge {name}")),
        // There is no such bridge, or no switch: the ports are gone, too.
        Err(_) => Ok(()),
    };
    let device = host_tunnel::remove(&end.port()).map_err(AgentError::from);
    removed.and(device)
}

/// The missing ports, as text.
pub(super) fn missing(end: &TunnelEnd) -> Vec<String> {
    let Some(name) = &end.bridge else {
        return Vec::new();
    };
    let guest = [end.port()];
    let there = ExistingBridge::find(name).and_then(|mut bridge| bridge.present(&guest));
    match there {
        Ok(there) if there.len() == guest.len() => Vec::new(),
        Ok(_) => vec![format!("its port in bridge {name}")],
        Err(error) => vec![error.to_string()],
    }
}
