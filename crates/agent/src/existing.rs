//! A host whose network is measured as it is: the device with the measured address, proofs and settings on it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tracing::debug;
use wirecost_meter::Machine;
use wirecost_model::record::HostMachine;
use wirecost_model::sample::DeviceState;
use wirecost_model::vary::Setting;
use wirecost_netbuild::{ExistingDevice, Side};
use wirecost_probe::Responder;

use crate::address;
use crate::error::{Context, Result};
use crate::guard::SettingsTarget;
use crate::guards::{GuardNamespaces, SettingsGuards};
use crate::path_devices;
use crate::protocol::{HostPath, Joined, Secret};
use crate::prove;

/// Settings are undone after this time without a request: a run sends several requests for each sample.
pub(crate) const DEAD_MAN: Duration = Duration::from_secs(10);

fn machine() -> Result<HostMachine> {
    let Machine {
        kernel,
        cpu_model,
        virtual_machine,
        ..
    } = wirecost_meter::environment()?;
    Ok(HostMachine {
        kernel,
        cpu_model,
        virtual_machine,
    })
}

/// The MTU of the kernel's route to the peer, or the device's MTU where the kernel gives none; bytes.
fn route_mtu(address: IpAddr, peer: IpAddr, device: u32) -> u32 {
    let target = SocketAddr::new(peer, address::DISCARD);
    wirecost_sys::socket::route_mtu(address, target).unwrap_or(device)
}

