//! `check` and `load` over ssh between two machines that share nothing but a bridge.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::pair::Pair;
use crate::machine::{Contents, Kernel};
use crate::steps::OwnMachineStep;

pub(crate) const STEP: OwnMachineStep = OwnMachineStep {
    name: "two machines",
    looks_at: "`check`, `load` and `run` over ssh, tunnels of `network: tunnel` among them; a port of 1500, a dead port, a link that goes down under a load, an agent and the \
               controller killed; nothing left in either machine",
    needs: &[],
    needs_root: true,
    by_name: false,
    run,
};

pub(crate) const A: &str = "ssh:root@127.0.0.1:2201=10.50.0.1";
pub(crate) const B: &str = "ssh:root@127.0.0.1:2202=10.50.0.2";
/// The program in either machine, where nobody looks for it.
pub(crate) const INSTALLED: &str = "/opt/wirecost";
/// Far beyond what anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) fn program() -> PathBuf {
    PathBuf::from(std::env::var_os("WIRECOST_BINARY").expect("`make test-kernels` sets it"))
}

pub(crate) fn started(pair: &Pair, arguments: &[&str]) -> Child {
    let mut command: Command = pair.here(program().to_str().expect("a plain path"));
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Its end; one that does not come fails the test.
#[track_caller]
pub(crate) fn ended(mut child: Child) -> (i32, Output) {
    // A document is larger than a pipe.
    let stdout = child.stdout.take().map(read_to_end);
    let stderr = child.stderr.take().map(read_to_end);
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("still running after {PATIENCE:?}");
        }
        sleep(Duration::from_millis(20));
    };
    let [stdout, stderr] = [stdout, stderr].map(|read| {
        let read = read.and_then(|read| read.join().ok());
        read.unwrap_or_default()
    });
    let output = Output {
        status,
        stdout,
        stderr,
    };
    (status.code().unwrap_or(-1), output)
}

fn read_to_end(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

#[track_caller]
fn check(pair: &Pair, code: i32) -> Value {
    let (ended_with, output) = ended(started(pair, &["check", A, B, "--json"]));
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(ended_with, code, "{told}{errors}");
    serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}{errors}"))
}

/// Path MTUs from one side to the other.
fn carried(document: &Value, from: &str) -> Vec<u64> {
    let paths = document["paths"].as_array().expect("paths");
    paths
        .iter()
        .filter(|path| {
            path["from"]
                .as_str()
                .is_some_and(|name| name.contains(from))
        })
        .map(|path| path["mtu"].as_u64().unwrap_or(0))
        .collect()
}

/// Nothing of the program is left in either machine: no process, no file.
#[track_caller]
pub(crate) fn nothing_is_left(pair: &mut Pair) {
    for machine in &mut pair.machines {
        let left = machine.sh(
            40,
            "for try in $(seq 100); do\n\
             left=$(for at in /proc/[0-9]*; do tr '\\0' ' ' <$at/cmdline 2>/dev/null | grep 'wirecost agent'; done;\n\
             ls -d /tmp/* /var/tmp/* /dev/shm/* /root/* 2>/dev/null)\n\
             [ -n \"$left\" ] || exit 0; sleep 0.2; done; echo \"$left\"; exit 1",
        );
        assert_eq!(left.code, 0, "left: {}{}", left.stdout, left.stderr);
    }
}

/// A load of 20 s that has begun: much more than a check's or an agent's own words went over the data network since.
fn load_begun(pair: &mut Pair) -> Child {
    const PACKETS: u64 = 3000;
    let packets = |pair: &mut Pair| -> u64 {
        let count = "cat /sys/class/net/eth1/statistics/tx_packets";
        let told = pair.machines[0].sh(10, count).fine();
        told.trim().parse().expect("a counter")
    };
    let before = packets(pair);
    let child = started(pair, &["load", A, B, "--time", "20s", "--json"]);
    let deadline = Instant::now() + PATIENCE;
    while packets(pair) < before + PACKETS {
        assert!(Instant::now() < deadline, "no load within {PATIENCE:?}");
        sleep(Duration::from_millis(100));
    }
    child
}

