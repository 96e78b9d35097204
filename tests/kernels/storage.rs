//! Storage loads at what the kernel itself mounts and attaches from another machine: NFS, iSCSI and NVMe/TCP.

use std::process::Output;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::pair::Pair;
use crate::machine::{Contents, Kernel};
use crate::steps::OwnMachineStep;
use crate::two_machines::{
    A, B, INSTALLED, PATIENCE, ended, named_error, nothing_is_left, program, started,
};

pub(crate) const STEP: OwnMachineStep = OwnMachineStep {
    name: "storage by the kernel",
    looks_at: "`load ... storage --target PATH` over ssh at an NVMe/TCP namespace (nvmet), an iSCSI disk (LIO) and an NFS 4.2 mount \
               (knfsd) of another machine: direct I/O by io_uring, reads and writes, contents verified, bytes seen on the link and \
               at the target; a disk with a file system; an NFS server that goes away; a kill; nothing left in either machine",
    needs: &[],
    needs_root: true,
    by_name: false,
    run,
};

/// Which machine has the initiators, and which the targets.
const INITIATOR: usize = 0;
const TARGET: usize = 1;
/// Seconds for a function of the script: modules are loaded and devices appear.
const SET_UP: u32 = 60;

fn run(kernel: &Kernel) {
    let began = Instant::now();
    let reached = |what: &str| {
        let seconds = began.elapsed().as_secs_f64();
        println!("{} {seconds:6.1} s after its start: {what}", kernel.release);
    };
    let scripts =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels/scripts");
    let mut pair = Pair::boot(kernel, || {
        let mut contents = Contents::new(kernel);
        contents.archive.copy(&program(), INSTALLED);
        contents.archive.link("/usr/bin/wirecost", INSTALLED);
        contents.archive.copy(&scripts, "/scripts");
        contents.archive.command("iscsistart");
        contents
    });
    reached("two machines are up");
    does(&mut pair, TARGET, "nvme_target");
    does(&mut pair, INITIATOR, "nvme_attach");
    device(&mut pair, "/dev/nvme0n1", "/dev/ram0");
    does(&mut pair, INITIATOR, "nvme_detach");
    reached("NVMe/TCP");
    does(&mut pair, TARGET, "iscsi_target");
    does(&mut pair, INITIATOR, "iscsi_attach");
    device(&mut pair, "/dev/sda", "/dev/ram1");
    with_a_file_system(&mut pair, "/dev/sda");
    does(&mut pair, INITIATOR, "iscsi_detach");
    reached("iSCSI");
    does(&mut pair, TARGET, "nfs_server");
    does(&mut pair, INITIATOR, "nfs_mount");
    files(&mut pair);
    reached("NFS");
    killed(&mut pair);
    reached("a kill within a load on NFS");
    server_that_goes(&mut pair);
    does(&mut pair, INITIATOR, "nfs_unmount");
    nothing_is_left(&mut pair);
    reached("an NFS server that went away");
}

/// What a script of one machine prints; fails the test unless it ended with 0.
#[track_caller]
fn does(pair: &mut Pair, machine: usize, script: &str) -> String {
    let script = format!(". /scripts/storage.sh\n{script}");
    pair.machines[machine].sh(SET_UP, &script).fine()
}

/// Bytes on the data network, as the initiator's device counts them.
fn crossed(pair: &mut Pair) -> u64 {
    let told = does(
        pair,
        INITIATOR,
        "cd /sys/class/net/eth1/statistics; echo $(($(cat tx_bytes) + $(cat rx_bytes)))",
    );
    told.trim().parse().expect("a counter")
}

fn load(pair: &Pair, path: &str, options: &[&str]) -> (i32, Output) {
    let words = [
        "load", A, B, "storage", "--target", path, "--warmup", "0.2s", "--json", "-q",
    ];
    ended(started(pair, &[&words, options].concat()))
}

/// How a load of 1 s reached a path, every one of whose I/Os crossed the network.
#[track_caller]
fn loaded(pair: &mut Pair, path: &str, options: &[&str]) -> Value {
    let before = crossed(pair);
    let (code, output) = load(pair, path, &[&["--time", "1s"], options].concat());
    let crossed = crossed(pair) - before;
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code, 0, "{told}{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_str(&told).expect("one document");
    assert_eq!(document["outcome"], "complete", "{document:#}");
    let result = &document["loads"][0]["result"];
    assert_eq!(result["path"]["buffered"], Value::Null, "{result:#}");
    assert_eq!(result["path"]["no_ring"], Value::Null, "{result:#}");
    let io = document["loads"][0]["load"]["request"].as_u64();
    let count = result["requests"]["transactions"].as_u64().expect("I/O");
    let bytes = count * io.expect("bytes");
    assert!(
        count > 10 && crossed > bytes,
        "{crossed} bytes for {count} I/O, {bytes} bytes"
    );
    result["path"].clone()
}

