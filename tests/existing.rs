//! Runs between existing hosts: nothing is built, what is changed is undone, and what a killed run left is undone by
//! `clean`.

use std::process::Command;

use nix::sys::signal::Signal;
use wirecost_model::record::Outcome;
use wirecost_model::sample::Invalid;

use crate::common::namespaces::Namespaces;
use crate::common::{
    Owner, Record, Running, TestDir, is_root, lock_shared, run, settings_guards, signal, wirecost,
};
use crate::pair::{Pair, ip};

fn plan(pair: &Pair, rest: &str) -> String {
    format!(
        "name: existing\nseed: 1\nhosts: {{ a: \"netns:{}\", b: \"netns:{}=10.77.0.2\" }}\nnetwork: existing\n{rest}",
        pair.a, pair.b
    )
}

const SHORT: &str = "repeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n";

/// Everything that a level may change, as `ip` and `ethtool` show it.
pub(crate) fn state(netns: &str) -> String {
    let shown = [
        &["ip", "-o", "link", "show", "eth0"][..],
        &["ethtool", "-k", "eth0"],
        &["sysctl", "net.ipv4.tcp_no_metrics_save"],
    ];
    let shown = shown.map(|words| {
        let mut command = Command::new("ip");
        let ended = run(command.args(["netns", "exec", netns]).args(words));
        ended.expect_code(0);
        ended.stdout
    });
    shown.join("\n")
}

#[test]
fn a_run_between_existing_hosts_measures_them_and_leaves_them_as_they_were() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("existing"), TestDir::new());
    let text = plan(
        &pair,
        &format!(
            "allow_host_changes: on\nvary:\n  mtu:\n    - label: as it is\n    - {{ label: 1400, mtu: 1400, rps: 0x1 }}\n  tso:\n    - label: tso on\n    - {{ label: tso off, \
             on: a, ethtool: {{ underlay: {{ tx-tcp-segmentation: off }} }}, sysctl: {{ \
             net.ipv4.tcp_no_metrics_save: 1 }} }}\n{SHORT}"
        ),
    );
    let (plan, out) = (place.plan(&text), place.path().join("run"));
    let [plan, out] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let before = [state(&pair.a), state(&pair.b)];

    let unasked = run(&mut wirecost(["run", plan, "--out", out]));
    unasked.expect_code(2);
    assert!(
        unasked.stderr.contains("mtu of the measured device = 1400"),
        "{unasked:?}"
    );
    assert!(unasked.stderr.contains("--yes"), "{unasked:?}");

    let ended = run(&mut wirecost(["run", plan, "--out", out, "--yes"]));
    ended.expect_code(0);
    assert_eq!([state(&pair.a), state(&pair.b)], before);
    let record = Record::read(out.as_ref()).expect("a record");
    assert_eq!(record.samples.len(), 8);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        let levels = &record.head.experiment.cells[sample.cell as usize].levels;
        let size = if levels["mtu"] == "1400" { 1400 } else { 1500 };
        assert!(
            sample.proofs.iter().all(|proof| proof.size == size),
            "{sample:?}"
        );
        let tso = sample
            .devices
            .iter()
            .map(|device| device.features["tx-tcp-segmentation"]);
        let off = levels["tso"] == "tso off";
        assert_eq!(tso.collect::<Vec<_>>(), [!off, true], "on host a alone");
    }
    let hosts = &record.head.environment.hosts;
    let addresses = ["a", "b"].map(|host| hosts[host].existing.as_ref().expect("existing").address);
    assert_eq!(
        addresses.map(|address| address.to_string()),
        ["10.77.0.1", "10.77.0.2"]
    );
    assert!(
        ended
            .stdout
            .contains("An existing network, one machine: a 10.77.0.1 on eth0"),
        "{ended:?}"
    );

    let host = format!("netns:{}", pair.a);
    let clean = run(&mut wirecost(["clean", "--host", &host]));
    clean.expect_code(0);
    assert!(
        clean.stdout.contains("nothing was left changed"),
        "{clean:?}"
    );
}

#[test]
fn a_host_keeps_its_level_while_commands_of_the_other_one_take_longer_than_ten_seconds() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("slow"), TestDir::new());
    let text = plan(
        &pair,
        "allow_host_changes: on\nvary:\n  one: [{ label: slow, on: a, before: sleep 6, after: 'true' }]\n  \
         two: [{ label: too, on: a, before: sleep 6, after: 'true' }]\n  \
         three: [{ label: set, on: b, sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }]\n\
         repeat: { rounds: 1, seconds: 1, warmup: 0.05 }\n",
    );
    let (plan, out) = (place.plan(&text), place.path().join("run"));
    let [plan, out] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let before = [state(&pair.a), state(&pair.b)];
    let ended = run(&mut wirecost(["run", plan, "--out", out, "--yes"]));
    ended.expect_code(0);
    let record = Record::read(out.as_ref()).expect("a record");
    let [sample] = &record.samples[..] else {
        panic!("one sample: {:?}", record.samples);
    };
    assert_eq!(sample.invalid, None);
    assert_eq!([state(&pair.a), state(&pair.b)], before);
}

