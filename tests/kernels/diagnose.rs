//! `wirecost diagnose` on paths of which it is known what limits them.

use std::process::Stdio;

use serde_json::Value;

use crate::machine::pair::Pair;
use crate::machine::{Contents, Kernel, Machine};
use crate::steps::{OwnMachineStep, Step};
use crate::{boot, named};

pub(crate) const STEP: Step = Step {
    name: "diagnose",
    looks_at: "`diagnose` names first a receive buffer of 64 KB at 20 ms, 1 % of loss, a shaper of 20 Mbit/s",
    needs: &["netem", "tbf"],
    run,
};

const fn by_name(name: &'static str, looks_at: &'static str, run: fn(&Kernel)) -> OwnMachineStep {
    OwnMachineStep {
        name,
        looks_at,
        needs: &[],
        needs_root: false,
        by_name: true,
        run,
    }
}

pub(crate) const CHECKSUM: OwnMachineStep = by_name(
    "diagnose: spoiled checksum",
    "a tenth of a tunnel's packets is dropped whose inner checksum was left to a card: switches that sum before are named first, no other setting",
    |kernel| spoiled_checksum(&mut boot(kernel)),
);
pub(crate) const LARGE: OwnMachineStep = by_name(
    "diagnose: large packets",
    "a middle that drops three of ten packets that the sender left uncut: TSO off at the sender is named first, no other setting",
    |kernel| large_packets(&mut boot(kernel)),
);
pub(crate) const JOINED: OwnMachineStep = by_name(
    "diagnose: GRO off",
    "packets arrive cut and the receiver does not join them: GRO on at the receiver is named",
    |kernel| not_joined(&mut boot(kernel)),
);
pub(crate) const FINE: OwnMachineStep = by_name(
    "diagnose: no setting helps",
    "with `--allow-host-changes`: a buffer of 64 KB at 20 ms, 1 % of loss, a shaper of 100 Mbit/s: no setting of a device is named but its MTU, and \
     behind the shaper there is nothing to gain",
    |kernel| no_setting(&mut boot(kernel)),
);
pub(crate) const LINE: OwnMachineStep = OwnMachineStep {
    needs_root: true,
    ..by_name(
        "diagnose: the line",
        "two machines whose cards say 100 Mbit/s, over ssh: the line is named, and no load does better",
        the_line,
    )
};

fn run(machine: &mut Machine) {
    machine.sh(20, TWO).fine();
    let [before, after] = SMALL_BUFFER;
    let window = diagnosed(machine, before, after);
    assert_eq!(window["now"]["limit"], "window", "{window}");
    for switch in ["4 streams", "socket buffers of 16 MiB"] {
        let tried = window["tried"].as_array().expect("what was tried");
        let tried = tried.iter().find(|tried| tried["switch"] == switch);
        assert_eq!(tried.expect("tried")["judged"], "helps", "{window}");
    }
    let [before, after] = LOSSY;
    let loss = diagnosed(machine, before, after);
    assert_eq!(loss["now"]["limit"], "loss", "{loss}");
    let shaper = diagnosed(
        machine,
        "tc -n dga qdisc add dev x0 root tbf rate 20mbit burst 32k latency 50ms",
        "tc -n dga qdisc del dev x0 root",
    );
    assert_eq!(shaper["now"]["limit"], "path", "{shaper}");
    assert_eq!(helpful(&shaper), Vec::<&str>::new(), "{shaper}");
    machine.sh(20, "ip netns del dga; ip netns del dgb").fine();
}

/// Two hosts.
const TWO: &str = "ip netns add dga; ip netns add dgb\n\
    ip link add x0 netns dga type veth peer name x0 netns dgb\n\
    ip -n dga addr add 10.79.0.1/24 dev x0; ip -n dgb addr add 10.79.0.2/24 dev x0\n\
    for n in dga dgb; do ip -n $n link set lo up; ip -n $n link set x0 up; done";

/// What makes the path so, and what ends it.
const SMALL_BUFFER: [&str; 2] = [
    "for n in dga dgb; do tc -n $n qdisc add dev x0 root netem delay 10ms limit 10000; done\n\
     ip netns exec dgb sysctl -qw net.ipv4.tcp_rmem='4096 16384 65536'",
    "for n in dga dgb; do tc -n $n qdisc del dev x0 root; done\n\
     ip netns exec dgb sysctl -qw net.ipv4.tcp_rmem='4096 131072 6291456'",
];
const LOSSY: [&str; 2] = [
    "tc -n dga qdisc add dev x0 root netem delay 20ms loss 1% limit 10000",
    "tc -n dga qdisc del dev x0 root",
];

