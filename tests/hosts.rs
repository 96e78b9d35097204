//! Agents on hosts of every kind: they come up, they tell what is wrong, and nothing of them is left.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::common::{TestDir, install, is_root, program, succeeds, wait_for};
use crate::pair::Pair;
use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::orphan::Owner;
use wirecost_control::hosts::{
    AgentHost, AgentRole, Binaries, HostAddresses, HostsContext, data_plane, open,
};
use wirecost_model::host::HostAddress;

pub(crate) static NO_INTERRUPT: AtomicBool = AtomicBool::new(false);

pub(crate) fn context() -> HostsContext {
    HostsContext {
        program: program().to_owned(),
        binaries: Binaries::default(),
        owner: Owner::this().expect("proc"),
        role: AgentRole::Commands,
        idle: Duration::ZERO,
        verbose: 0,
    }
}

pub(crate) fn host(text: &str) -> HostAddress {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn link(text: &str) -> Result<Link, LinkError> {
    let links = open(&context(), &[&host(text)], &NO_INTERRUPT)?;
    Ok(links.into_iter().next().expect("one host"))
}

#[track_caller]
fn refused(text: &str) -> String {
    link(text).expect_err(text).to_string()
}

/// Addresses of the host at the end of a line.
fn addresses(link: &mut Link) -> Vec<String> {
    let own = AgentHost {
        link,
        interrupt: &NO_INTERRUPT,
    }
    .own()
    .expect("addresses");
    own.iter().map(|own| own.address.to_string()).collect()
}

/// Processes with this word among their arguments.
fn processes_with(word: &str) -> Vec<u32> {
    let own = std::process::id();
    fs::read_dir("/proc")
        .expect("proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| *pid != own)
        .filter(|pid| {
            let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline"));
            arguments.is_ok_and(|text| text.split('\0').any(|one| one.contains(word)))
        })
        .collect()
}

#[track_caller]
fn nothing_is_left_with(word: &str) {
    wait_for("the agents to be gone", || {
        processes_with(word).is_empty().then_some(())
    });
}

#[test]
fn an_agent_comes_up_in_every_kind_of_host_and_is_gone_after_it() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("kinds");
    let a = &pair.a;
    for text in [
        format!("netns:{a}"),
        format!("exec:ip netns exec {a}"),
        format!("exec:ip netns exec '{a}' env 'X=it works'"),
        format!("exec:sh -c 'echo Welcome; exec ip netns exec {a} \"$@\"' -"),
    ] {
        let mut link = link(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(addresses(&mut link), ["10.77.0.1", "fd77::1"], "{text}");
        assert!(!processes_with(a).is_empty(), "{text}");
        drop(link);
        nothing_is_left_with(a);
    }
    let mut local = link("local").expect("this machine");
    assert_eq!(local.host(), "local");
    addresses(&mut local);
}

#[test]
fn two_hosts_find_the_addresses_between_them() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("plane");
    let Pair { a, b, .. } = &pair;
    for (from, to, expected) in [
        (
            format!("netns:{a}"),
            format!("exec:ip netns exec {b}"),
            ["10.77.0.1", "10.77.0.2"],
        ),
        (
            format!("netns:{a}"),
            format!("netns:{b}=fd77::2"),
            ["fd77::1", "fd77::2"],
        ),
        (
            format!("netns:{a}=10.77.0.1"),
            format!("netns:{b}"),
            ["10.77.0.1", "10.77.0.2"],
        ),
    ] {
        let hosts = [host(&from), host(&to)];
        let links = open(&context(), &[&hosts[0], &hosts[1]], &NO_INTERRUPT).expect("both");
        let [mut from, mut to] = <[Link; 2]>::try_from(links).expect("two");
        let asked = |link| AgentHost {
            link,
            interrupt: &NO_INTERRUPT,
        };
        let found = data_plane(
            [&hosts[0], &hosts[1]],
            &mut asked(&mut from),
            &mut asked(&mut to),
        );
        let found = found.expect("addresses").map(|address| address.to_string());
        assert_eq!(found, expected);
    }
}

#[test]
fn where_the_program_is_missing_it_is_copied_and_the_copy_is_gone_while_it_runs() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("copy");
    let place = TestDir::new();
    let copies = place.path().join("copies");
    fs::create_dir(&copies).expect("directory");
    // A machine of its own, as far as the program is concerned: where ours lies there is nothing.
    let ours = program().parent().expect("a directory").display();
    let mut link = link(&format!(
        "exec:ip netns exec {} env TMPDIR={} unshare --mount sh -c 'mount -t tmpfs none {ours} && exec \"$@\"' -",
        pair.a,
        copies.display()
    ))
    .expect("a copy");
    assert_eq!(addresses(&mut link), ["10.77.0.1", "fd77::1"]);
    let agents = processes_with("wirecost-agent.");
    let running: Vec<String> = agents
        .iter()
        .filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok())
        .map(|path| path.display().to_string())
        .collect();
    let from = copies.display().to_string();
    assert!(
        running
            .iter()
            .any(|path| path.starts_with(&from) && path.ends_with("(deleted)")),
        "{running:?}"
    );
    assert_eq!(fs::read_dir(&copies).expect("directory").count(), 0);
}

