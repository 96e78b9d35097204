//! Tunnels between existing hosts (`network: tunnel`): built beside the hosts' own network, over it, and gone with the
//! run.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use wirecost_model::plan::Encapsulation;
use wirecost_model::record::Outcome;
use wirecost_model::sample::{Invalid, Sample};
use wirecost_skips::{lacks, skip};
use wirecost_sys::bpf::PassingClassifier;

use crate::common::namespaces::Namespaces;
use crate::common::{
    Ended, Record, Running, TestDir, cell_of, is_root, lines_written, lock_shared, run, signal,
    wait_for, wirecost,
};
use crate::pair::{Pair, ip};

const SHORT: &str = "repeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n";

fn plan([a, b]: [&str; 2], rest: &str) -> String {
    format!(
        "name: tunnels\nseed: 1\nhosts: {{ a: \"netns:{a}\", b: \"netns:{b}\" }}\nnetwork: tunnel\n{rest}"
    )
}

fn measure(place: &TestDir, name: &str, plan: &str) -> (Ended, Option<Record>) {
    let (plan, out) = (place.plan(plan), place.path().join(name));
    let [plan, out_text]: [&str; 2] =
        [plan.as_path(), &out].map(|path: &Path| path.to_str().expect("a plain path"));
    let ended = run(&mut wirecost(["run", plan, "--out", out_text]));
    (ended, Record::read(&out))
}

/// Whether eBPF can be attached to an existing host's device here: by tcx (Linux 6.6).
fn ebpf_can_be_beside() -> bool {
    if let Err(error) = PassingClassifier::load() {
        return skip(format!("eBPF programs cannot be loaded here: {error}"));
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(['.', '-']).map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or_default();
    (number(), number()) >= (6, 6) || lacks("this kernel has no tcx (Linux 6.6)")
}

/// All devices, addresses, routes and UDP sockets of a namespace, counters aside.
fn everything(netns: &str) -> String {
    let shown = [
        &["ip", "-o", "link"][..],
        &["ip", "-o", "address"],
        &["ip", "route", "show", "table", "all"],
        &["ip", "-6", "route", "show", "table", "all"],
        &["ss", "-uanH"],
    ];
    let shown = shown.map(|words| {
        let mut command = Command::new("ip");
        let ended = run(command.args(["netns", "exec", netns]).args(words));
        ended.expect_code(0);
        ended.stdout
    });
    shown.join("\n")
}

/// The same of both hosts, once the kernel has brought their link and its addresses up.
fn settled(hosts: [&str; 2]) -> [String; 2] {
    wait_for("the hosts' link to come up", || {
        let state = hosts.map(everything);
        let up = |text: &String| {
            let going = text.contains("tentative") || text.contains("NO-CARRIER");
            !going && text.contains("multicast ff00::/8 dev eth0") && text.contains("local fe80::")
        };
        state.iter().all(up).then_some(state)
    })
}

/// The VXLAN port of a sample's cell.
fn port(record: &Record, sample: &Sample) -> u16 {
    match &cell_of(record, sample).network.encapsulation {
        Encapsulation::Vxlan(vxlan) => vxlan.port,
        other => panic!("{other} is no vxlan"),
    }
}

#[test]
fn tunnels_are_built_over_the_hosts_network_measured_and_gone() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("over"), TestDir::new());
    for netns in [&pair.a, &pair.b] {
        ip(&["-n", netns, "link", "set", "eth0", "mtu", "3000"]);
    }
    let hosts = [pair.a.as_str(), &pair.b];
    let before = settled(hosts);
    let text = plan(
        hosts,
        &format!("encapsulation: vxlan\nguest_mtu: [1400, max, 2951]\n{SHORT}"),
    );

    let written = place.plan(&text);
    let shown = run(&mut wirecost([
        "run",
        written.to_str().expect("a plain path"),
        "--dry-run",
    ]));
    shown.expect_code(0);
    let words = shown
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        words.contains("guests 198.19.0.1 (host a), 198.19.0.2 (host b); a bridge; vxlan, VNI 42, UDP port 4789"),
        "{shown:?}"
    );
    assert_eq!(hosts.map(everything), before, "a dry run builds nothing");

    let (ended, record) = measure(&place, "run", &text);
    // One cell does not fit.
    ended.expect_code(3);
    let record = record.expect("a record");
    assert_eq!(record.samples.len(), 6);
    assert_eq!(record.head.experiment.plan.underlay.mtu, [3000]);
    for sample in &record.samples {
        let cell = cell_of(&record, sample);
        if cell.levels["guest_mtu"] == "2951" {
            let Some(Invalid::Build(reason)) = &sample.invalid else {
                panic!("{sample:?}");
            };
            assert!(reason.contains("need an underlay of 3001"), "{reason}");
            assert!(reason.contains("`eth0` of host a has MTU 3000"), "{reason}");
            continue;
        }
        assert_eq!(sample.invalid, None);
        assert_eq!(port(&record, sample), 4789);
        let size = if cell.levels["guest_mtu"] == "max" {
            2950
        } else {
            1400
        };
        assert_eq!(cell.guest_mtu, size);
        assert!(
            sample
                .proofs
                .iter()
                .all(|proof| proof.proven && proof.size == size)
        );
        let of_host: Vec<&str> = sample
            .devices
            .iter()
            .filter(|device| device.host == "a")
            .map(|device| device.name.as_str())
            .collect();
        assert_eq!(of_host, ["eth0", "tunnel0", "guest0", "eth0"]);
    }
    let seen = record.samples.iter().flat_map(|sample| &sample.proofs);
    let seen: Vec<u32> = seen
        .filter_map(|proof| Some(proof.seen.as_ref()?.outer_ip_bytes))
        .collect();
    assert!(seen.contains(&1450) && seen.contains(&3000), "{seen:?}");
    assert!(
        ended
            .stdout
            .contains("Tunnels over an existing network, one machine: a 10.77.0.1 on eth0"),
        "{ended:?}"
    );
    wait_for("the tunnels to be gone", || {
        (hosts.map(everything) == before).then_some(())
    });
}

