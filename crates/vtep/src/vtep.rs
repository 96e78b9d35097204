//! An attached tunnel endpoint: its programs, maps and guests.

mod forwarding;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use aya::Ebpf;
use aya::maps::{MapData, MapError, PerCpuArray};
use wirecost_sys::namespace::Netns;

use crate::config::Config;
use crate::counters::{Counter, Counters};
use crate::error::Error;
use crate::layout::{self, MAX_PORTS};
use crate::link::{Device, Links};
use crate::load::{self, Attached, DECAPSULATE, ENCAPSULATE, Maps};
use crate::segmenter::Segmenter;

pub use forwarding::FdbDestination;

struct Guest {
    device: Device,
    vni: u32,
    attached: Attached,
}

/// An attached tunnel endpoint. Dropping it detaches the programs and frees everything.
pub struct Vtep {
    config: Config,
    // Dropped first: off the hooks before anything else is freed.
    underlay_hook: Option<Attached>,
    segmenter_hook: Option<Attached>,
    guests: BTreeMap<String, Guest>,
    segmenter: Option<Segmenter>,
    underlay: Device,
    remotes: BTreeMap<IpAddr, u32>,
    /// Remotes whose next hop did not answer when it was last looked up.
    silent: BTreeSet<IpAddr>,
    floods: BTreeMap<u32, BTreeSet<IpAddr>>,
    fdb: BTreeMap<(u32, [u8; 6]), FdbDestination>,
    maps: Maps,
    object: Ebpf,
    home: Netns,
}

impl std::fmt::Debug for Vtep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vtep")
            .field("config", &self.config)
            .field("guests", &self.guests.keys())
            .field("remotes", &self.remotes.keys())
            .finish_non_exhaustive()
    }
}

impl Vtep {
    /// Loads the programs and attaches them to the underlay device, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Config`] for an invalid configuration, [`Error::Device`] for a missing underlay device,
    /// [`Error::NotAllowed`] without privilege, [`Error::Refused`] with the verifier's log.
    pub fn attach(config: Config) -> Result<Self, Error> {
        config.validate()?;
        let underlay_error = |source| Error::Device {
            device: config.underlay.clone(),
            source,
        };
        let home = Netns::current().map_err(underlay_error)?;
        let mut links = Links::open().map_err(underlay_error)?;
        let underlay = links.device(&config.underlay).map_err(underlay_error)?;
        if !underlay.is_ethernet {
            return Err(Error::Config(format!(
                "{} carries no Ethernet frames, which the programs work on",
                config.underlay
            )));
        }
        let computes = config.format.tunnel().is_some_and(|t| t.udp_checksum);
        let segmenter = computes
            .then(|| Segmenter::create(&mut links, underlay.index))
            .transpose()?;
        let indexes = segmenter.as_ref().map_or((0, 0), |s| s.indexes);
        let made = Self::load(config, underlay, home, indexes);
        match made {
            Ok(mut vtep) => {
                vtep.segmenter = segmenter;
                vtep.hook_up()?;
                Ok(vtep)
            }
            Err(error) => {
                // The first error is the one to report.
                let _ = segmenter.map(|segmenter| segmenter.remove(&mut links));
                Err(error)
            }
        }
    }

    fn load(
        config: Config,
        underlay: Device,
        home: Netns,
        segmenter: (u32, u32),
    ) -> Result<Self, Error> {
        let mut object = load::load(&config, underlay.index, segmenter)?;
        let maps = Maps::take(&mut object)?;
        Ok(Self {
            config,
            underlay_hook: None,
            segmenter_hook: None,
            guests: BTreeMap::new(),
            segmenter: None,
            underlay,
            remotes: BTreeMap::new(),
            silent: BTreeSet::new(),
            floods: BTreeMap::new(),
            fdb: BTreeMap::new(),
            maps,
            object,
            home,
        })
    }

