//! Storage at files, directories and block devices through the whole program: what may be written, a disk that is full,
//! kills, plans.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use wirecost_model::path_access::PathKind;

use super::{record_of, says};
use crate::common::{
    Running, TestDir, is_root, lock_shared, run, skip, succeeds, wait_for, wirecost,
};
use crate::pair::Pair;

/// However slow the disk and busy the machine, these are done; and they are more than 2 MiB.
const SHORT: [&str; 3] = ["--transactions", "2000", "-q"];

/// `wirecost load` of storage at a path, from a's namespace.
fn load(pair: &Pair, target: &Path, more: &[&str]) -> Command {
    let hosts = [&pair.a, &pair.b].map(|name| format!("netns:{name}"));
    let mut command = wirecost(["load"]);
    command.args(hosts).args(["storage", "--target"]);
    command.arg(target).args(more).args(SHORT);
    command
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// A loop device over a file. Detached when dropped.
struct Loop(PathBuf);

impl Loop {
    /// `None`, said aloud, where this machine has none.
    fn over(file: &Path) -> Option<Self> {
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                let name = String::from_utf8(made.stdout).expect("a path");
                Some(Self(PathBuf::from(name.trim())))
            }
            made => {
                skip(format!("no loop device: {made:?}"));
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}

#[test]
fn a_directory_has_a_file_of_the_load_s_own_and_what_happened_is_told() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("path"), TestDir::new());
    let more = [
        "--size",
        "8MiB",
        "--pattern",
        "random-mix",
        "--destructive",
        "--streams",
        "2",
    ];
    let ended = run(load(&pair, place.path(), &more).arg("--json"));
    ended.expect_code(0);
    let document = ended.document();
    let load = &document["loads"][0];
    assert!(
        load["requests"]["per_s"]
            .as_f64()
            .is_some_and(|rate| rate > 0.0),
        "{load:#}"
    );
    assert_eq!(load["result"]["path"]["kind"], "own-file", "{load:#}");
    let ended = run(&mut self::load(&pair, place.path(), &more));
    ended.expect_code(0);
    assert!(
        ended.stdout.contains("file of the load's own, 8MiB used"),
        "{}",
        ended.stdout
    );
    assert_eq!(entries(place.path()), Vec::<PathBuf>::new());
    // It writes only where that is said.
    let ended = run(&mut self::load(&pair, place.path(), &more[..4]));
    ended.expect_code(2);
    says(&ended, "add `destructive` if it may be lost");
}

#[test]
fn a_block_device_is_written_where_it_is_empty_or_named_twice_and_never_while_it_is_in_use() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("device"), TestDir::new());
    let image = place.path().join("image");
    let file = fs::File::create(&image).expect("a file");
    file.set_len(16 << 20).expect("16 MiB");
    let Some(device) = Loop::over(&image) else {
        return;
    };
    let writes = ["--pattern", "random-write", "--destructive"];
    let twice = [
        &writes[..],
        &["--overwrite", device.0.to_str().expect("a path")],
    ]
    .concat();
    let ended = run(load(&pair, &device.0, &writes).arg("--json"));
    ended.expect_code(0);
    let path = ended.document()["loads"][0]["result"]["path"].clone();
    assert_eq!(
        (path["kind"].as_str(), path["bytes"].as_u64()),
        (Some("device"), Some(16 << 20))
    );
    // The file below it is in use.
    let ended = run(&mut load(&pair, &image, &writes));
    ended.expect_code(3);
    says(&ended, "the loop device loop");
    if !succeeds(Command::new("mkfs.ext4").arg("-q").arg(&device.0)) {
        skip("no mkfs.ext4");
        return;
    }
    let ended = run(&mut load(&pair, &device.0, &writes));
    ended.expect_code(3);
    says(&ended, "it looks like an ext2, ext3 or ext4 file system");
    says(&ended, "name it twice");
    // It is read as it is.
    run(&mut load(&pair, &device.0, &[])).expect_code(0);
    let mount = place.path().join("mounted");
    fs::create_dir(&mount).expect("a directory");
    if succeeds(Command::new("mount").arg(&device.0).arg(&mount)) {
        let ended = run(&mut load(&pair, &device.0, &twice));
        assert!(succeeds(Command::new("umount").arg(&mount)));
        ended.expect_code(3);
        says(&ended, &format!("it is mounted at {}", mount.display()));
        let still = Command::new("fsck.ext4").arg("-fn").arg(&device.0).output();
        assert!(
            still.is_ok_and(|checked| checked.status.success()),
            "it was written to"
        );
    }
    // A mount namespace that another test made meanwhile keeps the device mounted until it ends.
    let written = || {
        let ended = run(&mut load(&pair, &device.0, &twice));
        let is_held = ended.stderr.contains("it is opened exclusively");
        (!is_held).then_some(ended)
    };
    wait_for("the device is free", written).expect_code(0);
    // Both ends are zero now.
    run(&mut load(&pair, &device.0, &writes)).expect_code(0);
}

