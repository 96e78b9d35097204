//! The one file: static, and enough alone. `make size` holds the size of the one that is packaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::{DT_NEEDED, PT_INTERP};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};

use crate::common::{
    Record, TestDir, install, lab_can_be_built, lock_shared, program, run, skip, succeeds,
};

/// The file to look at; `None` where these tests were built without a static C library.
fn one_file() -> Option<PathBuf> {
    let as_configured = cfg!(target_feature = "crt-static")
        || skip("RUSTFLAGS replaces the flags of .cargo/config.toml: nothing here is static");
    as_configured.then(|| program().to_owned())
}

/// The interpreter and the libraries that a program asks the kernel and ld.so for.
fn wanted(file: &Path) -> (bool, usize) {
    let bytes = fs::read(file).expect("the program");
    let elf = ElfFile64::<Endianness>::parse(&*bytes).expect("an ELF file of 64 bits");
    let (endian, header) = (elf.endian(), elf.elf_header());
    let segments = header.program_headers(endian, &*bytes).expect("segments");
    let interpreter = segments.iter().any(|s| s.p_type(endian) == PT_INTERP);
    let libraries = segments
        .iter()
        .filter_map(|segment| segment.dynamic(endian, &*bytes).expect("dynamic section"))
        .flatten()
        .filter(|entry| entry.d_tag(endian) == DT_NEEDED)
        .count();
    (interpreter, libraries)
}

#[test]
fn the_program_wants_no_interpreter_and_no_library() {
    if let Some(file) = one_file() {
        assert_eq!(wanted(&file), (false, 0), "{}", file.display());
    }
}

#[test]
fn a_dynamic_program_is_told_from_a_static_one() {
    let (interpreter, libraries) = wanted(Path::new("/bin/sh"));
    assert!(interpreter && libraries > 0);
}

/// A run in a root that holds the program, a plan, /dev, /proc and nothing else: agents are started from
/// the same file, and nothing is opened that a host might not have.
#[test]
fn a_run_needs_no_other_file_than_the_program() {
    let _lock = lock_shared();
    let Some(file) = one_file() else { return };
    if !lab_can_be_built() {
        return;
    }
    let place = TestDir::new();
    let root = place.path();
    for directory in ["dev", "proc", "sys"] {
        fs::create_dir(root.join(directory)).expect("directory");
    }
    install(&file, &root.join("wirecost"));
    place.plan("name: alone\nrepeat: { rounds: 1, seconds: 0.5, warmup: 0.2 }\n");
    // The root is a mount of its own, as a container's is.
    let steps = r#"mount --bind "$0" "$0" && mount --rbind /dev "$0/dev" &&
        exec unshare --mount-proc --root="$0" --wd=/ "$@""#;
    let enter = |user: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--kill-child"])
            .args(user)
            .args(["sh", "-c", steps])
            .arg(root);
        command
    };
    // A user namespace where this is no root; some containers let nobody mount /proc.
    let ways: [&[&str]; 2] = [&[], &["--map-root-user"]];
    let way = ways
        .into_iter()
        .find(|way| succeeds(enter(way).args(["/wirecost", "--version"])));
    let Some(way) = way else {
        skip("an empty root with its own /proc cannot be entered here");
        return;
    };

    let ended = run(enter(way).args(["/wirecost", "run", "/plan.yaml", "--out", "/out"]));

    ended.expect_code(0);
    let record = Record::read(&root.join("out")).expect("a record");
    assert_eq!(record.samples.len(), 1);
    assert!(record.samples[0].invalid.is_none(), "{:?}", record.samples);
}
