//! What was made, in a file of its own for each tunnel, gone with the machine's next start as the tunnel is.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wirecost_model::plan::Encapsulation;
use wirecost_sys::namespace::{self, Netns};

use crate::error::{AgentError, Result, Step};

/// Where notes are, NAME.json each.
const NOTES: &str = "/run/wirecost/tunnels";
/// A BPF file system of our own, with a directory for each end.
const PINS: &str = "/run/wirecost/bpf";

/// A tunnel that was made, or is being made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelState {
    /// Its name.
    pub name: String,
    /// How frames cross the underlay.
    pub encapsulation: Encapsulation,
    /// Whether the ends' namespaces were made for it and go with it.
    pub own_namespaces: bool,
    /// Who makes it: process id and start time.
    pub(super) maker: String,
    /// Inode of the network namespace that it was made in, where an end is in that.
    pub(super) home: Option<u64>,
    /// Whether it was made to the end.
    pub complete: bool,
    /// Its ends on this machine.
    pub ends: Vec<TunnelEnd>,
}

/// One end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelEnd {
    /// The named network namespace that it is in; `None` is the one that the command ran in.
    pub namespace: Option<String>,
    /// Whether that namespace was made for it: one that somebody else made is never removed.
    #[serde(default = "made")]
    pub(super) namespace_made: bool,
    /// The underlay's device.
    pub underlay: String,
    /// Its interface index, once that is known.
    pub underlay_index: Option<u32>,
    /// This end's address on the underlay.
    pub local: IpAddr,
    /// The other end's.
    pub peer: IpAddr,
    /// What applications use.
    pub device: String,
    /// Its address,
    pub address: IpAddr,
    /// and the length of its network's prefix.
    pub prefix: u8,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// The bridge of this host's own Open vSwitch that guest and tunnel are ports of; without it eBPF programs carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<String>,
}

impl TunnelEnd {
    /// The guest's port: the other end of its device, where the programs are.
    pub fn port(&self) -> String {
        format!("{}-p", self.device)
    }
}

/// Of notes that do not say so: all that they named was made.
fn made() -> bool {
    true
}

/// Where the network namespace is that a tunnel's end is in.
#[derive(Debug)]
pub(super) enum NetnsLocation {
    /// Here, or each end has a named one.
    Here,
    /// Elsewhere, by this name or process.
    At(Netns, String),
    /// Nowhere any more: its devices went with it.
    Gone,
}

/// Looks for a network namespace by its inode: named ones, and those of processes.
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
pub(super) fn here() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::metadata("/proc/thread-self/ns/net").ok()?.ino())
}

impl TunnelEnd {
    /// The tunnel's port in [`TunnelEnd::bridge`].
    pub(super) fn tunnel_port(&self) -> String {
        format!("{}-t", self.device)
    }

    /// The guest's hardware address, which the other end does not have: locally administered, from the underlay's
    /// address.
    pub(super) fn mac(&self) -> [u8; 6] {
        let [a, b, c, d] = match self.local {
            IpAddr::V4(address) => address.octets(),
            IpAddr::V6(address) => (address.to_bits() as u32).to_be_bytes(),
        };
        [0x02, 0x57, a, b, c, d]
    }
}

impl TunnelState {
    /// Where its ends can be reached from.
    pub(super) fn home(&self) -> NetnsLocation {
        match self.home {
            None => NetnsLocation::Here,
            home if home == here() => NetnsLocation::Here,
            Some(home) => find(home),
        }
    }

    /// Where the programs of the end of that number are pinned.
    pub(super) fn pins(&self, number: usize) -> PathBuf {
        // No dots: the BPF file system keeps such names for itself (kernel/bpf/inode.c, `bpf_lookup`).
        Path::new(PINS).join(format!("{}-{number}", self.name))
    }
}

pub(super) fn prepare_pins() -> Result<()> {
    let mounts = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    let parent = mounts(&parent_id().to_string());
    if parent.is_some() && parent != mounts("self") {
        return Err(
            "this command is in a mount namespace of its own, as under `ip netns exec`, and what it pins would go with \
             that: `nsenter --net=/run/netns/NAME wirecost tunnel up ...` enters the network namespace alone"
                .into(),
        );
    }
    namespace::mount_bpffs(Path::new(PINS)).step(format!(
        "mounting a BPF file system on {PINS}, which needs root"
    ))
}

fn path(name: &str) -> PathBuf {
    Path::new(NOTES).join(format!("{name}.json"))
}

/// Writes a note, whole or not at all.
pub(super) fn write(state: &TunnelState) -> Result<()> {
    let path = path(&state.name);
    let new = path.with_extension("new");
    let text = serde_json::to_string_pretty(state).step("writing a tunnel's state")?;
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

/// `None` where there is none that can be read.
pub(super) fn read(name: &str) -> Option<TunnelState> {
    let text = fs::read_to_string(path(name)).ok()?;
    serde_json::from_str(&text).ok()
}

/// All that can be read, sorted by name.
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

/// Removes a note, and with the last one all that is for notes and pins.
pub(super) fn remove(name: &str) -> Result<()> {
    let path = path(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(format!("removing {}: {error}", path.display()).into());
        }
        _ => {}
    }
    // Not empty: there are others.
    if fs::remove_dir(NOTES).is_ok() {
        namespace::unmount_bpffs(Path::new(PINS)).step(format!("unmounting {PINS}"))?;
        if let Some(root) = Path::new(NOTES).parent() {
            let _ = fs::remove_dir(root);
        }
    }
    Ok(())
}
