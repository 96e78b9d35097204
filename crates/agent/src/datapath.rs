//! Datapaths other than the kernel's bridge: netbuild makes the devices; vtep's eBPF programs or Open vSwitch carry
//! frames between them.

use std::net::UdpSocket;
use std::path::PathBuf;

use wirecost_model::datapath::Datapath;
use wirecost_model::plan::Encapsulation;
use wirecost_model::switch::OvsDatapath;
use wirecost_netbuild::{HostSpec, LabHost, Side, SwitchDevices, UNDERLAY_DEVICE};
use wirecost_ovs::Switch;
use wirecost_ovs::ovn::{self, Central, Chassis, LogicalNetwork, LogicalPort, LogicalRouterPort};
use wirecost_vtep::{Config, Error, FdbDestination, Hook, Vtep};

use crate::error::{AgentError, Context, Result};
use crate::existing_underlay::ExistingUnderlay;
use crate::protocol::BuiltSwitch;

/// An attached datapath of a host. Dropping it detaches it from the devices.
#[derive(Debug)]
pub(crate) enum FrameCarrier {
    Ebpf(Box<Programs>),
    Ovs(Box<Switch>),
}

/// The attached eBPF programs of a host.
#[derive(Debug)]
pub(crate) struct Programs {
    vtep: Vtep,
    /// Keeps the tunnel's UDP port of an existing host, which no socket of the tunnel has.
    _port: Option<UdpSocket>,
    /// Whether the other host's guests and the route to it are configured.
    peer_is_set: bool,
}

/// Attaches eBPF programs or an Open vSwitch to a host's devices, where its network has such a datapath. `owner` is the
/// run's controller, `ovn` the socket of OVN's databases where the network uses OVN, `existing_underlay` the existing
/// host over whose network the tunnels go.
///
/// # Errors
/// The kernel or the switch refused a step, or a program is not installed; the message says which.
pub(crate) fn attach(
    host: &mut LabHost,
    owner: &str,
    ovn: Option<PathBuf>,
    existing_underlay: Option<&mut ExistingUnderlay>,
) -> Result<Option<FrameCarrier>> {
    let datapath = host.spec().network.datapath;
    match (datapath, datapath.open_vswitch()) {
        (_, Some(kind)) => {
            switch(host, kind, owner, ovn).map(|switch| Some(FrameCarrier::Ovs(Box::new(switch))))
        }
        (Datapath::Ebpf, _) => {
            let programs = match existing_underlay {
                Some(underlay) => programs_beside(host, underlay),
                None => programs(host),
            };
            programs.map(|programs| Some(FrameCarrier::Ebpf(Box::new(programs))))
        }
        _ => Ok(None),
    }
}

/// Starts OVN's databases for both hosts of a lab, where its network uses OVN.
///
/// # Errors
/// A program is not installed, or a database refused a transaction; the message says which.
pub(crate) fn central(spec: &HostSpec, owner: &str) -> Result<Option<Central>> {
    let network = &spec.network;
    if !network.datapath.is_ovn() {
        return Ok(None);
    }
    let sides = [Side::A, Side::B];
    let guests = |side: Side| {
        let each = spec
            .guest_macs(side)
            .into_iter()
            .zip(spec.guest_addresses_of(side));
        let each = (0..).zip(each).map(|(number, (mac, address))| LogicalPort {
            name: ovn::port_name(side.name(), number as usize),
            key: ovn::port_key(u32::from(side == Side::B), number),
            mac,
            address,
        });
        each.collect()
    };
    let router = sides.map(|side| {
        let end = spec.logical_router(side)?;
        Some(LogicalRouterPort {
            mac: end.mac,
            network: (end.address, end.prefix),
        })
    });
    let [Some(at_a), Some(at_b)] = router else {
        return start_central(spec, sides.map(guests), None, owner);
    };
    start_central(spec, sides.map(guests), Some([at_a, at_b]), owner)
}

