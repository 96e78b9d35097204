//! Endpoints that outlive the process that made them: their links and counters are pinned in a BPF file system.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use aya::maps::{Map, MapData, PerCpuArray};
use aya::programs::links::FdLink;

use crate::counters::Counters;
use crate::error::Error;
use crate::load::Attached;
use crate::vtep::{Vtep, in_map, read_counters};

const COUNTERS: &str = "counters";

impl Vtep {
    /// Leaves the endpoint to the kernel: its programs stay attached until [`unpin`] or until its
    /// devices are removed. `directory`, on a BPF file system, must not exist.
    ///
    /// The programs' maps are no longer updated: routes and neighbours are looked up again only on
    /// a host that forwards.
    ///
    /// # Errors
    /// [`Error::Pin`]; the endpoint is then detached. Only tcx links can be pinned (Linux 6.6).
    pub fn pin(mut self, directory: &Path) -> Result<(), Error> {
        fs::create_dir_all(directory).map_err(|source| failed(directory, source.into()))?;
        let pinned = self.pin_all(directory);
        if pinned.is_err() {
            // The first error is the one to report.
            let _ = unpin(directory);
        } else {
            self.leave_segmenter();
        }
        pinned
    }

    fn pin_all(&mut self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(COUNTERS);
        if let Some(counters) = self.take_counters() {
            let pinned = counters.pin(&path);
            pinned.map_err(|error| failed(&path, error.into()))?;
        }
        for (name, attached) in self.take_attached() {
            pin_link(attached, &directory.join(name))?;
        }
        Ok(())
    }
}

fn pin_link(attached: Attached, path: &Path) -> Result<(), Error> {
    let link = FdLink::try_from(attached.link).map_err(|error| failed(path, error.into()))?;
    let pinned = link.pin(path).map_err(|error| failed(path, error.into()))?;
    drop(pinned);
    Ok(())
}

fn failed(path: &Path, source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Pin {
        path: path.to_owned(),
        source,
    }
}

/// The counts of a pinned endpoint since it was attached.
///
/// # Errors
/// [`Error::Map`] if there is no such endpoint.
pub fn counters(directory: &Path) -> Result<Counters, Error> {
    let data = MapData::from_pin(directory.join(COUNTERS)).map_err(in_map("counters"))?;
    let map: PerCpuArray<MapData, u64> = Map::PerCpuArray(data)
        .try_into()
        .map_err(in_map("counters"))?;
    read_counters(&map)
}

/// Detaches a pinned endpoint: removing its pins removes its links. What is gone already is no error.
///
/// # Errors
/// The directory or its entries cannot be read or removed.
pub fn unpin(directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    remove(entries.map(|entry| Ok(entry?.path())))?;
    unless_gone(fs::remove_dir(directory))
}

/// Removes pins, some of which another process may remove at the same time.
fn remove(pins: impl Iterator<Item = io::Result<PathBuf>>) -> io::Result<()> {
    for pin in pins {
        unless_gone(fs::remove_file(pin?))?;
    }
    Ok(())
}

fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_that_is_gone_does_not_keep_the_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let [gone, there] = ["gone", "there"].map(|name| directory.path().join(name));
        fs::write(&there, "").expect("a file");
        remove([gone, there.clone()].into_iter().map(Ok)).expect("removed");
        assert!(!there.exists());
    }
}
