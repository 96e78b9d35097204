//! The program in machines with Debian's own kernels: what this machine's kernel lacks is tried there. Figures that come
//! out are those of an emulated processor and say nothing of a network; what is looked at is what was sent and proven.
//!
//! `make test-kernels` runs it; elsewhere it is skipped.

#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../machine/mod.rs"]
mod machine;

mod checks;
mod labs;
mod paths;

use std::path::{Path, PathBuf};
use std::time::Instant;

use machine::{Contents, KERNELS, Kernel, Machine};

/// Set by `make test-kernels`.
const WANTED: &str = "WIRECOST_KERNELS";
/// Only steps whose name contains this.
const ONLY: &str = "WIRECOST_STEP";

/// One thing that is tried on every kernel; it panics where that fails.
struct Step {
    name: &'static str,
    run: fn(&mut Machine),
}

const STEPS: &[Step] = &[
    Step {
        name: "doctor names what this kernel has",
        run: checks::doctor,
    },
    Step {
        name: "labs by the kernel's devices over IPv4 and IPv6",
        run: labs::by_the_kernel,
    },
    Step {
        name: "labs by eBPF",
        run: labs::by_ebpf,
    },
    Step {
        name: "eBPF beside the kernel's vxlan and geneve",
        run: labs::beside_the_kernel,
    },
    Step {
        name: "labs without root",
        run: labs::without_root,
    },
    Step {
        name: "healthy paths have no finding",
        run: checks::healthy_paths,
    },
    Step {
        name: "paths that are not",
        run: checks::faulty_paths,
    },
    Step {
        name: "far, slow, policed and lossy paths",
        run: paths::far,
    },
    Step {
        name: "the catalogue's faults on bonds, teams, VLANs and VRFs",
        run: paths::catalogue,
    },
    Step {
        name: "whatever is killed leaves nothing",
        run: labs::killed,
    },
];

/// What `make test-kernels` builds: the program that users get, and tests of the whole program.
fn named(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    PathBuf::from(path.unwrap_or_else(|| panic!("{variable}: `make test-kernels` sets it")))
}

fn machine(kernel: &Kernel) -> Machine {
    let mut contents = Contents::new(kernel);
    let archive = &mut contents.archive;
    archive.copy(&named("WIRECOST_BINARY"), "/usr/bin/wirecost");
    archive.copy(&named("WIRECOST_TUNNELS"), "/usr/bin/tunnels");
    // busybox's nsenter has busybox's own shell run busybox's own `ip`.
    for name in [
        "ip", "tc", "nft", "ethtool", "bridge", "setpriv", "nsenter", "teamnl",
    ] {
        archive.command(name);
    }
    // It finds both where they are here.
    archive.copy(&named("WIRECOST_FAULTS_PROGRAM"), "/usr/bin/faults");
    archive.link(env!("CARGO_BIN_EXE_wirecost"), "/usr/bin/wirecost");
    let catalogue = wirecost_faults::directory();
    archive.copy(&catalogue, catalogue.to_str().expect("a plain path"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    archive.copy(&root.join("tests/kernels/scripts"), "/scripts");
    Machine::boot(kernel, contents)
}

fn everything_on(package: &'static str) {
    if std::env::var_os(WANTED).is_none() {
        println!("skipped: this boots other kernels; `make test-kernels` has it do so");
        return;
    }
    let kernel = Kernel::get(package);
    let began = Instant::now();
    let mut running = machine(&kernel);
    println!(
        "{}: up in {:.1} s",
        kernel.release,
        began.elapsed().as_secs_f64()
    );
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut wrong = Vec::new();
    for step in STEPS.iter().filter(|step| step.name.contains(&only)) {
        let began = Instant::now();
        let run = std::panic::AssertUnwindSafe(|| (step.run)(&mut running));
        let failed = std::panic::catch_unwind(run).is_err();
        let word = if failed { "WRONG" } else { "right" };
        println!(
            "{} {:6.1} s {word} {}",
            kernel.release,
            began.elapsed().as_secs_f64(),
            step.name
        );
        if failed {
            wrong.push(step.name);
            // What it left must not spoil the next.
            drop(running);
            running = machine(&kernel);
        }
    }
    assert!(wrong.is_empty(), "{package}, {}: {wrong:?}", kernel.release);
}

#[test]
fn on_debians_stable_kernel() {
    everything_on(KERNELS[0]);
}

#[test]
fn on_the_newer_kernel_of_its_backports() {
    everything_on(KERNELS[1]);
}