    fn hook_up(&mut self) -> Result<(), Error> {
        self.write_underlay_remotes()?;
        let hook = self.config.hook;
        if let Some(segmenter) = &self.segmenter {
            let device = segmenter.receives.clone();
            let attached = load::attach(&mut self.object, ENCAPSULATE, &device, hook)?;
            self.segmenter_hook = Some(attached);
        }
        let underlay = self.config.underlay.clone();
        let attached = load::attach(&mut self.object, DECAPSULATE, &underlay, hook)?;
        self.underlay_hook = Some(attached);
        Ok(())
    }

    fn mtu(&self) -> u32 {
        self.config
            .mtu
            .map_or(self.underlay.mtu, |mtu| mtu.min(self.underlay.mtu))
    }

    /// The configuration of the endpoint.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Size of the largest IP packet that a guest can send at the underlay's current MTU, bytes.
    /// Longer ones are answered with an ICMP "too big" error.
    pub fn guest_mtu(&self) -> u32 {
        self.mtu().saturating_sub(self.config.overhead())
    }

    /// Makes a device of this host a guest's: frames that it receives go into segment `vni` (0 for
    /// formats without VNI).
    ///
    /// # Errors
    /// [`Error::Device`] if the device is missing, [`Error::Attach`] if the program cannot be
    /// attached, [`Error::Full`] beyond 64 guests.
    pub fn add_guest(&mut self, device: &str, vni: u32) -> Result<(), Error> {
        self.check_vni(vni)?;
        if self.guests.contains_key(device) {
            return Err(Error::Config(format!("{device} is a guest's already")));
        }
        if self.guests.len() == MAX_PORTS {
            return Err(Error::Full {
                what: "guests",
                most: MAX_PORTS,
            });
        }
        let found = self.at_home(|| Links::open()?.device(device));
        let found = found.map_err(|source| Error::Device {
            device: device.to_owned(),
            source,
        })?;
        self.maps
            .ports
            .insert(found.index, layout::port(vni), 0)
            .map_err(in_map("ports"))?;
        let hook = self.config.hook;
        let attached = self.within(|object| load::attach(object, ENCAPSULATE, device, hook));
        let attached = attached.flatten().inspect_err(|_| {
            // The first error is the one to report.
            let _ = self.maps.ports.remove(&found.index);
        })?;
        let guest = Guest {
            device: found,
            vni,
            attached,
        };
        self.guests.insert(device.to_owned(), guest);
        self.write_flood(vni).inspect_err(|_| {
            let _ = self.remove_guest(device);
        })
    }

    /// Removes a guest's device from the endpoint: frames that it receives are the host's again.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the device is no guest's. Otherwise the first error; everything else is removed all the
    /// same.
    pub fn remove_guest(&mut self, device: &str) -> Result<(), Error> {
        let guest = self
            .guests
            .remove(device)
            .ok_or_else(|| Error::Unknown(device.to_owned()))?;
        let gone = FdbDestination::Guest(device.to_owned());
        let index = guest.device.index;
        let results = [
            self.at_home_result(|| guest.attached.detach(ENCAPSULATE, device)),
            self.remove_fdb_entries(&gone),
            self.maps.ports.remove(&index).map_err(in_map("ports")),
            self.write_flood(guest.vni),
        ];
        results.into_iter().collect()
    }

