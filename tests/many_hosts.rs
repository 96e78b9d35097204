//! Fifty hosts, and a control line on which nothing is said for minutes. Long: `cargo test --test program many_hosts --
//! --ignored --nocapture`.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_agent::protocol::{Reply, Request};

use crate::common::namespaces::Namespaces;
use crate::common::{Record, Running, TestDir, is_root, program, wait_for, wirecost};
use crate::hosts::link;
use crate::pair::{Pair, ip};

/// A process's resident memory now and at most, MiB (proc_pid_status(5)).
fn memory(pid: u32) -> Option<[f64; 2]> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
    };
    Some([mib("VmRSS:")?, mib("VmHWM:")?])
}

/// Agents of hosts whose namespaces begin with this.
fn agents(prefix: &str) -> Vec<u32> {
    let word = format!("exec:ip netns exec {prefix}");
    let processes = fs::read_dir("/proc").expect("proc");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = text.split('\0');
        words.nth(1) == Some("agent") && words.any(|one| one.starts_with(&word))
    })
    .collect()
}

/// Namespaces on one bridge, the first of which has it.
fn star(prefix: &str, count: usize) -> (Vec<String>, Namespaces) {
    let names: Vec<String> = (0..count)
        .map(|number| format!("{prefix}{number}"))
        .collect();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let made = Namespaces::new(&words);
    let hub = words[0];
    ip(&["-n", hub, "link", "add", "br0", "type", "bridge"]);
    ip(&["-n", hub, "address", "add", "10.79.0.1/24", "dev", "br0"]);
    ip(&["-n", hub, "link", "set", "br0", "up"]);
    for (number, name) in words.iter().enumerate().skip(1) {
        let (port, address) = (format!("p{number}"), format!("10.79.0.{}/24", number + 1));
        ip(&[
            "-n", hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", name,
        ]);
        ip(&["-n", hub, "link", "set", &port, "master", "br0", "up"]);
        ip(&["-n", name, "address", "add", &address, "dev", "eth0"]);
        ip(&["-n", name, "link", "set", "eth0", "up"]);
    }
    (names, made)
}

#[test]
#[ignore = "takes minutes and says figures: for a quiet machine"]
fn fifty_hosts_take_time_and_memory_in_proportion() {
    if !is_root() {
        return;
    }
    println!("hosts  connected s  run s  agents MiB, each at most  controller MiB");
    for count in [2, 10, 25, 50] {
        let prefix = format!("wctm{}x{count}h", std::process::id());
        let (names, _made) = star(&prefix, count);
        let place = TestDir::new();
        let (mut hosts, mut pairs) = (String::new(), Vec::new());
        for (number, name) in names.iter().enumerate() {
            let called = match number {
                0 => "a".to_owned(),
                1 => "b".to_owned(),
                more => format!("h{more}"),
            };
            let address = number + 1;
            writeln!(
                hosts,
                "  {called}: \"exec:ip netns exec {name} =10.79.0.{address}\""
            )
            .expect("to memory");
            if number > 0 {
                pairs.push(format!("[a, {called}]"));
            }
        }
        let plan = place.plan(&format!(
            "name: many\nseed: 1\nnetwork: existing\nhosts:\n{hosts}pairs: [{}]\nrepeat: {{ rounds: 1, seconds: 0.05, warmup: 0 }}\n",
            pairs.join(", ")
        ));
        let out = place.path().join("run");
        let [plan, out_text] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
        let began = Instant::now();
        let mut running = Running::start(&mut wirecost(["run", plan, "--out", out_text, "--yes"]));
        wait_for("the first sample to begin", || {
            (out.join("samples.jsonl").exists() || running.ended().is_some()).then_some(())
        });
        let connected = began.elapsed().as_secs_f64();
        let agents = agents(&prefix);
        let of_agents: Vec<[f64; 2]> = agents.iter().filter_map(|pid| memory(*pid)).collect();
        let controller = memory(running.pid()).map_or(0.0, |[_, most]| most);
        running.wait().expect_code(0);
        let took = began.elapsed().as_secs_f64();
        let all: f64 = of_agents.iter().map(|[now, _]| now).sum();
        let most = of_agents.iter().map(|[_, most]| *most).fold(0.0, f64::max);
        println!(
            "{count:5}  {connected:11.2}  {took:5.2}  {all:10.1}  {most:13.1}  {controller:14.1}"
        );
        let record = Record::read(&out).expect("a record");
        assert_eq!(record.samples.len(), count - 1);
        assert!(record.samples.iter().all(|sample| sample.invalid.is_none()));
    }
}

#[test]
fn an_agent_at_rest_is_small() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("rest");
    let link = link(&format!("exec:ip netns exec {}", pair.a)).expect("an agent");
    let [now, _] = memory(link.pid()).expect("a process");
    // A build for tests is larger than the program that is shipped.
    assert!(now <= 20.0, "{now} MiB of {}", program().display());
}

#[test]
#[ignore = "takes five minutes"]
fn a_line_on_which_nothing_is_said_for_five_minutes_is_there() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("idle");
    let never = AtomicBool::new(false);
    let mut link = link(&format!("exec:ip netns exec {}", pair.a)).expect("an agent");
    sleep(Duration::from_mins(5) + Duration::from_secs(5));
    let told = link.call(&Request::Machine, Duration::from_secs(5), &never);
    assert!(matches!(told, Ok(Reply::Machine(_))), "{told:?}");
    // Its loss is an error with the host's name.
    crate::common::signal(link.pid(), nix::sys::signal::Signal::SIGKILL);
    let error = link.call(&Request::Machine, Duration::from_secs(5), &never);
    let words = error.expect_err("it is gone").to_string();
    assert!(
        words.contains(&pair.a) && words.contains("ended while"),
        "{words}"
    );
}
