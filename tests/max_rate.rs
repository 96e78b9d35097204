//! What a run sends between existing hosts: stated and confirmed before, and limited.

use crate::common::{Record, TestDir, is_root, lock_shared, run, wirecost};
use crate::pair::Pair;

const SHORT: &str = "repeat: { rounds: 2, seconds: 0.4, warmup: 0.05 }\n";

/// A text whose lines were joined.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_limit_holds_for_storage_too_and_how_much_is_sent_is_stated_before() {
    const STATED: &str = "the loads send at most 80mbit in each direction for about 1 s, 9.0 MB (`max_rate` changes that)";
    let storage = format!("max_rate: 80mbit\nload: {{ storage: {{ io_size: 1MiB }} }}\n{SHORT}");
    let place = TestDir::new();
    let nowhere = place.plan(&format!(
        "name: nowhere\nhosts: {{ a: \"netns:no-a\", b: \"netns:no-b\" }}\nnetwork: existing\n{storage}"
    ));
    let shown = run(wirecost(["run", "--dry-run"]).arg(&nowhere));
    shown.expect_code(0);
    assert!(unwrapped(&shown.stdout).contains(STATED), "{shown:?}");
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("limit");
    let text = format!(
        "name: limited\nhosts: {{ a: \"netns:{}\", b: \"netns:{}=10.77.0.2\" }}\nnetwork: existing\n{storage}",
        pair.a, pair.b
    );
    let (plan, out) = (place.plan(&text), place.path().join("run"));
    let [plan, out] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let ended = run(&mut wirecost(["run", plan, "--out", out]));
    ended.expect_code(0);
    let words = format!("measures between 10.77.0.1 and 10.77.0.2: {STATED}");
    assert!(unwrapped(&ended.stderr).contains(&words), "{ended:?}");
    let record = Record::read(out.as_ref()).expect("a record");
    for sample in &record.samples {
        // 9.5 in a second, of which the window has 0.4; the machine may take longer to end it.
        let requests = sample.loads[0].requests.as_ref().expect("requests");
        let most = 9.6 * sample.loads[0].seconds + 2.0;
        assert!(requests.transactions as f64 <= most, "{requests:?}");
    }
}

#[test]
fn hosts_that_are_not_this_machine_are_not_even_reached_before_somebody_confirms_the_load() {
    let place = TestDir::new();
    let reached = place.path().join("reached");
    let host = format!("exec:sh -c 'touch {}; exec \"$@\"' -", reached.display());
    let text = format!("name: elsewhere\nnetwork: existing\nload: tcp-stream\n{SHORT}");
    let (plan, out) = (place.plan(&text), place.path().join("run"));
    let [plan, out_text] = [&plan, &out].map(|path| path.to_str().expect("a plain path"));
    let hosts = format!("{host},{host}");
    let mut command = wirecost(["run", plan, "--hosts", &hosts, "--out", out_text]);
    let refused = run(command
        .env("HOME", place.path())
        .env_remove("XDG_STATE_HOME"));
    refused.expect_code(2);
    let said = unwrapped(&refused.stderr);
    for words in [
        "This loads the network between exec:sh",
        "at most half of the link's speed in each direction, 1gbit where that is not known, for about 1 s: 112.5 MB at 1gbit",
        "no terminal to confirm on",
        "--yes",
    ] {
        assert!(said.contains(words), "{words}: {refused:?}");
    }
    assert!(!reached.exists() && !out.exists(), "{refused:?}");
}
