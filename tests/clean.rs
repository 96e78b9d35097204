//! `wirecost clean`: what has outlived its run is ended, everything else is left alone.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::{
    Owner, is_root, lab_can_be_built, lock_machine_state, program, run, settings_guards, signal,
    skip, state_and_start, succeeds, wait_for, wirecost,
};
use crate::runs::{as_plain_user, dir_for_everybody};
use nix::sys::signal::Signal;

/// An agent that this test started, its standard input held open.
struct HeldAgent(Child);

impl HeldAgent {
    fn start(owner: Owner) -> Self {
        let mut command = wirecost(["agent", "--host", "a", "--cpus", "0", "--owner"]);
        command
            .arg(owner.argument())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        let agent = Self(command.spawn().expect("the agent starts"));
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let (own, pid) = (namespace("self"), agent.0.id().to_string());
        wait_for("the agent's namespace", || {
            namespace(&pid).filter(|of| Some(of) != own.as_ref())
        });
        agent
    }
}

impl Drop for HeldAgent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that is no more.
fn dead_process() -> Owner {
    let mut child = Command::new("true").spawn().expect("a process");
    let owner = Owner::of(child.id());
    child.wait().expect("its end");
    owner
}

#[test]
fn clean_ends_a_stopped_agent_whose_run_is_gone_and_says_so() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_machine_state();
    let owner = dead_process();
    let mut agent = HeldAgent::start(owner);
    let pid = agent.0.id();
    assert!(signal(pid, Signal::SIGSTOP));
    wait_for("the agent to stop", || {
        state_and_start(pid).filter(|(state, _)| *state == 'T')
    });

    let ended = run(&mut wirecost(["clean"]));

    ended.expect_code(0);
    let line = format!("ended stopped agent {pid}, left by run {}", owner.pid);
    assert!(ended.stdout.contains(&line), "{ended:#?}");
    let status = wait_for("the agent to be gone", || {
        agent.0.try_wait().expect("our own child")
    });
    assert!(!status.success(), "{status}");
}

#[test]
fn clean_goes_on_where_a_stopped_settings_guard_is_another_users() {
    if !is_root() {
        return;
    }
    let _lock = lock_machine_state();
    let owner = dead_process();
    // Within a session everybody may continue what is stopped (kill(2)).
    let mut command = Command::new("setsid");
    command
        .arg(program())
        .args(["settings-guard", "--place", "host a", "--owner"])
        .arg(owner.argument())
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let guard = HeldAgent(command.spawn().expect("setsid of util-linux"));
    let pid = guard.0.id();
    wait_for("the guard", || {
        settings_guards(&owner.argument())
            .contains(&pid)
            .then_some(())
    });
    assert!(signal(pid, Signal::SIGSTOP));
    wait_for("the guard to stop", || {
        state_and_start(pid).filter(|(state, _)| *state == 'T')
    });
    let (_place, program) = dir_for_everybody();
    let program = program.to_str().expect("text");

    let ended = run(as_plain_user(program).args(["clean", "--json"]));

    ended.expect_code(3);
    let document = ended.document();
    let wanted = serde_json::json!({
        "agent": { "pid": pid, "controller": owner.pid, "stopped": true, "guard": true },
        "error": "Operation not permitted (os error 1)"
    });
    let refused = document["refused"].as_array().expect("a list");
    assert!(refused.contains(&wanted), "{document}");
    let ended = run(as_plain_user(program).arg("clean"));
    let line = format!("could not continue settings guard {pid}: Operation not permitted");
    assert!(ended.stdout.contains(&line), "{ended:#?}");
}

#[test]
fn clean_as_json_names_what_it_ended() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_machine_state();
    let owner = dead_process();
    let mut agent = HeldAgent::start(owner);

    let ended = run(&mut wirecost(["clean", "--json"]));

    ended.expect_code(0);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("one document");
    let wanted = serde_json::json!({
        "pid": agent.0.id(), "controller": owner.pid, "stopped": false
    });
    let ended_agents = document["ended"].as_array().expect("a list");
    assert!(ended_agents.contains(&wanted), "{document}");
    wait_for("the agent to be gone", || {
        agent.0.try_wait().expect("our own child")
    });
}

#[test]
fn clean_leaves_the_agents_of_a_living_run_alone_and_they_end_with_their_input() {
    if !lab_can_be_built() {
        return;
    }
    let _lock = lock_machine_state();
    let mut agent = HeldAgent::start(Owner::of(std::process::id()));
    let pid = agent.0.id();

    let ended = run(&mut wirecost(["clean"]));

    ended.expect_code(0);
    assert!(
        !ended.stdout.contains(&format!("agent {pid},")),
        "{ended:#?}"
    );
    assert!(
        agent.0.try_wait().expect("our own child").is_none(),
        "it was ended"
    );

    drop(agent.0.stdin.take());
    let status = wait_for("the agent's own end", || {
        agent.0.try_wait().expect("our own child")
    });
    assert!(status.success(), "{status}");
}

#[test]
fn clean_with_nothing_to_clean_says_so() {
    if !lab_can_be_built() {
        return;
    }
    // Where there is no process and no tunnel but its own: what somebody else's killed run has left is not this test's.
    let inside = "mount -t tmpfs none /run && exec \"$@\"";
    let enter = |program: &Path| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--mount-proc"]);
        if !nix::unistd::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["sh", "-c", inside, "sh"]).arg(program);
        command
    };
    if !succeeds(&mut enter(Path::new("true"))) {
        skip("a /proc of its own cannot be mounted here");
        return;
    }
    let clean = |more: &[&str]| run(enter(program()).arg("clean").args(more));

    let ended = clean(&[]);
    ended.expect_code(0);
    assert_eq!(
        ended.stdout,
        "nothing to clean: every agent belongs to a running run\n"
    );
    assert_eq!(ended.stderr, "");

    let ended = clean(&["--json"]);
    ended.expect_code(0);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).expect("one document");
    let tunnels = serde_json::json!({ "removed": [], "devices": [], "up": [], "refused": [] });
    assert_eq!(
        document,
        serde_json::json!({ "ended": [], "refused": [], "tunnels": tunnels })
    );
}

#[test]
fn the_journal_of_a_host_with_another_name_is_named_and_left_alone() {
    let (place, program) = dir_for_everybody();
    let directory = place.path().join(".local/state/wirecost/journal");
    fs::create_dir_all(&directory).expect("a directory");
    let (path, marker) = (
        directory.join("1-2.elsewhere.json"),
        place.path().join("ran"),
    );
    let command = format!("touch {}", marker.display());
    let entry = serde_json::json!({
        "process": "1:2",
        "boot": "an earlier one",
        "machine": "elsewhere",
        "netns": 0,
        "place": "host a",
        "device": "lo",
        "undo": [{ "of": "l", "what": { "Command": command } }],
    });
    fs::write(&path, entry.to_string()).expect("a journal");
    let mut clean = as_plain_user(program.to_str().expect("text"));
    clean
        .args(["clean", "--host", "local"])
        .env("HOME", place.path())
        .env_remove("XDG_STATE_HOME");
    let ended = run(&mut clean);
    ended.expect_code(0);
    assert!(
        ended.stdout.contains("nothing was left changed"),
        "{ended:?}"
    );
    for part in [path.to_str().expect("text"), "left alone", "\"elsewhere\""] {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
    assert!(path.exists() && !marker.exists());
}
