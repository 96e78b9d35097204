//! How a storage load reads and writes a path.

use serde::{Deserialize, Serialize};

/// How a storage load reads and writes a path, as far as the kernel and the file system allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAccess {
    /// What the path is.
    pub kind: PathKind,
    /// Bytes that the load uses, from the beginning.
    pub bytes: u64,
    /// Why I/O goes through the page cache; `None` where it does not (`O_DIRECT`).
    #[serde(default)]
    pub buffered: Option<String>,
    /// Why io_submit(2) is used and not io_uring(7); `None` where io_uring is used.
    #[serde(default)]
    pub no_ring: Option<String>,
}

/// The kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// An existing regular file.
    File,
    /// A block device.
    Device,
    /// A directory, in which the load creates a file of its own.
    OwnFile,
}

impl PathAccess {
    /// The access in one line of a report.
    pub fn words(&self) -> String {
        let kind = match self.kind {
            PathKind::File => "file",
            PathKind::Device => "block device",
            PathKind::OwnFile => "file of the load's own",
        };
        let cache = match &self.buffered {
            None => "direct (O_DIRECT)".to_owned(),
            Some(why) => format!("BUFFERED, through the page cache: {why}"),
        };
        let engine = match &self.no_ring {
            None => "io_uring".to_owned(),
            Some(why) => format!("io_submit, since there is no io_uring: {why}"),
        };
        let bytes = crate::units::format_bytes(self.bytes);
        format!("{kind}, {bytes} used, {cache}; {engine}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refused_is_in_the_words() {
        let mut access = PathAccess {
            kind: PathKind::Device,
            bytes: 64 << 20,
            buffered: None,
            no_ring: None,
        };
        assert_eq!(
            access.words(),
            "block device, 64MiB used, direct (O_DIRECT); io_uring"
        );
        access.buffered = Some("tmpfs".to_owned());
        access.no_ring = Some("EPERM".to_owned());
        assert_eq!(
            access.words(),
            "block device, 64MiB used, BUFFERED, through the page cache: tmpfs; io_submit, since there is no io_uring: EPERM"
        );
    }
}
