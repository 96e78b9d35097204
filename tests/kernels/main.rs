//! The program in machines with Debian's own kernels: what this machine's kernel lacks is tried there. Figures that
//! come out are those of an emulated processor and say nothing of a network; what is looked at is what was sent and
//! proven.
//!
//! `make test-kernels` runs it; elsewhere it is skipped. docs/kernels.md is written from what ran (`document.rs`).

#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../machine/mod.rs"]
mod machine;

mod document;
mod features;
mod record;
mod steps;
mod two_machines;

// Steps.
mod by_ebpf;
mod by_the_kernel;
mod checks;
mod diagnose;
mod ebpf_and_kernel;
mod journal;
mod killed;
mod line;
mod line_core;
mod make_run;
mod open_vswitch;
mod ovn;
mod paths;
mod storage;
mod verdicts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use features::Features;
use machine::{Contents, KERNELS, Kernel, Machine, archive};
use steps::{OWN_MACHINE_STEPS, OwnMachineStep, STEPS, Step};
use wirecost_skips::{lacks, skip};

/// Set by `make test-kernels`.
const WANTED: &str = "WIRECOST_KERNELS";
/// Set where kernels that cannot be downloaded are a failure.
const REQUIRED: &str = "WIRECOST_REQUIRE_KERNELS";
/// Only kernels of this line: `6.1`.
const ONLY_KERNEL: &str = "WIRECOST_KERNEL";
/// Only steps whose name contains this.
const ONLY_STEP: &str = "WIRECOST_STEP";
/// Jobs that run at the same time. A machine waits much, for windows and for what is far, and two cores are kept busy
/// by three.
const AT_ONCE: usize = 3;

/// How a step ended on a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Right,
    Wrong,
    /// The kernel lacks what the step needs.
    Lacks(&'static str),
}

/// What came of one kernel.
#[derive(Debug)]
pub(crate) struct KernelResult {
    pub(crate) release: String,
    pub(crate) features: Features,
    /// By the step's name.
    pub(crate) outcomes: Vec<(&'static str, Outcome)>,
}

impl KernelResult {
    fn only(kernel: &Kernel, name: &'static str, outcome: Outcome) -> Self {
        Self {
            release: kernel.release.clone(),
            features: Features::new(),
            outcomes: vec![(name, outcome)],
        }
    }
}

/// What `make test-kernels` builds: the program that users get, and tests of the whole program.
fn named(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable);
    PathBuf::from(path.unwrap_or_else(|| panic!("{variable}: `make test-kernels` sets it")))
}

fn only(variable: &str) -> String {
    std::env::var(variable).unwrap_or_default()
}

fn boot(kernel: &Kernel) -> Machine {
    boot_with(kernel, &[])
}

