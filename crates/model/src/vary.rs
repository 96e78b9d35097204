//! Any setting as a factor: levels that are settings of a host, applied before a sample and undone after it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::offload::Role;
use crate::steering::MASK_DIGITS;

mod names;

pub use names::{is_device, is_feature, is_sysctl};

/// A factor that the plan defines; its levels are settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vary {
    /// The factor's name, which is its key in records.
    pub name: String,
    /// The factor's levels in the plan's order; the first is the reference.
    pub levels: Vec<Setting>,
}

/// One level: settings of the hosts. An empty one changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Name of the factor that this is a level of.
    pub factor: String,
    /// The level's label.
    pub label: String,
    /// Sysctls and their values, by the name that sysctl(8) takes.
    pub sysctl: BTreeMap<String, String>,
    /// Device features by role and by the kernel's name (`ethtool -k`): true for on.
    pub ethtool: BTreeMap<Role, BTreeMap<String, bool>>,
    /// On existing hosts, settings of the device with the data-plane address: numbers, a mask in hexadecimal digits, or
    /// the name of a qdisc.
    #[serde(default)]
    pub device: BTreeMap<DeviceSetting, String>,
    /// On an existing host, the device that `ethtool` and `device` set: its name, or its name behind the file of
    /// another network namespace (`/run/netns/blue/vxlan0`, `/proc/1/ns/net/eth0`). `None` for the device with the
    /// data-plane address.
    #[serde(default)]
    pub device_name: Option<String>,
    /// A command, and the command that undoes it.
    pub command: Option<CommandPair>,
    /// Where sysctls and the command apply; `ethtool` too where the scope is one host.
    pub on: Scope,
}

/// A setting of a device on an existing host, besides its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSetting {
    /// MTU in bytes.
    Mtu,
    /// Size of the receive ring, descriptors (`ethtool -G DEV rx`).
    RxRing,
    /// Size of the transmit ring, descriptors (`ethtool -G DEV tx`).
    TxRing,
    /// Number of combined queues, for both directions (`ethtool -L DEV combined`).
    Queues,
    /// Cores that received packets are steered to (`rps_cpus` of every receive queue).
    Rps,
    /// The root qdisc by its kind, with the kernel's default options.
    Qdisc,
}

impl DeviceSetting {
    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::RxRing => "rx_ring",
            Self::TxRing => "tx_ring",
            Self::Queues => "queues",
            Self::Rps => "rps",
            Self::Qdisc => "qdisc",
        }
    }

    /// Whether a plan can give the setting this value.
    fn takes(self, value: &str) -> bool {
        match self {
            Self::Mtu | Self::RxRing | Self::TxRing | Self::Queues => value.parse::<u32>().is_ok(),
            Self::Rps => {
                let fits = |digit: u8| digit.is_ascii_hexdigit();
                (1..=MASK_DIGITS).contains(&value.len()) && value.bytes().all(fits)
            }
            // IFNAMSIZ of include/uapi/linux/if.h, which is the limit of a qdisc's kind too.
            Self::Qdisc => {
                let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
                (1..16).contains(&value.len()) && value.bytes().all(fits)
            }
        }
    }
}

/// A command and the command that undoes it, run by `sh -c` as the user who runs wirecost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPair {
    /// Run before a sample of the level.
    pub before: String,
    /// Run after the sample, whatever its outcome, and also where `before` failed.
    pub after: String,
}

/// The namespaces in which a setting applies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The network namespaces of both hosts' guests.
    Guests,
    /// The network namespaces of both hosts.
    Hosts,
    /// The network namespaces of both hosts and of their guests.
    #[default]
    Both,
    /// The network namespaces of host a and its guests.
    A,
    /// The network namespaces of host b and its guests.
    B,
    /// This machine outside of the lab, once.
    Machine,
}