fn run(kernel: &Kernel) {
    let began = Instant::now();
    let reached = |what: &str| {
        let seconds = began.elapsed().as_secs_f64();
        println!("{} {seconds:6.1} s after its start: {what}", kernel.release);
    };
    let mut pair = Pair::boot(kernel, || {
        let mut contents = Contents::new(kernel);
        contents.archive.copy(&program(), INSTALLED);
        contents
    });
    reached("two machines are up");

    // All right.
    let document = check(&pair, 0);
    assert!(
        carried(&document, "2201").iter().all(|mtu| *mtu == 9000),
        "{document}"
    );
    assert!(
        carried(&document, "2202").iter().all(|mtu| *mtu == 9000),
        "{document}"
    );
    nothing_is_left(&mut pair);
    reached("a path of 9000");

    // Copied so far; from here on installed, which spares an emulated processor most of its work.
    for machine in &mut pair.machines {
        machine
            .sh(10, &format!("ln -s {INSTALLED} /usr/bin/wirecost"))
            .fine();
    }

    let (code, output) = ended(started(&pair, &["load", A, B, "--time", "2s", "--json"]));
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code, 0, "{told}{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_str(&told).expect("one document");
    assert_eq!(document["outcome"], "complete");
    assert_eq!(document["one_machine"], false);
    nothing_is_left(&mut pair);
    reached("a load");

    // A narrow port: what a switch drops silently.
    pair.port(2, "mtu 1500");
    let document = check(&pair, 1);
    assert!(
        carried(&document, "2201").iter().all(|mtu| *mtu == 1500),
        "{document}"
    );
    pair.port(2, "mtu 9000");
    nothing_is_left(&mut pair);
    reached("a port of 1500");

    // A dead port.
    pair.port(2, "down");
    let document = check(&pair, 1);
    assert!(
        carried(&document, "2201").iter().all(|mtu| *mtu == 0),
        "{document}"
    );
    pair.port(2, "up");
    nothing_is_left(&mut pair);
    reached("a dead port");

    // A link that goes down while a load runs.
    let child = load_begun(&mut pair);
    pair.port(1, "down");
    let (code, output) = ended(child);
    pair.port(1, "up");
    named_error(code, &output);
    nothing_is_left(&mut pair);
    reached("a link that went down");

    // An agent that is killed.
    let child = load_begun(&mut pair);
    pair.machines[1]
        .sh(
            10,
            "for at in /proc/[0-9]*; do tr '\\0' ' ' <$at/cmdline 2>/dev/null | grep -q 'wirecost agent' && kill -9 ${at#/proc/}; done; true",
        )
        .fine();
    let (code, output) = ended(child);
    named_error(code, &output);
    nothing_is_left(&mut pair);
    reached("an agent that was killed");

    runs(&mut pair, &reached);

    tunnels(&mut pair);
    reached("tunnels over the machines' network");

    // The controller itself.
    let mut child = load_begun(&mut pair);
    child.kill().expect("our own child");
    let _ = child.wait();
    nothing_is_left(&mut pair);
    reached("the controller that was killed");
}

/// Runs over the existing network: measured with a setting of the hosts, then with one that cuts the controller off.
fn runs(pair: &mut Pair, reached: &dyn Fn(&str)) {
    let place = tempfile::tempdir().expect("a directory");
    let measured = |name: &str, level: &str| {
        let plan = place.path().join(format!("{name}.yaml"));
        let text = format!(
            "name: {name}\nnetwork: existing\nallow_host_changes: on\nvary:\n  setting:\n    - label: as it is\n    - {level}\n\
             repeat: {{ rounds: 1, seconds: 0.3, warmup: 0.1 }}\n"
        );
        std::fs::write(&plan, text).expect("a plan");
        let out = place.path().join(name);
        let [plan, out_text] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
        let hosts = format!("{A},{B}");
        let arguments = [
            "run", plan, "--hosts", &hosts, "--yes", "--json", "--out", out_text,
        ];
        let (code, output) = ended(started(pair, &arguments));
        let samples = std::fs::read_to_string(out.join("samples.jsonl")).unwrap_or_default();
        let samples: Vec<Value> = samples
            .lines()
            .map(|line| serde_json::from_str(line).expect("a sample"))
            .collect();
        (code, output, samples)
    };
    let (code, output, samples) = measured(
        "narrower",
        "{ label: narrower, before: ip link set eth1 mtu 4000, after: ip link set eth1 mtu 9000 }",
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        code,
        0,
        "{}{errors}",
        String::from_utf8_lossy(&output.stdout)
    );
    let mut sizes: Vec<u64> = samples
        .iter()
        .map(|sample| sample["proofs"][0]["size"].as_u64().expect("a size"))
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4000, 9000]);
    assert!(
        samples.iter().all(|sample| sample["invalid"].is_null()),
        "{samples:?}"
    );
    reached("a run over ssh");

    // The device that the controller is reached by: its host undoes it by itself, and the run says what happened.
    let (code, output, _) = measured(
        "cut-off",
        "{ label: cut off, on: b, before: ip link set eth0 down, after: ip link set eth0 up }",
    );
    named_error(code, &output);
    let up = "for try in $(seq 100); do ip link show eth0 | grep -q LOWER_UP && exit 0; sleep 0.3; done; exit 1";
    assert_eq!(pair.machines[1].sh(60, up).code, 0, "eth0 is up again");
    nothing_is_left(pair);
    let hosts = [A, B].map(|host| ended(started(pair, &["clean", "--host", host])));
    for (code, output) in hosts {
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(code, 0, "{told}{}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("nothing was left changed"), "{told}");
    }
    reached("a run that cut itself off");
}

