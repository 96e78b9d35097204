//! Hosts that are containers of podman: the program is copied into them by `podman exec`, measures between them, and is
//! gone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use nix::mount::{MsFlags, mount};

use crate::common::namespaces::leave_the_machine;
use crate::common::{
    Ended, Record, TestDir, install, is_root, lacks, lock_shared, run, skip, succeeds, wait_for,
    wirecost,
};
use crate::pair::Pair;

const NAMES: [&str; 2] = ["wirecost-a", "wirecost-b"];
/// Seconds after which a container ends by itself.
const LIFE_S: u32 = 900;

/// Two containers that need no image: busybox in a directory, in the namespaces of a pair. Dropping it removes them.
struct Containers {
    place: TestDir,
}

impl Containers {
    /// Starts them; the error is podman's reason.
    fn start(pair: &Pair) -> Result<Self, String> {
        let made = Self {
            place: TestDir::new(),
        };
        for (name, netns) in NAMES.iter().zip([&pair.a, &pair.b]) {
            let root = made.place.path().join(name);
            busybox(&root);
            let ended = made.podman(&format!(
                "run --detach --rm --name {name} --network ns:/run/netns/{netns} --cgroups disabled \
                 --security-opt apparmor=unconfined --log-driver none --rootfs {} /bin/sleep {LIFE_S}",
                root.display()
            ));
            if !ended.status.success() {
                let reason = ended.stderr.trim().lines().last();
                return Err(reason.unwrap_or("it says no reason").to_owned());
            }
        }
        Ok(made)
    }

    /// Podman with what it keeps in the test's directory: no container, image or network of the user's is known to it.
    fn words(&self) -> String {
        format!(
            "podman --root {0}/store --network-config-dir {0}/networks --storage-driver vfs --cgroup-manager cgroupfs \
             --events-backend none",
            self.place.path().display()
        )
    }

    fn podman(&self, rest: &str) -> Ended {
        let line = format!("{} {rest}", self.words());
        run(Command::new("sh").args(["-c", &line]))
    }

    /// As hosts of the command line.
    fn hosts(&self) -> [String; 2] {
        NAMES.map(|name| format!("exec:{} exec -i {name}", self.words()))
    }

    /// Neither an agent nor a copy of the program is in a container.
    #[track_caller]
    fn nothing_is_left(&self) {
        let left = "ls -A /tmp; ps | grep '[w]irecost agent' || true";
        let is_clean = |name: &str| {
            let ended = self.podman(&format!("exec {name} sh -c \"{left}\""));
            ended.expect_code(0);
            ended.stdout.is_empty()
        };
        wait_for("agents and copies of the program to be gone", || {
            NAMES.into_iter().all(is_clean).then_some(())
        });
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        let remove = format!("{} rm --force --time 0 {}", self.words(), NAMES.join(" "));
        succeeds(Command::new("sh").args(["-c", &remove]));
    }
}

/// A root file system of busybox alone.
fn busybox(root: &Path) {
    for directory in ["bin", "dev", "etc", "proc", "run", "sys", "tmp"] {
        fs::create_dir_all(root.join(directory)).expect("a directory");
    }
    let found = run(Command::new("sh").args(["-c", "command -v busybox"]));
    install(found.stdout.trim().as_ref(), &root.join("bin/busybox"));
    let commands = run(Command::new("busybox").arg("--list"));
    for name in commands.stdout.lines().filter(|name| *name != "busybox") {
        symlink("busybox", root.join("bin").join(name)).expect("a link");
    }
}

#[test]
fn containers_are_checked_loaded_and_measured_with_nothing_installed_in_them() {
    if !is_root() {
        return;
    }
    for (tool, package) in [("podman", "podman"), ("busybox", "busybox-static")] {
        if !succeeds(Command::new(tool).arg("--help")) {
            skip(format!("there is no {tool} (package {package})"));
            return;
        }
    }
    let _lock = lock_shared();
    leave_the_machine();
    // Of the locks there, podman frees those that it does not know: the user's containers have theirs.
    let none = None::<&str>;
    mount(
        Some("none"),
        "/dev/shm",
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    )
    .expect("an empty /dev/shm");
    let pair = Pair::new("podman");
    let containers = match Containers::start(&pair) {
        Ok(containers) => containers,
        Err(reason) => {
            lacks(format!("podman starts no container here: {reason}"));
            return;
        }
    };
    let [a, b] = containers.hosts();

    let ended = run(&mut wirecost(["check", &a, &b, "--json"]));
    // What a container may not read is no finding, and what the machine has wrong is one.
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:#?}");
    let document = ended.document();
    let paths = document["paths"].as_array().expect("paths");
    assert!(!paths.is_empty(), "{document}");
    assert!(paths.iter().all(|path| path["mtu"] == 1500), "{document}");
    containers.nothing_is_left();

    let words = ["load", &a, &b, "--bytes", "1MiB", "--json"];
    let ended = run(&mut wirecost(words));
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["outcome"], "complete", "{document}");
    let gbps = document["loads"][0]["stream"]["gbps"].as_f64();
    assert!(gbps.is_some_and(|gbps| gbps > 0.0), "{document}");
    containers.nothing_is_left();

    let plan = containers.place.plan(
        "name: containers\nnetwork: existing\nrepeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n",
    );
    let out = containers.place.path().join("record");
    let [plan, out_text] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let hosts = format!("{a},{b}");
    let words = ["run", plan, "--hosts", &hosts, "--yes", "--out", out_text];
    run(&mut wirecost(words)).expect_code(0);
    let record = Record::read(&out).expect("a record");
    assert_eq!(record.samples.len(), 1);
    let sample = &record.samples[0];
    assert_eq!(sample.invalid, None);
    assert!(
        sample
            .proofs
            .iter()
            .all(|proof| proof.proven && proof.size == 1500)
    );
    let hosts = &record.head.environment.hosts;
    let addresses = ["a", "b"].map(|host| hosts[host].existing.as_ref().expect("existing").address);
    assert_eq!(
        addresses.map(|address| address.to_string()),
        ["10.77.0.1", "10.77.0.2"]
    );
    containers.nothing_is_left();
}