#[test]
fn tunnels_go_by_ipv6_where_the_hosts_addresses_are_of_it() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("over6"), TestDir::new());
    let [a, b] = [format!("{}=fd77::1", pair.a), format!("{}=fd77::2", pair.b)];
    let text = plan(
        [&a, &b],
        &format!(
            "encapsulation: vxlan\nudp_checksum: [off, on]\nguest_ip: [ipv4, ipv6]\nguests: 2\nload: {{ tcp-stream: {{ streams: 2 }} }}\n{SHORT}"
        ),
    );
    let (ended, record) = measure(&place, "run", &text);
    ended.expect_code(0);
    let record = record.expect("a record");
    assert_eq!(record.samples.len(), 8);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        // One tunnel of a kind at a time: all have the plan's port.
        assert_eq!(port(&record, sample), 4789);
        assert_eq!(cell_of(&record, sample).guest_mtu, 1430);
    }
}

#[test]
fn a_sample_whose_load_is_refused_leaves_its_tunnel_to_the_next_one() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("again"), TestDir::new());
    let hosts = [pair.a.as_str(), &pair.b];
    let text = plan(
        hosts,
        "encapsulation: vxlan\nload: { tcp-stream: { congestion: [cubic, nosuch] } }\n\
         repeat: { rounds: 6, seconds: 0.5, warmup: 0.05 }\n",
    );
    let (ended, record) = measure(&place, "run", &text);
    // One cell has no valid sample.
    ended.expect_code(3);
    let record = record.expect("a record");
    assert_eq!(record.samples.len(), 12);
    for sample in &record.samples {
        let load = &cell_of(&record, sample).loads[0].load;
        match (load.congestion.as_deref(), &sample.invalid) {
            (Some("nosuch"), Some(Invalid::Load(_))) | (Some("cubic"), None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn by_ebpf_tunnels_are_beside_the_hosts_own_network_and_gone_with_the_run() {
    if !is_root() || !ebpf_can_be_beside() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("ebpf"), TestDir::new());
    let hosts = [pair.a.as_str(), &pair.b];
    let before = settled(hosts);
    let text = plan(
        hosts,
        "allow_host_changes: on\ndatapath: [kernel, ebpf]\nguests: 2\n\
         encapsulation: [vxlan, { geneve: { options: ovn } }, { geneve: { options: 64 } }]\nudp_checksum: [off, on]\n\
         exclude:\n  - { encapsulation: geneve options=ovn, datapath: kernel }\n  \
         - { encapsulation: geneve options=64, datapath: kernel }\n\
         load: { tcp-stream: { streams: 2 } }\nrepeat: { rounds: 2, seconds: 0.5, warmup: 0.05 }\n",
    );
    let written = place.plan(&text);
    let shown = run(&mut wirecost([
        "run",
        written.to_str().expect("a plain path"),
        "--dry-run",
    ]));
    shown.expect_code(0);
    let words = shown
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        words.contains("a program is attached to the device of each host that has its address"),
        "{shown:?}"
    );
    assert_eq!(hosts.map(everything), before, "a dry run attaches nothing");

    // Without a terminal the run is refused.
    let asked =
        run(wirecost(["run", written.to_str().expect("a plain path")]).stdin(Stdio::null()));
    asked.expect_code(2);
    assert!(asked.stderr.contains("Except with eBPF"), "{asked:?}");

    let out = place.path().join("run");
    let ended = run(&mut wirecost([
        "run",
        written.to_str().expect("a plain path"),
        "--out",
        out.to_str().expect("a plain path"),
        "--yes",
    ]));
    // Some cells cannot be built.
    ended.expect_code(3);
    let record = Record::read(&out).expect("a record");
    let (mut valid, mut seen) = (0, Vec::new());
    for sample in &record.samples {
        let cell = cell_of(&record, sample);
        let level = |factor: &str| cell.levels[factor].as_str();
        let reason = match &sample.invalid {
            None => "",
            Some(Invalid::Build(reason)) => reason,
            other => panic!("{other:?}"),
        };
        match (
            level("datapath"),
            level("encapsulation"),
            level("udp_checksum"),
        ) {
            ("ebpf", _, "on") if reason.contains("a pair of devices") => {}
            ("ebpf", "geneve options=64", _) => {
                assert!(reason.contains("114 bytes of headers"), "{reason}");
            }
            ("ebpf", _, "off") => {
                assert_eq!(reason, "");
                let of_host = sample.devices.iter().filter(|device| device.host == "a");
                let of_host = of_host.map(|device| (device.name.as_str(), device.count));
                assert_eq!(
                    of_host.collect::<Vec<_>>(),
                    [("eth0", 1), ("guest0", 2), ("eth0", 2)]
                );
                valid += 1;
                let proofs = sample.proofs.iter();
                seen.extend(proofs.filter_map(|proof| Some(proof.seen.as_ref()?.outer_ip_bytes)));
            }
            ("kernel", "vxlan", _) => assert_eq!(reason, ""),
            other => panic!("{other:?}: {reason}"),
        }
    }
    assert_eq!(valid, 4);
    assert!(
        !seen.is_empty() && seen.iter().all(|bytes| *bytes == 1500),
        "{seen:?}"
    );
    wait_for("the tunnels to be gone", || {
        (hosts.map(everything) == before).then_some(())
    });
}

#[test]
fn a_port_that_a_host_uses_is_left_to_it() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("taken"), TestDir::new());
    let hosts = [pair.a.as_str(), &pair.b];
    // The same number and port as the plan's, switched off: nothing listens, and the port is the device's all the same.
    ip(&[
        "-n",
        &pair.b,
        "link",
        "add",
        "own",
        "type",
        "vxlan",
        "id",
        "42",
        "dstport",
        "4789",
        "remote",
        "10.77.0.1",
    ]);
    let before = settled(hosts);
    let (ended, record) = measure(
        &place,
        "run",
        &plan(hosts, &format!("encapsulation: vxlan\n{SHORT}")),
    );
    ended.expect_code(0);
    let record = record.expect("a record");
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        assert_eq!(port(&record, sample), 61000);
    }
    wait_for("the tunnels to be gone", || {
        (hosts.map(everything) == before).then_some(())
    });
}

