//! Anything as a factor: levels that are settings of a host, put in force before a sample and undone
//! after it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::offload::Role;

/// A factor that the plan makes: its levels are settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vary {
    /// The factor's name, its key in records.
    pub name: String,
    /// Its levels in the plan's order; the first is the reference.
    pub levels: Vec<Setting>,
}

/// One level: what is changed on the hosts. Empty, it leaves everything as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The factor's name.
    pub factor: String,
    /// The level's label.
    pub label: String,
    /// Sysctls by name, as sysctl(8) takes it, and their values.
    pub sysctl: BTreeMap<String, String>,
    /// Device features by role and by the kernel's name (`ethtool -k`).
    pub ethtool: BTreeMap<Role, BTreeMap<String, bool>>,
    /// Settings of the device with the measured address, on existing hosts: numbers, and a mask in hexadecimal digits.
    #[serde(default)]
    pub device: BTreeMap<DeviceSetting, String>,
    /// On an existing host the device that features and `device` are of: its name, or behind the file of another network
    /// namespace (`/run/netns/blue/vxlan0`, `/proc/1/ns/net/eth0`). `None`: the one with the measured address.
    #[serde(default)]
    pub device_name: Option<String>,
    /// A command and what undoes it.
    pub command: Option<Deed>,
    /// Where sysctls and the command belong, and features where it is one host.
    pub on: Scope,
}

/// What is set of a device on an existing host, beside its features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSetting {
    /// MTU in bytes.
    Mtu,
    /// Descriptors for received packets (`ethtool -G DEV rx`).
    RxRing,
    /// Descriptors for packets to send (`ethtool -G DEV tx`).
    TxRing,
    /// Queues for both directions (`ethtool -L DEV combined`).
    Queues,
    /// Cores that received packets are steered to (`rps_cpus` of every receive queue).
    Rps,
    /// The root queueing discipline, by its kind, with the kernel's default options.
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
}

/// A command, run by `sh -c` as the user who runs wirecost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// Run before a sample of the level.
    pub before: String,
    /// Run after it, whatever became of it, and also where `before` failed.
    pub after: String,
}

/// Where a setting belongs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The guests' network namespaces.
    Guests,
    /// The hosts' namespaces.
    Hosts,
    /// The guests' and the hosts'.
    #[default]
    Both,
    /// Host a's and its guests'.
    A,
    /// Host b's and its guests'.
    B,
    /// This machine as it is outside of the lab, once.
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

    /// The one host that it is about, whose devices alone are set; `None` of both.
    pub const fn host(self) -> Option<&'static str> {
        match self {
            Self::A => Some("a"),
            Self::B => Some("b"),
            Self::Guests | Self::Hosts | Self::Both | Self::Machine => None,
        }
    }

    /// Whether a host has a part in it.
    pub fn has_host(self, host: &str) -> bool {
        self.host().is_none_or(|only| only == host)
    }

    /// Whether both have a host's devices in them.
    pub fn meets_on_a_host(self, other: Self) -> bool {
        self.host().is_none_or(|host| other.has_host(host))
    }

    /// Whether it has the guests' namespaces in it.
    pub const fn has_guests(self) -> bool {
        matches!(self, Self::Guests | Self::Both | Self::A | Self::B)
    }

    /// Whether it has the hosts' namespaces in it.
    pub const fn has_hosts(self) -> bool {
        matches!(self, Self::Hosts | Self::Both | Self::A | Self::B)
    }

    /// Whether two places have one in common.
    pub fn meets(self, other: Self) -> bool {
        let in_lab =
            (self.has_guests() && other.has_guests()) || (self.has_hosts() && other.has_hosts());
        (in_lab && self.meets_on_a_host(other))
            || matches!((self, other), (Self::Machine, Self::Machine))
    }

    /// How often a setting is put in force there for one sample: in how many namespaces.
    pub const fn times(self) -> u32 {
        match self {
            Self::Guests | Self::Hosts | Self::A | Self::B => 2,
            Self::Both => 4,
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
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.sysctl.is_empty()
            && self.ethtool.is_empty()
            && self.device.is_empty()
            && self.command.is_none()
    }

    /// Whether it changes the same things in the same way, whatever it is called.
    pub fn does_the_same(&self, other: &Self) -> bool {
        self.sysctl == other.sysctl
            && self.ethtool == other.ethtool
            && self.device == other.device
            && self.device_name == other.device_name
            && self.command == other.command
            && self.on.host() == other.on.host()
            && (self.on == other.on || (self.sysctl.is_empty() && self.command.is_none()))
    }

    /// What it is called where the plan gives no label: what it changes.
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

/// The plan's word for a device of the path; the bridge has none.
pub const fn role_key(role: Role) -> &'static str {
    match role {
        Role::Underlay => "underlay",
        Role::Tunnel => "tunnel",
        Role::Guest => "guest",
        Role::GuestPort => "guest_port",
        Role::Bridge => "bridge",
    }
}

/// Enough of a command to know it by.
fn first_line(command: &str) -> String {
    const ENOUGH: usize = 40;
    let line = command.lines().next().unwrap_or_default().trim_end();
    let mut short: String = line.chars().take(ENOUGH).collect();
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
            command: Some(Deed {
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
