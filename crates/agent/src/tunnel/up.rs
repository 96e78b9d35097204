//! Makes a tunnel, or refuses where it would take over another's namespace, address or packets.

use std::net::IpAddr;

use wirecost_model::ip::IpVersion;
use wirecost_model::plan::Encapsulation;
use wirecost_netbuild::{Side, host_tunnel, underlay};

use super::down::take_down;
use super::state::{self, TunnelEnd, TunnelState};
use super::{TunnelEnds, TunnelSpec, bridge, check_name, end};
use crate::address;
use crate::error::{AgentError, Context, Result};
use crate::orphan::Owner;

/// Makes a tunnel and its state file.
///
/// # Errors
/// The tunnel cannot be made. What was made before is removed, or the message says what remains.
pub fn up(wanted: &TunnelSpec) -> Result<TunnelState> {
    let name = &wanted.name;
    check_name(name)?;
    let others = state::all();
    if others.iter().any(|other| other.name == *name) {
        return Err(format!(
            "there is a tunnel {name} already: `wirecost tunnel down {name}` removes it, `--name` gives another"
        ).into());
    }
    let ends = match &wanted.between {
        TunnelEnds::Namespaces { underlay } => namespaces(wanted, *underlay),
        TunnelEnds::Peer {
            peer,
            underlay,
            address,
            bridge,
        } => {
            let end = at_peer(wanted, *peer, underlay.as_deref(), *address)?;
            let end = TunnelEnd {
                bridge: bridge.clone(),
                ..end
            };
            let here = state::current_netns();
            let mut others = others.iter().filter(|other| other.home == here);
            if let Some(other) = others.find(|other| collide(other, &wanted.encapsulation, &end)) {
                return Err(format!(
                    "tunnel {} already receives {} on {}, and would receive this tunnel's packets too: `wirecost \
                     tunnel down {}` removes it, or use another port or VLAN",
                    other.name,
                    what_it_takes(&other.encapsulation),
                    end.underlay,
                    other.name
                ).into());
            }
            vec![end]
        }
    };
    let mut made = TunnelState {
        name: name.clone(),
        encapsulation: wanted.encapsulation.clone(),
        home: match wanted.between {
            TunnelEnds::Namespaces { .. } => None,
            TunnelEnds::Peer { .. } => state::current_netns(),
        },
        own_namespaces: matches!(wanted.between, TunnelEnds::Namespaces { .. }),
        maker: Owner::this().context("reading /proc")?.argument(),
        complete: false,
        ends,
    };
    state::write(&made)?;
    if let Err(error) = build(&mut made, wanted) {
        return Err(match take_down(&made) {
            Ok(()) => error,
            Err(left) => AgentError::Refused(format!(
                "{error}; what was made before that could not be removed: {left}"
            )),
        });
    }
    made.complete = true;
    state::write(&made)?;
    Ok(made)
}

/// Whether two ends of this host would receive the same frames. An end receives all of its UDP port, whatever the VNI,
/// or all of its VLAN.
fn collide(other: &TunnelState, encapsulation: &Encapsulation, end: &TunnelEnd) -> bool {
    let takes = what_it_takes(encapsulation);
    // Ends in a bridge are distinguished by Open vSwitch.
    let theirs = other.ends.iter().filter(|end| end.bridge.is_none());
    end.bridge.is_none()
        && takes == what_it_takes(&other.encapsulation)
        && theirs
            .filter(|theirs| theirs.underlay_index == end.underlay_index)
            .any(|theirs| !encapsulation.is_tunnel() || theirs.local == end.local)
}

fn what_it_takes(encapsulation: &Encapsulation) -> String {
    match (encapsulation, encapsulation.udp()) {
        (Encapsulation::None, _) => "frames without encapsulation".to_owned(),
        (Encapsulation::Vlan(_), _) => encapsulation.to_string(),
        (_, Some(udp)) => format!("all of UDP port {}", udp.port),
        (_, None) => format!("all of {}", encapsulation.kind().word),
    }
}

fn namespaces(wanted: &TunnelSpec, ip: IpVersion) -> Vec<TunnelEnd> {
    let wire = wirecost_model::transit::Transit::wire();
    let end = |side: Side| {
        let name = format!("{}-{}", wanted.name, side.name());
        TunnelEnd {
            namespace: Some(name),
            namespace_made: false,
            underlay: wirecost_netbuild::UNDERLAY_DEVICE.to_owned(),
            underlay_index: None,
            local: underlay::address(&wire, side, ip),
            peer: underlay::address(&wire, side.other(), ip),
            device: wanted.name.clone(),
            address: host_tunnel::guest_address(side),
            prefix: host_tunnel::GUEST_PREFIX,
            mtu: wanted.mtu.unwrap_or(end::USUAL_MTU),
            bridge: None,
        }
    };
    vec![end(Side::A), end(Side::B)]
}