impl Scope {
    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Guests => "guests",
            Self::Hosts => "hosts",
            Self::Both => "both",
            Self::A => "a",
            Self::B => "b",
            Self::Machine => "machine",
        }
    }

    /// The host, `a` or `b`, that the scope is limited to; `None` for both.
    pub const fn host(self) -> Option<&'static str> {
        match self {
            Self::A => Some("a"),
            Self::B => Some("b"),
            Self::Guests | Self::Hosts | Self::Both | Self::Machine => None,
        }
    }

    /// Whether the scope includes a host, `a` or `b`.
    pub fn has_host(self, host: &str) -> bool {
        self.host().is_none_or(|only| only == host)
    }

    /// Whether this scope and `other` have a host in common.
    pub fn meets_on_a_host(self, other: Self) -> bool {
        self.host().is_none_or(|host| other.has_host(host))
    }

    /// Whether the scope includes the guests' namespaces.
    pub const fn has_guests(self) -> bool {
        matches!(self, Self::Guests | Self::Both | Self::A | Self::B)
    }

    /// Whether the scope includes the hosts' namespaces.
    pub const fn has_hosts(self) -> bool {
        matches!(self, Self::Hosts | Self::Both | Self::A | Self::B)
    }

    /// Whether this scope and `other` have a namespace in common.
    pub fn meets(self, other: Self) -> bool {
        let in_lab =
            (self.has_guests() && other.has_guests()) || (self.has_hosts() && other.has_hosts());
        (in_lab && self.meets_on_a_host(other))
            || matches!((self, other), (Self::Machine, Self::Machine))
    }

    /// Number of namespaces in which a setting is applied for one sample, with `guests` guests per host.
    pub const fn times(self, guests: u32) -> u32 {
        match self {
            Self::Guests => 2 * guests,
            Self::Hosts => 2,
            Self::Both => 2 * (1 + guests),
            Self::A | Self::B => 1 + guests,
            Self::Machine => 1,
        }
    }
}

/// In words: `the guests' namespaces of both hosts`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guests => "the guests' namespaces of both hosts",
            Self::Hosts => "the namespaces of both hosts",
            Self::Both => "the namespaces of both hosts and of their guests",
            Self::A => "the namespaces of host a and of its guests",
            Self::B => "the namespaces of host b and of its guests",
            Self::Machine => "this machine, outside of the lab",
        })
    }
}

impl Setting {
    /// Whether the setting changes nothing.
    pub fn is_empty(&self) -> bool {
        self.sysctl.is_empty()
            && self.ethtool.is_empty()
            && self.device.is_empty()
            && self.command.is_none()
    }

    /// What no plan's setting has, in words: a name that leads elsewhere, a value of several lines. `None`: nothing.
    pub fn fault(&self) -> Option<String> {
        let no_sysctl = |name: &&String| !is_sysctl(name);
        if let Some(name) = self.sysctl.keys().find(no_sysctl) {
            return Some(format!("{name:?} is not the name of a sysctl"));
        }
        let no_value = |value: &str| value.trim().is_empty() || value.contains(['\n', '\0']);
        if let Some((name, value)) = self.sysctl.iter().find(|(_, value)| no_value(value)) {
            return Some(format!("the sysctl `{name}` cannot be {value:?}"));
        }
        let mut features = self.ethtool.values().flat_map(BTreeMap::keys);
        if let Some(name) = features.find(|name| !is_feature(name)) {
            return Some(format!("{name:?} is not the name of a feature"));
        }
        let mut device = self.device.iter();
        if let Some((which, value)) = device.find(|(which, value)| !which.takes(value)) {
            return Some(format!("`{}` cannot be {value:?}", which.key()));
        }
        let no_device = |name: &&String| !is_device(name);
        if let Some(name) = self.device_name.as_ref().filter(no_device) {
            return Some(format!("{name:?} is no device"));
        }
        let CommandPair { before, after } = self.command.as_ref()?;
        let has_zero = before.contains('\0') || after.contains('\0');
        has_zero.then(|| "a command has a zero byte".to_owned())
    }

    /// Whether both change the same things in the same way, whatever their labels.
    pub fn does_the_same(&self, other: &Self) -> bool {
        self.sysctl == other.sysctl
            && self.ethtool == other.ethtool
            && self.device == other.device
            && self.device_name == other.device_name
            && self.command == other.command
            && self.on.host() == other.on.host()
            && (self.on == other.on || (self.sysctl.is_empty() && self.command.is_none()))
    }