/// A bridge between the hosts, and a tunnel over it.
const BETWEEN: &str = "set -e; for n in dga dgm dgb; do ip netns add $n; done; modprobe cls_bpf || true\n\
    ip -n dgm link add br0 type bridge; ip -n dgm link set br0 up\n\
    for h in a b; do ip -n dgm link add to-$h type veth peer name x0 netns dg$h; ip -n dgm link set to-$h master br0 up; ip -n dg$h link set x0 up; done\n\
    ip -n dga addr add 10.79.0.1/24 dev x0; ip -n dgb addr add 10.79.0.2/24 dev x0\n\
    ip -n dga link add vxlan0 type vxlan id 7 local 10.79.0.1 remote 10.79.0.2 dstport 4789\n\
    ip -n dgb link add vxlan0 type vxlan id 7 local 10.79.0.2 remote 10.79.0.1 dstport 4789\n\
    ip -n dga addr add 10.88.0.1/24 dev vxlan0; ip -n dgb addr add 10.88.0.2/24 dev vxlan0\n\
    for h in a b; do ip -n dg$h link set vxlan0 up; done; tc -n dgm qdisc add dev to-a clsact";
const PLAIN: &str = "netns:dga=10.79.0.1 netns:dgb=10.79.0.2";
const TUNNEL: &str = "netns:dga=10.88.0.1 netns:dgb=10.88.0.2";

fn dropped(machine: &mut Machine, hosts: &str, told: &[String], share: f64) -> Value {
    machine.sh(20, BETWEEN).fine();
    let bytecode = dropping(told, share);
    let drops = format!("tc -n dgm filter add dev to-a ingress bpf da bytecode '{bytecode}'");
    changed(
        machine,
        hosts,
        &drops,
        "tc -n dgm filter del dev to-a ingress",
    )
}

fn spoiled_checksum(machine: &mut Machine) {
    let document = dropped(machine, TUNNEL, &spoiled_sums(), 0.1);
    let found = settings(&document);
    // Of the tunnel's device or of the card beneath it.
    let sums = |switch: &&str| switch.starts_with("tx-checksum-ip-generic off on ");
    assert!(!found.is_empty() && found.iter().all(sums), "{document}");
    assert_eq!(helpful(&document).first(), found.first(), "{document}");
}

fn large_packets(machine: &mut Machine) {
    // What the sender did not cut into frames; the classic BPF of a middle that is too slow to do it.
    let large = ["128 0 0 0", "37 1 0 1600", "6 0 0 0"].map(str::to_owned);
    let document = dropped(machine, PLAIN, &large, 0.3);
    let found = settings(&document);
    assert_eq!(found, ["tx-tcp-segmentation off on a"], "{document}");
    assert_eq!(helpful(&document).first(), found.first(), "{document}");
}

/// A veth joins what comes from an end without TSO only (drivers/net/veth.c): the bridge cuts, the receiver could join.
fn not_joined(machine: &mut Machine) {
    machine.sh(20, BETWEEN).fine();
    let cut = "ip netns exec dgm ethtool -K to-b tso off; ip netns exec dgb ethtool -K x0 gro off";
    let document = changed(machine, PLAIN, cut, "true");
    let found = settings(&document);
    assert!(found.contains(&"rx-gro on on b"), "{document}");
    // That the bridge need not cut in the first place is as true.
    let others = found.iter().filter(|switch| {
        **switch != "rx-gro on on b" && !switch.contains("tx-tcp-segmentation on")
    });
    assert_eq!(others.count(), 0, "{document}");
}

fn no_setting(machine: &mut Machine) {
    machine.sh(20, TWO).fine();
    for ([before, after], limit) in [(SMALL_BUFFER, "window"), (LOSSY, "loss")] {
        let document = changed(machine, "netns:dga netns:dgb", before, after);
        assert_eq!(document["now"]["limit"], limit, "{document}");
        assert_eq!(settings(&document), Vec::<&str>::new(), "{document}");
    }
    let document = changed(
        machine,
        "netns:dga netns:dgb",
        "tc -n dga qdisc add dev x0 root tbf rate 100mbit burst 128k latency 20ms",
        "tc -n dga qdisc del dev x0 root",
    );
    assert_eq!(document["now"]["limit"], "path", "{document}");
    assert_eq!(helpful(&document), Vec::<&str>::new(), "{document}");
}

