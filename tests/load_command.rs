//! `wirecost load`: every workload between hosts of every kind, and every way in which that may end.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    Ended, Running, TestDir, install, is_root, lock_shared, run, signal, skip, succeeds, wait_for,
    wirecost,
};
use crate::pair::{Pair, ip};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Long enough for two intervals, and for every thread to get a core of a busy machine.
const SHORT: [&str; 6] = ["--time", "3s", "--warmup", "0.1s", "--interval", "0.2s"];
/// Requests, I/O or datagrams that end a load which needs no window: however slow the machine is, they are done.
const FEW: [&str; 2] = ["--transactions", "200"];

fn load<'a>(from: &'a str, to: &'a str, more: &[&'a str]) -> Command {
    let arguments = ["load", from, to].into_iter().chain(more.iter().copied());
    wirecost(arguments)
}

fn netns(name: &str) -> String {
    format!("netns:{name}")
}

/// Waits until a running load has told so many intervals.
/// Intervals in which something arrived, as told until now.
fn intervals_told(running: &mut Running) -> usize {
    let told = running.stderr_so_far();
    let lines = told.lines().filter(|line| line.contains("bit/s"));
    lines.filter(|line| !line.contains(" 0.000 ")).count()
}

fn until_told(running: &mut Running, intervals: usize) {
    wait_for("intervals", || {
        (intervals_told(running) >= intervals).then_some(())
    });
}

#[track_caller]
fn nothing_is_left(running: &Running) {
    wait_for("the agents to be gone", || {
        running.agents().is_empty().then_some(())
    });
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn every_workload_runs_between_two_namespaces_and_has_its_figures() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("each");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    for (workload, figures) in [
        ("tcp-stream", "/stream/gbps"),
        ("tcp-bidirectional", "/stream/back_gbps"),
        ("tcp-rr", "/requests/per_s"),
        ("tcp-crr", "/requests/latency/max"),
        ("udp-stream", "/datagrams/received_per_s"),
        ("udp-rr", "/requests/per_s"),
        ("storage", "/requests/per_s"),
    ] {
        let answers = workload.ends_with("rr") || workload == "storage";
        let mut command = load(&a, &b, &[workload, "--json"]);
        if answers {
            command.args(["--bound", "500us"]);
        }
        let ended = run(command.args(SHORT));
        ended.expect_code(0);
        let document = ended.document();
        assert_eq!(document["outcome"], "complete", "{workload}");
        assert_eq!(document["hosts"][0]["address"], "10.77.0.1");
        assert_eq!(document["hosts"][1]["place"], b.as_str());
        assert_eq!(document["one_machine"], true);
        let load = &document["loads"][0];
        assert_eq!(load["load"]["workload"], workload);
        let figure = load.pointer(figures).unwrap_or(&Value::Null);
        assert!(number(figure) > 0.0, "{workload}: {load:#}");
        let asks = load["requests"].is_object();
        assert_eq!(asks, answers, "{workload}");
        if asks {
            let share = number(&load["requests"]["within"][0]["share"]);
            assert!((0.0..=1.0).contains(&share), "{share}");
        }
        let cpu = &document["cpu"];
        assert!(number(&cpu["a_cores"]) > 0.0 && cpu["b_cores"].is_null());
        let of_work = ["percent_per_gbps", "us_per_transaction"][usize::from(asks)];
        assert!(number(&cpu[of_work]) > 0.0, "{workload}: {cpu}");
        let intervals = document["intervals"].as_array().expect("a list");
        assert!(intervals.len() >= 2, "{workload}: {intervals:?}");
        let told = ended.stderr.lines().filter(|line| line.contains(workload));
        assert_eq!(told.count(), intervals.len(), "{workload}: {ended:#?}");
    }
}

