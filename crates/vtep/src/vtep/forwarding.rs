//! The forwarding tables of a tunnel endpoint: FDB entries by MAC address, remotes with their headers,
//! receivers of broadcasts.

use std::io::ErrorKind;
use std::net::IpAddr;

use aya::maps::MapError;

use super::{Vtep, in_map};
use crate::config::Format;
use crate::error::Error;
use crate::layout::{self, MAX_FDB_ENTRIES, MAX_REMOTES, RemoteFields};
use crate::link::Links;
use crate::template::template;

/// Where the frames of a MAC address go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FdbDestination {
    /// Behind a guest's device at this host.
    Guest(String),
    /// Behind the remote endpoint with this address.
    Remote(IpAddr),
    /// On the underlay, for formats without remotes. Without such an entry, frames to a MAC address are
    /// sent to the underlay too, but also to every other guest of this host.
    Underlay,
}

/// Index of the remote entry that formats without remotes use for MAC addresses on the underlay.
const UNDERLAY_REMOTE: u32 = 1;

impl Vtep {
    /// Writes the remote entries of formats without remotes, which hold only the MTU.
    pub(super) fn write_underlay_remotes(&mut self) -> Result<(), Error> {
        let entry = RemoteFields {
            header: &[],
            address: [0; 16],
            source: [0; 16],
            udp_sum: 0,
            ip_sum: 0,
            mtu: self.mtu(),
            ceiling: 0,
            resolved: false,
        };
        let far = self
            .config
            .format
            .tunnel()
            .is_none()
            .then_some(UNDERLAY_REMOTE);
        for index in [0].into_iter().chain(far) {
            let written = self.maps.remotes.set(index, entry.bytes(), 0);
            written.map_err(in_map("remotes"))?;
        }
        Ok(())
    }

    /// Sets the location of a MAC address of segment `vni`; adds its remote if it is new.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a device that is no guest's, [`Error::Route`] for a remote without a route,
    /// [`Error::Full`] beyond 4096 FDB entries or 64 remotes.
    pub fn set_fdb_entry(
        &mut self,
        vni: u32,
        mac: [u8; 6],
        location: FdbDestination,
    ) -> Result<(), Error> {
        self.check_vni(vni)?;
        if self.fdb.len() == MAX_FDB_ENTRIES && !self.fdb.contains_key(&(vni, mac)) {
            return Err(Error::Full {
                what: "FDB entries",
                most: MAX_FDB_ENTRIES,
            });
        }
        let entry = match &location {
            FdbDestination::Guest(device) => {
                let guest = self
                    .guests
                    .get(device)
                    .filter(|guest| guest.vni == vni)
                    .ok_or_else(|| Error::Unknown(device.clone()))?;
                layout::fdb_entry(0, guest.device.index)
            }
            FdbDestination::Remote(address) => layout::fdb_entry(self.remote(*address)?, 0),
            FdbDestination::Underlay if self.config.format.tunnel().is_none() => {
                layout::fdb_entry(UNDERLAY_REMOTE, 0)
            }
            FdbDestination::Underlay => {
                let what = "MAC addresses of a tunnel are behind remotes";
                return Err(Error::Config(what.to_owned()));
            }
        };
        self.maps
            .fdb
            .insert(layout::fdb_key(vni, mac), entry, 0)
            .map_err(in_map("fdb"))?;
        self.fdb.insert((vni, mac), location);
        Ok(())
    }

    /// Adds a remote to the receivers of broadcasts and multicasts in segment `vni`, and of frames
    /// for unknown MAC addresses.
    ///
    /// # Errors
    /// As [`Vtep::set_fdb_entry`].
    pub fn flood_to(&mut self, vni: u32, address: IpAddr) -> Result<(), Error> {
        self.check_vni(vni)?;
        self.remote(address)?;
        self.floods.entry(vni).or_default().insert(address);
        self.write_flood(vni)
    }

    pub(super) fn check_vni(&self, vni: u32) -> Result<(), Error> {
        if self.config.format.tunnel().is_none() && vni != 0 {
            return Err(Error::Config(format!(
                "VNI {vni}: this format has none, give 0"
            )));
        }
        if vni >= 1 << 24 {
            return Err(Error::Config(format!("VNI {vni}: must be below 2^24")));
        }
        Ok(())
    }