/// With more of QEMU's options.
fn boot_with(kernel: &Kernel, options: &[&str]) -> Machine {
    let mut contents = Contents::new(kernel);
    let archive = &mut contents.archive;
    archive.copy(&named("WIRECOST_BINARY"), "/usr/bin/wirecost");
    archive.copy(&named("WIRECOST_TUNNELS"), "/usr/bin/tunnels");
    if let Some(journal) = std::env::var_os("WIRECOST_JOURNAL_PROGRAM") {
        archive.copy(Path::new(&journal), "/usr/bin/journal");
    }
    // They find the program and its files where they are here.
    archive.copy(&named("WIRECOST_FAULTS_PROGRAM"), "/usr/bin/faults");
    archive.link(env!("CARGO_BIN_EXE_wirecost"), "/usr/bin/wirecost");
    let catalogue = wirecost_faults::directory();
    archive.copy(&catalogue, catalogue.to_str().expect("a plain path"));
    // busybox's nsenter has busybox's own shell run busybox's own `ip`.
    for name in [
        "ip", "tc", "nft", "ethtool", "bridge", "setpriv", "nsenter", "teamnl", "ping",
    ] {
        archive.command(name);
    }
    // Linked to an alternative in Debian, which `command` follows.
    for name in [
        "ovs-vswitchd",
        "ovsdb-server",
        "ovsdb-tool",
        "ovs-ofctl",
        "ovn-northd",
        "ovn-controller",
    ] {
        archive.command(name);
    }
    for schema in [
        "/usr/share/openvswitch/vswitch.ovsschema",
        "/usr/share/ovn/ovn-nb.ovsschema",
        "/usr/share/ovn/ovn-sb.ovsschema",
    ] {
        archive.copy(Path::new(schema), schema);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    archive.copy(&root.join("tests/kernels/scripts"), "/scripts");
    Machine::boot_with(kernel, &mut contents.archive.finish(), &[], options)
}

/// Runs one step, says how it ended and how long that took, and returns it.
fn tried(kernel: &Kernel, name: &str, step: impl FnOnce()) -> Outcome {
    let release = &kernel.release;
    let began = Instant::now();
    let failed = catch_unwind(AssertUnwindSafe(step)).is_err();
    let word = if failed { "WRONG" } else { "right" };
    let seconds = began.elapsed().as_secs_f64();
    println!("{release} {seconds:6.1} s {word} {name}");
    if failed {
        Outcome::Wrong
    } else {
        Outcome::Right
    }
}

/// An emulated machine shares its cores with others: what is wrong is wrong twice.
fn once_more(kernel: &Kernel, name: &str) {
    println!(
        "{}: once more, in a machine booted anew: {name}",
        kernel.release
    );
}

/// Steps in one machine, which is booted anew after one that failed: what it left must not spoil the next.
fn in_one_machine(kernel: &Kernel, steps: &[&Step]) -> KernelResult {
    let mut machine = boot(kernel);
    let features = features::of(&mut machine);
    let mut outcomes = Vec::new();
    for step in steps {
        let lacks = step
            .needs
            .iter()
            .find(|name| !features::has(&features, name));
        let mut outcome = match lacks {
            Some(feature) => Outcome::Lacks(feature),
            None => tried(kernel, step.name, || (step.run)(&mut machine)),
        };
        let used = machine.cpu_seconds();
        println!("{} {used:6.1} s of processor time so far", kernel.release);
        if outcome == Outcome::Wrong {
            drop(machine);
            machine = boot(kernel);
            // An emulated machine shares its cores with others: what is wrong is wrong twice.
            println!(
                "{}: once more, in a machine booted anew: {}",
                kernel.release, step.name
            );
            outcome = tried(kernel, step.name, || (step.run)(&mut machine));
        }
        outcomes.push((step.name, outcome));
    }
    KernelResult {
        release: kernel.release.clone(),
        features,
        outcomes,
    }
}

/// What this machine has to have, and the packages that have it.
const TOOLS: [(&str, &str); 17] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("modprobe", "kmod"),
    ("xz", "xz-utils"),
    ("setpriv", "util-linux"),
    ("nft", "nftables"),
    ("ethtool", "ethtool"),
    ("tc", "iproute2"),
    ("ssh-keygen", "openssh-client"),
    ("dropbear", "dropbear-bin"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("ovn-northd", "ovn-central"),
    ("ovn-controller", "ovn-host"),
    ("teamnl", "libteam-utils"),
    ("dpkg", "dpkg"),
    ("ping", "iputils-ping"),
    ("iscsistart", "open-iscsi"),
];

/// What this machine lacks for any kernel, in words.
fn missing_tools() -> Option<String> {
    let missing: Vec<String> = TOOLS
        .iter()
        .filter(|(name, _)| !archive::is_there(name))
        .map(|(name, package)| format!("{name} (package {package})"))
        .collect();
    (!missing.is_empty()).then(|| format!("there is no {}", missing.join(", ")))
}

/// Whether a release is that of a line, as 6.1.0-56 is of 6.1 and 6.12.1 is not.
fn is_of(release: &str, line: &str) -> bool {
    let rest = release.strip_prefix(line);
    rest.is_some_and(|rest| {
        line.is_empty() || !rest.starts_with(|next: char| next.is_ascii_digit())
    })
}

/// What is to be done on one kernel, and which that is of all.
struct Job<'a> {
    at: usize,
    run: Box<dyn FnOnce() -> KernelResult + Send + 'a>,
}

/// The longest first. A kernel's steps are two jobs, so that no machine is left to work alone at the end.
fn jobs(kernels: &[Kernel]) -> Vec<Job<'_>> {
    let wanted = |name: &str| name.contains(&only(ONLY_STEP));
    let steps: Vec<&Step> = STEPS.iter().filter(|step| wanted(step.name)).collect();
    let mut jobs = Vec::new();
    for (at, kernel) in kernels.iter().enumerate() {
        for part in steps.chunks(STEPS.len().div_ceil(2)) {
            let part = part.to_vec();
            let run = Box::new(move || in_one_machine(kernel, &part));
            jobs.push(Job { at, run });
        }
    }
    let root = nix::unistd::geteuid().is_root();
    let is_asked_for = |step: &&OwnMachineStep| !step.by_name || !only(ONLY_STEP).is_empty();
    let steps = OWN_MACHINE_STEPS.iter().filter(is_asked_for);
    for step in steps.filter(|step| wanted(step.name)) {
        if step.needs_root && !root {
            skip(format!("{}: needs root", step.name));
            continue;
        }
        for (at, kernel) in kernels.iter().enumerate() {
            let run = Box::new(|| {
                let once = || tried(kernel, step.name, || (step.run)(kernel));
                let outcome = match once() {
                    Outcome::Wrong => {
                        once_more(kernel, step.name);
                        once()
                    }
                    outcome => outcome,
                };
                KernelResult::only(kernel, step.name, outcome)
            });
            jobs.push(Job { at, run });
        }
    }
    jobs
}