/// A program that ends with the test.
struct Ending(std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_nbd_server_is_read_and_only_written_to_where_that_is_said() {
    if !is_root() {
        return;
    }
    if !succeeds(std::process::Command::new("nbdkit").arg("--version")) {
        skip("this needs nbdkit");
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("nbd");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let serve = [
        "netns",
        "exec",
        &pair.b,
        "nbdkit",
        "-f",
        "-P",
        "/dev/null",
        "-i",
        "10.77.0.2",
    ];
    let mut command = std::process::Command::new("ip");
    let _server = Ending(
        command
            .args(serve)
            .args(["memory", "8M"])
            .spawn()
            .expect("nbdkit"),
    );
    let listens = || {
        let mut asks = std::process::Command::new("ip");
        let asked = asks.args(["netns", "exec", &pair.b, "ss", "-Hlnt", "sport = 10809"]);
        asked.output().ok().filter(|said| !said.stdout.is_empty())
    };
    wait_for("nbdkit listens", listens);
    let uri = ["--target", "nbd://10.77.0.2/"];
    let mut reads = load(&a, &b, &["storage", "--json"]);
    let ended = run(reads.args(uri).args(FEW));
    ended.expect_code(0);
    let document = ended.document();
    let loaded = &document["loads"][0];
    assert!(number(&loaded["stream"]["back_gbps"]) > 0.0, "{loaded:#}");
    let ends = loaded["result"]["generator"].as_array().expect("a list");
    assert_eq!(ends.len(), 1, "the server has no threads of ours: {ends:?}");

    let write = [
        "storage",
        "--json",
        "--pattern",
        "random-write",
        "--streams",
        "2",
    ];
    let ended = run(load(&a, &b, &write).args(uri).args(FEW));
    ended.expect_code(2);
    assert!(ended.stderr.contains("add `destructive`"), "{ended:#?}");
    let ended = run(load(&a, &b, &write)
        .args(uri)
        .args(FEW)
        .arg("--destructive"));
    ended.expect_code(0);
    let document = ended.document();
    assert!(number(&document["loads"][0]["stream"]["gbps"]) > 0.0);

    let gone = ["storage", "--target", "nbd://10.77.0.2:9/"];
    let ended = run(&mut load(&a, &b, &gone));
    ended.expect_code(3);
    assert!(ended.stderr.contains("10.77.0.2:9"), "{ended:#?}");
}

#[test]
fn an_nbd_server_at_a_unix_socket_is_loaded_and_missed_when_it_goes() {
    if !is_root() {
        return;
    }
    if !succeeds(std::process::Command::new("nbdkit").arg("--version")) {
        skip("this needs nbdkit");
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("nbdu");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let place = TestDir::new();
    let socket = place.path().join("nbd");
    let target = format!("nbd+unix:///?socket={}", socket.display());
    let ended = run(&mut load(&a, &b, &["storage", "--target", &target]));
    ended.expect_code(3);
    assert!(
        ended.stderr.contains(&*socket.to_string_lossy()),
        "{ended:#?}"
    );

    let mut command = std::process::Command::new("nbdkit");
    command.args(["-f", "-P", "/dev/null", "-U"]).arg(&socket);
    let mut server = Ending(command.args(["memory", "8M"]).spawn().expect("nbdkit"));
    let listens = || std::os::unix::net::UnixStream::connect(&socket).ok();
    wait_for("nbdkit listens", listens);
    let mut reads = load(&a, &b, &["storage", "--json", "--target", &target]);
    let ended = run(reads.args(FEW));
    ended.expect_code(0);
    let document = ended.document();
    let loaded = &document["loads"][0];
    assert!(number(&loaded["requests"]["per_s"]) > 0.0, "{loaded:#}");
    assert!(
        loaded["result"]["flows"][0]["sender"].is_null(),
        "{loaded:#}"
    );

    let mut reads = load(&a, &b, &["storage", "--target", &target]);
    let mut running = Running::start(reads.args(["--time", "60s"]));
    // What a server accepts is in the network namespace of whoever connects (`unix_stream_connect`,
    // net/unix/af_unix.c).
    let loads = || {
        let mut looks = std::process::Command::new("ip");
        let looks = looks.args(["netns", "exec", &pair.a, "cat", "/proc/net/unix"]);
        let said = looks.output().expect("ip");
        let here = String::from_utf8_lossy(&said.stdout).contains(&*socket.to_string_lossy());
        (here || running.ended().is_some()).then_some(())
    };
    wait_for("the load's connection", loads);
    let _ = server.0.kill();
    let ended = running.wait();
    ended.expect_code(3);
    // It may go while the flow is still being set up.
    let named = ["lost contact with the peer of flow 0", "setting a flow up"];
    assert!(
        named.iter().any(|words| ended.stderr.contains(words)),
        "{ended:#?}"
    );
}

#[test]
fn machines_are_moved_between_two_namespaces_and_told_one_by_one() {
    if !is_root() {
        return;
    }
    if let Err(error) = wirecost_sys::dirty_pages::DirtyPages::check() {
        skip(format!("this kernel does not track writes: {error}"));
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("move");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let options = [
        "migration",
        "--machines",
        "2",
        "--memory",
        "2MiB",
        "--reverse",
    ];
    let ended = run(load(&a, &b, &options).args(["--json"]));
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["outcome"], "complete");
    assert_eq!(document["asked_s"], Value::Null);
    let result = &document["loads"][0]["result"];
    assert_eq!(result["direction"], "b-to-a");
    let moves = result["moves"].as_array().expect("a list");
    assert_eq!(moves.len(), 2, "{result:#}");
    for one in moves {
        assert_eq!(one["outcome"], "moved");
        assert!(number(&one["total_s"]) > number(&one["downtime_s"]));
    }
    let ended = run(&mut load(&a, &b, &options));
    ended.expect_code(0);
    for words in [
        "2 machines, 2MiB of memory",
        "machine 0 ",
        "machine 1 ",
        "moved in",
        "model",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:#?}");
    }
    let ended = run(&mut load(&a, &b, &["tcp-rr", "--dirty-rate", "1gbit"]));
    ended.expect_code(2);
    assert!(
        ended
            .stderr
            .contains("--dirty-rate: tcp-rr is no migration"),
        "{ended:#?}"
    );
}

#[test]
fn loads_run_beside_each_other_and_both_ways() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("mix");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let beside = ["--beside", "tcp-rr --rate 100/s --streams 2", "--json"];
    let both = ["tcp-stream", "--direction", "both", "--streams", "2"];
    let ended = run(load(&a, &b, &both).args(beside).args(SHORT));
    ended.expect_code(0);
    let document = ended.document();
    let figures = |at: usize| {
        let load = &document["loads"][at];
        let direction = load["load"]["direction"].as_str().expect("a way");
        (load["name"].as_str().expect("a name"), direction)
    };
    assert_eq!(figures(0), ("tcp-stream", "a-to-b"));
    assert_eq!(figures(1), ("tcp-stream-2", "b-to-a"));
    assert_eq!(figures(2), ("tcp-rr", "a-to-b"));
    for at in [0, 1] {
        assert!(number(&document["loads"][at]["stream"]["gbps"]) > 0.0);
    }
    let asking = &document["loads"][2]["result"];
    let [due, before, after] =
        ["due", "backlog_before", "backlog_after"].map(|key| number(&asking["schedule"][key]));
    let per_s = due / number(&asking["client_seconds"]);
    // They are due at random: 600 and 25, one standard deviation.
    assert!(
        (150.0..250.0).contains(&per_s),
        "200 a second were asked for: {asking:#}"
    );
    // What a busy machine did not answer in time is still due.
    let answered = number(&asking["requests"]["transactions"]);
    assert!(
        answered > 0.0 && (answered + after - before - due).abs() < due / 10.0,
        "{asking:#}"
    );
    // What the time was for cannot be told.
    assert_eq!(document["cpu"]["percent_per_gbps"], Value::Null);

    let ended = run(load(&a, &b, &["mix", "--reverse"]).args(SHORT));
    ended.expect_code(0);
    for words in [
        "tcp-stream  b to a",
        "tcp-rr  a to b",
        "latency",
        "generator",
        "processors",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
}

#[test]
fn a_load_of_so_many_bytes_or_transactions_is_exactly_that() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("limit");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    for (arguments, figure) in [
        (["tcp-stream", "--bytes", "64MiB"], "/result/stream/bytes"),
        (
            ["tcp-rr", "--transactions", "500"],
            "/result/requests/transactions",
        ),
        (
            ["udp-stream", "--transactions", "200"],
            "/result/datagrams/sent",
        ),
    ] {
        let ended = run(load(&a, &b, &arguments).args(["--streams", "2", "--json"]));
        ended.expect_code(0);
        let load = &ended.document()["loads"][0];
        let expected = [json!(67_108_864), json!(500), json!(200)];
        let counted = load.pointer(figure).unwrap_or(&Value::Null);
        assert!(expected.contains(counted), "{arguments:?}: {counted}");
    }
}

/// An ssh client that drops its options, notes what it was given, and leads into a namespace as sshd would: through
/// the user's shell.
fn fake_ssh(place: &Path) -> (String, std::path::PathBuf) {
    let (directory, log) = (place.join("bin"), place.join("ssh.log"));
    fs::create_dir(&directory).expect("directory");
    let script = format!(
        "#!/bin/sh\n\
         echo \"$*\" >>'{}'\n\
         while [ \"$1\" != -- ]; do shift; done\n\
         host=${{2#*@}}; shift 2\n\
         [ \"$host\" != nowhere ] || {{ echo 'ssh: connect to host nowhere port 22: Connection refused' >&2; exit 255; }}\n\
         echo 'Have a lot of fun...'\n\
         exec ip netns exec \"$host\" sh -c \"$*\"\n",
        log.display()
    );
    let written = place.join("ssh.sh");
    fs::write(&written, script).expect("script");
    install(&written, &directory.join("ssh"));
    let path = std::env::var("PATH").expect("PATH");
    (format!("{}:{path}", directory.display()), log)
}

#[test]
fn hosts_behind_ssh_and_behind_a_command_are_loaded_like_any_other() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("ssh"), TestDir::new());
    let (path, log) = fake_ssh(place.path());
    let (ssh, exec) = (
        format!("ssh:root@{}:2222", pair.a),
        format!("exec:ip netns exec {}=fd77::2", pair.b),
    );
    let mut command = load(&ssh, &exec, &["tcp-rr", "--json"]);
    let mut running = Running::start(command.args(FEW).env("PATH", &path));
    let ended = running.wait();
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["hosts"][0]["address"], "fd77::1");
    assert_eq!(document["hosts"][0]["place"], ssh.as_str());
    assert!(number(&document["loads"][0]["requests"]["per_s"]) > 0.0);
    nothing_is_left(&running);
    let given = fs::read_to_string(&log).expect("what ssh was given");
    let destination = format!("-p 2222 -- root@{} sh", pair.a);
    for words in [
        "BatchMode=yes",
        "ConnectTimeout=",
        "ControlMaster=no",
        &destination,
    ] {
        assert!(given.contains(words), "{words}: {given}");
    }

    let nowhere = load("ssh:nowhere", &exec, &[]).env("PATH", &path).output();
    let nowhere = nowhere.expect("the program");
    assert_eq!(nowhere.status.code(), Some(3));
    let words = String::from_utf8_lossy(&nowhere.stderr);
    assert!(
        words.contains("host ssh:nowhere") && words.contains("Connection refused"),
        "{words}"
    );
}

