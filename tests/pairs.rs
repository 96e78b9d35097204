//! Runs between more than two hosts: a level for each pair, measured between its hosts alone.

use crate::common::{Record, TestDir, cell_of, is_root, lock_shared, run, wirecost};
use crate::existing::state;
use crate::pair::{Star, ip};

const SHORT: &str = "repeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n";

/// Runs a plan over the hosts of a star, named by their letters.
fn measured(star: &Star, place: &TestDir, plan: &str) -> (String, Record) {
    let (plan, out) = (place.plan(plan), place.path().join("run"));
    let [plan, out_text] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let hosts = format!(
        "exec:ip netns exec {},netns:{},netns:{}",
        star.pair.a, star.pair.b, star.c
    );
    let arguments = ["run", plan, "--out", out_text, "--hosts", &hosts, "--yes"];
    let ended = run(&mut wirecost(arguments));
    ended.expect_code(0);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    (said, Record::read(&out).expect("a record"))
}

#[test]
fn each_pair_is_a_level_measured_and_changed_between_its_own_hosts() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (star, place) = (Star::new("pairs"), TestDir::new());
    ip(&["-n", &star.pair.a, "link", "set", "eth1", "mtu", "1400"]);
    ip(&["-n", &star.c, "link", "set", "eth0", "mtu", "1400"]);
    let all = [&star.pair.a, &star.pair.b, &star.c];
    let before = all.map(|netns| state(netns));
    let plan = format!(
        "name: star\nseed: 1\nnetwork: existing\nallow_host_changes: on\npairs: [[a, b], [a, c]]\nvary:\n  mtu:\n    \
         - label: as it is\n    - {{ label: 1300, mtu: 1300 }}\n{SHORT}"
    );
    let (said, record) = measured(&star, &place, &plan);
    assert_eq!(all.map(|netns| state(netns)), before);
    assert_eq!(record.samples.len(), 8);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        let levels = &cell_of(&record, sample).levels;
        let changed = levels["mtu"] == "1300";
        let (device, size) = match levels["pairs"].as_str() {
            "a and b" => ("eth0", if changed { 1300 } else { 1500 }),
            "a and c" => ("eth1", if changed { 1300 } else { 1400 }),
            other => panic!("{other}"),
        };
        assert_eq!(sample.devices[0].name, device);
        assert!(
            sample.proofs.len() == 4 && sample.proofs.iter().all(|proof| proof.size == size),
            "{sample:?}"
        );
    }
    let hosts = record.head.environment.hosts.keys();
    assert_eq!(hosts.collect::<Vec<_>>(), ["a", "b", "c"]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("the path between a and c instead of that between a and b"),
        "{said}"
    );
}

#[test]
fn tunnels_are_built_between_the_hosts_of_each_pair() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (star, place) = (Star::new("tuns"), TestDir::new());
    ip(&["-n", &star.c, "link", "set", "eth0", "mtu", "1400"]);
    let plan = format!(
        "name: star\nseed: 1\nnetwork: tunnel\nencapsulation: vxlan\npairs: [[b, a], [a, c]]\n{SHORT}"
    );
    let (_, record) = measured(&star, &place, &plan);
    assert_eq!(record.samples.len(), 4);
    for sample in &record.samples {
        assert_eq!(sample.invalid, None);
        let cell = cell_of(&record, sample);
        let mtu = if cell.levels["pairs"] == "b and a" {
            1500
        } else {
            1400
        };
        assert_eq!(cell.network.underlay_mtu, mtu, "of the pair's own devices");
    }
}

#[test]
fn hosts_and_pairs_that_do_not_fit_are_refused() {
    let place = TestDir::new();
    let refused = |pairs: &str, hosts: &str| {
        let plan = place.plan(&format!("name: x\nnetwork: existing\n{pairs}"));
        let plan = plan.to_str().expect("a plain path");
        let ended = run(&mut wirecost(["run", plan, "--hosts", hosts, "--dry-run"]));
        ended.expect_code(2);
        ended.stderr
    };
    let error = refused("pairs: [[a, b], [a, d]]\n", "local,netns:b,netns:c");
    assert!(
        error.contains("have a host `d`, and 3 hosts are given"),
        "{error}"
    );
    let error = refused("", "local,netns:b,netns:c");
    assert!(error.contains("host `c` is in no pair"), "{error}");
    let plan = place.plan("name: x\nnetwork: existing\npairs: [[a, b], [a, c]]\n");
    let plan = plan.to_str().expect("a plain path");
    let hosts = "local,netns:b,ssh:db3";
    let shown = run(&mut wirecost(["run", plan, "--hosts", hosts, "--dry-run"]));
    shown.expect_code(0);
    assert!(
        shown.stdout.contains("a and c: local and ssh:db3"),
        "{shown:?}"
    );
}