#[test]
fn what_a_killed_run_left_changed_is_undone_by_clean() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("left"), TestDir::new());
    let text = plan(
        &pair,
        "allow_host_changes: on\nvary:\n  all:\n    - label: as it is\n    - label: changed\n      sysctl: { \
         net.ipv4.tcp_no_metrics_save: 1 }\n      ethtool: { underlay: { tx-tcp-segmentation: off } }\n      before: ip \
         link set eth0 mtu 1400\n      after: ip link set eth0 mtu 1500\nrepeat: { rounds: 2, seconds: 30 }\n",
    );
    let plan = place.plan(&text);
    let before = [state(&pair.a), state(&pair.b)];
    let changed = || [&pair.a, &pair.b].map(|netns| state(netns).contains("mtu 1400"));

    let mut running = Running::start(
        wirecost(["run", plan.to_str().expect("a plain path"), "--yes"]).current_dir(place.path()),
    );
    let owner = Owner::of(running.pid()).argument();
    // Either level may come first; the other one's window is 30 s long.
    running.wait_for("the level to be applied", |_| {
        (changed() == [true; 2]).then_some(())
    });
    let guards = settings_guards(&owner);
    assert_eq!(guards.len(), 2, "one a host");
    // All that could undo it, at once: the guards first, which outlive the others.
    for guard in guards {
        signal(guard, Signal::SIGSTOP);
        signal(guard, Signal::SIGKILL);
    }
    running.signal(Signal::SIGKILL);
    running.wait();
    assert_eq!(changed(), [true; 2], "nobody is there to undo it");

    let hosts = [&pair.a, &pair.b].map(|netns| format!("netns:{netns}"));
    let clean = run(&mut wirecost([
        "clean", "--host", &hosts[0], "--host", &hosts[1], "--json",
    ]));
    clean.expect_code(0);
    let document = clean.document();
    for host in 0..2 {
        let of_host = &document["hosts"][host];
        assert_eq!(
            of_host["undone"].as_array().map(Vec::len),
            Some(3),
            "{document}"
        );
        assert_eq!(
            of_host["failed"].as_array().map(Vec::len),
            Some(0),
            "{document}"
        );
    }
    assert_eq!([state(&pair.a), state(&pair.b)], before);
    let again = run(&mut wirecost(["clean", "--host", &hosts[0]]));
    assert!(
        again.stdout.contains("nothing was left changed"),
        "{again:?}"
    );
}

/// Two hosts behind a router that passes 1300 bytes on and reports it.
struct Routed {
    a: String,
    b: String,
    _made: Namespaces,
}

impl Routed {
    fn new() -> Self {
        let own = std::process::id();
        let [a, r, b] = ["a", "r", "b"].map(|side| format!("wct-routed-{own}-{side}"));
        let made = Namespaces::new(&[&a, &r, &b]);
        for (host, port, net) in [(&a, "to-a", "10.78.1"), (&b, "to-b", "10.78.2")] {
            ip(&[
                "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns",
                &r,
            ]);
            ip(&[
                "-n",
                host,
                "address",
                "add",
                &format!("{net}.2/24"),
                "dev",
                "eth0",
            ]);
            ip(&[
                "-n",
                &r,
                "address",
                "add",
                &format!("{net}.1/24"),
                "dev",
                port,
            ]);
            ip(&["-n", host, "link", "set", "eth0", "up"]);
            ip(&["-n", &r, "link", "set", port, "up"]);
            ip(&[
                "-n",
                host,
                "route",
                "add",
                "default",
                "via",
                &format!("{net}.1"),
            ]);
            let narrow = format!("{net}.0/24");
            ip(&[
                "-n", &r, "route", "replace", &narrow, "dev", port, "mtu", "lock", "1300",
            ]);
        }
        ip(&[
            "netns",
            "exec",
            &r,
            "sysctl",
            "-qw",
            "net.ipv4.ip_forward=1",
        ]);
        Self { a, b, _made: made }
    }
}