fn at_peer(
    wanted: &TunnelSpec,
    peer: IpAddr,
    underlay: Option<&str>,
    (guest, prefix): (IpAddr, u8),
) -> Result<TunnelEnd> {
    if peer.is_loopback() || peer.is_unspecified() || peer.is_multicast() {
        return Err(
            format!("{peer} is no other host's address: name the peer's on the underlay").into(),
        );
    }
    let local = address::towards(peer).context(format!("no route leads to {peer}"))?;
    if local == peer {
        return Err(
            format!("{peer} is this host's own address: name the peer's on the underlay").into(),
        );
    }
    let own = address::own().context("listing addresses")?;
    if let Some(taken) = own.iter().find(|own| own.address == guest) {
        return Err(format!(
            "{guest} is an address of {} already: give the tunnel another with --address",
            taken.device
        )
        .into());
    }
    let underlay = match underlay {
        Some(device) => device.to_owned(),
        None => device_of(local)?,
    };
    let index = host_tunnel::find(&underlay)?.ok_or_else(|| {
        format!("there is no device {underlay}: `ip link` lists those of this host")
    })?;
    let end = TunnelEnd {
        namespace: None,
        namespace_made: false,
        underlay,
        underlay_index: Some(index),
        local,
        peer,
        device: wanted.name.clone(),
        address: guest,
        prefix,
        mtu: wanted.mtu.unwrap_or(end::USUAL_MTU),
        bridge: None,
    };
    // What fails later removes the devices of these names.
    for device in [end.device.clone(), end.port()] {
        if host_tunnel::find(&device)?.is_some() {
            return Err(format!(
                "there is a device {device} already: give the tunnel another `--name`, or remove that one by \
                 `ip link del {device}`"
            )
            .into());
        }
    }
    Ok(end)
}

fn device_of(local: IpAddr) -> Result<String> {
    let own = address::own().context("listing addresses")?;
    let found = own.into_iter().find(|own| own.address == local);
    found.map(|own| own.device).ok_or_else(|| {
        AgentError::Refused(format!(
            "packets to the peer leave from {local}, which is no device's address: name the device with --underlay"
        ))
    })
}

/// Makes the ends of the state file, and records what is known only afterwards.
fn build(made: &mut TunnelState, wanted: &TunnelSpec) -> Result<()> {
    if let [only] = &mut made.ends[..]
        && only.bridge.is_some()
    {
        bridge::join(only, &made.encapsulation, &made.name, wanted.mtu)?;
        return state::write(made);
    }
    state::prepare_pins()?;
    if let TunnelEnds::Namespaces { underlay } = wanted.between {
        end::join(made, underlay)?;
    }
    for number in 0..made.ends.len() {
        end::attach(made, number, wanted.mtu)?;
        state::write(made)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirecost_model::plan::Description;

    use super::*;

    fn on_port(word: &str, port: u16) -> Encapsulation {
        let kind = Description::by_word(word).expect("a kind");
        let mut encapsulation = (kind.usual)();
        match &mut encapsulation {
            Encapsulation::Vxlan(vxlan) => vxlan.port = port,
            Encapsulation::Geneve(geneve) => geneve.port = port,
            _ => {}
        }
        encapsulation
    }

    #[test]
    fn tunnels_of_one_port_collide_whatever_their_encapsulation_and_others_do_not() {
        let end = TunnelEnd {
            namespace: None,
            namespace_made: false,
            underlay: "eth0".to_owned(),
            underlay_index: Some(2),
            local: IpAddr::from([192, 0, 2, 1]),
            peer: IpAddr::from([192, 0, 2, 2]),
            device: "wirecost0".to_owned(),
            address: IpAddr::from([10, 0, 0, 1]),
            prefix: 24,
            mtu: 1450,
            bridge: None,
        };
        let there = TunnelState {
            name: "wirecost0".to_owned(),
            encapsulation: on_port("vxlan", 4789),
            own_namespaces: false,
            maker: "1:2".to_owned(),
            home: None,
            complete: true,
            ends: vec![end.clone()],
        };
        let collides = |word, port| collide(&there, &on_port(word, port), &end);
        assert!(collides("vxlan", 4789));
        assert!(collides("geneve", 4789));
        assert!(!collides("vxlan", 8472));
        assert!(!collides("geneve", 6081));
        assert!(!collides("vlan", 0) && !collides("none", 0));
    }
}
