//! The eBPF datapath of a lab host: netbuild makes the devices, vtep's programs carry frames between them.

use wirecost_model::datapath::Datapath;
use wirecost_netbuild::{HostSpec, UNDERLAY_DEVICE};
use wirecost_vtep::{Config, Error, Location, Vtep};

/// The programs of a host, once they are attached.
#[derive(Debug)]
pub(crate) struct Programs {
    vtep: Vtep,
    /// Whether they know the other host's guests.
    introduced: bool,
}

/// Attaches the programs to a host's devices where it is they that encapsulate, and tells them of its own guests.
///
/// # Errors
/// In words: what the kernel refused, with the verifier's log where it has one.
pub(crate) fn attach(spec: &HostSpec) -> Result<Option<Programs>, String> {
    if spec.network.datapath != Datapath::Ebpf {
        return Ok(None);
    }
    let attached = || -> Result<Vtep, Error> {
        let encapsulation = &spec.network.encapsulation;
        let config = Config::of(UNDERLAY_DEVICE, encapsulation, spec.underlay_address())?;
        let vni = vni(spec);
        let mut vtep = Vtep::attach(config)?;
        for (port, mac) in spec.guest_ports().iter().zip(spec.guest_macs(spec.side)) {
            vtep.add_guest(port, vni)?;
            vtep.place(vni, mac, Location::Guest(port.clone()))?;
        }
        Ok(vtep)
    };
    let vtep = attached().map_err(|error| format!("encapsulating by eBPF: {error}"))?;
    Ok(Some(Programs {
        vtep,
        introduced: false,
    }))
}

impl Programs {
    /// Tells the programs, once, of the other host's guests and of the way there, which must be usable by now.
    ///
    /// # Errors
    /// In words, such as that no route leads to the other host.
    pub(crate) fn introduce(&mut self, spec: &HostSpec) -> Result<(), String> {
        if self.introduced {
            return Ok(());
        }
        let mut introduce = || -> Result<(), Error> {
            let (vni, peer) = (vni(spec), spec.underlay_peer());
            let tunnel = spec.network.encapsulation.is_tunnel();
            if tunnel {
                self.vtep.flood_to(vni, peer)?;
            }
            for mac in spec.guest_macs(spec.side.other()) {
                let location = if tunnel {
                    Location::Remote(peer)
                } else {
                    Location::Underlay
                };
                self.vtep.place(vni, mac, location)?;
            }
            Ok(())
        };
        introduce().map_err(|error| format!("telling eBPF where the other host is: {error}"))?;
        self.introduced = true;
        Ok(())
    }
}

/// The segment that all guests are in; formats without one have 0.
fn vni(spec: &HostSpec) -> u32 {
    let tunnel = spec.network.encapsulation.udp();
    tunnel.map_or(0, |tunnel| tunnel.vni)
}
