//! State files of tunnels, one each. They are gone after a reboot, as are the tunnels.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wirecost_model::plan::Encapsulation;
use wirecost_sys::namespace::{self, Netns};

use crate::error::{AgentError, Context, Result};

/// Directory of the state files: NAME.json for each tunnel.
const NOTES: &str = "/run/wirecost/tunnels";
/// Mount point of our BPF file system, with a directory for each end.
const PINS: &str = "/run/wirecost/bpf";

/// A complete or incomplete tunnel, as its state file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelState {
    /// Name of the tunnel.
    pub name: String,
    /// Encapsulation of frames on the underlay.
    pub encapsulation: Encapsulation,
    /// Whether the ends' namespaces were made for the tunnel, and are removed with it.
    pub own_namespaces: bool,
    /// The process that makes the tunnel, as [`crate::orphan::Owner::argument`] writes it.
    pub(super) maker: String,
    /// Inode of the network namespace that the tunnel was made in; `None`: its ends are in namespaces of their own.
    pub(super) home: Option<u64>,
    /// Whether making the tunnel was completed.
    pub complete: bool,
    /// Ends of the tunnel on this machine.
    pub ends: Vec<TunnelEnd>,
}

/// One end of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelEnd {
    /// Name of the network namespace of the end; `None`: the one that the command ran in.
    pub namespace: Option<String>,
    /// Whether the namespace was made for the tunnel: others are never removed.
    #[serde(default = "made")]
    pub(super) namespace_made: bool,
    /// Name of the underlay's device.
    pub underlay: String,
    /// Interface index of the underlay's device, once it is known.
    pub underlay_index: Option<u32>,
    /// Underlay address of this end.
    pub local: IpAddr,
    /// Underlay address of the other end.
    pub peer: IpAddr,
    /// Name of the guest's device, which applications use.
    pub device: String,
    /// Address of the guest's device.
    pub address: IpAddr,
    /// Length of the guest's prefix, bits.
    pub prefix: u8,
    /// MTU of the guest's device, bytes.
    pub mtu: u32,
    /// Bridge of this host's Open vSwitch that guest and tunnel are ports of; `None`: eBPF programs carry frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
}

impl TunnelEnd {
    /// Name of the guest's port: the peer of its veth, where the programs are attached.
    pub fn port(&self) -> String {
        format!("{}-p", self.device)
    }
}

/// Default for state files without the field: they list only namespaces that were made.
fn made() -> bool {
    true
}

/// Location of the network namespace of a tunnel's end.
#[derive(Debug)]
pub(super) enum NetnsLocation {
    /// The current namespace, or the ends have named ones.
    Here,
    /// Another namespace; the text names it, or a process in it.
    At(Netns, String),
    /// The namespace is gone, and its devices with it.
    Gone,
}

/// Searches for a network namespace by its inode, among the named ones and those of processes.
fn find(home: u64) -> NetnsLocation {
    for name in namespace::names() {
        if let Ok(netns) = Netns::named(&name)
            && netns.inode().is_ok_and(|inode| inode == home)
        {
            return NetnsLocation::At(netns, format!("network namespace {name}"));
        }
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find_map(|pid: u32| {
        let netns = Netns::of(pid).ok()?;
        let found = netns.inode().is_ok_and(|inode| inode == home);
        found.then(|| NetnsLocation::At(netns, format!("the network namespace of process {pid}")))
    })
    .unwrap_or(NetnsLocation::Gone)
}

/// Inode of the calling thread's network namespace.
pub(super) fn current_netns() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::metadata("/proc/thread-self/ns/net").ok()?.ino())
}

impl TunnelEnd {
    /// Name of the tunnel's port in [`TunnelEnd::bridge`].
    pub(super) fn tunnel_port(&self) -> String {
        format!("{}-t", self.device)
    }

    /// MAC address of the guest, locally administered, and different from the other end's: made from the underlay
    /// addresses.
    pub(super) fn mac(&self) -> [u8; 6] {
        let (end, [a, b, c, d]) = match self.local {
            IpAddr::V4(address) => (0x57, address.octets()),
            // The last bytes of both ends may be the same, as those of 2001:db8:1::1 and 2001:db8:2::1 are, and a hash
            // of all bytes may be, too: which address is smaller tells the ends apart.
            IpAddr::V6(address) => {
                let end = if self.local < self.peer { 0x57 } else { 0x58 };
                (end, fnv_1a(&address.octets()).to_be_bytes())
            }
        };
        [0x02, end, a, b, c, d]
    }
}

/// The FNV-1a hash of 32 bits (Fowler, Noll, Vo).
fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

