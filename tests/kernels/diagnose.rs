//! `wirecost diagnose` on paths of which it is known what limits them.

use serde_json::Value;

use crate::machine::Machine;
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "diagnose",
    looks_at: "`diagnose` names first a receive buffer of 64 KB at 20 ms, 1 % of loss, a shaper of 20 Mbit/s",
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
    let loss = diagnosed(
        machine,
        "tc -n dga qdisc add dev x0 root netem delay 20ms loss 1% limit 10000",
        "tc -n dga qdisc del dev x0 root",
    );
    assert_eq!(loss["now"]["limit"], "loss", "{loss}");
    let shaper = diagnosed(
        machine,
        "tc -n dga qdisc add dev x0 root tbf rate 20mbit burst 32k latency 50ms",
        "tc -n dga qdisc del dev x0 root",
    );
    assert_eq!(shaper["now"]["limit"], "path", "{shaper}");
    let helps = shaper["tried"].as_array().expect("what was tried");
    assert!(
        helps.iter().all(|tried| tried["judged"] != "helps"),
        "{shaper}"
    );
    machine.sh(20, "ip netns del dga; ip netns del dgb").fine();
}

fn diagnosed(machine: &mut Machine, before: &str, after: &str) -> Value {
    machine.sh(20, before).fine();
    let done = machine.sh(
        120,
        "rm -rf /tmp/dg; wirecost diagnose netns:dga netns:dgb --time 25s --json -q --out /tmp/dg",
    );
    machine.sh(20, &format!("{after}; rm -rf /tmp/dg")).fine();
    assert!(matches!(done.code, 0 | 1), "{done:?}");
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}