/// UDP ports in use: those of sockets, the kernel's tunnels included, and those of tunnel devices that are down.
fn udp_ports(device: &mut ExistingDevice) -> Result<Vec<u16>> {
    let mut ports = device.tunnel_ports()?;
    for path in ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"] {
        // A kernel without IPv6 has no second file.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        ports.extend(text.lines().filter_map(local_port));
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// The local port in a line of /proc/net/udp: the second field, hexadecimal, after the colon (net/ipv4/udp.c,
/// `udp4_format_sock`).
fn local_port(line: &str) -> Option<u16> {
    let local = line.split_ascii_whitespace().nth(1)?;
    u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()
}

/// An existing host of a run, at one of its addresses.
#[derive(Debug)]
pub(crate) struct ExistingHost {
    side: Side,
    address: IpAddr,
    peer: IpAddr,
    name: String,
    device: ExistingDevice,
    /// Whether settings are applied that have to be undone.
    changed: bool,
    /// Whether settings were undone because the controller sent no request.
    abandoned: bool,
}

impl ExistingHost {
    /// Opens the host at its address `address`, and starts a responder for proofs by the other host.
    pub(crate) fn join(
        side: Side,
        (address, peer): (IpAddr, IpAddr),
        secret: Secret,
    ) -> Result<(Self, Responder, Joined)> {
        let name = address::device_of(address)
            .context("listing its addresses")?
            .ok_or_else(|| format!("no device of host {side} has the address {address}"))?;
        let mut device = ExistingDevice::open(&name)?;
        let state = device.state(&side.to_string(), &BTreeMap::new())?;
        let responder = prove::respond([(None, address)].into_iter(), secret)
            .context("starting the responder")?;
        let joined = Joined {
            responder: responder.addresses()[0],
            toggles: device.changeable(&BTreeMap::new())?,
            speed: device.speed()?,
            route_mtu: route_mtu(address, peer, state.mtu),
            udp_ports: udp_ports(&mut device)?,
            device: state,
            cpus: wirecost_meter::online_cpus()?,
            machine: machine()?,
        };
        let host = Self {
            side,
            address,
            peer,
            name,
            device,
            changed: false,
            abandoned: false,
        };
        Ok((host, responder, joined))
    }

    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Name of the device with the host's address.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn device(&mut self) -> &mut ExistingDevice {
        &mut self.device
    }

    /// The devices of this host that packets to the other host pass.
    pub(crate) fn path_devices(&self) -> Result<HostPath> {
        path_devices::of(&self.name, self.peer)
    }

    /// The state of the host's device, with the features that `settings` name.
    pub(crate) fn state(&mut self, settings: &[Setting]) -> Result<DeviceState> {
        let features = settings.iter().flat_map(|setting| setting.ethtool.values());
        let also = features.flatten().map(|(name, on)| (name.clone(), *on));
        Ok(self.device.state(&self.side.to_string(), &also.collect())?)
    }

    /// Applies settings in order and returns the state of the device as read back; if one fails, all are undone.
    pub(crate) fn apply(
        &mut self,
        guards: &SettingsGuards,
        settings: &[Setting],
    ) -> Result<Vec<DeviceState>> {
        let target = SettingsTarget::Existing {
            device: self.name.clone(),
        };
        self.changed = !settings.is_empty();
        self.abandoned = false;
        let namespaces = GuardNamespaces {
            side: self.side,
            target,
            guests: Vec::new(),
        };
        let mut applied = settings
            .iter()
            .map(|setting| guards.apply(&namespaces, setting));
        let state = applied
            .try_for_each(|applied| applied)
            .and_then(|()| self.state(settings));
        match state {
            Ok(state) => Ok(vec![state]),
            Err(error) => Err(match self.undo(guards) {
                Ok(()) => error,
                Err(also) => error.and(also),
            }),
        }
    }

    pub(crate) const fn is_changed(&self) -> bool {
        self.changed
    }

    /// Undoes all applied settings. Even where that fails nothing is left to be undone by [`Self::abandon`].
    pub(crate) fn undo(&mut self, guards: &SettingsGuards) -> Result<()> {
        self.changed = false;
        self.abandoned = false;
        guards.undo()
    }

    /// Undoes all applied settings after [`DEAD_MAN`] without a request: a setting may have cut off the controller.
    pub(crate) fn abandon(&mut self, guards: &SettingsGuards) {
        if let Err(error) = self.undo(guards) {
            debug!("not undone: {error}");
        }
        self.abandoned = true;
    }

    /// Checks that no settings were undone by [`Self::abandon`].
    ///
    /// # Errors
    /// Settings were undone that the controller takes for applied.
    pub(crate) fn still_applied(&self) -> Result<()> {
        if !self.abandoned {
            return Ok(());
        }
        let seconds = DEAD_MAN.as_secs();
        Err(format!(
            "the settings of the level were undone, because no request arrived for {seconds} s: the level cuts the \
             controller off from the host, or the controller was stopped"
        )
        .into())
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::vary::Scope;

    use super::*;

    #[test]
    fn the_kernels_list_of_sockets_has_their_ports() {
        let line = "11516: 00000000:12B5 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1";
        assert_eq!(local_port(line), Some(4789));
        assert_eq!(local_port("  sl  local_address rem_address   st"), None);
    }

    fn loopback() -> (ExistingHost, Responder, SettingsGuards) {
        let here = IpAddr::from([127, 0, 0, 1]);
        let secret = Secret {
            probe: [7; 16],
            acknowledgement: [8; 8],
        };
        let (host, responder, _) =
            ExistingHost::join(Side::A, (here, here), secret).expect("the loopback device");
        let guards = SettingsGuards::new("a test");
        // They start no process any more.
        guards.close();
        (host, responder, guards)
    }

    #[test]
    fn a_level_that_is_undone_because_it_failed_is_not_undone_again_as_abandoned() {
        let (mut host, _responder, guards) = loopback();
        let setting = Setting {
            factor: "f".into(),
            label: "l".into(),
            sysctl: [("net.ipv4.tcp_sack".into(), "1".into())].into(),
            ethtool: BTreeMap::new(),
            device: BTreeMap::new(),
            device_name: None,
            command: None,
            on: Scope::Hosts,
        };
        assert!(host.apply(&guards, &[setting]).is_err());
        assert!(!host.is_changed());
    }

    #[test]
    fn abandoned_settings_are_told_until_the_controller_undoes_the_level() {
        let (mut host, _responder, guards) = loopback();
        host.abandon(&guards);
        assert!(host.still_applied().is_err());
        host.undo(&guards).expect("nothing to undo");
        assert!(host.still_applied().is_ok());
    }
}
