//! What a host tells of itself, of its end of the path, and of what was left changed on it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use wirecost_model::record::HostMachine;
use wirecost_model::sample::DeviceState;
use wirecost_model::switch::OpenVswitch;

/// An existing host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Where its responder listens.
    pub responder: SocketAddr,
    /// The device with the address.
    pub device: DeviceState,
    /// Features of the device that can be changed, as they are.
    pub toggles: BTreeMap<String, bool>,
    /// Speed of its link in bit/s, where its driver knows.
    pub speed: Option<u64>,
    /// The largest packet that the kernel sends to the other host, bytes of IP.
    pub route_mtu: u32,
    /// UDP ports that are in use, and those of all VXLAN and Geneve devices.
    pub udp_ports: Vec<u16>,
    /// Its processors.
    pub cpus: Vec<u32>,
    /// What it is.
    pub machine: HostMachine,
}

/// What packets to the other host pass on a host, and what may be tried there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostWay {
    /// The device with the measured address first.
    pub devices: Vec<PathDevice>,
    /// Congestion controls that this user's connections may have, the present one left out.
    pub congestion: Vec<String>,
    /// The largest MTU that the device with the measured address may get by what it stands on: a tunnel's by its overhead,
    /// another's by its driver. Bytes; `None`: not known.
    pub largest_mtu: Option<u32>,
}

/// A device on the way to the other host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathDevice {
    /// As [`wirecost_model::vary::Setting::device_name`] takes it.
    pub name: String,
    /// For people: `vxlan0`, `vxlan0 in blue`.
    pub label: String,
    /// What a command begins with that is to run in its network namespace: nothing, or `ip netns exec blue `.
    pub prefix: String,
    /// MTU in bytes.
    pub mtu: u32,
    /// Whether packets of a tunnel pass it.
    pub beneath_tunnel: bool,
    /// Whether it is the host's end of a guest's device.
    pub faces_guest: bool,
    /// Features that can be changed, as they are.
    pub toggles: BTreeMap<String, bool>,
    /// Receive queues in use.
    pub rx_queues: u32,
    /// Queues for both directions in use and at most; `None`: its driver has none.
    pub queues: Option<(u32, u32)>,
}

/// An address that other hosts may reach a host by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAddress {
    /// The device that has it.
    pub device: String,
    /// Neither loopback nor link-local.
    pub address: IpAddr,
    /// Length of its network's prefix, bits.
    pub prefix: u8,
}

/// A host's Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltSwitch {
    /// Version and datapath.
    pub about: OpenVswitch,
    /// Process ids of its daemons: their work is the run's, and no foreign load.
    pub processes: Vec<u32>,
}

/// The result of a proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofResult {
    /// A datagram of exactly `size` was acknowledged.
    pub proven: bool,
    /// The size asked for, or the one that was found instead, bytes.
    pub size: u32,
    /// Why not.
    pub reason: Option<String>,
    /// Datagrams sent.
    pub probes: u32,
    /// Seconds it took.
    pub seconds: f64,
}

/// What was left changed on a host, and what became of it, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftSettings {
    /// Steps that were undone.
    pub undone: Vec<String>,
    /// Steps that had not to be: the host was restarted, or the device is not there any more.
    pub gone: Vec<String>,
    /// What could not be.
    pub failed: Vec<String>,
}
