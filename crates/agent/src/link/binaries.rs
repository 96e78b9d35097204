//! Programs for other hosts, to be copied to them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// A program's file: read once, however many hosts it is copied to.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: String,
    packed: OnceLock<Vec<u8>>,
}

/// The programs read so far, by path.
static PROGRAMS: Mutex<BTreeMap<PathBuf, Arc<Program>>> = Mutex::new(BTreeMap::new());

impl Program {
    pub(super) fn of(path: &Path) -> std::io::Result<Arc<Self>> {
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(path) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Self::read(path)?);
        programs.insert(path.to_owned(), Arc::clone(&program));
        Ok(program)
    }

    fn read(path: &Path) -> std::io::Result<Self> {
        let bytes = std::fs::read(path)?;
        let sha256 = HEXLOWER.encode(&Sha256::digest(&bytes));
        Ok(Self {
            bytes,
            sha256,
            packed: OnceLock::new(),
        })
    }

    /// The program compressed as gzip(1) does, at the fast level: it keeps up with a network of 1 Gbit/s. `None` where
    /// that fails.
    pub(super) fn gzipped(&self) -> Option<&[u8]> {
        let pack = || {
            let mut to = GzEncoder::new(Vec::new(), Compression::fast());
            to.write_all(&self.bytes).and_then(|()| to.finish())
        };
        // Writing to memory does not fail; an empty result means that it did.
        let packed = self.packed.get_or_init(|| pack().unwrap_or_default());
        (!packed.is_empty()).then_some(packed.as_slice())
    }
}

/// Programs that may be copied to hosts of other architectures.
#[derive(Debug, Clone, Default)]
pub struct Binaries {
    /// Given by the user, by `uname -m`.
    pub others: BTreeMap<String, PathBuf>,
}

/// Where a package installs programs for other architectures: `DIRECTORY/ARCH/wirecost`.
const OTHERS: &str = "/usr/lib/wirecost";

impl Binaries {
    /// Path of the program for a machine of this architecture (`uname -m`); `None` where there is none. `ours` is the
    /// running program.
    pub(super) fn of(&self, ours: &Path, machine: &str) -> Option<PathBuf> {
        if machine == std::env::consts::ARCH {
            return Some(ours.to_owned());
        }
        let installed = || Path::new(OTHERS).join(machine).join("wirecost");
        let given = self.others.get(machine).cloned();
        given.or_else(|| Some(installed()).filter(|path| path.is_file()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_the_machine_there_is_given_or_installed() {
        let binaries = Binaries {
            others: [("aarch64".to_owned(), PathBuf::from("/opt/wirecost-arm"))].into(),
        };
        let ours = Path::new("/usr/bin/wirecost");
        let of = |machine| binaries.of(ours, machine);
        assert_eq!(of(std::env::consts::ARCH).as_deref(), Some(ours));
        assert_eq!(of("aarch64"), Some("/opt/wirecost-arm".into()));
        assert_eq!(of("riscv64"), None);
    }

    #[test]
    fn what_is_packed_is_smaller_and_gzip_unpacks_it() {
        let bytes = b"wirecost ".repeat(1000);
        let program = Program {
            bytes: bytes.clone(),
            sha256: String::new(),
            packed: OnceLock::new(),
        };
        let packed = program.gzipped().expect("to memory");
        assert!(packed.len() * 10 < bytes.len(), "{}", packed.len());
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(packed);
        std::io::Read::read_to_end(&mut reader, &mut unpacked).expect("gzip");
        assert_eq!(unpacked, bytes);
    }
}
