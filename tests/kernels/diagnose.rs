//! `wirecost diagnose` on paths of which it is known what limits them.

use serde_json::Value;

use crate::machine::Machine;
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "diagnose",
    looks_at: "`diagnose` names first a receive buffer of 64 KB at 20 ms, 1 % of loss, shapers of 20 Mbit/s and 100 Mbit/s, a tunnel's \
               spoiled checksum, TSO on a bridge that drops large packets, GRO off at the receiver; and no other setting of a host",
    needs: &["netem", "tbf"],
    run,
};

fn run(machine: &mut Machine) {
    machine
        .sh(
            20,
            "ip netns add dga; ip netns add dgb\n\
             ip link add x0 netns dga type veth peer name x0 netns dgb\n\
             ip -n dga addr add 10.79.0.1/24 dev x0; ip -n dgb addr add 10.79.0.2/24 dev x0\n\
             for n in dga dgb; do ip -n $n link set lo up; ip -n $n link set x0 up; done",
        )
        .fine();
    let window = diagnosed(
        machine,
        "for n in dga dgb; do tc -n $n qdisc add dev x0 root netem delay 10ms limit 10000; done\n\
         ip netns exec dgb sysctl -qw net.ipv4.tcp_rmem='4096 16384 65536'",
        "for n in dga dgb; do tc -n $n qdisc del dev x0 root; done\n\
         ip netns exec dgb sysctl -qw net.ipv4.tcp_rmem='4096 131072 6291456'",
    );
    assert_eq!(window["now"]["limit"], "window", "{window}");
    for switch in ["4 streams", "socket buffers of 16 MiB"] {
        let tried = window["tried"].as_array().expect("what was tried");
        let tried = tried.iter().find(|tried| tried["switch"] == switch);
        assert_eq!(tried.expect("tried")["judged"], "helps", "{window}");
    }
    assert_eq!(settings(&window), Vec::<&str>::new(), "{window}");
    let loss = diagnosed(
        machine,
        "tc -n dga qdisc add dev x0 root netem delay 20ms loss 1% limit 10000",
        "tc -n dga qdisc del dev x0 root",
    );
    assert_eq!(loss["now"]["limit"], "loss", "{loss}");
    assert_eq!(settings(&loss), Vec::<&str>::new(), "{loss}");
    let shaper = diagnosed(
        machine,
        "tc -n dga qdisc add dev x0 root tbf rate 20mbit burst 32k latency 50ms",
        "tc -n dga qdisc del dev x0 root",
    );
    assert_eq!(shaper["now"]["limit"], "path", "{shaper}");
    assert_eq!(helpful(&shaper), Vec::<&str>::new(), "{shaper}");
    machine.sh(20, "ip netns del dga; ip netns del dgb").fine();
    machine.sh(20, BETWEEN).fine();
    between(machine);
    machine
        .sh(20, "for n in dga dgm dgb; do ip netns del $n; done")
        .fine();
}

/// A bridge between the hosts, and a tunnel over it.
const BETWEEN: &str = "set -e; for n in dga dgm dgb; do ip netns add $n; done; modprobe cls_bpf || true\n\
    ip -n dgm link add br0 type bridge; ip -n dgm link set br0 up\n\
    for h in a b; do ip -n dgm link add to-$h type veth peer name x0 netns dg$h; ip -n dgm link set to-$h master br0 up; ip -n dg$h link set x0 up; done\n\
    ip -n dga addr add 10.79.0.1/24 dev x0; ip -n dgb addr add 10.79.0.2/24 dev x0\n\
    ip -n dga link add vxlan0 type vxlan id 7 local 10.79.0.1 remote 10.79.0.2 dstport 4789\n\
    ip -n dgb link add vxlan0 type vxlan id 7 local 10.79.0.2 remote 10.79.0.1 dstport 4789\n\
    ip -n dga addr add 10.88.0.1/24 dev vxlan0; ip -n dgb addr add 10.88.0.2/24 dev vxlan0\n\
    for h in a b; do ip -n dg$h link set vxlan0 up; done; tc -n dgm qdisc add dev to-a clsact";

fn between(machine: &mut Machine) {
    let plain = "netns:dga=10.79.0.1 netns:dgb=10.79.0.2";
    let tunnel = "netns:dga=10.88.0.1 netns:dgb=10.88.0.2";
    let drops = |told: &[String], share: f64| {
        let bytecode = dropping(told, share);
        format!("tc -n dgm filter add dev to-a ingress bpf da bytecode '{bytecode}'")
    };
    let passes = "tc -n dgm filter del dev to-a ingress";

    let spoiled = spoiled_checksum();
    let document = diagnosed_between(machine, tunnel, &drops(&spoiled, 0.1), passes);
    let found = settings(&document);
    assert_eq!(found, ["tx-checksum-ip-generic off on a"], "{document}");

    // What the sender did not cut into frames; the classic BPF of a middle that is too slow to do it.
    let large = ["128 0 0 0", "37 1 0 1600", "6 0 0 0"].map(str::to_owned);
    let document = diagnosed_between(machine, plain, &drops(&large, 0.3), passes);
    let found = settings(&document);
    assert_eq!(found, ["tx-tcp-segmentation off on a"], "{document}");

    let line = "tc -n dgm qdisc add dev to-b root tbf rate 100mbit burst 128k latency 20ms";
    let document = diagnosed_between(machine, plain, line, "tc -n dgm qdisc del dev to-b root");
    assert_eq!(document["now"]["limit"], "path", "{document}");
    assert_eq!(helpful(&document), Vec::<&str>::new(), "{document}");

    // A veth joins what comes from an end without TSO only (drivers/net/veth.c): the bridge cuts, the receiver could join.
    let apart =
        "ip netns exec dgm ethtool -K to-b tso off; ip netns exec dgb ethtool -K x0 gro off";
    let document = diagnosed_between(machine, plain, apart, "true");
    let found = settings(&document);
    assert!(found.contains(&"rx-gro on on b"), "{document}");
    // That the bridge need not cut in the first place is as true.
    let others = found.iter().filter(|switch| {
        **switch != "rx-gro on on b" && !switch.contains("tx-tcp-segmentation on")
    });
    assert_eq!(others.count(), 0, "{document}");
}

/// A card that is left the checksum of the inner TCP spoils it: the field then has the sum of the pseudo-header, which is known from
/// addresses and length (net/ipv4/tcp_ipv4.c, `__tcp_v4_send_check`). Classic BPF that skips one instruction where it is so.
fn spoiled_checksum() -> Vec<String> {
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

/// Classic BPF for tc that drops this share of what `told` skips its last instruction for (SKF_AD_RANDOM, linux/filter.h).
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

/// Those that are settings of a host's device.
fn settings(document: &Value) -> Vec<&str> {
    let all = helpful(document).into_iter();
    all.filter(|switch| switch.contains(" on ")).collect()
}

fn diagnosed(machine: &mut Machine, before: &str, after: &str) -> Value {
    diagnosed_between(machine, "netns:dga netns:dgb", before, after)
}

fn diagnosed_between(machine: &mut Machine, hosts: &str, before: &str, after: &str) -> Value {
    machine.sh(20, before).fine();
    let done = machine.sh(
        240,
        &format!("rm -rf /tmp/dg; wirecost diagnose {hosts} --allow-host-changes --yes --time 64s --json -q --out /tmp/dg"),
    );
    machine.sh(20, &format!("{after}; rm -rf /tmp/dg")).fine();
    assert!(matches!(done.code, 0 | 1), "{done:?}");
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}