#[test]
fn all_loads_at_once_need_one_port_of_tcp_and_one_of_udp_at_each_host() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("port");
    for host in [&pair.a, &pair.b] {
        for rule in [
            "table inet only",
            "chain inet only in { type filter hook input priority 0 ; policy drop ; }",
            "rule inet only in meta l4proto { tcp, udp } th dport 7801 accept",
            "rule inet only in meta l4proto { tcp, udp } th sport 7801 accept",
        ] {
            let mut add = Command::new("ip");
            add.args(["netns", "exec", host, "nft", "add"]);
            succeeds(add.args(rule.split(' ')));
        }
    }
    let mut command = load(
        &netns(&pair.a),
        &netns(&pair.b),
        &[
            "tcp-stream",
            "--direction",
            "both",
            "--port",
            "7801",
            "--json",
        ],
    );
    for beside in [
        "tcp-rr --streams 2",
        "tcp-crr",
        "tcp-crr",
        "udp-rr --streams 2",
        "udp-rr",
        "udp-stream --rate 1mbit",
    ] {
        command.args(["--beside", beside]);
    }
    let ended = run(command.args(SHORT));
    ended.expect_code(0);
    let document = ended.document();
    let loads = document["loads"].as_array().expect("loads");
    assert_eq!(loads.len(), 8);
    for load in loads {
        let moved = [
            "/stream/gbps",
            "/requests/per_s",
            "/datagrams/received_per_s",
        ]
        .iter()
        .find_map(|figure| load.pointer(figure)?.as_f64());
        assert!(moved.is_some_and(|figure| figure > 0.0), "{load:#}");
        assert_eq!(load["result"]["strays"], 0, "{load:#}");
    }
}

