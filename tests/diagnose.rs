//! `wirecost diagnose`: settings are tried one at a time and undone. What limits a path of which that is known is
//! judged in emulated machines, where no other program has a part in it (tests/kernels/diagnose.rs).

use std::process::Command;

use crate::common::{TestDir, is_root, lock_shared, run, wirecost};
use crate::existing::state;
use crate::pair::{Pair, ip};

#[test]
fn every_setting_that_is_tried_is_undone_and_judged() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("diagnose"), TestDir::new());
    let [a, b] = [&pair.a, &pair.b].map(|netns| format!("netns:{netns}"));
    let before = [state(&pair.a), state(&pair.b)];
    let out = place.path().join("run");
    let out = out.to_str().expect("a plain path");
    let arguments = [
        "diagnose",
        &a,
        &b,
        "--allow-host-changes",
        "--time",
        "75s",
        "--out",
        out,
        "--json",
    ];

    let unasked = run(&mut wirecost(arguments));
    unasked.expect_code(2);
    assert!(
        unasked.stderr.contains("tx-tcp-segmentation off"),
        "{unasked:?}"
    );

    let ended = run(wirecost(arguments).arg("--yes"));
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    assert_eq!([state(&pair.a), state(&pair.b)], before);
    let document = ended.document();
    assert!(
        document["gbit_per_s"].as_f64().expect("a rate") > 0.0,
        "{document}"
    );
    assert!(
        !document["now"]["evidence"]
            .as_str()
            .expect("evidence")
            .is_empty()
    );
    let tried = document["tried"].as_array().expect("what was tried");
    let switches: Vec<&str> = tried
        .iter()
        .filter_map(|tried| tried["switch"].as_str())
        .collect();
    for switch in [
        "4 streams",
        "socket buffers of 16 MiB",
        "tx-tcp-segmentation off on a",
    ] {
        assert!(switches.contains(&switch), "{switches:?}");
    }
    assert!(
        tried.iter().all(|tried| tried["ratio"].is_f64()),
        "each was measured: {document}"
    );
    // No setting of a host, but what it is compared with.
    let compared = document["compared"].as_array().expect("what was compared");
    for what in ["the other direction", "messages of 4 KiB"] {
        let mut all = compared.iter();
        let one = all.find(|one| one["what"] == what).expect(what);
        assert!(
            one["ratio"].is_f64() && one["gbit_per_s"].is_f64(),
            "{document}"
        );
        assert!(!switches.contains(&what), "{switches:?}");
    }
    let left = document["not_tried"].as_array().expect("what was not");
    assert!(
        left.iter().any(|switch| switch == "rx-gro-list on on b"),
        "there is not so much time: {document}"
    );
    // The record is a run's like any other.
    let report = run(&mut wirecost(["report", out]));
    report.expect_code(0);
    assert!(
        report.stdout.contains("tx-tcp-segmentation off on a"),
        "{report:?}"
    );
}

#[test]
fn a_change_that_the_kernel_refuses_ends_no_diagnosis() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("refused"), TestDir::new());
    // Without checksums the kernel has no segmentation offload either.
    let off = [
        "netns", "exec", &pair.a, "ethtool", "-K", "eth0", "tx", "off",
    ];
    ip(&off);
    let [a, b] = [&pair.a, &pair.b].map(|netns| format!("netns:{netns}"));
    let before = [state(&pair.a), state(&pair.b)];
    let out = place.path().join("run");
    let ended = run(&mut wirecost([
        "diagnose",
        &a,
        &b,
        "--allow-host-changes",
        "--yes",
        "--time",
        "75s",
        "--json",
        "--out",
        out.to_str().expect("a plain path"),
    ]));
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    assert_eq!([state(&pair.a), state(&pair.b)], before);
    let document = ended.document();
    let tried = document["tried"].as_array().expect("what was tried");
    let of = |switch: &str| {
        let one = tried.iter().find(|tried| tried["switch"] == switch);
        one.unwrap_or_else(|| panic!("{switch}: {document}"))
    };
    assert!(of("4 streams")["ratio"].is_f64(), "{document}");
    let refused = of("tx-tcp-segmentation on on a");
    assert_eq!(refused["judged"], "not_known", "{document}");
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(reason.contains("tx-tcp-segmentation"), "{reason}");
}

#[test]
fn every_device_beneath_a_tunnel_is_tried_and_left_as_it_was() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("beneath"), TestDir::new());
    for (host, own, other) in [(&pair.a, 1, 2), (&pair.b, 2, 1)] {
        let vxlan = format!(
            "-n {host} link add vxlan0 mtu 1400 type vxlan id 7 local 10.77.0.{own} remote 10.77.0.{other} dstport 4789"
        );
        ip(&vxlan.split(' ').collect::<Vec<_>>());
        let address = format!("10.88.0.{own}/24");
        ip(&["-n", host, "address", "add", &address, "dev", "vxlan0"]);
        ip(&["-n", host, "link", "set", "vxlan0", "up"]);
    }
    let all = || [&pair.a, &pair.b].map(|netns| (state(netns), shown(netns, "vxlan0")));
    let before = all();
    let [a, b] =
        [(&pair.a, 1), (&pair.b, 2)].map(|(netns, own)| format!("netns:{netns}=10.88.0.{own}"));
    let out = place.path().join("run");
    let ended = run(&mut wirecost([
        "diagnose",
        &a,
        &b,
        "--allow-host-changes",
        "--yes",
        "--time",
        "110s",
        "--json",
        "--out",
        out.to_str().expect("a plain path"),
    ]));
    assert!(matches!(ended.status.code(), Some(0 | 1)), "{ended:?}");
    assert_eq!(all(), before);
    let document = ended.document();
    let tried = document["tried"].as_array().expect("what was tried");
    let of = |switch: &str| {
        let one = tried.iter().find(|tried| tried["switch"] == switch);
        one.unwrap_or_else(|| panic!("{switch}: {document}"))
    };
    for switch in [
        "an MTU of 1450 on both",
        "tx-checksum-ip-generic off on a",
        "tx-tcp-segmentation off on eth0 of a",
    ] {
        assert!(
            of(switch)["ratio"].is_f64(),
            "{switch} was measured: {document}"
        );
    }
    let commands = of("tx-tcp-segmentation off on eth0 of a")["commands"].to_string();
    let set = format!("ip netns exec {} ethtool -K eth0 tso off   # on a", pair.a);
    assert!(commands.contains(&set), "{commands}");
}

/// A device's link and features.
fn shown(netns: &str, device: &str) -> String {
    let words = [
        &["ip", "-o", "link", "show", device][..],
        &["ethtool", "-k", device],
    ];
    let shown = words.map(|words| {
        let mut command = Command::new("ip");
        let ended = run(command.args(["netns", "exec", netns]).args(words));
        ended.expect_code(0);
        ended.stdout
    });
    shown.join("\n")
}
