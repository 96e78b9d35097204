//! How a test says that it cannot run here: one line, which `make test` counts at its end (`scripts/skips`).

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Where skips are written to, one a line; not set, they are only printed.
const FILE: &str = "WIRECOST_SKIPS";

/// Set to 1 where every privilege and every tool has to be there (`.ci/run`).
const REQUIRED: &str = "WIRECOST_REQUIRE_ROOT";

/// Says that a test, or a part of it, is skipped for want of a privilege or a tool. Always `false`, to be the last word
/// of "may this run?".
///
/// # Panics
/// Under `WIRECOST_REQUIRE_ROOT=1`.
#[track_caller]
pub fn skip(why: impl Display) -> bool {
    let required = env::var_os(REQUIRED).is_some_and(|value| value == "1");
    assert!(!required, "{REQUIRED}=1, and {why}");
    lacks(why)
}

/// Says that a test, or a part of it, is skipped because this kernel or machine does not have what it is about: nobody
/// can require that. Always `false`.
pub fn lacks(what: impl Display) -> bool {
    println!("skipped: {what}");
    note(&what.to_string());
    false
}

/// Says that a run measured a sample again, which counts as a valid one: on an idle machine there are none.
pub fn measured_again(reason: &str) {
    println!("measured again: {reason}");
    note(&format!("measured again: {reason}"));
}

fn note(what: &str) {
    if let Some(path) = env::var_os(FILE) {
        let what = what.lines().next().unwrap_or_default();
        let thread = std::thread::current();
        let line = format!("{what}\t{}\n", thread.name().unwrap_or("a thread"));
        // One write, which no other test's can be in the middle of.
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