/// What came of all jobs, by kernel.
fn on_every(kernels: &[Kernel]) -> Vec<KernelResult> {
    let jobs = Mutex::new(jobs(kernels).into_iter());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(Job { at, run }) = jobs.lock().expect("jobs").next() else {
                return;
            };
            let came = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                KernelResult::only(&kernels[at], "the machine", Outcome::Wrong)
            });
            done.lock().expect("what is done").push((at, came));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().expect("what is done");
    // Of one kernel as they are listed, and last a machine that did not come up.
    let listed = || {
        let own_machine = OWN_MACHINE_STEPS.iter().map(|step| step.name);
        STEPS.iter().map(|step| step.name).chain(own_machine)
    };
    let place = |came: &KernelResult| {
        let (name, _) = came.outcomes.first()?;
        listed().position(|known| known == *name)
    };
    done.sort_by_key(|(at, came)| (*at, place(came).unwrap_or(usize::MAX)));
    let mut all: Vec<KernelResult> = Vec::new();
    for (_, came) in done {
        match all.last_mut() {
            Some(last) if last.release == came.release => last.outcomes.extend(came.outcomes),
            _ => all.push(came),
        }
    }
    all
}

#[test]
fn everything_on_every_kernel() {
    if std::env::var_os(WANTED).is_none() {
        println!("skipped: this boots other kernels; `make test-kernels` has it do so");
        return;
    }
    if std::env::consts::ARCH != "x86_64" {
        lacks("the kernels and the program that runs on them are those of x86_64");
        return;
    }
    if let Some(why) = missing_tools() {
        skip(format!("Debian's kernels: {why}"));
        return;
    }
    let kernels: Result<Vec<Kernel>, String> = KERNELS.map(Kernel::get).into_iter().collect();
    let kernels = match kernels {
        Ok(kernels) => kernels,
        // A matter of the machine's package sources.
        Err(why) => {
            lacks(format!("Debian's kernels: {why}"));
            assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED}: {why}");
            return;
        }
    };
    let kernels: Vec<Kernel> = kernels
        .into_iter()
        .filter(|kernel| is_of(&kernel.release, &only(ONLY_KERNEL)))
        .collect();
    assert!(
        !kernels.is_empty(),
        "{ONLY_KERNEL} names none of {KERNELS:?}"
    );
    let began = Instant::now();
    let all = on_every(&kernels);
    println!("{:.0} s", began.elapsed().as_secs_f64());
    let table = document::outcomes(&all);
    println!("{table}");
    let wrong = wrong(&all);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if only(ONLY_KERNEL).is_empty() && only(ONLY_STEP).is_empty() {
        document::is_up_to_date(&all);
    }
}

/// Steps that failed, steps that no kernel could run, and drivers that no kernel has.
fn wrong(all: &[KernelResult]) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in document::names(all) {
        let outcomes: Vec<_> = all
            .iter()
            .filter_map(|ran| Some((&ran.release, document::outcome(ran, name)?)))
            .collect();
        for (release, outcome) in &outcomes {
            if *outcome == Outcome::Wrong {
                wrong.push(format!("{release}: {name}"));
            }
        }
        if outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, Outcome::Lacks(_)))
        {
            wrong.push(format!(
                "no kernel has what this needs: {name}: {outcomes:?}"
            ));
        }
    }
    let asked: Vec<&Features> = all
        .iter()
        .map(|ran| &ran.features)
        .filter(|features| !features.is_empty())
        .collect();
    let needed = STEPS.iter().flat_map(|step| step.needs);
    for name in needed.chain(features::DRIVERS.iter().map(|(name, _)| name)) {
        let lacking =
            !asked.is_empty() && !asked.iter().any(|features| features::has(features, name));
        if lacking && only(ONLY_KERNEL).is_empty() {
            wrong.push(format!("no kernel has {name}"));
        }
    }
    for ran in all.iter().filter(|ran| !ran.features.is_empty()) {
        for name in features::EVERYWHERE {
            if !features::has(&ran.features, name) {
                wrong.push(format!("{} has no {name}", ran.release));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}