    /// The default label: what the setting changes.
    pub fn described(&self) -> String {
        let short = |name: &str| name.rsplit(['.', '/']).next().unwrap_or(name).to_owned();
        let mut parts: Vec<String> = self
            .sysctl
            .iter()
            .map(|(name, value)| format!("{}={value}", short(name)))
            .collect();
        for (role, features) in &self.ethtool {
            parts.extend(features.iter().map(|(feature, on)| {
                let state = if *on { "on" } else { "off" };
                format!("{} {feature}={state}", role_key(*role))
            }));
        }
        parts.extend(
            self.device
                .iter()
                .map(|(what, value)| format!("{}={value}", what.key())),
        );
        parts.extend(
            self.command
                .as_ref()
                .map(|command| first_line(&command.before)),
        );
        if parts.is_empty() {
            return "default".to_owned();
        }
        let device = self.device_name.as_ref().map(|name| format!(" of {name}"));
        let place = self.on.host().map(|host| format!(" on {host}"));
        parts.join(", ") + &device.unwrap_or_default() + &place.unwrap_or_default()
    }
}

/// The plan's word for a device's role on the path; plans do not name the bridge.
pub const fn role_key(role: Role) -> &'static str {
    match role {
        Role::Underlay => "underlay",
        Role::Tunnel => "tunnel",
        Role::Guest => "guest",
        Role::GuestPort => "guest_port",
        Role::Bridge => "bridge",
    }
}

/// The first line of a command, at most 40 characters.
fn first_line(command: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    let line = command.lines().next().unwrap_or_default().trim_end();
    let mut short: String = line.chars().take(MAX_CHARACTERS).collect();
    if short.len() < command.trim_end().len() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Setting {
        Setting {
            factor: "f".into(),
            label: String::new(),
            sysctl: BTreeMap::new(),
            ethtool: BTreeMap::new(),
            device: BTreeMap::new(),
            device_name: None,
            command: None,
            on: Scope::Both,
        }
    }

    #[test]
    fn a_level_without_a_label_is_called_by_what_it_changes() {
        assert_eq!(nothing().described(), "default");
        let level = Setting {
            sysctl: [("net.ipv4.tcp_no_metrics_save".into(), "1".into())].into(),
            ethtool: [(Role::Underlay, [("rx-gro".into(), false)].into())].into(),
            ..nothing()
        };
        assert_eq!(
            level.described(),
            "tcp_no_metrics_save=1, underlay rx-gro=off"
        );
        let command = Setting {
            command: Some(CommandPair {
                before: "echo one\necho two".into(),
                after: "true".into(),
            }),
            ..nothing()
        };
        assert_eq!(command.described(), "echo one...");
    }

    #[test]
    fn where_a_level_belongs_matters_only_where_something_goes_there() {
        let features = Setting {
            ethtool: [(Role::Guest, [("rx-gro".into(), true)].into())].into(),
            ..nothing()
        };
        let elsewhere = Setting {
            on: Scope::Hosts,
            ..features.clone()
        };
        assert!(features.does_the_same(&elsewhere));
        let sysctl = Setting {
            sysctl: [("net.ipv4.tcp_sack".into(), "0".into())].into(),
            ..nothing()
        };
        let there = Setting {
            on: Scope::Guests,
            ..sysctl.clone()
        };
        assert!(!sysctl.does_the_same(&there));
        let of_b = Setting {
            on: Scope::B,
            ..features.clone()
        };
        assert!(!features.does_the_same(&of_b));
        assert_eq!(of_b.described(), "guest rx-gro=on on b");
    }

    #[test]
    fn places_meet_where_they_share_a_namespace() {
        assert!(Scope::Both.meets(Scope::Guests));
        assert!(!Scope::Hosts.meets(Scope::Guests));
        assert!(!Scope::Both.meets(Scope::Machine));
        assert!(Scope::Machine.meets(Scope::Machine));
        assert!(Scope::A.meets(Scope::Guests) && Scope::Both.meets(Scope::B));
        assert!(!Scope::A.meets(Scope::B) && !Scope::B.meets(Scope::Machine));
    }
}