#[test]
fn a_stray_connection_is_dropped_and_told() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("stray");
    let mut command = load(
        &netns(&pair.a),
        &netns(&pair.b),
        &["--port", "7801", "--json"],
    );
    let arguments = ["--time", "10min", "--warmup", "0s", "--interval", "0.2s"];
    let mut running = Running::start(command.args(arguments));
    until_told(&mut running, 1);
    for _ in 0..3 {
        let knock =
            "exec 3<>/dev/tcp/10.77.0.2/7801; head -c 100 /dev/zero >&3; cat <&3 >/dev/null";
        let mut stray = Command::new("ip");
        succeeds(stray.args(["netns", "exec", &pair.a, "bash", "-c", knock]));
    }
    // What is told at the end was counted when the last interval ended.
    let told = intervals_told(&mut running);
    until_told(&mut running, told + 2);
    assert!(running.signal(Signal::SIGINT));
    let ended = running.wait();
    ended.expect_code(3);
    let document = ended.document();
    assert_eq!(document["loads"][0]["result"]["strays"], 3);
    let notes = document["notes"].to_string();
    assert!(
        notes.contains("3 connections or datagrams of others"),
        "{notes}"
    );
}

#[test]
fn an_interrupt_ends_the_load_and_prints_what_there_is() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("stop");
    let arguments = [
        "--time",
        "10min",
        "--warmup",
        "0.1s",
        "--interval",
        "0.2s",
        "--json",
    ];
    let mut command = load(&netns(&pair.a), &netns(&pair.b), &arguments);
    let mut running = Running::start(&mut command);
    until_told(&mut running, 2);
    assert!(running.signal(Signal::SIGINT));
    let ended = running.wait();
    ended.expect_code(3);
    let document = ended.document();
    assert_eq!(document["outcome"], "interrupted");
    assert!(number(&document["loads"][0]["stream"]["gbps"]) > 0.0);
    nothing_is_left(&running);
}

