//! What the kernel keeps for each queue of a device and loses with the queue: receive steering (RPS, RFS) and the
//! choice of a transmit queue (XPS).
//!
//! With fewer queues it frees the RPS maps and flow tables of the others (net/core/net-sysfs.c, `rx_queue_release`) and
//! resets their XPS maps (net/core/dev.c, `netif_reset_xps_queues_gt`); some drivers write XPS maps of their own
//! whenever the number of queues changes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Documentation/ABI/testing/sysfs-class-net-queues
const FILES: [&str; 4] = ["rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs"];

/// Content of the files of a device's queues in use, by queue and file (`rx-0/rps_cpus`), in a sysfs of the device's
/// namespace. Files that a device does not have or does not show (XPS of a single queue) are left out.
pub(super) fn read(device: &str) -> io::Result<BTreeMap<String, String>> {
    let directory = directory(device);
    let mut found = BTreeMap::new();
    for queue in fs::read_dir(&directory)? {
        let queue = queue?.file_name();
        for file in FILES {
            let name = format!("{}/{file}", queue.to_string_lossy());
            found.extend(
                content(&directory.join(&name))
                    .ok()
                    .map(|text| (name, text)),
            );
        }
    }
    Ok(found)
}

/// Restores what [`read`] returned.
///
/// # Errors
/// A queue is missing, or the kernel does not take a value; the message names the file.
pub(super) fn restore(device: &str, before: &BTreeMap<String, String>) -> io::Result<()> {
    let directory = directory(device);
    for (name, was) in before {
        let path = directory.join(name);
        restore_one(&path, was)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    }
    Ok(())
}

/// Writes only what differs: some devices refuse to have an XPS map written.
fn restore_one(path: &Path, was: &str) -> io::Result<()> {
    if content(path)? == was {
        return Ok(());
    }
    fs::write(path, was)?;
    let found = content(path)?;
    if found == was {
        return Ok(());
    }
    let problem = format!("asked for {was}, read back {found}");
    Err(io::Error::other(problem))
}

fn content(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

fn directory(device: &str) -> PathBuf {
    Path::new("/sys/class/net").join(device).join("queues")
}
