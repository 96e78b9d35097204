//! The measured device of an existing host: its settings are read, changed and restored; it is never created or
//! removed.

mod queue_files;
mod root_qdisc;
mod speed;

use std::collections::BTreeMap;
use std::fs;
use std::io;

use wirecost_model::offload::{Feature, Role};
use wirecost_model::sample::DeviceState;
use wirecost_model::vary::DeviceSetting;
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::{Netns, with_own_sysfs};

use crate::device::{self, Change};
use crate::error::{BuildError, Context, error_code, same};
use crate::features::FeatureTarget;
use crate::netlink::Netlink;
use crate::steering::{mask_value, receive_masks, write_masks};

pub use self::speed::LinkSpeed;

/// Minimum MTU of a link for IPv6, bytes (RFC 8200, section 5): below, the kernel removes IPv6 and its addresses from
/// the device (net/ipv6/addrconf.c, `addrconf_notify`).
const IPV6_LEAST: u32 = 1280;

/// A device in the network namespace of the thread that opened it, or in one that its name states.
#[derive(Debug)]
pub struct ExistingDevice {
    /// Network namespace of the device, where its name states one.
    netns: Option<Netns>,
    name: String,
    place: String,
    netlink: Netlink,
    ethtool: Ethtool,
}

impl ExistingDevice {
    /// Opens a device by its name, or by the file of its network namespace and its name (`/run/netns/blue/vxlan0`,
    /// `/proc/1/ns/net/eth0`).
    ///
    /// # Errors
    /// Where the namespace cannot be entered or a socket cannot be opened. A missing device shows in its first use.
    pub fn open(name: &str) -> Result<Self, BuildError> {
        let place = format!("`{name}`");
        let entering = || format!("entering the network namespace of {place}");
        let netns = netns_of(name).with_context(entering)?;
        let open = || {
            let netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
            let ethtool = Ethtool::open().with_context(|| "opening a socket for ethtool".into())?;
            Ok::<_, BuildError>((netlink, ethtool))
        };
        let (netlink, ethtool) = within(netns.as_ref(), open).with_context(entering)??;
        Ok(Self {
            netns,
            name: name.rsplit('/').next().unwrap_or(name).to_owned(),
            place,
            netlink,
            ethtool,
        })
    }