#[test]
fn a_controller_that_was_stopped_for_a_while_counts_both_ends_to_the_same_time_and_says_so() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("pause");
    let arguments = ["udp-stream", "--rate", "1mbit", "--json", "--time", "4s"];
    let mut command = load(&netns(&pair.a), &netns(&pair.b), &arguments);
    let mut running = Running::start(command.args(["--warmup", "0s", "--interval", "0.2s"]));
    until_told(&mut running, 2);
    // As Ctrl-Z and `fg` do, for longer than the rest of the window.
    assert!(running.signal(Signal::SIGSTOP));
    std::thread::sleep(std::time::Duration::from_secs(15));
    assert!(running.signal(Signal::SIGCONT));
    let ended = running.wait();
    ended.expect_code(0);
    let document = ended.document();
    let result = &document["loads"][0]["result"];
    let [client, server] = ["client_seconds", "seconds"].map(|key| number(&result[key]));
    assert!(
        client > 15.0 && (client - server).abs() < client / 10.0,
        "{result:#}"
    );
    let [sent, received] = ["sent", "received"].map(|key| number(&result["datagrams"][key]));
    assert!((sent - received).abs() < sent / 10.0, "{result:#}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("s long, and not 4 s"), "{notes}");
    nothing_is_left(&running);
}

#[test]
fn a_killed_controller_takes_its_agents_along() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("kill");
    let exec = format!("exec:ip netns exec {}", pair.b);
    let mut command = load(&netns(&pair.a), &exec, &["--time", "10min"]);
    let mut running = Running::start(command.args(["--warmup", "0s", "--interval", "0.2s"]));
    until_told(&mut running, 1);
    assert!(running.signal(Signal::SIGKILL));
    running.wait();
    wait_for("every process in the namespaces to be gone", || {
        [&pair.a, &pair.b]
            .iter()
            .all(|netns| {
                let inside = run(Command::new("ip").args(["netns", "pids", netns]));
                inside.stdout.trim().is_empty()
            })
            .then_some(())
    });
}

/// Has host b's agent sent a signal in the middle of a load, of which the error then says `words`.
#[track_caller]
fn ends_with_host_b(name: &str, how: Signal, words: impl Fn(&str) -> String) {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new(name);
    let arguments = [
        "--time",
        "10min",
        "--warmup",
        "0.1s",
        "--interval",
        "0.2s",
        "--json",
    ];
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let mut running = Running::start(&mut load(&a, &b, &arguments));
    until_told(&mut running, 2);
    let agents = running.agents();
    let victim = agents
        .iter()
        .find(|agent| agent.host == b)
        .expect("an agent");
    signal(victim.pid, how);
    let ended = running.wait();
    ended.expect_code(3);
    let words = words(&b);
    assert!(ended.stderr.contains(&words), "{ended:#?}");
    let document = ended.document();
    assert_eq!(document["outcome"], "failed");
    assert!(document["reason"].as_str().expect("words").contains(&words));
    assert!(document["intervals"].as_array().expect("a list").len() >= 2);
    nothing_is_left(&running);
}

#[test]
fn a_vanished_agent_ends_the_load_with_its_name_and_what_there_is() {
    ends_with_host_b("gone", Signal::SIGKILL, |b| {
        format!("the agent of host {b} ended while")
    });
}

#[test]
fn a_stopped_agent_ends_the_load_with_its_name_and_what_there_is() {
    ends_with_host_b("stop", Signal::SIGSTOP, |b| {
        // Ten seconds, and three looks a second apart that find it idle.
        format!("host {b} did not answer within 1")
    });
}

#[test]
fn a_path_that_breaks_ends_the_load_with_the_flow() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("cut");
    let arguments = [
        "--time",
        "10min",
        "--warmup",
        "0.1s",
        "--interval",
        "0.2s",
        "--json",
    ];
    let mut running = Running::start(&mut load(&netns(&pair.a), &netns(&pair.b), &arguments));
    until_told(&mut running, 2);
    ip(&["-n", &pair.b, "link", "set", "eth0", "down"]);
    let ended = running.wait();
    ended.expect_code(3);
    let document = ended.document();
    let reason = document["reason"].as_str().expect("words");
    assert!(
        reason.contains("tcp-stream") && reason.contains("flow 0"),
        "{reason}"
    );
    assert!(ended.stderr.contains(reason), "{ended:#?}");
    nothing_is_left(&running);
}