    /// The index of a remote, which is added if it is new.
    fn remote(&mut self, address: IpAddr) -> Result<u32, Error> {
        if let Some(&index) = self.remotes.get(&address) {
            return Ok(index);
        }
        let Some(tunnel) = self.config.format.tunnel() else {
            let what = match self.config.format {
                Format::Vlan { .. } => "a VLAN",
                _ => "the underlay itself",
            };
            return Err(Error::Config(format!("{address}: {what} has no remotes")));
        };
        let local = tunnel.local;
        if self.remotes.len() == MAX_REMOTES {
            return Err(Error::Full {
                what: "remotes",
                most: MAX_REMOTES,
            });
        }
        let index = self.remotes.len() as u32 + 1;
        self.write_remote(address, local, index)?;
        self.maps
            .sources
            .insert(layout::address(address), 1, 0)
            .map_err(in_map("sources"))?;
        self.remotes.insert(address, index);
        Ok(index)
    }

    /// Writes the headers for a remote, with the MAC address of its next hop if that answers.
    pub(super) fn write_remote(
        &mut self,
        address: IpAddr,
        local: IpAddr,
        index: u32,
    ) -> Result<(), Error> {
        let Some(mut made) = template(&self.config.format, address) else {
            return Err(Error::Config(format!(
                "{address}: not of the family of {local}, the tunnel's own address"
            )));
        };
        let underlay = self.underlay.index;
        let hop = self.at_home(|| Links::open()?.next_hop(address, underlay));
        let hop = hop.map_err(|source| Error::Route {
            address,
            device: self.config.underlay.clone(),
            source,
        })?;
        if hop.mac.is_some() {
            self.silent.remove(&address);
        } else {
            self.silent.insert(address);
        }
        if let Some(mac) = hop.mac {
            made.bytes[..6].copy_from_slice(&mac);
            made.bytes[6..12].copy_from_slice(&self.underlay.mac);
        }
        let mtu = self.mtu();
        let fields = RemoteFields {
            header: &made.bytes,
            address: layout::address(address),
            source: layout::address(local),
            udp_sum: made.udp_sum,
            ip_sum: made.ip_sum,
            mtu: hop.mtu.map_or(mtu, |route| route.min(mtu)),
            ceiling: self.config.mtu.unwrap_or(0),
            resolved: hop.mac.is_some(),
        };
        self.maps
            .remotes
            .set(index, fields.bytes(), 0)
            .map_err(in_map("remotes"))
    }

    /// Removes every FDB entry with a destination.
    ///
    /// # Errors
    /// [`Error::Map`]; entries that were not removed yet remain.
    pub(super) fn remove_fdb_entries(&mut self, location: &FdbDestination) -> Result<(), Error> {
        let gone: Vec<(u32, [u8; 6])> = self
            .fdb
            .iter()
            .filter(|(_, at)| *at == location)
            .map(|(&key, _)| key)
            .collect();
        for (vni, mac) in gone {
            self.maps
                .fdb
                .remove(&layout::fdb_key(vni, mac))
                .map_err(in_map("fdb"))?;
            self.fdb.remove(&(vni, mac));
        }
        Ok(())
    }

    /// Writes the receivers of a VNI's broadcasts; a VNI without guests of this host has no entry.
    pub(super) fn write_flood(&mut self, vni: u32) -> Result<(), Error> {
        let ports: Vec<u32> = self
            .guests
            .values()
            .filter(|guest| guest.vni == vni)
            .map(|guest| guest.device.index)
            .collect();
        let remotes: Vec<u32> = self
            .floods
            .get(&vni)
            .into_iter()
            .flatten()
            .filter_map(|address| self.remotes.get(address).copied())
            .collect();
        if ports.is_empty() {
            let removed = self.maps.floods.remove(&vni);
            return unless_absent(removed).map_err(in_map("floods"));
        }
        let lists = layout::flood(&remotes, &ports);
        self.maps
            .floods
            .insert(vni, lists, 0)
            .map_err(in_map("floods"))
    }
}

/// The result of a removal, for which an entry that is not there is no error.
fn unless_absent(removed: Result<(), MapError>) -> Result<(), MapError> {
    match removed {
        Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(call)) if call.io_error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
