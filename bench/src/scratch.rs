//! A directory for what a peer wants to read from a file. Gone when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("wirecost-bench-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
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
    fn it_goes_with_what_is_in_it() {
        let scratch = Scratch::create().expect("a directory");
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "x").expect("written");
        drop(scratch);
        assert!(!path.exists());
    }
}
