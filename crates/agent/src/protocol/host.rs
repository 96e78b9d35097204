//! Replies about a host, its devices on the path, and settings that were left changed on it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use wirecost_model::record::HostMachine;
use wirecost_model::sample::DeviceState;
use wirecost_model::switch::OpenVswitch;
use wirecost_netbuild::LinkSpeed;

/// An existing host after [`Request::Join`](super::Request::Join).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Address of its responder.
    pub responder: SocketAddr,
    /// The device with the measured address.
    pub device: DeviceState,
    /// Features of the device that can be changed, and whether they are on.
    pub toggles: BTreeMap<String, bool>,
    /// Speed of the device's link.
    pub speed: LinkSpeed,
    /// The largest packet that the kernel sends to the other host: bytes of IP.
    pub route_mtu: u32,
    /// UDP ports that are in use, and those of all VXLAN and Geneve devices.
    pub udp_ports: Vec<u16>,
    /// Numbers of the online cores.
    pub cpus: Vec<u32>,
    /// Kernel and CPU model of the machine.
    pub machine: HostMachine,
}

/// The devices of a host that packets to the other host pass, and changes that may be tried there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostPath {
    /// The devices, from the one with the measured address outwards.
    pub devices: Vec<PathDevice>,
    /// Congestion controls that this user's connections may use, except the current one.
    pub congestion: Vec<String>,
    /// The largest MTU that the device with the measured address can have: by its overhead for a tunnel, else by its
    /// driver. Bytes; `None`: not known.
    pub largest_mtu: Option<u32>,
}

/// A device that packets to the other host pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathDevice {
    /// The device's name as [`wirecost_model::vary::Setting::device_name`] takes it.
    pub name: String,
    /// Name for output: `vxlan0`, `vxlan0 in blue`.
    pub label: String,
    /// `IFLA_INFO_KIND`: `veth`, `bond`, `vlan`; empty for network cards.
    pub kind: String,
    /// Prefix of a command that is to run in the device's network namespace: empty, or `ip netns exec blue `.
    pub prefix: String,
    /// MTU of the device, bytes.
    pub mtu: u32,
    /// Whether the packets at this device are those of a tunnel.
    pub beneath_tunnel: bool,
    /// Whether the device is the host's end of a guest's veth.
    pub faces_guest: bool,
    /// Features that can be changed, and whether they are on.
    pub toggles: BTreeMap<String, bool>,
    /// Number of receive queues in use.
    pub rx_queues: u32,
    /// Combined queues: in use, and the largest possible number; `None`: the driver has none.
    pub queues: Option<(u32, u32)>,
}

/// An address of a host that other hosts may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAddress {
    /// Name of the device with the address.
    pub device: String,
    /// The address, neither loopback nor link-local.
    pub address: IpAddr,
    /// Length of the network's prefix, bits.
    pub prefix: u8,
}

/// The Open vSwitch of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltSwitch {
    /// Version and datapath.
    pub about: OpenVswitch,
    /// Process ids of the daemons: their CPU time is the run's, not foreign load.
    pub processes: Vec<u32>,
}

/// The result of a proof.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofResult {
    /// Whether a datagram of exactly `size` bytes was acknowledged.
    pub proven: bool,
    /// The requested size, or the one that was found instead, bytes.
    pub size: u32,
    /// Why the size was not proven.
    pub reason: Option<String>,
    /// Number of datagrams sent.
    pub probes: u32,
    /// Duration of the proof, seconds.
    pub seconds: f64,
}

/// Settings that were left changed on a host, and what was done about them; each step as text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftSettings {
    /// Steps that were undone.
    pub undone: Vec<String>,
    /// Steps that need no undoing: the host was restarted, or the device is gone.
    pub gone: Vec<String>,
    /// Steps that could not be undone, and why.
    pub failed: Vec<String>,
    /// File names of the journals of which nothing is left.
    pub emptied: Vec<String>,
    /// Journals of other hosts in the same directory, which are left alone.
    pub elsewhere: Vec<ElsewhereJournal>,
}

/// The journal of another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElsewhereJournal {
    /// Its file name, which no journal of another host has.
    pub file: String,
    /// Its path, why it is left alone, and what to do.
    pub message: String,
}