/// Reads and writes of two connections.
const MIX: [&str; 7] = [
    "--pattern",
    "random-mix",
    "--io-size",
    "64KiB",
    "--streams",
    "2",
    "--destructive",
];

/// Reads and writes of a block device. What was written is on the target's disk.
fn device(pair: &mut Pair, path: &str, disk: &str) {
    loaded(pair, path, &["--depth", "8"]);
    // The target writes below its own kernel's page cache.
    let filled = format!(
        "echo 3 >/proc/sys/vm/drop_caches; dd if={disk} bs=1M skip=4 count=16 2>/dev/null | tr -d '\\0' | wc -c"
    );
    assert_eq!(does(pair, TARGET, &filled).trim(), "0", "it was empty");
    assert_eq!(loaded(pair, path, &MIX)["kind"], "device");
    let bytes: u64 = does(pair, TARGET, &filled).trim().parse().expect("bytes");
    assert!(bytes > 64 << 10, "{bytes} bytes of {disk} are not zero");
}

/// It is refused, unless it was named twice.
fn with_a_file_system(pair: &mut Pair, path: &str) {
    does(pair, INITIATOR, &format!("mke2fs {path} >/dev/null 2>&1"));
    let writes = ["--pattern", "random-write", "--destructive"];
    let (code, output) = load(pair, path, &[&["--time", "1s"], &writes[..]].concat());
    named_error(code, &output);
    let told = format!("{output:?}");
    assert!(told.contains("looks like an ext2"), "{told}");
    loaded(pair, path, &[&writes[..], &["--overwrite", path]].concat());
}

/// A file of the load's own on the mount, and one that was there.
fn files(pair: &mut Pair) {
    let own = [&["--size", "8MiB"], &MIX[..]].concat();
    assert_eq!(loaded(pair, "/mnt/nfs", &own)["kind"], "own-file");
    does(
        pair,
        INITIATOR,
        "dd if=/dev/zero of=/mnt/nfs/there bs=1M count=4 2>/dev/null",
    );
    assert_eq!(
        loaded(pair, "/mnt/nfs/there", &["--depth", "8"])["kind"],
        "file"
    );
    does(pair, INITIATOR, "rm /mnt/nfs/there");
    assert_eq!(
        does(pair, TARGET, "ls -A /srv/export"),
        "",
        "a load leaves nothing"
    );
}

/// A load of a minute on the mount, once it reads: filling its file is over.
fn load_begun(pair: &mut Pair) -> std::process::Child {
    const SIZE: u64 = 4 << 20;
    let before = crossed(pair);
    let child = started(
        pair,
        &[
            "load", A, B, "storage", "--target", "/mnt/nfs", "--size", "4MiB", "--time", "60s",
            "--json", "-q",
        ],
    );
    let deadline = Instant::now() + PATIENCE;
    while crossed(pair) < before + 3 * SIZE {
        assert!(Instant::now() < deadline, "no load within {PATIENCE:?}");
        sleep(Duration::from_millis(100));
    }
    child
}

/// Whoever is killed, its file is gone.
fn killed(pair: &mut Pair) {
    let mut child = load_begun(pair);
    child.kill().expect("our own child");
    let _ = child.wait();
    does(
        pair,
        TARGET,
        "for try in $(seq 100); do [ -z \"$(ls -A /srv/export)\" ] && exit 0; sleep 0.2; done; ls -A /srv/export; exit 1",
    );
    nothing_is_left(pair);
}

/// The load ends in a bounded time and says what it waited for; once the server is back, everything can be taken down.
fn server_that_goes(pair: &mut Pair) {
    let child = load_begun(pair);
    pair.port(2, "down");
    let (code, output) = ended(child);
    pair.port(2, "up");
    named_error(code, &output);
    let told = format!("{output:?}");
    assert!(
        told.contains("/mnt/nfs, job 0") && told.contains("was over within 10 s"),
        "{told}"
    );
}
