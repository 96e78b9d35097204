//! What `make install` and `make deb` put where, and what Debian's own tools say to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Ended, TestDir, program, run, skip, succeeds};

fn repository() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().expect("the repository")
}

/// `make TARGET` with this program, which is not built again.
fn make(target: &str, binary: &Path, settings: &[String]) -> Ended {
    let mut command = Command::new("make");
    command
        .args(["--no-print-directory", "-o"])
        .arg(binary)
        .arg(target)
        .arg(format!("PACKAGED={}", binary.display()))
        .args(settings)
        .current_dir(repository())
        // What the make above this test, if there is one, was told is not meant for this one.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env_remove("MFLAGS");
    let ended = run(&mut command);
    ended.expect_code(0);
    ended
}

fn files(directory: &Path) -> BTreeSet<String> {
    fn walk(directory: &Path, top: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).expect("directory") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                walk(&path, top, found);
            } else {
                let path = path.strip_prefix(top).expect("below");
                found.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(directory, directory, &mut found);
    found
}

#[test]
fn install_puts_program_pages_and_completions_below_destdir_and_uninstall_takes_them_away() {
    let place = TestDir::new();
    let settings = [
        format!("DESTDIR={}", place.path().display()),
        "PREFIX=/opt/x".to_owned(),
    ];
    make("install", program(), &settings);
    let found = files(place.path());
    for file in [
        "bin/wirecost",
        "share/man/man1/wirecost.1",
        "share/man/man1/wirecost-run.1",
        "share/man/man5/wirecost-plan.5",
        "share/bash-completion/completions/wirecost",
        "share/zsh/site-functions/_wirecost",
        "share/fish/vendor_completions.d/wirecost.fish",
        // Messages point to these.
        "share/doc/wirecost/check.md",
        "share/doc/wirecost/offloads.md",
        "share/doc/wirecost/statistics.md",
    ] {
        assert!(
            found.contains(&format!("opt/x/{file}")),
            "{file}: {found:?}"
        );
    }
    let installed = place.path().join("opt/x/bin/wirecost");
    assert!(succeeds(Command::new(installed).arg("--version")));

    let other = place.path().join("opt/x/share/man/man1/other.1");
    fs::write(&other, "").expect("file");
    make("uninstall", program(), &settings);
    assert_eq!(
        files(place.path()),
        BTreeSet::from(["opt/x/share/man/man1/other.1".to_owned()])
    );
}

/// Packs the program; the path of the package.
fn packed(binary: &Path, directory: &Path) -> PathBuf {
    let ended = run(Command::new("scripts/make-deb")
        .arg(binary)
        .arg(directory)
        // How small it gets is not tested, and the development build is large.
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "0")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .current_dir(repository()));
    ended.expect_code(0);
    let mut packages = fs::read_dir(directory).expect("packages");
    packages.next().expect("a package").expect("entry").path()
}

#[test]
fn the_package_is_reproducible_complete_and_what_debian_wants() {
    if !succeeds(Command::new("dpkg-deb").arg("--version")) {
        skip("there is no dpkg-deb");
        return;
    }
    let place = TestDir::new();
    let package = packed(program(), &place.path().join("first"));
    let second = packed(program(), &place.path().join("second"));
    assert!(
        fs::read(&package).expect("package") == fs::read(&second).expect("package"),
        "two packages of one program differ"
    );
    everything_belongs_to_root(&package);
    dpkg_installs_it_and_nothing_is_left(&package, &place.path().join("installed"));
    it_names_the_licence_of_everything(&package, &place.path().join("unpacked"));
    lintian_accepts_it(&package);
}

fn everything_belongs_to_root(package: &Path) {
    let listed = run(Command::new("dpkg-deb").arg("--contents").arg(package));
    listed.expect_code(0);
    for line in listed.stdout.lines() {
        assert!(line.contains(" root/root "), "{line}");
    }
}

fn dpkg_installs_it_and_nothing_is_left(package: &Path, root: &Path) {
    if !nix::unistd::geteuid().is_root() {
        skip("dpkg installs as root only");
        return;
    }
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).expect("directory");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).expect("directory");
    fs::write(root.join("var/lib/dpkg/status"), "").expect("file");
    let dpkg = |arguments: &[&str]| {
        let mut command = Command::new("dpkg");
        command
            .arg(format!("--root={}", root.display()))
            .args(arguments);
        command
    };
    run(dpkg(&["--install"]).arg(package)).expect_code(0);
    let version = run(Command::new(root.join("usr/bin/wirecost")).arg("--version"));
    assert_eq!(
        version.stdout,
        concat!("wirecost ", env!("CARGO_PKG_VERSION"), "\n")
    );
    run(&mut dpkg(&["--verify", "wirecost"])).expect_code(0);
    run(&mut dpkg(&["--purge", "wirecost"])).expect_code(0);
    assert!(!root.join("usr/bin/wirecost").exists());
}

fn it_names_the_licence_of_everything(package: &Path, root: &Path) {
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(root)).expect_code(0);
    let text = fs::read_to_string(root.join("usr/share/doc/wirecost/copyright")).expect("text");
    let stanzas: Vec<&str> = text.split("\n\n").collect();
    let explained: BTreeSet<&str> = stanzas
        .iter()
        .filter_map(|stanza| stanza.strip_prefix("License: ")?.lines().next())
        .collect();
    for carried in [
        "clap_builder-",
        "serde-",
        "glibc/",
        "rust-standard-library/",
    ] {
        assert!(
            text.contains(&format!("Files: third-party/{carried}")),
            "{carried}"
        );
    }
    for stanza in stanzas.iter().filter(|stanza| stanza.starts_with("Files:")) {
        let licence = stanza
            .lines()
            .find_map(|line| line.strip_prefix("License: "));
        let licence = licence.unwrap_or_else(|| panic!("{stanza}"));
        let whole = explained.contains(licence);
        let parts = licence.split(" or ").flat_map(|part| part.split(" and "));
        assert!(
            whole || parts.clone().all(|part| explained.contains(part)),
            "{stanza}"
        );
    }
}

fn lintian_accepts_it(package: &Path) {
    let there = succeeds(Command::new("lintian").arg("--version"));
    if !there {
        skip("there is no lintian");
        return;
    }
    let ended = run(Command::new("lintian")
        .args([
            "--fail-on",
            "error,warning",
            "--no-user-dirs",
            "--allow-root",
        ])
        .arg(package));
    ended.expect_code(0);
    assert_eq!(ended.stdout, "", "{ended:#?}");
}
