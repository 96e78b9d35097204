//! What is changed on an existing host in a booted machine: random changes and kills (`tests/journal.rs`) with a card
//! that has rings; a machine that is switched off in the middle, booted again and cleaned; a clock that is set while a
//! run measures.

use serde_json::Value;

use crate::boot_with;
use crate::machine::{Kernel, Machine};
use crate::steps::{OwnMachineStep, Step};

pub(crate) const RANDOM: OwnMachineStep = OwnMachineStep {
    name: "journal: random changes",
    looks_at: "random changes of a host with a card that has rings, a kill at any moment, undone to exactly what was there \
               (netlink, ethtool, tc, sysfs, /proc/sys)",
    needs: &[],
    needs_root: false,
    by_name: false,
    run: random_changes,
};

pub(crate) const SWITCHED_OFF: OwnMachineStep = OwnMachineStep {
    name: "journal: switched off",
    looks_at: "a machine that is switched off while its settings are changed, booted again from the same disk: `clean --host` \
               runs the command and says that the rest is gone",
    needs: &[],
    needs_root: false,
    by_name: false,
    run: switched_off,
};

pub(crate) const CLOCK: Step = Step {
    name: "clock jumps",
    looks_at: "the clock set a day forward and two back within a window: the sample is valid and as long as asked, settings are \
               undone, `report` reads it",
    needs: &["veth"],
    run: clock_jumps,
};

/// Of the random numbers: what fails once fails again.
const SEED: u32 = 34;
/// Bytes of the disk that outlives the machine.
const DISK: u64 = 16 << 20;
/// The disk, where root's journals are.
const MOUNT: &str = "modprobe virtio_blk; mkdir -p /var/lib/wirecost\n\
                     for try in $(seq 50); do [ -b /dev/vda ] && break; sleep 0.1; done\n\
                     mount -t ext4 /dev/vda /var/lib/wirecost";

/// Two hosts and a run that changes one of them for a window of so many seconds; its level is applied when this ends.
fn begin(machine: &mut Machine, seconds: u32) {
    let script = format!(
        "cat >/tmp/plan.yaml <<'END'\n\
name: changed\n\
network: existing\n\
hosts: {{ a: \"netns:ja\", b: \"netns:jb\" }}\n\
allow_host_changes: on\n\
vary: {{ all: [ {{ label: changed, on: a, mtu: 1400, sysctl: {{ net.ipv4.tcp_no_metrics_save: 1 }}, \
ethtool: {{ underlay: {{ tx-tcp-segmentation: off }} }}, before: touch /run/changed, after: touch /run/undone }} ] }}\n\
repeat: {{ rounds: 1, seconds: {seconds}, warmup: 0.5 }}\n\
END\n\
rm -f /run/changed /run/undone\n\
for n in ja jb; do ip netns add $n; done\n\
ip link add x0 netns ja type veth peer name x0 netns jb\n\
ip -n ja addr add 10.79.0.1/24 dev x0; ip -n jb addr add 10.79.0.2/24 dev x0\n\
for n in ja jb; do ip -n $n link set lo up; ip -n $n link set x0 up; done\n\
(wirecost run /tmp/plan.yaml --yes --out /tmp/run >/run/shown 2>&1; echo $? >/run/code) &\n\
for try in $(seq 300); do [ -e /run/changed ] && exit 0; sleep 0.2; done; cat /run/shown; exit 1"
    );
    machine.sh(70, &script).fine();
}

fn random_changes(kernel: &Kernel) {
    let card = [
        "-netdev",
        // Its router would advertise addresses whose lifetimes run.
        "user,id=card,ipv6=off",
        "-device",
        "virtio-net-pci,netdev=card",
    ];
    let mut machine = boot_with(kernel, &card);
    let run = format!(
        "modprobe virtio_net; modprobe veth; modprobe vxlan; modprobe bridge\n\
         for try in $(seq 50); do [ -e /sys/class/net/eth0 ] && break; sleep 0.1; done\n\
         ip link set eth0 name card0\n\
         WIRECOST_SEED={SEED} WIRECOST_SEQUENCES=12 WIRECOST_RINGS_DEVICE=card0 /usr/bin/journal --nocapture 2>&1"
    );
    let done = machine.sh(300, &run);
    println!("{}: {}", machine.release, done.stdout);
    let told = done.fine();
    assert!(told.contains("settings were applied"), "{told}");
}

fn switched_off(kernel: &Kernel) {
    assert!(
        kernel.has_module("virtio_blk"),
        "{} was unpacked without virtio_blk: remove it from {}, and it is downloaded again",
        kernel.package,
        crate::machine::downloads_dir().display()
    );
    let disk = tempfile::NamedTempFile::new().expect("a disk");
    disk.as_file().set_len(DISK).expect("room on the disk");
    let drive = format!("file={},format=raw,if=virtio", disk.path().display());
    let options = ["-drive", drive.as_str()];
    let mut machine = boot_with(kernel, &options);
    // What ext4 can read and busybox makes.
    let made = MOUNT.replace("mount ", "mke2fs /dev/vda >/dev/null && mount ");
    machine.sh(30, &made).fine();
    begin(&mut machine, 60);
    // As a machine that loses its power: nothing of it has time to undo anything.
    drop(machine);

    let mut machine = boot_with(kernel, &options);
    machine.sh(30, MOUNT).fine();
    let cleaned = clean(&mut machine);
    let host = &cleaned["hosts"][0];
    let told = |key: &str| host[key].as_array().expect("a list").len();
    assert_eq!(told("failed"), 0, "{cleaned}");
    assert_eq!(told("gone"), 3, "a sysctl, a feature, an MTU: {cleaned}");
    assert_eq!(told("undone"), 1, "the command: {cleaned}");
    machine.sh(10, "[ -e /run/undone ]").fine();
    let shown = machine.sh(30, "wirecost clean --host local").fine();
    assert!(shown.contains("nothing was left changed"), "{shown}");
}

fn clean(machine: &mut Machine) -> Value {
    let told = machine.sh(60, "wirecost clean --host local --json").fine();
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

fn clock_jumps(machine: &mut Machine) {
    const SECONDS: u32 = 4;
    begin(machine, SECONDS);
    let told = machine
        .sh(
            60,
            "now=$(date +%s); sleep 1.5; date -s @$((now + 86400)) >/dev/null; sleep 1; date -s @$((now - 172800)) >/dev/null\n\
             for try in $(seq 200); do [ -e /run/code ] && break; sleep 0.2; done\n\
             cat /run/code || cat /run/shown; date -s @$((now + 10)) >/dev/null; rm -f /run/code\n\
             ip -n ja link show x0 | grep -o 'mtu [0-9]*'; ls /run/undone\n\
             wirecost report /tmp/run >/dev/null && echo read; grep -c . /tmp/run/samples.jsonl",
        )
        .fine();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told, ["0", "mtu 1500", "/run/undone", "read", "1"]);
    let sample = machine.sh(10, "cat /tmp/run/samples.jsonl").fine();
    let sample: Value = serde_json::from_str(&sample).expect("a sample");
    assert_eq!(sample["invalid"], Value::Null, "{sample}");
    // An emulated machine is late at either end of the window, by some tenths of a second and not by a day.
    let seconds = sample["loads"][0]["seconds"].as_f64().expect("seconds");
    assert!((3.5..60.0).contains(&seconds), "{seconds}");
    machine
        .sh(
            20,
            "ip netns del ja; ip netns del jb; rm -rf /tmp/run /tmp/plan.yaml",
        )
        .fine();
}