    /// Updates what the programs know of the underlay: its MTU, the routes to the remotes, the next
    /// hops' MAC addresses. To be called after these change. On a host that forwards, the programs
    /// look up routes and next hops by themselves, once a second.
    ///
    /// # Errors
    /// [`Error::Device`] if the underlay device is gone, [`Error::Route`] if a remote has no route.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let name = self.config.underlay.clone();
        let found = self.at_home(|| Links::open()?.device(&name));
        self.underlay = found.map_err(|source| Error::Device {
            device: name,
            source,
        })?;
        self.write_underlay_remotes()?;
        let Some(local) = self.config.format.tunnel().map(|tunnel| tunnel.local) else {
            return Ok(());
        };
        for (address, index) in self.remotes.clone() {
            self.write_remote(address, local, index)?;
        }
        Ok(())
    }

    /// Whether the next hop towards a remote answered when it was last looked up.
    pub fn has_neighbour(&self, remote: IpAddr) -> bool {
        self.remotes.contains_key(&remote) && !self.silent.contains(&remote)
    }

    /// The counts since the endpoint was attached.
    ///
    /// # Errors
    /// [`Error::Map`] if the kernel does not report them.
    pub fn counters(&self) -> Result<Counters, Error> {
        match &self.maps.counters {
            Some(map) => read_counters(map),
            None => Ok(Counters::default()),
        }
    }

    pub(crate) fn take_counters(&mut self) -> Option<PerCpuArray<MapData, u64>> {
        self.maps.counters.take()
    }

    /// Takes all attached programs, each with a unique name.
    pub(crate) fn take_attached(&mut self) -> Vec<(String, Attached)> {
        let mut all: Vec<(String, Attached)> = std::mem::take(&mut self.guests)
            .into_iter()
            .map(|(device, guest)| (format!("guest-{device}"), guest.attached))
            .collect();
        let segmenter = self.segmenter_hook.take();
        all.extend(segmenter.map(|attached| ("segmenter".to_owned(), attached)));
        // The underlay last: no frame comes in before everything else is in place.
        let underlay = self.underlay_hook.take();
        all.extend(underlay.map(|attached| ("underlay".to_owned(), attached)));
        all
    }

    /// Leaves the veth pair in place.
    pub(crate) fn leave_segmenter(&mut self) {
        self.segmenter = None;
    }

    /// Detaches everything and reports errors. Dropping does the same without a report.
    ///
    /// # Errors
    /// The first error; everything else is detached all the same.
    pub fn detach(mut self) -> Result<(), Error> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<(), Error> {
        let guests = std::mem::take(&mut self.guests);
        let underlay = self.underlay_hook.take();
        let detour_hook = self.segmenter_hook.take();
        let segmenter = self.segmenter.take();
        let device = self.config.underlay.clone();
        self.at_home_result(|| {
            let mut results: Vec<Result<(), Error>> = guests
                .into_iter()
                .map(|(device, guest)| guest.attached.detach(ENCAPSULATE, &device))
                .collect();
            results.extend(underlay.map(|hook| hook.detach(DECAPSULATE, &device)));
            if let Some(segmenter) = segmenter {
                results
                    .extend(detour_hook.map(|hook| hook.detach(ENCAPSULATE, &segmenter.receives)));
                let links = Links::open().map_err(|source| Error::Device {
                    device: segmenter.sends.clone(),
                    source,
                });
                results.push(links.and_then(|mut links| segmenter.remove(&mut links)));
            }
            results.into_iter().collect()
        })
    }

    pub(crate) const fn underlay_index(&self) -> u32 {
        self.underlay.index
    }

    pub(crate) fn guest_index(&self, device: &str) -> Result<u32, Error> {
        let guest = self.guests.get(device);
        guest
            .map(|guest| guest.device.index)
            .ok_or_else(|| Error::Unknown(device.to_owned()))
    }

    /// Runs `work` with the programs, in the namespace in which they are attached.
    pub(crate) fn within<T>(&mut self, work: impl FnOnce(&mut Ebpf) -> T) -> Result<T, Error> {
        let object = &mut self.object;
        self.home
            .within(|| work(object))
            .map_err(|source| Error::Device {
                device: self.config.underlay.clone(),
                source,
            })
    }

    fn at_home<T>(&self, work: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<T> {
        self.home.within(work)?
    }

    fn at_home_result(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let device = self.config.underlay.clone();
        self.home
            .within(work)
            .map_err(|source| Error::Device { device, source })?
    }
}

impl Drop for Vtep {
    fn drop(&mut self) {
        // Errors are reported by `detach` only.
        let _ = self.take_down();
    }
}

pub(crate) fn read_counters(map: &PerCpuArray<MapData, u64>) -> Result<Counters, Error> {
    let mut counters = Counters::default();
    for counter in Counter::ALL {
        let each = map.get(&(counter as u32), 0).map_err(in_map("counters"))?;
        counters.set(counter, each.iter().sum());
    }
    Ok(counters)
}

pub(crate) fn in_map(map: &'static str) -> impl Fn(MapError) -> Error {
    move |source| Error::Map {
        map,
        source: Box::new(source),
    }
}