impl TunnelState {
    /// Location of the namespace from which the ends can be reached.
    pub(super) fn home(&self) -> NetnsLocation {
        match self.home {
            None => NetnsLocation::Here,
            home if home == current_netns() => NetnsLocation::Here,
            Some(home) => find(home),
        }
    }

    /// Directory of the pinned programs of end `number`.
    pub(super) fn pins(&self, number: usize) -> PathBuf {
        // The name has no dots: the BPF file system reserves names with dots (kernel/bpf/inode.c, `bpf_lookup`).
        Path::new(PINS).join(format!("{}-{number}", self.name))
    }
}

pub(super) fn prepare_pins() -> Result<()> {
    let mounts = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    let parent = mounts(&parent_id().to_string());
    if parent.is_some() && parent != mounts("self") {
        return Err(
            "this command is in a mount namespace of its own, as under `ip netns exec`, and what it pins would be \
             removed with it: `nsenter --net=/run/netns/NAME wirecost tunnel up ...` enters the network namespace \
             alone"
                .into(),
        );
    }
    namespace::mount_bpffs(Path::new(PINS)).context(format!(
        "mounting a BPF file system on {PINS}, which needs root"
    ))
}

fn path(name: &str) -> PathBuf {
    Path::new(NOTES).join(format!("{name}.json"))
}

/// Writes a state file atomically.
pub(super) fn write(state: &TunnelState) -> Result<()> {
    let path = path(&state.name);
    let new = path.with_extension("new");
    let text = serde_json::to_string_pretty(state).context("writing a tunnel's state")?;
    let written = fs::create_dir_all(NOTES)
        .and_then(|()| fs::write(&new, text))
        .and_then(|()| fs::rename(&new, &path));
    written.map_err(|error| {
        let root = match error.kind() {
            io::ErrorKind::PermissionDenied => ": a tunnel needs root",
            _ => "",
        };
        AgentError::Refused(format!("writing {}: {error}{root}", path.display()))
    })
}

/// Reads a state file; `None` where there is none, or it cannot be read.
pub(super) fn read(name: &str) -> Option<TunnelState> {
    let text = fs::read_to_string(path(name)).ok()?;
    serde_json::from_str(&text).ok()
}

/// All tunnels whose state files can be read, sorted by name.
pub(super) fn all() -> Vec<TunnelState> {
    let entries = fs::read_dir(NOTES).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    names.sort();
    names.iter().filter_map(|name| read(name)).collect()
}

/// Removes a state file, and with the last one the directory and the BPF file system.
pub(super) fn remove(name: &str) -> Result<()> {
    let path = path(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(format!("removing {}: {error}", path.display()).into());
        }
        _ => {}
    }
    // The directory is not empty while there are other tunnels.
    if fs::remove_dir(NOTES).is_ok() {
        namespace::unmount_bpffs(Path::new(PINS)).context(format!("unmounting {PINS}"))?;
        if let Some(root) = Path::new(NOTES).parent() {
            let _ = fs::remove_dir(root);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(local: &str, peer: &str) -> [u8; 6] {
        let end = TunnelEnd {
            namespace: None,
            namespace_made: false,
            underlay: "eth0".to_owned(),
            underlay_index: None,
            local: local.parse().expect("an address"),
            peer: peer.parse().expect("an address"),
            device: "wirecost0".to_owned(),
            address: IpAddr::from([10, 0, 0, 1]),
            prefix: 24,
            mtu: 1450,
            bridge: None,
        };
        end.mac()
    }

    #[test]
    fn both_ends_have_macs_of_their_own_whatever_their_addresses_have_in_common() {
        for [one, other] in [
            ["192.0.2.1", "198.51.100.1"],
            ["2001:db8:1::1", "2001:db8:2::1"],
            ["2001:db8:0:1::2", "2001:db8:0:2::1"],
            ["fd00::1", "fd00::2"],
        ] {
            let [first, second] = [mac(one, other), mac(other, one)];
            assert_ne!(first, second, "{one} and {other}");
            // Locally administered, and of a single station.
            assert_eq!([first[0], second[0]], [2, 2]);
        }
        // Several tunnels of one host.
        assert_ne!(
            mac("2001:db8:1::1", "2001:db8::1"),
            mac("2001:db8:2::1", "2001:db8::1")
        );
        assert_eq!(mac("192.0.2.1", "192.0.2.2"), [2, 0x57, 192, 0, 2, 1]);
        let hashes = [&b""[..], b"a", b"foobar"].map(fnv_1a);
        assert_eq!(hashes, [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
    }
}