fn the_line(kernel: &Kernel) {
    let program = named("WIRECOST_BINARY");
    let mut pair = Pair::boot(kernel, || {
        let mut contents = Contents::new(kernel);
        contents.archive.copy(&program, "/usr/bin/wirecost");
        contents.archive.command("ethtool");
        contents
    });
    for machine in &mut pair.machines {
        machine
            .sh(10, "ethtool -s eth1 speed 100 duplex full")
            .fine();
    }
    for port in ["port1", "port2"] {
        let limit = format!("tc qdisc add dev {port} root tbf rate 100mbit burst 64k latency 20ms");
        let made = pair.here("sh").args(["-c", &limit]).status();
        assert!(made.expect("sh").success(), "{limit}");
    }
    let place = tempfile::tempdir().expect("a directory");
    let mut command = pair.here(program.to_str().expect("a plain path"));
    command.args([
        "diagnose",
        "ssh:root@127.0.0.1:2201=10.50.0.1",
        "ssh:root@127.0.0.1:2202=10.50.0.2",
        "--yes",
        "--time",
        "60s",
        "--json",
        "-q",
        "--out",
    ]);
    command
        .arg(place.path().join("run"))
        .stderr(Stdio::inherit());
    let output = command.output().expect("the program");
    let told = String::from_utf8_lossy(&output.stdout);
    let document: Value = serde_json::from_str(&told)
        .unwrap_or_else(|error| panic!("{error}: {:?} {told}", output.status));
    assert_eq!(document["now"]["limit"], "line", "{document}");
    assert_eq!(helpful(&document), Vec::<&str>::new(), "{document}");
}

/// A card that is left the checksum of the inner TCP spoils it: the field then has the sum of the pseudo-header, which
/// is known from addresses and length (net/ipv4/tcp_ipv4.c, `__tcp_v4_send_check`). Classic BPF that skips one
/// instruction where it is so.
fn spoiled_sums() -> Vec<String> {
    const BEFORE_TCP: u32 = 14 + 20 + 8 + 8 + 14 + 20;
    // 10.88.0.1, 10.88.0.2, protocol 6.
    let pseudo: u32 = 0x0a58 + 0x0001 + 0x0a58 + 0x0002 + 6;
    vec![
        // The length of the frame, less what is before TCP.
        "128 0 0 0".to_owned(),
        format!("20 0 0 {BEFORE_TCP}"),
        format!("4 0 0 {pseudo}"),
        // Folded to 16 bits.
        "2 0 0 0".to_owned(),
        "116 0 0 16".to_owned(),
        "7 0 0 0".to_owned(),
        "96 0 0 0".to_owned(),
        "84 0 0 65535".to_owned(),
        "12 0 0 0".to_owned(),
        "7 0 0 0".to_owned(),
        format!("40 0 0 {}", BEFORE_TCP + 16),
        "29 1 0 0".to_owned(),
        "6 0 0 0".to_owned(),
    ]
}

/// Classic BPF for tc that drops this share of what `told` skips its last instruction for (SKF_AD_RANDOM,
/// linux/filter.h).
fn dropping(told: &[String], share: f64) -> String {
    let threshold = (share * f64::from(u32::MAX)) as u32;
    let mut program = told.to_vec();
    program.extend([
        "32 0 0 4294963256".to_owned(),
        format!("53 1 0 {threshold}"),
        // TC_ACT_SHOT, TC_ACT_OK.
        "6 0 0 2".to_owned(),
        "6 0 0 0".to_owned(),
    ]);
    format!("{},{}", program.len(), program.join(","))
}

fn helpful(document: &Value) -> Vec<&str> {
    let tried = document["tried"].as_array().expect("what was tried");
    let helps = tried.iter().filter(|tried| tried["judged"] == "helps");
    helps.filter_map(|tried| tried["switch"].as_str()).collect()
}

/// Those that are settings of a host's device. A larger MTU is none: where a share of the packets is lost, throughput
/// is in proportion to the segment size (Mathis et al., 1997), so that it does help.
fn settings(document: &Value) -> Vec<&str> {
    let all = helpful(document).into_iter();
    all.filter(|switch| switch.contains(" on ") && !switch.starts_with("an MTU "))
        .collect()
}

fn diagnosed(machine: &mut Machine, before: &str, after: &str) -> Value {
    with(machine, "netns:dga netns:dgb --time 45s", before, after)
}

/// With changes of settings.
fn changed(machine: &mut Machine, hosts: &str, before: &str, after: &str) -> Value {
    let options = format!("{hosts} --allow-host-changes --yes --time 150s");
    with(machine, &options, before, after)
}

fn with(machine: &mut Machine, options: &str, before: &str, after: &str) -> Value {
    machine.sh(20, before).fine();
    let done = machine.sh(
        300,
        &format!("rm -rf /tmp/dg; wirecost diagnose {options} --json -q --out /tmp/dg"),
    );
    machine.sh(20, &format!("{after}; rm -rf /tmp/dg")).fine();
    assert!(matches!(done.code, 0 | 1), "{done:?}");
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}
