//! The network of an existing host as the underlay of a run's tunnels: read, and never changed but for eBPF's programs
//! and guests' ports.
//!
//! The agent moves to a network namespace of its own, which holds the guests, the bridge and the tunnel. The kernel
//! removes it when the agent ends.

use std::io;

use wirecost_model::sample::DeviceState;
use wirecost_sys::namespace::{self, Netns, UserNamespace};
use wirecost_sys::socket::{PacketCapture, vrf_of};

use crate::error::{Context, Result};
use crate::existing::ExistingHost;

/// An existing host whose agent has moved to another network namespace.
#[derive(Debug)]
pub(crate) struct ExistingUnderlay {
    host: ExistingHost,
    netns: Netns,
}

impl ExistingUnderlay {
    /// Moves the calling thread, and the threads that it starts later, into new network and mount namespaces.
    ///
    /// # Errors
    /// The address is in a VRF, or the user may not make namespaces; the message says what to do.
    pub(crate) fn leave(host: ExistingHost) -> Result<Self> {
        let address = host.address();
        if let Ok(Some(vrf)) = vrf_of(address) {
            return Err(format!(
                "{address} is in the VRF {vrf}: `network: tunnel` needs an address outside of a VRF; `network: existing` \
                 measures with this one"
            )
            .into());
        }
        let netns = Netns::current().context("opening the host's network namespace")?;
        wirecost_traffic::note_control_groups();
        namespace::isolate(UserNamespace::Keep).map_err(|error| words(&error))?;
        // A container may forbid the mount; then steering masks are not read back.
        let _ = namespace::mount_own_sysfs();
        Ok(Self { host, netns })
    }

    pub(crate) const fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Name of the device with the host's address, in [`Self::netns`].
    pub(crate) fn device_name(&self) -> &str {
        self.host.name()
    }

    /// State of the device with the host's address. Its steering masks are not visible from the agent's namespace.
    pub(crate) fn state(&mut self) -> Result<DeviceState> {
        let state = self.host.state(&[])?;
        Ok(DeviceState {
            rps_cpus: None,
            ..state
        })
    }

    /// Captures what the device with the host's address sends and receives, up to `snap_bytes` bytes of each packet.
    pub(crate) fn watch(&mut self, snap_bytes: usize) -> Result<PacketCapture> {
        let index = self.host.device().index()?;
        let capture = self.netns.within(|| PacketCapture::open(index, snap_bytes));
        capture
            .context("entering the host's network namespace")?
            .context("watching the host's device")
    }
}

fn words(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": log in as root; `network: existing` needs no privilege"
        }
        _ => "",
    };
    format!(
        "`network: tunnel` makes a network namespace and a tunnel on the host, which needs root there ({error}){advice}"
    )
}
