//! `wirecost diagnose`: settings are tried one at a time and undone; what limits a known path is judged in emulated machines.

use crate::common::{Place, beside_others, is_root, run, wirecost};
use crate::existing::state;
use crate::pair::Pair;

#[test]
fn every_setting_that_is_tried_is_undone_and_judged() {
    if !is_root() {
        return;
    }
    let _turn = beside_others();
    let (pair, place) = (Pair::new("diagnose"), Place::new());
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
        "1s",
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
        "tx-tcp-segmentation off on a",
        "rx-checksum off on b",
    ] {
        assert!(switches.contains(&switch), "{switches:?}");
    }
    assert!(
        tried.iter().all(|tried| tried["ratio"].is_f64()),
        "each was measured: {document}"
    );
    // The record is a run's like any other.
    let report = run(&mut wirecost(["report", out]));
    report.expect_code(0);
    assert!(
        report.stdout.contains("tx-tcp-segmentation off on a"),
        "{report:?}"
    );
}