#[test]
fn a_full_disk_is_told_and_leaves_no_copy() {
    if !is_root() {
        return;
    }
    let (place, told) = (TestDir::new(), TestDir::new());
    let (ours, small) = (program().parent().expect("a directory"), place.path());
    let left = told.path().join("left");
    // Nobody outside sees the small disk: what is left on it is listed on another one, whole or not at all.
    let error = refused(&format!(
        "exec:unshare --mount sh -c 'mount -t tmpfs none {} && mount -t tmpfs -o size=64k none {small} && \
         TMPDIR={small} \"$@\"; ls -A {small} >{left}.part; mv {left}.part {left}' -",
        ours.display(),
        small = small.display(),
        left = left.display(),
    ));
    assert!(error.contains("is the disk full"), "{error}");
    let left = wait_for("the listing", || fs::read_to_string(&left).ok());
    assert_eq!(left, "");
}

#[test]
fn what_the_way_to_a_host_leaves_behind_is_ended_with_it() {
    let word = format!("wct-left-{}", std::process::id());
    let link = link(&format!("exec:sh -c '\"$@\"; sleep 987' {word}")).expect("an agent");
    drop(link);
    nothing_is_left_with(&word);
}

#[test]
fn an_interrupt_ends_the_wait_for_a_host_that_says_nothing() {
    let word = format!("987.{}", std::process::id());
    let interrupt = AtomicBool::new(true);
    let silent = host(&format!("exec:sh -c 'exec sleep {word}'"));
    let error = open(&context(), &[&silent], &interrupt).expect_err("no agent");
    assert!(matches!(error, LinkError::Interrupted), "{error}");
    nothing_is_left_with(&word);
}

#[test]
fn an_agent_of_another_version_is_named_with_both() {
    let place = TestDir::new();
    let other = place.path().join("other");
    // Reply::Hello, version 99, process 1: what is the same in every version.
    fs::write(
        &other,
        "echo wirecost-line system Linux \"$(uname -m)\"\n\
         echo wirecost-line have 1 - wirecost 0.1.0\n\
         echo wirecost-line choose\n\
         while read -r word rest; do [ \"$word\" = 1 ] && break; done\n\
         echo wirecost-line run\n\
         printf '\\0\\0\\0\\003\\0\\143\\001'\n\
         cat >/dev/null\n",
    )
    .expect("script");
    let text = format!("exec:sh {}", other.display());
    let error = link(&text).expect_err("another version");
    assert!(
        matches!(error, LinkError::Version { theirs: 99, ours, .. } if ours != 99),
        "{error}"
    );
    let words = error.to_string();
    assert!(
        words.contains("version 99") && words.contains("the same wirecost on both"),
        "{words}"
    );
}

#[test]
fn every_way_that_leads_to_no_agent_says_why() {
    let place = TestDir::new();
    let script = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("script");
        format!("exec:sh {}", path.display())
    };
    for (host, words) in [
        (
            "exec:no-such-program-here -i".to_owned(),
            "there is no program no-such-program-here in the PATH",
        ),
        (
            script(
                "refuses",
                "echo 'Permission denied (publickey).' >&2; exit 255",
            ),
            "exit status: 255, after `Permission denied (publickey).`",
        ),
        (
            script("talks", "echo 'This account is not available.'; exit 1"),
            "it printed `This account is not available.` where a shell",
        ),
        (
            script(
                "arm",
                "echo wirecost-line system Linux armv9; echo wirecost-line choose; cat >/dev/null",
            ),
            "Linux armv9, where this program",
        ),
        (script("endless", "yes"), "it printed `y` where a shell"),
        (
            script(
                "stranger",
                "echo wirecost-line system Linux armv9; echo wirecost-line have 1 - wirecost 0.1.0\n\
                 echo wirecost-line choose; echo wirecost-line run; echo 'Last login: Monday'; cat >/dev/null",
            ),
            "ended while starting",
        ),
    ] {
        let error = refused(&host);
        assert!(error.contains(words), "{host}: {error}");
    }
}

#[test]
fn a_namespace_that_is_not_there_is_told_with_those_that_are() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("gone");
    let error = refused("netns:wct-no-such");
    assert!(error.contains("is named wct-no-such"), "{error}");
    assert!(
        error.contains(&pair.a) && error.contains("ip netns add wct-no-such"),
        "{error}"
    );
}

#[test]
fn without_root_a_namespace_cannot_be_entered_and_that_is_said() {
    if !is_root() {
        return;
    }
    let pair = Pair::new("plain");
    // The agent as a plain user: `wirecost agent` itself, spoken to by nobody but its own refusal.
    let readable = succeeds(plain(Path::new("/bin/true"), &[]).arg("--version"));
    assert!(readable, "setpriv works");
    let copy = tempfile::tempdir().expect("directory");
    let program_copy = copy.path().join("wirecost");
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    install(program(), &program_copy);
    let mut command = plain(
        &program_copy,
        &["agent", "--host", "x", "--in-place", "--netns", &pair.a],
    );
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    // Request::Hello of our own version, to which the reason is the answer.
    let version = u8::try_from(wirecost_agent::protocol::VERSION).expect("small");
    let mut input = child.stdin.take().expect("pipe");
    input.write_all(&[0, 0, 0, 2, 0, version]).expect("asked");
    let mut length = [0; 4];
    let mut output = child.stdout.take().expect("pipe");
    output.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    output.read_exact(&mut answer).expect("an answer");
    drop(input);
    assert!(child.wait().expect("ended").success());
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("run wirecost as root"), "{answer}");
}

fn plain(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(program)
        .args(arguments);
    command
}

#[test]
fn an_agent_that_nobody_asks_anything_ends_by_itself() {
    let child = Command::new(program())
        .args(["agent", "--host", "idle", "--in-place", "--idle-limit", "1"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut child = child.expect("started");
    wait_for("the idle agent to end", || child.try_wait().expect("ours"));
}
