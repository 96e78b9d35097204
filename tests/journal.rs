//! Settings of an existing host are undone to exactly what was there, whenever the process that changes them dies:
//! random sequences of every kind of setting, a kill after or within any step or while they are undone, and all that
//! netlink, ethtool, tc, sysfs and /proc/sys show compared before and after. Runs in emulated machines too
//! (tests/kernels/journal.rs).

#[allow(dead_code, unused_imports, reason = "each test program uses its part")]
mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use common::namespaces::Namespaces;
use common::{
    Owner, is_root, lock_shared, program, run, settings_guards, signal, wait_for, wirecost,
};
use nix::sys::signal::Signal;
use wirecost_agent::guard::{SettingsGuard, SettingsTarget};
use wirecost_model::offload::Role;
use wirecost_model::vary::{CommandPair, DeviceSetting, Scope, Setting};
use wirecost_sys::namespace::Netns;

/// A fixed start of the random numbers instead of the clock, and the number of sequences.
const SEED: &str = "WIRECOST_SEED";
const SEQUENCES: &str = "WIRECOST_SEQUENCES";
/// A device with rings that is moved into the namespace, where the machine has one.
const RINGS: &str = "WIRECOST_RINGS_DEVICE";

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn sh(netns: &str, script: &str) -> String {
    let mut command = Command::new("ip");
    let ended = run(command.args(["netns", "exec", netns, "sh", "-c", script]));
    ended.expect_code(0);
    ended.stdout
}

/// A host with a veth of two queues that are steered apart and have IPv6 of a smaller MTU, a tunnel on it with a qdisc
/// that a user set, one device that forwards while the others do not, and in another namespace a bridge.
struct Host {
    netns: String,
    other: String,
    rings: Option<String>,
    _made: Namespaces,
}

impl Host {
    fn new() -> Self {
        let own = std::process::id();
        let [netns, other] = ["host", "other"].map(|name| format!("wct-journal-{own}-{name}"));
        let made = Namespaces::new(&[&netns, &other]);
        sh(
            &netns,
            &format!(
                "set -e; ip link add eth0 numrxqueues 2 numtxqueues 2 type veth peer name eth0 netns {other}\n\
                 for at in eth0 lo; do ip link set $at addrgenmode none; done\n\
                 ethtool -L eth0 rx 2 tx 2\n\
                 ip address add 10.77.0.1/24 dev eth0; ip address add fd77::1/64 dev eth0 nodad\n\
                 ip link set lo up; ip link set eth0 up\n\
                 ip link add vxlan0 type vxlan id 7 remote 10.77.0.2 dstport 4789; ip link set vxlan0 addrgenmode none\n\
                 ip address add fd78::1/64 dev vxlan0 nodad; ip link set vxlan0 up\n\
                 echo 1400 >/proc/sys/net/ipv6/conf/eth0/mtu\n\
                 echo 1 >/proc/sys/net/ipv4/conf/eth0/forwarding\n\
                 echo 1 >/sys/class/net/eth0/queues/rx-0/rps_cpus; echo 1 >/sys/class/net/eth0/queues/tx-1/xps_cpus\n\
                 tc qdisc add dev vxlan0 root handle 7: pfifo limit 10"
            ),
        );
        sh(
            &other,
            "set -e; ip link set eth0 addrgenmode none up\n\
             ip link add br0 type bridge; ip link set br0 addrgenmode none; ip link set eth0 master br0; ip link set br0 up",
        );
        let rings = std::env::var(RINGS).ok();
        if let Some(device) = &rings {
            run(Command::new("ip").args(["link", "set", device, "netns", &netns])).expect_code(0);
            sh(&netns, &format!("ip link set {device} addrgenmode none up"));
        }
        Self {
            netns,
            other,
            rings,
            _made: made,
        }
    }

    /// Waits until no device is on its way up or down any more: the kernel reports a change of link up to a second
    /// later (net/core/link_watch.c), and addresses and routes follow it.
    fn settle(&self) {
        let passing = |line: &str| {
            let is_up = line.contains(",UP");
            let is_port = line.contains("bridge_slave");
            ["NO-CARRIER", "tentative", "linkdown"]
                .iter()
                .any(|word| line.contains(word))
                || (is_up && line.contains("DOWN mode"))
                || (is_port && !line.contains("bridge_slave state forwarding"))
        };
        for netns in [&self.netns, &self.other] {
            wait_for("links, ports, addresses and routes that are up", || {
                let shown = sh(
                    netns,
                    "ip -d -o link; ip -o address; ip route show table all; ip -6 route show table all",
                );
                (!shown.lines().any(passing)).then_some(())
            });
        }
    }