fn start_central(
    spec: &HostSpec,
    guests: [Vec<LogicalPort>; 2],
    router: Option<[LogicalRouterPort; 2]>,
    owner: &str,
) -> Result<Option<Central>> {
    let encapsulation = &spec.network.encapsulation;
    let wanted = LogicalNetwork {
        guests,
        router,
        // Without a tunnel the key is not in any packet.
        key: encapsulation.udp().map_or(1, |udp| udp.vni),
        acl: spec.network.logical.acl,
        to_underlay: !encapsulation.is_tunnel(),
        tag: match encapsulation {
            Encapsulation::Vlan(vlan) => Some(vlan.id),
            _ => None,
        },
    };
    Ok(Some(Central::start(&wanted, owner)?))
}

impl FrameCarrier {
    /// Waits, with OVN, until the guests' ports and the tunnel to the other host exist; that host must have been built.
    ///
    /// # Errors
    /// The message says what is missing, such as the tunnel to the other host.
    pub(crate) fn wait_for_peer(&mut self) -> Result<()> {
        match self {
            Self::Ebpf(_) => Ok(()),
            Self::Ovs(switch) => switch.wait_for_ovn().map_err(AgentError::from),
        }
    }

    /// Configures the route to the other host, which must be usable by now. To be called before each use.
    ///
    /// # Errors
    /// The message says what is missing, such as a route to the other host.
    pub(crate) fn set_peer(&mut self, spec: &HostSpec) -> Result<()> {
        match self {
            Self::Ebpf(programs) => programs.set_peer(spec),
            Self::Ovs(switch) => {
                let (next_hop, mac) = spec.next_hop();
                switch.reach(next_hop, mac).map_err(AgentError::from)
            }
        }
    }

    /// The Open vSwitch of this datapath; `None` for eBPF.
    pub(crate) fn switch(&self) -> Option<BuiltSwitch> {
        match self {
            Self::Ebpf(_) => None,
            Self::Ovs(switch) => Some(BuiltSwitch {
                about: switch.about().clone(),
                processes: switch.processes(),
            }),
        }
    }
}

/// Starts the host's Open vSwitch with the devices as its ports; where Open vSwitch encapsulates, it gets the host's
/// address on the underlay.
fn switch(
    host: &mut LabHost,
    datapath: OvsDatapath,
    owner: &str,
    ovn: Option<PathBuf>,
) -> Result<Switch> {
    let spec = host.spec();
    let side = spec.side.name();
    let chassis = |remote| Chassis {
        name: side.to_owned(),
        remote,
        ports: (0..spec.network.guests as usize)
            .map(|number| ovn::port_name(side, number))
            .collect(),
    };
    let wanted = wirecost_ovs::SwitchSpec {
        encapsulation: spec.network.encapsulation.clone(),
        underlay: UNDERLAY_DEVICE.to_owned(),
        underlay_mtu: spec.network.underlay_mtu,
        guests: host.guest_ports(),
        local: spec.underlay_address(),
        peer: spec.underlay_peer(),
        mac: spec.underlay_mac(),
        ovn: ovn.map(chassis),
    };
    let switch = Switch::start(wanted, datapath, owner)?;
    let wanted = switch.spec();
    let switch_devices = SwitchDevices {
        underlay_bridge: wanted
            .has_underlay_bridge(datapath)
            .then(|| wirecost_ovs::UNDERLAY_BRIDGE.to_owned()),
        tunnel: wanted.tunnel_device(datapath),
        frame_by_frame: datapath == OvsDatapath::Userspace,
    };
    host.attach_switch(switch_devices)?;
    Ok(switch)
}

/// Attaches the programs to a lab host's devices and configures the host's own guests.
fn programs(host: &LabHost) -> Result<Programs> {
    let spec = host.spec();
    let config = Config::of(
        UNDERLAY_DEVICE,
        &spec.network.encapsulation,
        spec.underlay_address(),
    );
    let attached = config.and_then(|config| attached(host, config));
    Ok(Programs {
        vtep: attached.context("encapsulating by eBPF")?,
        _port: None,
        peer_is_set: false,
    })
}

