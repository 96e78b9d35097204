//! Packs the relocations of the static program, and warns when a release build is not static.

use std::env;
use std::process::Command;

/// Version (major, minor) of this machine's glibc, which is linked; `None` where `ldd --version` does not tell it.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("ldd").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.lines().next()?.rsplit(' ').next()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name| env::var(name).unwrap_or_default();
    let has_static_libc = set("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    // A static program relocates itself by the C library in it, which supports SHT_RELR since glibc 2.36; the
    // relocations then take a few kB instead of a megabyte.
    let is_gnu = set("CARGO_CFG_TARGET_ENV") == "gnu" && set("HOST") == set("TARGET");
    if has_static_libc && is_gnu && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if set("PROFILE") == "release" && !has_static_libc {
        println!(
            "cargo::warning=this build of wirecost needs the libraries of the host it runs on: \
             RUSTFLAGS replaces the flags in .cargo/config.toml; add `-C target-feature=+crt-static` to it"
        );
    }
}