/// Of two devices of one host both link-local networks are the same: only the device says which is meant.
#[test]
fn link_local_addresses_carry_loads_on_the_device_that_was_given() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("link");
    for (netns, address) in [(&pair.a, "fe80::77:1/64"), (&pair.b, "fe80::77:2/64")] {
        ip(&[
            "-n", netns, "link", "add", "other", "type", "veth", "peer", "name", "end",
        ]);
        ip(&["-n", netns, "link", "set", "other", "up"]);
        ip(&[
            "-n", netns, "address", "add", address, "dev", "eth0", "nodad",
        ]);
    }
    let a = format!("{}=fe80::77:1%eth0", netns(&pair.a));
    let b = format!("{}=fe80::77:2%eth0", netns(&pair.b));
    for (workload, limit, figures) in [
        ("tcp-stream", ["--bytes", "1MiB"], "/stream/gbps"),
        ("tcp-crr", FEW, "/requests/per_s"),
        ("udp-stream", FEW, "/datagrams/received_per_s"),
        ("udp-rr", FEW, "/requests/per_s"),
    ] {
        for way in ["forward", "reverse"] {
            let mut command = load(&a, &b, &[workload, "--direction", way, "--json"]);
            let ended = run(command.args(limit));
            ended.expect_code(0);
            let document = ended.document();
            assert_eq!(document["hosts"][0]["address"], "fe80::77:1", "{workload}");
            let figure = document["loads"][0].pointer(figures);
            let figure = figure.unwrap_or(&Value::Null);
            assert!(number(figure) > 0.0, "{workload} {way}: {document:#}");
        }
    }
    let alone = run(load(&a, &netns(&pair.b), &[]).args(SHORT));
    alone.expect_code(2);
    assert!(
        alone.stderr.contains("link-local address with its device"),
        "{}",
        alone.stderr
    );
    let missing = format!("{}=fe80::77:2%other", netns(&pair.b));
    let missing = run(load(&a, &missing, &[]).args(SHORT));
    missing.expect_code(2);
    assert!(
        missing.stderr.contains("has no fe80::77:2 on other"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_load_into_a_black_hole_ends_once_its_full_segments_are_lost() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("hole");
    let drop = "add table netdev hole; \
                add chain netdev hole in { type filter hook ingress device \"eth0\" priority 0; }; \
                add rule netdev hole in meta length > 1400 drop";
    // Segments that the device is to cut would be dropped unseen, and small ones with them.
    ip(&["-n", &pair.a, "link", "set", "eth0", "gso_max_segs", "1"]);
    run(Command::new("ip").args(["netns", "exec", &pair.b, "nft", drop])).expect_code(0);
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let began = std::time::Instant::now();
    let ended = run(load(&a, &b, &["tcp-stream", "--streams", "2"]).args(["--time", "10min"]));
    ended.expect_code(3);
    assert!(began.elapsed().as_secs() < 600, "it went on to its end");
    for part in [
        "flow 0: the connection opened",
        "are lost",
        "wirecost check",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    // With it the kernel finds a size that passes, after some seconds.
    let probing = "net.ipv4.tcp_mtu_probing=2";
    run(Command::new("ip").args(["netns", "exec", &pair.a, "sysctl", "-qw", probing]))
        .expect_code(0);
    let recovered = run(load(&a, &b, &["tcp-stream"]).args(["--time", "1s", "--warmup", "3s"]));
    recovered.expect_code(0);
}

#[test]
fn datagrams_that_nothing_follows_are_lost_all_the_same() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("silent");
    // Some pass, and everything after them is dropped.
    let rule = "add table inet t; add chain inet t c { type filter hook prerouting priority -300; }; \
                add rule inet t c udp length 128 limit rate over 1/day burst 300 packets drop";
    run(Command::new("ip").args(["netns", "exec", &pair.b, "nft", rule])).expect_code(0);
    let arguments = [
        "udp-stream",
        "--rate",
        "1mbit",
        "--message",
        "120",
        "--transactions",
        "1500",
        "--json",
    ];
    let mut running = Running::start(&mut load(&netns(&pair.a), &netns(&pair.b), &arguments));
    let ended = running.wait();
    ended.expect_code(0);
    let document = ended.document();
    let counted = &document["loads"][0]["result"]["datagrams"];
    let [sent, received, lost] =
        ["sent", "received", "lost"].map(|figure| counted[figure].as_u64().expect("a count"));
    // Some kernels add the rate to the burst.
    assert!((1..=301).contains(&received), "{counted}");
    assert_eq!((sent, lost), (1500, sent - received), "{counted}");
    let share = number(&document["loads"][0]["datagrams"]["lost_share"]);
    assert!((share - lost as f64 / 1500.0).abs() < 1e-9, "{share}");
    nothing_is_left(&running);
}

#[test]
fn a_thousand_and_twenty_four_streams_run() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("many");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let many = ["--streams", "1024", "--time", "1s", "--warmup", "0.2s"];
    let ended = run(&mut load(&a, &b, &[&many[..], &["--json"]].concat()));
    ended.expect_code(0);
    let document = ended.document();
    let flows = document["loads"][0]["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 1024);
    let text = run(&mut load(&a, &b, &many));
    text.expect_code(0);
    assert!(
        text.stdout.contains("1008 more flows between these"),
        "{}",
        text.stdout
    );
}

#[test]
fn threads_for_each_of_five_hundred_connections_are_counted() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("threads");
    let many = ["tcp-rr", "--streams", "512", "--threads", "512", "--json"];
    let limit = ["--transactions", "5000"];
    let ended = run(load(&netns(&pair.a), &netns(&pair.b), &many).args(limit));
    ended.expect_code(0);
    let document = ended.document();
    assert_eq!(document["outcome"], "complete");
    let load = &document["loads"][0];
    assert_eq!(load["flows"].as_array().map(Vec::len), Some(512));
    assert!(number(&load["requests"]["per_s"]) > 0.0);
}

