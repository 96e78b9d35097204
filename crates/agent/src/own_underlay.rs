//! The network of an existing host that a run's tunnels go over: read, and never changed.
//!
//! The agent leaves it for a network namespace of its own, which has the guests, the bridge and the tunnel. With the agent
//! the kernel drops all of that.

use std::io;

use wirecost_model::sample::DeviceState;
use wirecost_sys::namespace::{self, Netns, UserNamespace};
use wirecost_sys::socket::{PacketCapture, vrf_of};

use crate::error::{Result, Step};
use crate::existing::ExistingHost;

/// An existing host, seen from the namespace that its agent left for.
#[derive(Debug)]
pub(crate) struct OwnUnderlay {
    host: ExistingHost,
    netns: Netns,
}

impl OwnUnderlay {
    /// Moves the calling thread, and those that it will start, into new network and mount namespaces.
    ///
    /// # Errors
    /// In words, where the user may not.
    pub(crate) fn leave(host: ExistingHost) -> Result<Self> {
        let address = host.address();
        if let Ok(Some(vrf)) = vrf_of(address) {
            return Err(format!(
                "{address} is in the VRF {vrf}: `network: tunnel` needs an address outside of a VRF; `network: existing` \
                 measures with this one"
            )
            .into());
        }
        let netns = Netns::current().step("opening the host's network namespace")?;
        wirecost_traffic::note_control_groups();
        namespace::isolate(UserNamespace::Keep).map_err(|error| words(&error))?;
        // A container may forbid it; then steering masks are not read back.
        let _ = namespace::mount_own_sysfs();
        Ok(Self { host, netns })
    }

    pub(crate) const fn netns(&self) -> &Netns {
        &self.netns
    }

    /// The device with the host's address as it is. Its steering masks are not visible from here.
    pub(crate) fn state(&mut self) -> Result<DeviceState> {
        let state = self.host.state(&[])?;
        Ok(DeviceState {
            rps_cpus: None,
            ..state
        })
    }

    /// Captures what that device sends and receives.
    pub(crate) fn watch(&mut self, snap_bytes: usize) -> Result<PacketCapture> {
        let index = self.host.device().index()?;
        let capture = self.netns.within(|| PacketCapture::open(index, snap_bytes));
        capture
            .step("entering the host's network namespace")?
            .step("watching the host's device")
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
