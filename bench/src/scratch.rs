//! A directory for what a child wants to read from a file, or leaves in one. Gone when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The directory.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one, of this process's own.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn create() -> io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("wirecost-bench-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_another_and_goes_with_what_is_in_it() {
        let (scratch, other) = (Scratch::create(), Scratch::create());
        let (scratch, other) = (scratch.expect("a directory"), other.expect("another"));
        let path = scratch.path().to_owned();
        assert_ne!(path, other.path());
        fs::write(path.join("file"), "x").expect("written");
        drop(scratch);
        assert!(!path.exists() && other.path().exists());
    }
}
