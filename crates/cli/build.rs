//! Says when a release build is not the one static file that it should be.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |name| env::var(name).unwrap_or_default();
    let has_static_libc = set("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if set("PROFILE") == "release" && !has_static_libc {
        println!(
            "cargo::warning=this build of wirecost needs the libraries of the host it runs on: \
             RUSTFLAGS replaces the flags in .cargo/config.toml; add `-C target-feature=+crt-static` to it"
        );
    }
}
