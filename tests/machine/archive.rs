//! A root file system for a kernel to begin with: the "newc" format of cpio(5)
//! (Documentation/driver-api/early-userspace/buffer-format.rst), in a file that has no name.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An archive being written. Nothing of it stays on the disk once its file is closed.
pub(crate) struct Archive {
    file: BufWriter<File>,
    inode: u32,
    written: BTreeSet<PathBuf>,
}

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_777;

impl Archive {
    pub(crate) fn new() -> Self {
        Self {
            file: BufWriter::new(tempfile::tempfile().expect("a file for the archive")),
            inode: 0,
            written: BTreeSet::new(),
        }
    }

    /// A directory, and those it is in.
    pub(crate) fn directory(&mut self, path: &str) {
        self.parents(&Path::new(path).join("x"));
    }

    /// A file; one that is there already stays.
    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) {
        self.parents(Path::new(path));
        self.entry(Path::new(path), REGULAR | mode, bytes);
    }

    /// A symbolic link.
    pub(crate) fn link(&mut self, path: &str, to: &str) {
        self.parents(Path::new(path));
        self.entry(Path::new(path), LINK, to.as_bytes());
    }

    /// A file or directory of this machine, at another place.
    pub(crate) fn copy(&mut self, from: &Path, to: &str) {
        let metadata = fs::metadata(from).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        if metadata.is_dir() {
            let mut names: Vec<_> = fs::read_dir(from)
                .expect("a directory")
                .map(|entry| entry.expect("entry").file_name())
                .collect();
            names.sort();
            for name in names {
                let inside = format!("{to}/{}", name.to_str().expect("a plain name"));
                self.copy(&from.join(&name), &inside);
            }
        } else {
            let bytes = fs::read(from).expect("a file");
            self.file(to, metadata.permissions().mode() & 0o777, &bytes);
        }
    }

    /// A command of this machine with the libraries that it loads, each where it is here.
    pub(crate) fn command(&mut self, name: &str) {
        let path = find(name);
        let at = path.to_str().expect("a plain path").to_owned();
        self.copy(&path, &at);
        let libraries = Command::new("ldd").arg(&path).output().expect("ldd");
        let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
        for library in libraries.split_whitespace().filter(|w| w.starts_with('/')) {
            self.copy(Path::new(library), library);
        }
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> File {
        self.entry(Path::new("TRAILER!!!"), 0, &[]);
        self.file.into_inner().expect("written")
    }

    fn parents(&mut self, path: &Path) {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        for directory in above {
            if directory != Path::new("/") && directory != Path::new("") {
                self.entry(directory, DIRECTORY, &[]);
            }
        }
    }

    fn entry(&mut self, path: &Path, mode: u32, bytes: &[u8]) {
        if !self.written.insert(path.to_owned()) {
            return;
        }
        self.inode += 1;
        let name = path.to_str().expect("text").trim_start_matches('/');
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            u32::try_from(bytes.len()).expect("a file below 4 GiB"),
            0,
            0,
            0,
            0,
            u32::try_from(name.len() + 1).expect("a name"),
            0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            let _ = write!(header, "{field:08x}");
        }
        let mut write = |bytes: &[u8]| {
            let padding = bytes.len().next_multiple_of(4) - bytes.len();
            self.file.write_all(bytes).expect("room on the disk");
            self.file.write_all(&[0; 3][..padding]).expect("room");
        };
        // The header's 110 bytes and the name are padded together.
        write(&[header.as_bytes(), name.as_bytes(), &[0]].concat());
        write(bytes);
    }
}

/// Where this machine has a command, its own administrator's directories included.
fn place(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"])
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file())
}

/// Whether this machine has a command.
pub(crate) fn is_there(name: &str) -> bool {
    place(name).is_some()
}

/// Where it has one.
pub(crate) fn find(name: &str) -> PathBuf {
    place(name)
        .unwrap_or_else(|| panic!("{name} is not installed: `make test-kernels` installs it"))
}