#[test]
fn a_narrow_path_is_measured_at_what_its_router_reports_unless_more_is_asked_for() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (hosts, place) = (Routed::new(), TestDir::new());
    let pair = format!("netns:{},netns:{}", hosts.a, hosts.b);
    let run_to = |name: &str, rest: &str| {
        let out = place.path().join(name);
        let plan = place.plan(&format!("name: routed\nnetwork: existing\n{rest}{SHORT}"));
        let plan = plan.to_str().expect("a plain path");
        let out_text = out.to_str().expect("a plain path");
        let ended = run(&mut wirecost([
            "run", plan, "--hosts", &pair, "--out", out_text,
        ]));
        (ended, Record::read(&out).expect("a record"))
    };
    let (ended, record) = run_to("reported", "");
    ended.expect_code(0);
    let mut sizes = record
        .samples
        .iter()
        .flat_map(|sample| &sample.proofs)
        .map(|proof| proof.size);
    assert!(
        sizes.all(|size| size == 1300),
        "{:?}",
        record.samples[0].proofs
    );

    let (ended, record) = run_to("asked", "guest_mtu: 1500\n");
    ended.expect_code(3);
    assert_eq!(
        record.end.as_ref().map(|end| end.outcome),
        Some(Outcome::Complete)
    );
    for sample in &record.samples {
        let Some(Invalid::Proof(reason)) = &sample.invalid else {
            panic!("{sample:?}");
        };
        assert!(reason.contains("1500 bytes was not proven"), "{reason}");
        // What is always lost is measured again in the first round only.
        let again = if sample.round == 0 { 2 } else { 0 };
        assert_eq!(sample.failed_attempts.len(), again, "{sample:?}");
    }
}

/// The qdiscs of a namespace's device, without counters.
fn qdiscs(netns: &str) -> String {
    let mut command = Command::new("ip");
    let ended = run(command.args(["netns", "exec", netns, "tc", "qdisc", "show", "dev", "eth0"]));
    ended.expect_code(0);
    ended.stdout
}

#[test]
fn a_qdisc_is_replaced_for_its_samples_and_comes_back_as_it_was() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("qdisc"), TestDir::new());
    // Host a has one that somebody set, host b the kernel's default.
    let mut set = Command::new("ip");
    set.args([
        "netns", "exec", &pair.a, "tc", "qdisc", "replace", "dev", "eth0", "root",
    ]);
    run(set.args(["handle", "7:", "pfifo", "limit", "123"])).expect_code(0);
    let before = [qdiscs(&pair.a), qdiscs(&pair.b)];
    assert!(before[0].contains("pfifo 7: root") && before[0].contains("limit 123p"));
    let text = plan(
        &pair,
        &format!(
            "allow_host_changes: on\nvary:\n  queue:\n    - label: as it is\n    - {{ label: bfifo, qdisc: bfifo, before: 'tc \
             qdisc show dev eth0 > \"{seen}, $WIRECOST_PLACE, $(wc -l < {samples})\"', after: \"true\" }}\n{SHORT}",
            seen = place.path().join("seen").display(),
            samples = place.path().join("run/samples.jsonl").display()
        ),
    );
    let (plan, out) = (place.plan(&text), place.path().join("run"));
    let [plan, out] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let ended = run(&mut wirecost(["run", plan, "--out", out, "--yes"]));
    ended.expect_code(0);
    assert_eq!([qdiscs(&pair.a), qdiscs(&pair.b)], before);
    let files = std::fs::read_dir(place.path())
        .expect("the place")
        .flatten();
    let seen = files.filter(|entry| entry.file_name().to_string_lossy().starts_with("seen"));
    let seen: Vec<String> = seen
        .map(|entry| std::fs::read_to_string(entry.path()).expect("qdiscs"))
        .collect();
    // Two rounds on two hosts, whether a sample was taken again or not.
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(
        seen.iter().all(|one| one.contains("qdisc bfifo")),
        "{seen:?}"
    );

    let refused = |qdisc: &str| {
        let text = self::plan(
            &pair,
            &format!(
                "allow_host_changes: on\nvary: {{ queue: [{{ label: as it is }}, {{ qdisc: {qdisc} }}] }}\n{SHORT}"
            ),
        );
        let plan = place.plan(&text);
        let plan = plan.to_str().expect("a plain path");
        let out = place.path().join(qdisc);
        let out = out.to_str().expect("a plain path");
        let ended = run(&mut wirecost(["run", plan, "--out", out, "--yes"]));
        ended.expect_code(3);
        ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut set = Command::new("ip");
    set.args([
        "netns", "exec", &pair.b, "tc", "qdisc", "replace", "dev", "eth0", "root",
    ]);
    run(set.args(["tbf", "rate", "1gbit", "burst", "100k", "latency", "50ms"])).expect_code(0);
    let before = [qdiscs(&pair.a), qdiscs(&pair.b)];
    let error = refused("pfifo");
    assert!(
        error.contains("its root qdisc `tbf` was configured"),
        "{error}"
    );
    assert_eq!([qdiscs(&pair.a), qdiscs(&pair.b)], before);
    // Which no kernel has that this is tested on, or else it is measured.
    let kinds = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if !kinds.contains(" cake_enqueue") {
        let error = refused("cake");
        assert!(
            error.contains("`tbf`") || error.contains("no such qdisc"),
            "{error}"
        );
    }
}