/// Two hosts of MTU 9000 behind a switch that drops what is larger than 1500 bytes, and says nothing.
struct Narrow {
    a: String,
    b: String,
    _made: Namespaces,
}

impl Narrow {
    fn new() -> Self {
        let own = std::process::id();
        let [a, s, b] = ["a", "s", "b"].map(|side| format!("wct-narrow-{own}-{side}"));
        let made = Namespaces::new(&[&a, &s, &b]);
        ip(&["-n", &s, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", &s, "link", "set", "br0", "up"]);
        for (host, port, address) in [(&a, "to-a", "10.79.0.1/24"), (&b, "to-b", "10.79.0.2/24")] {
            ip(&[
                "-n", host, "link", "add", "eth0", "mtu", "9000", "type", "veth", "peer", "name",
                port, "netns", &s,
            ]);
            ip(&["-n", host, "address", "add", address, "dev", "eth0"]);
            ip(&["-n", host, "link", "set", "eth0", "up"]);
            ip(&[
                "-n", &s, "link", "set", port, "mtu", "1500", "master", "br0", "up",
            ]);
        }
        Self { a, b, _made: made }
    }
}

#[test]
fn a_narrow_place_between_the_hosts_is_found_by_the_proof() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (hosts, place) = (Narrow::new(), TestDir::new());
    let text = plan(
        [&hosts.a, &hosts.b],
        "encapsulation: vxlan\nguest_mtu: [1450, max]\nrepeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n",
    );
    let (ended, record) = measure(&place, "run", &text);
    ended.expect_code(3);
    let record = record.expect("a record");
    for sample in &record.samples {
        let fits = cell_of(&record, sample).levels["guest_mtu"] == "1450";
        match &sample.invalid {
            None => assert!(fits, "{sample:?}"),
            Some(Invalid::Proof(reason)) => {
                assert!(
                    !fits && reason.contains("8950 bytes was not proven"),
                    "{reason}"
                );
                assert!(
                    ended.stdout.contains("8950 bytes was not proven"),
                    "{ended:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn whoever_is_killed_leaves_nothing_on_the_hosts() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("killed"), TestDir::new());
    let hosts = [pair.a.as_str(), &pair.b];
    let before = settled(hosts);
    let victims = ["controller", "agents"];
    let by_ebpf = [(true, "ebpf"), (false, "ebpf")];
    let by_ebpf = by_ebpf.into_iter().filter(|_| ebpf_can_be_beside());
    for (what, datapath) in [(true, "kernel"), (false, "kernel")]
        .into_iter()
        .chain(by_ebpf)
    {
        let text = plan(
            hosts,
            &format!(
                "encapsulation: vxlan\ndatapath: {datapath}\nallow_host_changes: on\nguest_mtu: [1400, max]\n\
                 repeat: {{ rounds: 2, seconds: 30 }}\n"
            ),
        );
        let victim = format!("{}-{datapath}", victims[usize::from(!what)]);
        let (plan, out) = (place.plan(&text), place.path().join(victim));
        let mut running = Running::start(&mut wirecost([
            "run",
            plan.to_str().expect("a plain path"),
            "--out",
            out.to_str().expect("a plain path"),
            "--yes",
        ]));
        running.wait_for("the tunnel to be up, and a record", |_| {
            let state = hosts.map(everything);
            let up = state.iter().all(|state| state.contains(":4789"));
            (up && Record::read(&out).is_some()).then_some(())
        });
        let agents = running.agents();
        assert!(!agents.is_empty());
        if what {
            running.signal(Signal::SIGKILL);
        } else {
            for agent in &agents {
                signal(agent.pid, Signal::SIGKILL);
            }
        }
        let ended = running.wait();
        assert_eq!(ended.was_killed(), what, "{ended:?}");
        wait_for("the tunnels to be gone", || {
            (hosts.map(everything) == before).then_some(())
        });
        wait_for("the agents to be gone", || {
            running.agents().is_empty().then_some(())
        });
        if !what {
            let record = Record::read(&out).expect("a record");
            let end = record.end.expect("an end");
            assert_eq!(end.outcome, Outcome::Failed);
        }
        assert!(lines_written(&out) <= 1);
    }
    // And a later run finds the ends free.
    let (ended, record) = measure(
        &place,
        "again",
        &plan(hosts, &format!("encapsulation: vxlan\n{SHORT}")),
    );
    ended.expect_code(0);
    let record = record.expect("a record");
    assert!(
        record
            .samples
            .iter()
            .all(|sample| port(&record, sample) == 4789)
    );
}

#[test]
fn a_host_without_the_privilege_is_named_with_what_to_do() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("plain"), TestDir::new());
    let text = format!(
        "name: plain\nhosts: {{ a: \"netns:{}\", b: \"exec:ip netns exec {} setpriv --reuid 65534 --regid 65534 --clear-groups\" }}\n\
         network: tunnel\nencapsulation: vxlan\n{SHORT}",
        pair.a, pair.b
    );
    let plan = place.plan(&text);
    let out = place.path().join("run");
    let ended = run(&mut wirecost([
        "run",
        plan.to_str().expect("a plain path"),
        "--out",
        out.to_str().expect("a plain path"),
        "--yes",
    ]));
    ended.expect_code(3);
    let words = format!("exec:ip netns exec {} setpriv", pair.b);
    assert!(ended.stderr.contains(&words), "{ended:?}");
    assert!(
        ended.stderr.contains("needs root, its login is nobody"),
        "{ended:?}"
    );
    assert!(
        !ended.stderr.contains("doctor"),
        "it looks at this machine: {ended:?}"
    );
}