#[test]
fn a_disk_that_is_full_and_what_is_not_there_are_named() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("full"), TestDir::new());
    let disk = place.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    let inside = |load: &Command| {
        let script =
            "mount -t tmpfs -o size=2m none \"$0\" && truncate -s 16M \"$0/sparse\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(&disk);
        command.arg(load.get_program()).args(load.get_args());
        command
    };
    let ended = run(&mut inside(&load(&pair, &disk, &["--size", "8MiB"])));
    ended.expect_code(3);
    says(
        &ended,
        &format!("{}: filling it: No space left on device", disk.display()),
    );
    says(&ended, "make room there, or use a smaller `size`");
    let sparse = disk.join("sparse");
    let writes = ["--pattern", "sequential-write", "--destructive"];
    let ended = run(&mut inside(&load(&pair, &sparse, &writes)));
    ended.expect_code(3);
    says(&ended, "writing 4096 bytes at offset");
    says(&ended, "No space left on device");
    let ended = run(&mut load(&pair, Path::new("/nowhere/at/all"), &[]));
    ended.expect_code(3);
    says(&ended, "/nowhere/at/all: nothing is there");
}

#[test]
fn whoever_is_killed_no_file_is_left() {
    if !is_root() {
        return;
    }
    let (pair, place) = (Pair::new("killed"), TestDir::new());
    for victim in ["controller", "agent"] {
        let hosts = [&pair.a, &pair.b].map(|name| format!("netns:{name}"));
        let mut command = wirecost(["load"]);
        command.args(hosts).args([
            "storage",
            "--time",
            "30s",
            "--interval",
            "0.1s",
            "--size",
            "4MiB",
        ]);
        command.arg("--target").arg(place.path());
        let mut running = Running::start(&mut command);
        running.wait_for("an interval", |running| {
            running
                .stderr_so_far()
                .contains(" s  storage")
                .then_some(())
        });
        if victim == "controller" {
            assert!(running.signal(Signal::SIGKILL), "it had ended");
            assert!(running.wait().was_killed());
        } else {
            for agent in running.agents() {
                assert!(crate::common::signal(agent.pid, Signal::SIGKILL));
            }
            running.wait().expect_code(3);
        }
        wait_for("the agents to be gone", || {
            running.agents().is_empty().then_some(())
        });
        assert_eq!(entries(place.path()), Vec::<PathBuf>::new(), "{victim}");
    }
}

#[test]
fn a_plan_loads_a_path_between_existing_hosts_and_its_report_says_how() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("plan"), TestDir::new());
    let disk = place.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    let (a, b, at) = (&pair.a, &pair.b, disk.display());
    let plan = format!(
        "name: path\nhosts: {{ a: \"netns:{a}\", b: \"netns:{b}\" }}\nnetwork: existing\n\
         load: {{ storage: {{ target: {at}, size: 4MiB, io_size: [4KiB, 64KiB], connections: 2 }} }}\n\
         repeat: {{ rounds: 2, seconds: 1, warmup: 0.1 }}\n"
    );
    let record = record_of(&place, &plan);
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        let load = &sample.loads[0];
        let path = load.path.as_ref().expect("how it was read");
        assert_eq!((path.kind, path.bytes), (PathKind::OwnFile, 4 << 20));
        assert!(
            load.requests
                .as_ref()
                .is_some_and(|all| all.transactions > 0)
        );
    }
    assert_eq!(entries(&disk), Vec::<PathBuf>::new());
    let report = run(wirecost(["report", "out", "--json"]).current_dir(place.path()));
    report.expect_code(0);
    let path = &report.document()["cells"][0]["loads"][0]["path"];
    assert_eq!(path["kind"], "own-file", "{path}");
    // A lab's network is not between a host and its disk.
    let lab = place.plan(&format!(
        "name: lab\nguest_mtu: 1500\nload: {{ storage: {{ target: {at}, size: 4MiB }} }}\nrepeat: {{ rounds: 1, seconds: 0.1 }}\n"
    ));
    let ended = run(&mut place.run_command(&lab, "lab"));
    ended.expect_code(2);
    says(&ended, "does not go over the network of a lab");
}
