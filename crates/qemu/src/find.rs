//! Whether this host can run a virtual machine, by KVM or by emulation: found out by starting one.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use wirecost_model::load::DirtyOrder;
use wirecost_model::machine_move::Accelerator;
use wirecost_sys::kvm::Kvm;

use crate::error::QemuError;
use crate::guest::{FIRST_PAGE, Program};
use crate::machine::{Machine, Spec};
use crate::version::Version;

/// Names of the QEMU program: in Debian and most distributions, then in Red Hat's.
const NAMES: [&str; 2] = ["qemu-system-x86_64", "qemu-kvm"];
/// Directory that is searched after those of PATH.
const EXTRA_DIRECTORY: &str = "/usr/libexec";
/// Time for the test guest to start under KVM. Not every host that has /dev/kvm can run a guest with it.
const BOOT: Duration = Duration::from_secs(3);
/// Time for the test guest to start under emulation (TCG).
const EMULATED_BOOT: Duration = Duration::from_secs(10);

/// QEMU as found on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostQemu {
    /// Path of the QEMU program.
    pub program: PathBuf,
    /// Version of QEMU.
    pub version: Version,
    /// How machines run: by KVM where that works, else by emulation.
    pub accelerator: Accelerator,
    /// Why machines do not run by KVM; `None`: they do.
    pub no_kvm: Option<String>,
}

/// Finds QEMU, once in a process, by starting our guest: by KVM, and by emulation where that fails.
///
/// # Errors
/// [`QemuError::Absent`]; [`QemuError::Unusable`]: our guest does not start either way.
pub fn host_qemu() -> Result<&'static HostQemu, QemuError> {
    static HOST_QEMU: OnceLock<Result<HostQemu, Option<String>>> = OnceLock::new();
    let found = HOST_QEMU.get_or_init(|| {
        let Some(program) = program() else {
            return Err(None);
        };
        find(program).map_err(|error| Some(error.to_string()))
    });
    found.as_ref().map_err(|words| match words {
        None => QemuError::Absent,
        Some(words) => QemuError::Unusable(words.clone()),
    })
}

fn program() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = env::split_paths(&path)
        .chain([EXTRA_DIRECTORY.into()])
        .collect();
    program_in(&places)
}

/// The first of these directories' programs, by name.
fn program_in(places: &[PathBuf]) -> Option<PathBuf> {
    let mut files = NAMES
        .iter()
        .flat_map(|name| places.iter().map(move |place| place.join(name)));
    files.find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    let metadata = file.metadata();
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn find(program: PathBuf) -> Result<HostQemu, QemuError> {
    let by_kvm = match Kvm::open() {
        Ok(_) => try_machine(&program, Accelerator::Kvm, BOOT).map_err(|error| error.to_string()),
        Err(error) => Err(format!("/dev/kvm: {error}")),
    };
    let no_kvm = match by_kvm {
        Ok(version) => {
            return Ok(HostQemu {
                program,
                version,
                accelerator: Accelerator::Kvm,
                no_kvm: None,
            });
        }
        Err(words) => words,
    };
    let version = try_machine(&program, Accelerator::Tcg, EMULATED_BOOT)?;
    Ok(HostQemu {
        program,
        version,
        accelerator: Accelerator::Tcg,
        no_kvm: Some(no_kvm),
    })
}

fn try_machine(
    qemu: &Path,
    accelerator: Accelerator,
    within: Duration,
) -> Result<Version, QemuError> {
    let program = Program {
        end: 2 * FIRST_PAGE,
        written: FIRST_PAGE,
        writes_per_second: 10_000.0,
        order: DirtyOrder::Sequential,
    };
    let mut machine = Machine::start(
        qemu,
        &Spec {
            memory: 8 << 20,
            accelerator,
            program,
            incoming: false,
        },
    )?;
    machine.await_guest(within)?;
    Ok(machine.version())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        let of = |minor: u32| {
            let greeting =
                json!({ "version": { "qemu": { "major": 8, "minor": minor, "micro": 1 } } });
            Version::of(&greeting)
        };
        assert_eq!(of(2).to_string(), "8.2.1");
        assert!(of(2) > of(1) && of(2) < of(10));
        assert_eq!(Version::of(&Value::Null), Version::default());
    }

    #[test]
    fn a_file_that_cannot_be_run_is_no_program() {
        let root = env::temp_dir().join(format!("wirecost-qemu-find-{}", std::process::id()));
        let places = ["one", "two"].map(|name| root.join(name));
        for (place, mode) in places.iter().zip([0o644, 0o755]) {
            std::fs::create_dir_all(place).expect("a directory");
            let file = place.join(NAMES[0]);
            std::fs::write(&file, "").expect("a file");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&file, permissions).expect("its mode");
        }
        let found = program_in(&places);
        let none = program_in(&places[..1]);
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(found, Some(places[1].join(NAMES[0])));
        assert_eq!(none, None);
    }
}