    /// All that a setting may change, and all that one may change with it.
    fn state(&self) -> BTreeMap<String, String> {
        let mut state = BTreeMap::new();
        for netns in [&self.netns, &self.other] {
            let shown = "ip -d -o link | sed -E 's/[a-z_]*_timer +[0-9.]+//g'; ip -o address; ip route show table all; ip -6 route show table all\n\
                         tc qdisc show | sed -E 's/ refcnt [0-9]+//'\n\
                         for at in /sys/class/net/*; do at=${at##*/}; echo $at; ethtool -k $at; ethtool -g $at 2>/dev/null; \
                         ethtool -l $at 2>/dev/null; cat /sys/class/net/$at/queues/tx-*/xps_cpus 2>/dev/null; \
                         cat /sys/class/net/$at/queues/rx-*/rps_cpus; done";
            for (at, line) in sh(netns, shown).lines().enumerate() {
                state.insert(format!("{netns} {at:04}"), line.to_owned());
            }
            let there = Netns::named(netns).expect("our namespace");
            let sysctls = || sysctls(Path::new("/proc/sys/net"), &mut state, netns);
            there.within(sysctls).expect("entered");
        }
        state
    }

    fn setting(&self, random: &mut Random) -> Setting {
        let nothing = Setting {
            factor: "random".to_owned(),
            label: "level".to_owned(),
            sysctl: BTreeMap::new(),
            ethtool: BTreeMap::new(),
            device: BTreeMap::new(),
            device_name: None,
            command: None,
            on: Scope::Both,
        };
        let elsewhere = format!("/run/netns/{}/eth0", self.other);
        let device_name = random.of(&[None, None, Some("vxlan0".to_owned()), Some(elsewhere)]);
        let one = |which, value: &str| [(which, value.to_owned())].into();
        match random.below(if self.rings.is_some() { 9 } else { 8 }) {
            0 => {
                let (name, value) = random.of(&[
                    ("net.ipv4.tcp_no_metrics_save", "1"),
                    ("net.ipv4.tcp_rmem", "4096 16384 65536"),
                    ("net.ipv4.ip_forward", "1"),
                    ("net.ipv4.ip_forward", "0"),
                    ("net.ipv6.conf.all.forwarding", "1"),
                    ("net.ipv4.conf.eth0.rp_filter", "2"),
                    ("net.ipv4.conf.all.rp_filter", "1"),
                ]);
                let sysctl = [(name.to_owned(), value.to_owned())].into();
                Setting { sysctl, ..nothing }
            }
            1 | 2 => {
                let features = [
                    "tx-checksum-ip-generic",
                    "tx-tcp-segmentation",
                    "tx-generic-segmentation",
                    "tx-scatter-gather",
                    "rx-gro",
                    "rx-gro-list",
                    "rx-udp-gro-forwarding",
                ];
                let state = random.below(2) == 0;
                let features = [(random.of(&features).to_owned(), state)].into();
                Setting {
                    ethtool: [(Role::Underlay, features)].into(),
                    device_name,
                    ..nothing
                }
            }
            3 => Setting {
                device: one(
                    DeviceSetting::Mtu,
                    random.of(&["1280", "1390", "1420", "4000"]),
                ),
                device_name,
                ..nothing
            },
            4 => Setting {
                device: one(DeviceSetting::Rps, random.of(&["0", "1", "3"])),
                device_name,
                ..nothing
            },
            5 => {
                let length = random.of(&[100, 500]);
                let before = format!("ip link set eth0 txqueuelen {length}");
                let after = "ip link set eth0 txqueuelen 1000".to_owned();
                Setting {
                    command: Some(CommandPair { before, after }),
                    ..nothing
                }
            }
            6 => Setting {
                device: one(
                    DeviceSetting::Qdisc,
                    random.of(&["pfifo", "bfifo", "fq_codel", "fq"]),
                ),
                device_name: random.of(&[device_name, self.rings.clone()]),
                ..nothing
            },
            // Neither a veth nor a card of one queue takes another number; all is noted before they refuse.
            7 => Setting {
                device: one(DeviceSetting::Queues, random.of(&["1", "2"])),
                device_name: self.rings.clone(),
                ..nothing
            },
            _ => Setting {
                device: one(
                    random.of(&[DeviceSetting::RxRing, DeviceSetting::TxRing]),
                    random.of(&["64", "128"]),
                ),
                device_name: self.rings.clone(),
                ..nothing
            },
        }
    }

    fn guard(&self) -> (SettingsGuard, u32) {
        // Its own name among all processes, as long as this lives.
        let owner = Owner::of(std::process::id()).argument();
        let device = "eth0".to_owned();
        let target = SettingsTarget::Existing { device };
        let start = || SettingsGuard::start(program(), &owner, "host a", &target);
        let netns = Netns::named(&self.netns).expect("our namespace");
        let guard = netns.within(start).expect("entered").expect("a guard");
        let pid = wait_for("the guard", || settings_guards(&owner).first().copied());
        (guard, pid)
    }

    fn clean(&self, kill_after: Option<Duration>) {
        let host = format!("netns:{}", self.netns);
        if let Some(after) = kill_after {
            let mut cleaning = common::Running::start(&mut wirecost(["clean", "--host", &host]));
            thread::sleep(after);
            for agent in cleaning.agents() {
                signal(agent.pid, Signal::SIGKILL);
            }
            cleaning.signal(Signal::SIGKILL);
            cleaning.wait();
        }
        let ended = run(&mut wirecost(["clean", "--host", &host, "--json"]));
        ended.expect_code(0);
        let document = ended.document();
        assert_eq!(document["hosts"][0]["failed"], serde_json::json!([]));
    }
}