/// Tunnels of every kind over the machines' network, one sample each; nothing of them is left.
fn tunnels(pair: &mut Pair) {
    const BY_THE_KERNEL: &str = "encapsulation: [vxlan, geneve, wireguard, gre, gretap, ipip]\n";
    const BY_EBPF: &str = "encapsulation: [vxlan, { geneve: { options: ovn } }]\ndatapath: ebpf\n\
                           allow_host_changes: on\n";
    let (code, samples, told) = tunnelled(pair, BY_THE_KERNEL);
    assert_eq!(code, 0, "{told}");
    assert_eq!(samples.len(), 6);
    fills_the_mtu(&samples);
    // tcx is Linux 6.6's.
    let release = pair.machines[0].sh(10, "uname -r").fine();
    let mut numbers = release.trim().split('.').map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).expect("a version");
    let has_tcx = (number(), number()) >= (6, 6);
    let (code, samples, told) = tunnelled(pair, BY_EBPF);
    assert_eq!(code, if has_tcx { 0 } else { 3 }, "{told}");
    if has_tcx {
        assert_eq!(samples.len(), 2);
        fills_the_mtu(&samples);
    } else {
        let words = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("the kernel has no tcx (Linux 6.6)"),
            "{told}"
        );
    }
}

/// Full-size datagrams of a tunnel fill the machines' MTU; WireGuard pads no further than to it.
fn fills_the_mtu(samples: &[Value]) {
    for sample in samples {
        assert!(sample["invalid"].is_null(), "{sample}");
        let seen = &sample["proofs"][0]["seen"];
        assert_eq!(seen["outer_ip_bytes"], 9000, "{sample}");
    }
}

/// A run with these tunnels, of which nothing is left: its exit code, its samples and what it printed.
fn tunnelled(pair: &mut Pair, tunnels: &str) -> (i32, Vec<Value>, String) {
    let place = tempfile::tempdir().expect("a directory");
    let plan = place.path().join("plan.yaml");
    let text = format!(
        "name: tunnels\nnetwork: tunnel\nguest_mtu: max\nrepeat: {{ rounds: 1, seconds: 0.3, warmup: 0.1 }}\n{tunnels}"
    );
    std::fs::write(&plan, text).expect("a plan");
    let out = place.path().join("run");
    let [plan, out_text] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let hosts = format!("{A},{B}");
    let arguments = ["run", plan, "--hosts", &hosts, "--yes", "--out", out_text];
    // Drivers that are loaded bring devices of their own, which stay with them: only what a run makes is to go.
    let devices =
        "ls /sys/class/net | grep -Ev '^(gre0|gretap0|erspan0|tunl0|ip6gre0|ip6tnl0|sit0)$'";
    let before = pair
        .machines
        .each_mut()
        .map(|machine| machine.sh(10, devices).fine());
    let (code, output) = ended(started(pair, &arguments));
    let [told, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    // A run of which no cell can be built has none.
    let samples = std::fs::read_to_string(out.join("samples.jsonl")).unwrap_or_default();
    let samples = samples
        .lines()
        .map(|line| serde_json::from_str(line).expect("a sample"))
        .collect();
    nothing_is_left(pair);
    let after = pair
        .machines
        .each_mut()
        .map(|machine| machine.sh(10, devices).fine());
    assert_eq!(after, before);
    (code, samples, told + &errors)
}

/// Exit code 3 and a reason that names what failed.
#[track_caller]
pub(crate) fn named_error(code: i32, output: &Output) {
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let tail = |text: &str| text[text.len().saturating_sub(600)..].to_owned();
    assert_eq!(code, 3, "{}{}", tail(&told), tail(&errors));
    let document: Result<Value, _> = serde_json::from_str(&told);
    let reason = document
        .ok()
        .and_then(|d| d["reason"].as_str().map(str::to_owned));
    let reason = reason.unwrap_or_else(|| errors.into_owned());
    assert!(!reason.trim().is_empty());
    println!("it said: {}", reason.trim());
}
