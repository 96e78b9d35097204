//! What is changed on an existing host is undone in a booted machine, too: the property test of `tests/journal.rs` with a fixed
//! seed and a card that has rings; and after the machine was switched off in the middle and booted again, by `clean --host`.

use serde_json::Value;

use crate::machine::{Kernel, Machine};
use crate::steps::Apart;
use crate::{boot_with, named};

pub(crate) const APART: Apart = Apart {
    name: "journal",
    looks_at: "random changes of a host, a kill at any moment, undone to exactly what was there (netlink, ethtool, /proc/sys); the \
               machine switched off in the middle, booted again and cleaned",
    needs: &[],
    needs_root: false,
    run,
};

/// Of the random numbers: what fails once fails again.
const SEED: u32 = 34;
/// Bytes of the disk that outlives the machine.
const DISK: u64 = 16 << 20;
/// The disk, where root's journals are.
const MOUNT: &str = "modprobe virtio_blk; modprobe ext4; mkdir -p /var/lib/wirecost\n\
                     for try in $(seq 50); do [ -b /dev/vda ] && break; sleep 0.1; done\n";
const PLAN: &str = "cat >/tmp/plan.yaml <<'END'\n\
name: switched-off\n\
network: existing\n\
hosts: { a: \"netns:ja\", b: \"netns:jb\" }\n\
allow_host_changes: on\n\
vary:\n\
  all:\n\
    - label: as it is\n\
    - label: changed\n\
      on: a\n\
      mtu: 1400\n\
      sysctl: { net.ipv4.tcp_no_metrics_save: 1 }\n\
      ethtool: { underlay: { tx-tcp-segmentation: off } }\n\
      before: touch /run/changed\n\
      after: touch /run/undone\n\
repeat: { rounds: 2, seconds: 60 }\n\
END\n\
for n in ja jb; do ip netns add $n; done\n\
ip link add x0 netns ja type veth peer name x0 netns jb\n\
ip -n ja addr add 10.79.0.1/24 dev x0; ip -n jb addr add 10.79.0.2/24 dev x0\n\
for n in ja jb; do ip -n $n link set lo up; ip -n $n link set x0 up; done\n\
wirecost run /tmp/plan.yaml --yes --out /tmp/run >/run/shown 2>&1 &\n\
for try in $(seq 900); do [ -e /run/changed ] && exit 0; sleep 0.2; done; cat /run/shown; exit 1";

fn run(kernel: &Kernel) {
    random_changes(kernel);
    switched_off(kernel);
}

fn random_changes(kernel: &Kernel) {
    let card = [
        "-netdev",
        "user,id=card",
        "-device",
        "virtio-net-pci,netdev=card",
    ];
    let mut machine = boot_with(kernel, &card);
    let run = format!(
        "modprobe virtio_net; modprobe veth; modprobe vxlan; modprobe bridge\n\
         for try in $(seq 50); do [ -e /sys/class/net/eth0 ] && break; sleep 0.1; done\n\
         ip link set eth0 name card0\n\
         WIRECOST_SEED={SEED} WIRECOST_SEQUENCES=12 WIRECOST_RINGS_DEVICE=card0 /usr/bin/journal --nocapture"
    );
    let told = machine.sh(300, &run).fine();
    println!("{}: {told}", machine.release);
    assert!(told.contains("settings were applied"), "{told}");
}

fn switched_off(kernel: &Kernel) {
    let disk = tempfile::NamedTempFile::new().expect("a disk");
    disk.as_file().set_len(DISK).expect("room on the disk");
    let drive = format!("file={},format=raw,if=virtio", disk.path().display());
    let options = ["-drive", drive.as_str()];
    let mut machine = boot_with(kernel, &options);
    let on_disk = format!(
        "{MOUNT}mke2fs /dev/vda >/dev/null 2>&1 && mount -t ext4 /dev/vda /var/lib/wirecost"
    );
    machine.sh(60, &on_disk).fine();
    machine.sh(200, PLAN).fine();
    // As a machine that loses its power: nothing of it has time to undo anything.
    drop(machine);

    let mut machine = boot_with(kernel, &options);
    machine
        .sh(
            60,
            &format!("{MOUNT}mount -t ext4 /dev/vda /var/lib/wirecost"),
        )
        .fine();
    let cleaned = clean(&mut machine);
    let host = &cleaned["hosts"][0];
    let told = |key: &str| -> Vec<String> {
        let all = host[key].as_array().expect("a list");
        all.iter()
            .map(|step| step.as_str().expect("words").to_owned())
            .collect()
    };
    assert_eq!(told("failed"), Vec::<String>::new(), "{cleaned}");
    assert_eq!(
        told("gone").len(),
        3,
        "a sysctl, a feature, an MTU: {cleaned}"
    );
    assert_eq!(told("undone").len(), 1, "the command: {cleaned}");
    machine.sh(10, "[ -e /run/undone ]").fine();
    let again = clean(&mut machine);
    assert_eq!(
        again["hosts"][0]["gone"],
        Value::Array(Vec::new()),
        "{again}"
    );
    let shown = machine.sh(30, "wirecost clean --host local").fine();
    assert!(shown.contains("nothing was left changed"), "{shown}");
}

fn clean(machine: &mut Machine) -> Value {
    let told = machine.sh(60, "wirecost clean --host local --json").fine();
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// The test program, for the machine.
pub(crate) fn program() -> std::path::PathBuf {
    named("WIRECOST_JOURNAL_PROGRAM")
}