/// What changes by itself is left out: keys, counters.
fn sysctls(at: &Path, state: &mut BTreeMap<String, String>, netns: &str) {
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            sysctls(&path, state, netns);
        } else if !["_key", "_count", "secret"]
            .iter()
            .any(|word| name.contains(word))
            && let Ok(text) = fs::read_to_string(&path)
        {
            state.insert(format!("{netns} {name}"), text.trim().to_owned());
        }
    }
}

/// When the process that changes settings dies.
#[derive(Debug, Clone, Copy)]
enum Death {
    /// Its input ends.
    Closed,
    /// After a step.
    After,
    /// So many microseconds into the last step.
    Within(u64),
    /// So many microseconds into undoing all.
    Undoing(u64),
}

#[test]
fn whatever_is_changed_is_undone_to_exactly_what_was_there() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let clock = || {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.expect("after 1970").as_nanos() as u64
    };
    let seed = number(SEED).unwrap_or_else(clock);
    let host = Host::new();
    host.settle();
    let before = host.state();
    let mut applied = 0;
    for sequence in 0..number(SEQUENCES).unwrap_or(24) {
        let mut random = Random(seed.wrapping_add(sequence));
        let settings: Vec<Setting> = (0..=random.below(6))
            .map(|_| host.setting(&mut random))
            .collect();
        let death = match random.below(4) {
            0 => Death::Closed,
            1 => Death::After,
            2 => Death::Within(random.below(3000)),
            _ => Death::Undoing(random.below(6000)),
        };
        let told = || format!("{SEED}={seed}, sequence {sequence}: {death:?} {settings:#?}");
        let (mut guard, pid) = host.guard();
        let kill_in = |us: u64| {
            thread::spawn(move || {
                thread::sleep(Duration::from_micros(us));
                signal(pid, Signal::SIGKILL);
            })
        };
        let (last, first) = settings.split_last().expect("one at least");
        for setting in first {
            // One that the device refuses changes nothing.
            applied += u32::from(guard.apply(setting).is_ok());
        }
        match death {
            Death::Closed => {
                applied += u32::from(guard.apply(last).is_ok());
            }
            Death::After => {
                applied += u32::from(guard.apply(last).is_ok());
                signal(pid, Signal::SIGKILL);
            }
            Death::Within(us) => {
                let killer = kill_in(us);
                let _ = guard.apply(last);
                killer.join().expect("the killer");
            }
            Death::Undoing(us) => {
                let _ = guard.apply(last);
                let killer = kill_in(us);
                let _ = guard.undo();
                killer.join().expect("the killer");
            }
        }
        drop(guard);
        if !matches!(death, Death::Closed) {
            let kill_after =
                (random.below(3) == 0).then(|| Duration::from_millis(random.below(60)));
            host.clean(kill_after);
        }
        host.settle();
        let after = host.state();
        let changed: Vec<_> = before
            .iter()
            .filter(|(key, value)| after.get(*key) != Some(value))
            .map(|(key, value)| format!("{key}: {value} -> {:?}", after.get(key)))
            .collect();
        assert!(changed.is_empty(), "{}: {changed:#?}", told());
        assert_eq!(after.len(), before.len(), "{}", told());
    }
    assert!(applied > 0, "nothing could be changed at all");
    println!("{applied} settings were applied, {SEED}={seed}");
}

#[test]
fn a_signal_that_is_ignored_does_not_end_the_wait_for_a_command() {
    let place = tempfile::tempdir().expect("a directory");
    let [begun, done] = ["begun", "done"].map(|name| place.path().join(name));
    // Its own name among all processes: that of the other test is another.
    let owner = format!("{}:1", std::process::id());
    let guard = SettingsGuard::start(program(), &owner, "here", &SettingsTarget::Machine);
    let mut guard = guard.expect("a guard");
    let pid = wait_for("the guard", || settings_guards(&owner).first().copied());
    let before = format!(
        "touch {}; sleep 1; touch {}",
        begun.display(),
        done.display()
    );
    let setting = Setting {
        factor: "slow".to_owned(),
        label: "level".to_owned(),
        sysctl: BTreeMap::new(),
        ethtool: BTreeMap::new(),
        device: BTreeMap::new(),
        device_name: None,
        command: Some(CommandPair {
            before,
            after: "true".to_owned(),
        }),
        on: Scope::Machine,
    };
    let signalled = thread::spawn(move || {
        wait_for("the command", || begun.exists().then_some(()));
        signal(pid, Signal::SIGTERM)
    });
    guard.apply(&setting).expect("it ends by itself");
    assert!(done.exists(), "it was waited for");
    assert!(signalled.join().expect("a thread"), "the guard lives");
    guard.undo().expect("undone");
}