    /// Whether the device is gone, or its namespace. One that cannot be looked at is not known to be gone.
    pub fn is_gone(name: &str) -> bool {
        const ENODEV: i32 = 19;
        let found = Self::open(name).and_then(|mut device| device.index());
        found.is_err_and(|error| {
            let error = io::Error::from(error);
            // A name in /run/netns that refers to no namespace any more is an invalid argument of setns(2).
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
            ) || error_code(&error) == Some(ENODEV)
        })
    }

    /// Interface index of the device.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn index(&mut self) -> Result<u32, BuildError> {
        let device = device::read(&mut self.netlink, &self.name);
        Ok(device
            .with_context(|| format!("reading {}", self.place))?
            .index)
    }

    /// UDP ports of the VXLAN and Geneve devices in the device's namespace.
    ///
    /// # Errors
    /// Where the kernel does not list them.
    pub fn tunnel_ports(&mut self) -> Result<Vec<u16>, BuildError> {
        device::tunnel_ports(&mut self.netlink).with_context(|| "listing the host's tunnels".into())
    }

    /// The device's MTU, queues, and offload features with those in `also`.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn state(
        &mut self,
        host: &str,
        also: &BTreeMap<String, bool>,
    ) -> Result<DeviceState, BuildError> {
        let step = || format!("reading {}", self.place);
        let device = device::read(&mut self.netlink, &self.name).with_context(step)?;
        let found = self.ethtool.features(&self.name).with_context(step)?;
        let profile = Feature::ALL.iter().flat_map(|feature| feature.ethtool());
        let known = profile.copied().filter(|name| found.contains_key(*name));
        let asked = also.keys().map(String::as_str);
        let state = |name: &str| found.get(name).is_some_and(|state| state.active);
        Ok(DeviceState {
            host: host.to_owned(),
            name: self.name.clone(),
            role: Role::Underlay,
            mtu: device.mtu,
            features: known
                .chain(asked)
                .map(|name| (name.to_owned(), state(name)))
                .collect(),
            rps_cpus: self.first_mask(device.index),
            tx_queues: device.tx_queues,
            rx_queues: device.rx_queues,
            count: 1,
        })
    }

    /// Speed of the device's link.
    ///
    /// # Errors
    /// Where the kernel does not list the devices.
    pub fn speed(&mut self) -> Result<LinkSpeed, BuildError> {
        let ethtool = &self.ethtool;
        let reported = |name: &str| {
            let speed = ethtool.speed(name).ok().flatten();
            speed.map(|mbit| u64::from(mbit) * 1_000_000)
        };
        let speed = speed::read(&mut self.netlink, &self.name, &reported);
        speed.with_context(|| format!("listing the devices beneath {}", self.place))
    }

    /// The device's changeable features with their state, for [`ExistingDevice::restore`].
    ///
    /// # Errors
    /// Where a feature in `wanted` cannot be set to its value.
    pub fn changeable(
        &mut self,
        wanted: &BTreeMap<String, bool>,
    ) -> Result<BTreeMap<String, bool>, BuildError> {
        self.target().changeable(wanted)
    }

    /// Sets features and reads them back.
    ///
    /// # Errors
    /// Where the kernel refuses, or does not apply one.
    pub fn set(&mut self, wanted: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.target().set(wanted)
    }

    /// Restores features and reads them back.
    ///
    /// # Errors
    /// Where the kernel refuses, or does not apply one.
    pub fn restore(&mut self, before: &BTreeMap<String, bool>) -> Result<(), BuildError> {
        self.target().put_back(before)
    }

    /// Value of a setting as text: an MTU is followed by IPv6's where the device has a smaller one for IPv6; receive
    /// steering is one mask, or a mask for each receive queue where they differ.
    ///
    /// # Errors
    /// Where the device does not have the setting, or it cannot be read.
    pub fn setting(&mut self, which: DeviceSetting) -> Result<String, BuildError> {
        let step = || format!("reading `{}` of {}", which.key(), self.place);
        let name = &self.name;
        let ethtool = &self.ethtool;
        let netlink = &mut self.netlink;
        match which {
            DeviceSetting::Mtu => device::read(netlink, name).and_then(|device| {
                let own = within(self.netns.as_ref(), || ipv6_mtu(name))?;
                let own = own.filter(|own| *own < device.mtu);
                let own = own.map_or_else(String::new, |own| format!(" {own}"));
                Ok(format!("{}{own}", device.mtu))
            }),
            DeviceSetting::Qdisc => device::read(netlink, name)
                .and_then(|device| root_qdisc::read(netlink, device.index)),
            DeviceSetting::RxRing => ethtool.rings(name).map(|rings| rings.rx.to_string()),
            DeviceSetting::TxRing => ethtool.rings(name).map(|rings| rings.tx.to_string()),
            DeviceSetting::Queues => ethtool
                .channels(name)
                .map(|queues| queues.combined.to_string()),
            DeviceSetting::Rps => self.masks().and_then(|mut masks| {
                if masks.iter().all(|mask| *mask == masks[0]) {
                    masks.truncate(1);
                }
                let none = || io::Error::other("the device has no receive queue with `rps_cpus`");
                (!masks.is_empty())
                    .then(|| masks.join(" "))
                    .ok_or_else(none)
            }),
        }
        .with_context(step)
    }

    /// Changes a setting and reads it back.
    ///
    /// # Errors
    /// Where the kernel or the driver refuses the value, or does not apply it.
    pub fn change(&mut self, which: DeviceSetting, value: &str) -> Result<(), BuildError> {
        let place = self.place.clone();
        let step = || format!("setting `{}` of {place} to {value}", which.key());
        // A driver may refuse even what is set already, which undoing a refused change asks for.
        let counts = [
            DeviceSetting::Queues,
            DeviceSetting::RxRing,
            DeviceSetting::TxRing,
        ];
        if counts.contains(&which) && self.setting(which).is_ok_and(|now| now == value) {
            return Ok(());
        }
        let name = &self.name;
        let number = || {
            let number = value.parse::<u32>();
            number.map_err(|_| io::Error::other(format!("{value} is not a number")))
        };
        match which {
            DeviceSetting::Mtu => self.change_mtu(value),
            DeviceSetting::RxRing => {
                number().and_then(|rx| self.ethtool.set_rings(name, Some(rx), None))
            }
            DeviceSetting::TxRing => {
                number().and_then(|tx| self.ethtool.set_rings(name, None, Some(tx)))
            }
            DeviceSetting::Queues => {
                number().and_then(|queues| self.ethtool.set_combined(name, queues))
            }
            DeviceSetting::Rps => self.in_own_sysfs(|| write_masks(name, value)),
            DeviceSetting::Qdisc => device::read(&mut self.netlink, name)
                .and_then(|device| root_qdisc::set(&mut self.netlink, device.index, value)),
        }
        .with_context(step)?;
        let found = self.setting(which)?;
        let plain = |text: &str| match which {
            DeviceSetting::Rps => {
                let masks: Vec<String> = text.split_whitespace().map(mask_value).collect();
                masks.join(" ")
            }
            DeviceSetting::Qdisc => root_qdisc::compared(text, value).to_owned(),
            _ => text.to_owned(),
        };
        let what = || format!("`{}` of {}", which.key(), self.place);
        same(what, &plain(value), &plain(&found))
    }

    /// Steering of each queue, for [`ExistingDevice::restore_queue_files`]: a change of the number of queues loses it.
    ///
    /// # Errors
    /// Where it cannot be read, and so could not be restored.
    pub fn queue_files(&self) -> Result<BTreeMap<String, String>, BuildError> {
        let name = &self.name;
        self.in_own_sysfs(|| queue_files::read(name))
            .with_context(|| format!("reading the steering of each queue of {}", self.place))
    }

    /// Restores the steering of each queue and reads it back.
    ///
    /// # Errors
    /// Where a queue is missing, or the kernel does not take a value.
    pub fn restore_queue_files(&self, before: &BTreeMap<String, String>) -> Result<(), BuildError> {
        let name = &self.name;
        self.in_own_sysfs(|| queue_files::restore(name, before))
            .with_context(|| format!("restoring the steering of each queue of {}", self.place))
    }

    /// Sets the MTU, and IPv6's where one is given: the kernel sets IPv6's to the device's whenever the device's
    /// changes (net/ipv6/addrconf.c, `addrconf_notify`).
    fn change_mtu(&mut self, value: &str) -> io::Result<()> {
        let mut words = value.split_whitespace().map(str::parse::<u32>);
        let (Some(Ok(mtu)), six) = (words.next(), words.next()) else {
            return Err(io::Error::other(format!("{value} is not a number")));
        };
        let name = &self.name;
        let has_ipv6 = within(self.netns.as_ref(), || ipv6_mtu(name))?.is_some();
        if has_ipv6 && mtu < IPV6_LEAST {
            return Err(io::Error::other(format!(
                "below {IPV6_LEAST} bytes the kernel takes IPv6 and its addresses off the device"
            )));
        }
        let change = Change {
            mtu: Some(mtu),
            ..Change::default()
        };
        change.apply(&mut self.netlink, name)?;
        if let Some(Ok(six)) = six {
            within(self.netns.as_ref(), || {
                fs::write(ipv6_mtu_file(name), six.to_string())
            })??;
        }
        Ok(())
    }

    /// Steering mask of each receive queue, from a sysfs of the device's own namespace.
    fn masks(&self) -> io::Result<Vec<String>> {
        let name = &self.name;
        self.in_own_sysfs(|| Ok(receive_masks(name)))
    }

    /// Runs `work` where /sys shows the device's namespace.
    fn in_own_sysfs<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        within(self.netns.as_ref(), || with_own_sysfs(work))
            .flatten()
            .flatten()
    }

    /// Steering mask of the first receive queue. Without the privilege to mount a sysfs, /sys is read where it shows
    /// this device.
    fn first_mask(&mut self, index: u32) -> Option<String> {
        let masks = match self.masks() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.is_in_sys(index).then(|| receive_masks(&self.name))
            }
            masks => masks.ok(),
        };
        masks?.into_iter().next()
    }

    /// Whether /sys shows this device, and not one with the same name in another namespace.
    fn is_in_sys(&mut self, index: u32) -> bool {
        let read = |file: &str| {
            let text = fs::read_to_string(format!("/sys/class/net/{}/{file}", self.name));
            text.map(|text| text.trim().to_owned()).ok()
        };
        let shown = (read("ifindex"), read("address"));
        let mac = device::read_mac(&mut self.netlink, &self.name).ok();
        let mac = mac.map(|mac| {
            let bytes: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
            bytes.join(":")
        });
        mac.is_some() && shown == (Some(index.to_string()), mac)
    }

    fn target(&mut self) -> FeatureTarget<'_> {
        FeatureTarget {
            name: &self.name,
            place: self.place.clone(),
            netlink: &mut self.netlink,
            ethtool: &self.ethtool,
        }
    }
}

