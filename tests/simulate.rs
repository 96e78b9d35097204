//! `wirecost check --simulate`: TCP over a black hole, and that the setting it needs is put back.

use std::process::Command;

use crate::common::{Ended, Running, run, skip, wait_for, wirecost};
use nix::sys::signal::Signal;
use serde_json::Value;
use wirecost_faults::{Fault, Lab, LabError, catalogue};

/// `None`, with a word about it, where this machine does not let us.
fn within<T: Send>(name: &str, work: impl FnOnce(&Fault) -> T + Send) -> Option<T> {
    let faults = catalogue().unwrap_or_else(|error| panic!("{error}"));
    let fault = faults.iter().find(|fault| fault.name == name);
    let fault = fault.expect("a file of the catalogue");
    match Lab::with(fault, |_| work(fault)) {
        Ok(value) => Some(value),
        Err(LabError::Unprivileged(why)) => {
            skip(format!("labs of faults need root: {why}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn simulate(fault: &Fault, more: &[&str]) -> Command {
    let mut command = wirecost(["check", "--simulate"]);
    command.args(&fault.check).args(more);
    command
}

/// What the setting is in a namespace of the calling thread's lab.
fn probing(netns: &str) -> String {
    let command = "cat /proc/sys/net/ipv4/tcp_mtu_probing";
    let net = format!("--net=/run/netns/{netns}");
    let ended = run(Command::new("nsenter").args([net.as_str(), "sh", "-c", command]));
    ended.expect_code(0);
    ended.stdout.trim().to_owned()
}

#[track_caller]
fn transfers(ended: &Ended) -> Vec<Value> {
    let document = ended.document();
    document["simulations"].as_array().expect("a list").clone()
}

#[test]
fn a_black_hole_stalls_tcp_for_good_unless_it_looks_for_smaller_segments() {
    let ended = within("switch-1450-of-9000", |fault| {
        let ended = run(&mut simulate(fault, &["--json", "--simulate-limit", "30"]));
        assert_eq!([probing("a"), probing("b")], ["0", "0"]);
        ended
    });
    let Some(ended) = ended else { return };
    ended.expect_code(1);
    let transfers = transfers(&ended);
    let ways: Vec<_> = transfers
        .iter()
        .map(|of| {
            (
                of["from"].as_str().expect("a host"),
                of["tcp_mtu_probing"].as_u64(),
            )
        })
        .collect();
    let expected = ["netns:a", "netns:b"]
        .into_iter()
        .flat_map(|from| [0, 1, 2].map(|probing| (from, Some(probing))));
    assert_eq!(ways, expected.collect::<Vec<_>>());
    for transfer in &transfers {
        assert_eq!(
            transfer["heartbeats"], 10,
            "small messages pass: {transfer:#}"
        );
        let of = transfer["of_bytes"].as_u64();
        let stalled = transfer["stalled_seconds"].as_f64().expect("seconds") > 0.0;
        match transfer["tcp_mtu_probing"].as_u64() {
            Some(0) => {
                assert_eq!(transfer["bytes"], 0, "{transfer:#}");
                assert!(
                    transfer["recovered_after_seconds"].is_null() && stalled,
                    "{transfer:#}"
                );
                assert_eq!(transfer["mss_after"], transfer["mss_before"]);
            }
            Some(1) => {
                assert_eq!(transfer["bytes"].as_u64(), of, "{transfer:#}");
                assert!(
                    transfer["recovered_after_seconds"].is_number() && stalled,
                    "{transfer:#}"
                );
                assert!(transfer["mss_after"].as_u64() < Some(1450), "{transfer:#}");
            }
            _ => {
                assert_eq!(transfer["bytes"].as_u64(), of, "{transfer:#}");
                assert!(transfer["mss_before"].as_u64() < Some(1450), "{transfer:#}");
            }
        }
    }
}

#[test]
fn where_nothing_is_wrong_everything_arrives_and_it_is_told_in_lines() {
    let ended = within("right-as-expected", |fault| run(&mut simulate(fault, &[])));
    let Some(ended) = ended else { return };
    ended.expect_code(0);
    for probing in 0..3 {
        let line = format!("tcp_mtu_probing {probing}: 16.0 MB in ");
        assert_eq!(ended.stdout.matches(&line).count(), 2, "{ended:#?}");
    }
}

#[test]
fn the_setting_is_put_back_when_the_check_is_killed() {
    within("switch-1450-of-9000", |fault| {
        // The first of host a's three lets the setting be as it is; host b's follow.
        let mut running = Running::start(&mut simulate(fault, &["--simulate-limit", "3"]));
        running.wait_for("the setting", |_| (probing("a") != "0").then_some(()));
        assert!(running.signal(Signal::SIGKILL), "it has not ended");
        wait_for("the setting to be put back", || {
            (probing("a") == "0" && probing("b") == "0").then_some(())
        });
    });
}

#[test]
fn hosts_that_others_use_are_refused() {
    for hosts in [
        ["local=127.0.0.1", "netns:none"],
        ["netns:none", "local=127.0.0.1"],
        ["netns:none", "10.0.0.1"],
        ["netns:none", "netns:none=10.0.0.1"],
    ] {
        let ended = run(&mut wirecost(["check", hosts[0], hosts[1], "--simulate"]));
        ended.expect_code(2);
        assert!(ended.stderr.contains("tcp_mtu_probing"), "{ended:#?}");
    }
    run(&mut wirecost([
        "check",
        "netns:a",
        "netns:b",
        "--simulate-limit",
        "3",
    ]))
    .expect_code(2);
}