#[test]
fn a_rate_that_no_connection_keeps_is_told_with_what_was_sent_and_how_late() {
    let arguments = ["tcp-rr", "--rate", "1000000/s", "--time", "2s"];
    let command = || {
        let mut command = load("local", "local=127.0.0.1", &arguments);
        command.args(["--warmup", "0.1s"]);
        command
    };
    let _lock = lock_shared();
    let ended = run(command().arg("--json"));
    ended.expect_code(0);
    let document = ended.document();
    let load = &document["loads"][0];
    let behind = &load["behind"];
    assert!((number(&behind["due_per_s"]) - 1e6).abs() < 1e4, "{behind}");
    assert!(number(&behind["over_per_s"]) < 0.9e6, "{behind}");
    let schedule = &load["result"]["schedule"];
    let backlog = ["backlog_before", "backlog_after"].map(|when| number(&schedule[when]));
    assert!(backlog[1] > backlog[0], "{schedule}");
    for times in ["lateness", "latency"] {
        assert!(number(&load["requests"][times]["max"]) > 0.0, "{times}");
    }
    let io = load["result"]["io"].as_array().expect("both ends");
    assert_eq!(io.len(), 2);
    assert_eq!(io[0]["waits"], "socket");
    let ended = run(&mut command());
    ended.expect_code(0);
    let text = ended.stdout;
    for words in [
        "  lateness ",
        "it did not keep its rate, and sent ",
        " requests/s: what was measured is how fast the load",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

/// The kinds of a document's values, by key; of lists the first one's.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| match key.as_str() {
                // What else the machine did meanwhile.
                "marks" => (key.clone(), json!([])),
                _ => (key.clone(), shape(value)),
            })
            .collect(),
        Value::Array(list) => list
            .first()
            .map_or_else(|| json!([]), |first| json!([shape(first)])),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("text"),
        Value::Bool(_) => json!("bool"),
        Value::Null => Value::Null,
    }
}

#[test]
fn the_document_has_a_stable_shape() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("shape");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    for workload in ["tcp-stream", "udp-rr", "udp-stream"] {
        // Held back by its rate, so that nothing that only a limit brings is in it; of 600 requests
        // a busy machine answers the 20 that a median wants, and none answers 1,000 for a p99.
        let rate = if workload == "udp-rr" {
            "200/s"
        } else {
            "1mbit"
        };
        let mut command = load(&a, &b, &[workload, "--json", "--rate", rate]);
        if workload == "udp-rr" {
            command.args(["--bound", "1ms"]);
        }
        let ended = run(command.args(SHORT));
        ended.expect_code(0);
        let mut document = ended.document();
        // The machine's: its cores, its devices, its load.
        for host in document["hosts"].as_array_mut().expect("hosts") {
            assert!(host["usage"].is_object());
            host["usage"] = json!("as in samples.jsonl");
        }
        document["notes"] = json!([]);
        document["loads"][0]["generator_bound"] = Value::Null;
        document["loads"][0]["behind"] = Value::Null;
        // A busy machine may spread nothing of so little over an interval.
        for interval in document["intervals"].as_array_mut().expect("intervals") {
            for percentile in ["p50_s", "p99_s"] {
                let latency = &mut interval["loads"][0][percentile];
                assert!(workload == "udp-rr" || latency.is_null());
                *latency = json!("number, or null");
            }
        }
        let shape = shape(&document);
        insta::assert_snapshot!(
            workload,
            serde_json::to_string_pretty(&shape).expect("JSON")
        );
    }
}

#[track_caller]
fn refused(arguments: &[&str], code: i32) -> Ended {
    let ended = run(&mut wirecost(
        ["load"].into_iter().chain(arguments.iter().copied()),
    ));
    ended.expect_code(code);
    assert_eq!(ended.stdout, "");
    ended
}