/// Runs `work` in another network namespace, where one is given.
fn within<T>(netns: Option<&Netns>, work: impl FnOnce() -> T) -> io::Result<T> {
    match netns {
        Some(netns) => netns.within(work),
        None => Ok(work()),
    }
}

/// Network namespace that the name of a device states; only files of the two known forms are opened.
fn netns_of(name: &str) -> io::Result<Option<Netns>> {
    let Some((file, _)) = name.rsplit_once('/') else {
        return Ok(None);
    };
    let named = file.strip_prefix("/run/netns/");
    let process = file
        .strip_prefix("/proc/")
        .and_then(|rest| rest.strip_suffix("/ns/net"));
    let unknown = || io::Error::other("neither /run/netns/NAME nor /proc/PID/ns/net");
    match (named, process) {
        (Some(name), _) if !name.contains('/') && name != ".." => Netns::named(name).map(Some),
        (_, Some(pid)) => {
            let pid = pid.parse().map_err(|_| unknown())?;
            Netns::of(pid).map(Some)
        }
        _ => Err(unknown()),
    }
}

fn ipv6_mtu_file(name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{name}/mtu")
}

/// IPv6's MTU of a device of the calling thread's namespace, bytes; `None` where the device has no IPv6.
fn ipv6_mtu(name: &str) -> Option<u32> {
    let text = fs::read_to_string(ipv6_mtu_file(name)).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::thread;

    use wirecost_sys::capability;
    use wirecost_sys::namespace::{self, HeldNetns, UserNamespace};

    use super::*;
    use crate::device::VethEnd;

    /// Whether the test cannot run because this process may not make network namespaces.
    fn is_denied<T>(made: &io::Result<T>) -> bool {
        let denied = made.as_ref().err();
        let denied = denied.filter(|error| error.kind() == ErrorKind::PermissionDenied);
        if let Some(error) = denied {
            wirecost_skips::skip(format!("this needs root: {error}"));
        }
        denied.is_some()
    }

    #[test]
    fn only_a_device_that_is_not_there_is_gone() {
        assert!(ExistingDevice::is_gone("no-such-device"));
        assert!(ExistingDevice::is_gone("/run/netns/no-such-namespace/eth0"));
        assert!(!ExistingDevice::is_gone("lo"));
        // Of no namespace, so that nothing is known of it.
        assert!(!ExistingDevice::is_gone("/etc/eth0"));
    }

    fn mask(device: &mut ExistingDevice) -> Option<String> {
        let state = device.state("a", &BTreeMap::new()).expect("a device");
        state.rps_cpus.as_deref().map(mask_value)
    }

    #[test]
    fn a_devices_mask_is_read_in_the_namespace_that_its_name_states() {
        // /sys has a device of the same name, and its mask can be only one of the two.
        for wanted in ["1", "0"] {
            let held = HeldNetns::create("held");
            if is_denied(&held) {
                return;
            }
            let name = format!("/proc/{}/ns/net/lo", held.as_ref().expect("made").tid());
            let mut device = ExistingDevice::open(&name).expect("a namespace");
            let changed = device.change(DeviceSetting::Rps, wanted);
            changed.expect("root of the machine");
            assert_eq!(mask(&mut device), Some(mask_value(wanted)));
        }
    }

    /// A device of the calling thread's namespace, with a hardware address that the kernel draws.
    fn drawn() -> ExistingDevice {
        let end = |name| VethEnd {
            name,
            mtu: 1500,
            mac: None,
            queues: 1,
        };
        let mut netlink = Netlink::open().expect("rtnetlink");
        device::create_veth_here(&mut netlink, end("same"), end("other")).expect("a veth");
        ExistingDevice::open("same").expect("a device")
    }

    #[test]
    fn a_feature_that_was_requested_and_off_is_still_requested_after_another_was_restored() {
        let told = thread::spawn(|| {
            // This thread's own namespaces, which end with it.
            namespace::isolate(UserNamespace::Keep)?;
            let mut device = drawn();
            let one = |name: &str, on: bool| BTreeMap::from([(name.to_owned(), on)]);
            // Without checksums the kernel switches segmentation off, too (net/core/dev.c, `netdev_fix_features`).
            let segmentation = "tx-tcp-segmentation";
            let mut found = Vec::new();
            for wanted in [one("rx-gro", true), one(segmentation, false)] {
                device.set(&one("tx-checksum-ip-generic", false))?;
                let before = device.changeable(&wanted)?;
                device.set(&wanted)?;
                device.restore(&before)?;
                device.set(&one("tx-checksum-ip-generic", true))?;
                let state = device.state("a", &one(segmentation, true))?;
                found.push(state.features.get(segmentation).copied());
            }
            Ok::<_, io::Error>(found)
        });
        let told = told.join().expect("the thread");
        if !is_denied(&told) {
            assert_eq!(told.expect("features"), [Some(true); 2]);
        }
    }

    #[test]
    fn without_privilege_a_device_of_the_same_name_in_sys_is_not_taken_for_ours() {
        let told = thread::spawn(|| {
            // This thread's own namespaces and capabilities, which end with it.
            namespace::isolate(UserNamespace::Keep)?;
            namespace::mount_own_sysfs()?;
            let mut shown = drawn();
            let elsewhere = HeldNetns::create("elsewhere")?;
            let mut hidden = elsewhere.netns().within(drawn)?;
            capability::keep_only(&[])?;
            Ok::<_, io::Error>((mask(&mut shown), mask(&mut hidden)))
        });
        let told = told.join().expect("the thread");
        if is_denied(&told) {
            return;
        }
        let (shown, hidden) = told.expect("namespaces");
        assert_eq!((shown.is_some(), hidden), (true, None));
    }
}