/// Attaches the programs to an existing host's device and to the guests' ports beside it, only in ways that end with
/// this process, however it ends.
///
/// # Errors
/// As [`attach`]; and a port that is in use, or an outer checksum, for which a pair of devices would be needed that
/// could stay.
fn programs_beside(host: &LabHost, underlay: &mut ExistingUnderlay) -> Result<Programs> {
    let spec = host.spec();
    let udp = spec.network.encapsulation.udp();
    if udp.as_ref().is_some_and(|udp| udp.udp_checksum) {
        return Err(
            "eBPF writes outer UDP checksums by a pair of devices, which would stay on an existing host if the agent \
             is killed: use `datapath: kernel`, or `udp_checksum: off`"
                .into(),
        );
    }
    let name = underlay.device_name().to_owned();
    let address = spec.underlay_address();
    let config = Config {
        mtu: Some(spec.network.underlay_mtu),
        hook: Hook::Tcx,
        ..Config::of(&name, &spec.network.encapsulation, address)
            .context("encapsulating by eBPF")?
    };
    let inside = || -> Result<Programs> {
        let bound = udp.map(|udp| {
            UdpSocket::bind((address, udp.port))
                .context(format!("reserving UDP port {} of {address}", udp.port))
        });
        Ok(Programs {
            _port: bound.transpose()?,
            vtep: attached(host, config).context(format!("encapsulating by eBPF on {name}"))?,
            peer_is_set: false,
        })
    };
    underlay
        .netns()
        .within(inside)
        .context("entering the host's network namespace")?
}

fn attached(host: &LabHost, config: Config) -> Result<Vtep, Error> {
    let spec = host.spec();
    let vni = vni(spec);
    let mut vtep = Vtep::attach(config)?;
    for (port, mac) in host.guest_ports().iter().zip(spec.guest_macs(spec.side)) {
        vtep.add_guest(port, vni)?;
        vtep.set_fdb_entry(vni, mac, FdbDestination::Guest(port.clone()))?;
    }
    Ok(vtep)
}

impl Programs {
    /// Configures the other host's guests and the route to it, which must be usable by now. The next hop of an existing
    /// host may change or fall silent: it is looked up and checked each time.
    ///
    /// # Errors
    /// The message says what is missing, such as a route to the other host.
    fn set_peer(&mut self, spec: &HostSpec) -> Result<()> {
        let is_existing = spec.existing_underlay.is_some();
        match (self.peer_is_set, is_existing) {
            (false, _) => {
                set_destinations(&mut self.vtep, spec)
                    .context("telling eBPF where the other host is")?;
                self.peer_is_set = true;
            }
            (true, true) => self.vtep.refresh().context("refreshing eBPF's routes")?,
            (true, false) => {}
        }
        if is_existing {
            self.require_neighbour(spec)?;
        }
        Ok(())
    }

    /// Refuses a tunnel whose packets would be dropped, as where the other host is not reached by the device that has
    /// the host's address.
    fn require_neighbour(&self, spec: &HostSpec) -> Result<()> {
        let peer = spec.underlay_peer();
        if self.vtep.has_neighbour(peer) {
            return Ok(());
        }
        let device = &self.vtep.config().underlay;
        Err(format!(
            "nothing on {device} answers as the next hop towards {peer}: eBPF sends by the device that has the host's \
             address, `datapath: kernel` by the host's routes"
        )
        .into())
    }
}

/// Tells the programs where the other host's guests are.
fn set_destinations(vtep: &mut Vtep, spec: &HostSpec) -> Result<(), Error> {
    let (vni, peer) = (vni(spec), spec.underlay_peer());
    let mut location = FdbDestination::Underlay;
    if spec.network.encapsulation.is_tunnel() {
        vtep.flood_to(vni, peer)?;
        location = FdbDestination::Remote(peer);
    }
    for mac in spec.guest_macs(spec.side.other()) {
        vtep.set_fdb_entry(vni, mac, location.clone())?;
    }
    Ok(())
}

/// The VNI of all guests; 0 for an encapsulation without one.
fn vni(spec: &HostSpec) -> u32 {
    let tunnel = spec.network.encapsulation.udp();
    tunnel.map_or(0, |tunnel| tunnel.vni)
}