#[test]
fn what_cannot_be_is_told_at_once_and_nothing_is_started() {
    for (arguments, words) in [
        (&["nets:a", "local"][..], "at character 1"),
        (&["local", "local", "tcp-rx"], "tcp-stream"),
        (
            &["local", "local", "--rate", "fast"],
            "--rate: `fast` is not a rate",
        ),
        (
            &["local", "local", "tcp-rr", "--rate", "1gbit"],
            "requests per second: write 1000/s",
        ),
        (&["local", "local", "--request", "5"], "use --message"),
        (&["local", "local", "--bound", "soon"], "500us"),
        (
            &["local", "local", "udp-stream", "--bound", "1ms"],
            "--bound: no load here",
        ),
        (
            &["local", "local", "udp-rr", "--nodelay"],
            "--nodelay: udp-rr",
        ),
        (
            &["local", "local", "--reply-timeout", "1s"],
            "has no responses in datagrams",
        ),
        (
            &["local", "local", "--socket-buffer", "1"],
            "4096 to 536870912",
        ),
        (&["local", "local", "--time", "0s"], "--time is 0 s"),
        (
            &["local", "local", "--time", "1s", "--bytes", "5"],
            "cannot be used with",
        ),
        (
            &["local", "local", "--bytes", "5", "--warmup", "1s"],
            "cannot be used with",
        ),
        (
            &["local", "local", "mix", "--bytes", "5"],
            "end a single load",
        ),
        (
            &["local", "local", "--beside", "tcp-rr --steams 4"],
            "--steams",
        ),
        (
            &["local", "local", "--port", "0", "--beside", "tcp-rr"],
            "--port: 1 to 65535",
        ),
    ] {
        let ended = refused(arguments, 2);
        assert!(
            ended.stderr.contains(words),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    let ended = refused(
        &[
            "local",
            "local",
            "tcp-crr",
            "--depth",
            "2",
            "--streams",
            "0",
            "--dscp",
            "64",
        ],
        2,
    );
    for words in [
        "tcp-crr, --depth:",
        "tcp-crr, --streams:",
        "tcp-crr, --dscp:",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn what_the_hosts_do_not_allow_is_told_with_the_host() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("wrong");
    let (a, b) = (netns(&pair.a), netns(&pair.b));
    let foreign = format!("{a}=10.99.0.1");
    let ended = refused(&[&foreign, &b], 2);
    let words = format!("{a} has no address 10.99.0.1: it has 10.77.0.1 on eth0");
    assert!(ended.stderr.contains(&words), "{ended:#?}");

    ip(&[
        "-n",
        &pair.a,
        "address",
        "add",
        "10.78.0.1/24",
        "dev",
        "eth0",
    ]);
    ip(&[
        "-n",
        &pair.b,
        "address",
        "add",
        "10.78.0.2/24",
        "dev",
        "eth0",
    ]);
    let ended = refused(&[&a, &b], 2);
    let words = format!("such as {b}=10.77.0.2");
    assert!(ended.stderr.contains(&words), "{ended:#?}");

    let given = format!("{b}=10.78.0.2");
    let ended = refused(&[&a, &given, "--congestion", "no-such"], 3);
    assert!(
        ended.stderr.contains("no-such") && ended.stderr.contains("it has:"),
        "{ended:#?}"
    );
    // The source is the one that was given, though the kernel would take another.
    let mut source = load(&foreign, &given, &["--json"]);
    ip(&["-n", &pair.a, "address", "add", "10.99.0.1/32", "dev", "lo"]);
    ip(&[
        "-n",
        &pair.b,
        "route",
        "add",
        "10.99.0.1",
        "via",
        "10.78.0.1",
    ]);
    let ended = run(source.args(["--bytes", "1MiB"]));
    ended.expect_code(0);
    assert_eq!(ended.document()["hosts"][0]["address"], "10.99.0.1");
}

#[test]
fn this_machine_with_itself_is_loaded_over_its_loopback_without_root() {
    let _lock = lock_shared();
    let ended = run(load("local", "local", &["tcp-rr", "--json", "--quiet"]).args(FEW));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.document()["hosts"][1]["address"], "127.0.0.1");
}

#[test]
fn a_total_rate_is_divided_among_the_flows_and_told_with_the_load() {
    let _lock = lock_shared();
    let arguments = ["udp-stream", "--streams", "2", "--total-rate", "20mbit"];
    let ended = run(load("local", "local", &arguments)
        .args(["--json", "--quiet"])
        .args(SHORT));
    ended.expect_code(0);
    let document = ended.document();
    let of = &document["loads"][0];
    assert_eq!(of["load"]["rate"]["bits-per-second"], 10_000_000);
    let flows = of["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 2);
    let gbps = of["stream"]["gbps"].as_f64().expect("Gbit/s");
    assert!(
        gbps > 0.0 && gbps < 0.02 * 1.15,
        "20 Mbit/s in all made {gbps}"
    );
    let ended = run(load("local", "local", &arguments).args(SHORT));
    ended.expect_code(0);
    assert!(ended.stdout.contains("at 10mbit each"), "{}", ended.stdout);
    refused(
        &["local", "local", "--rate", "1mbit", "--total-rate", "2mbit"],
        2,
    );
}
