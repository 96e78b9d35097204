//! `wirecost doctor`: what it says is what independent attempts say, and nothing stays behind.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{
    Ended, TestDir, install, is_root, program, run, skip, succeeds, wait_for, wirecost,
};
use serde_json::Value;
use wirecost_model::plan::Description;

/// The checks of a document by id.
fn checks(document: &Value) -> BTreeMap<String, &Value> {
    let checks = document["checks"].as_array().expect("checks");
    checks
        .iter()
        .map(|check| (check["id"].as_str().expect("id").to_owned(), check))
        .collect()
}

fn status<'a>(document: &'a Value, id: &str) -> &'a str {
    let checks = checks(document);
    let check = checks.get(id).unwrap_or_else(|| panic!("no check {id}"));
    check["status"].as_str().expect("status")
}

fn advice<'a>(document: &'a Value, id: &str) -> &'a str {
    checks(document)[id]["advice"].as_str().unwrap_or_default()
}

/// Whether a script ends well in network and mount namespaces of its own; `prefix` is of unshare(1).
fn works_in_namespaces(script: &str) -> bool {
    let tries = |prefix: &[&str]| {
        succeeds(
            Command::new("unshare")
                .args(prefix)
                .args(["--net", "--mount", "sh", "-c", script]),
        )
    };
    tries(&[]) || tries(&["--user", "--map-root-user"])
}

/// A copy of the program that everybody can run.
fn program_for_everybody() -> (TestDir, PathBuf) {
    let place = TestDir::new();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("permissions");
    let copy = place.path().join("wirecost");
    install(program(), &copy);
    (place, copy)
}

/// A command as a user without any privilege.
fn as_plain_user(program: &Path) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(program);
    command
}

/// Fails unless exit code, sentence and document say the same.
#[track_caller]
fn expect_consistent(ended: &Ended) -> Value {
    let document = ended.document();
    let can = document["can_run_labs"].as_bool().expect("a yes or no");
    ended.expect_code(i32::from(!can));
    let summary = document["summary"].as_str().expect("a sentence");
    let begin = if can {
        "This machine can run the built-in plan"
    } else {
        "This machine cannot run the built-in plan"
    };
    assert!(summary.starts_with(begin), "{summary}");
    document
}

#[test]
fn the_documents_shape_is_a_contract() {
    let ended = run(&mut wirecost(["doctor", "--json"]));
    assert_eq!(ended.stderr, "");
    let document = expect_consistent(&ended);
    let keys = |value: &Value| {
        let object = value.as_object().expect("an object");
        object.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let (drivers, mut tried) = (kinds_by_driver(), Vec::new());
    let mut shape = vec![keys(&document), keys(&document["machine"])];
    for check in document["checks"].as_array().expect("checks") {
        assert_eq!(
            keys(check),
            "advice essential group id needed_for seen status title"
        );
        let id = check["id"].as_str().expect("an id");
        let of_driver = drivers.contains(&id);
        assert!(!of_driver || check["group"] == "encapsulations");
        if of_driver {
            tried.push(id);
        } else {
            let line = format!("{} {id}", check["group"]);
            shape.push(line.replace('"', ""));
        }
        let status = check["status"].as_str().expect("status");
        assert!(
            ["yes", "limited", "no", "unknown"].contains(&status),
            "{status}"
        );
        // Whatever it cannot, it says what to do about.
        if status == "no" || status == "limited" {
            assert!(check["advice"].is_string(), "{check}");
        }
        for text in ["title", "seen", "needed_for"] {
            assert_ne!(check[text], "", "{check}");
        }
    }
    tried.sort_unstable();
    assert_eq!(tried, drivers);
    insta::assert_snapshot!(shape.join("\n"));
}

/// The first kind of encapsulation of each driver, VXLAN's apart, which labs cannot do without.
fn kinds_by_driver() -> Vec<&'static str> {
    let mut modules = vec!["vxlan"];
    let mut words = Vec::new();
    for kind in Description::ALL {
        let driver = kind.drivers.first().map(|driver| driver.module);
        if let Some(module) = driver.filter(|module| !modules.contains(module)) {
            modules.push(module);
            words.push(kind.word);
        }
    }
    words.sort_unstable();
    words
}

#[test]
fn what_it_says_of_devices_is_what_iproute2_finds() {
    let ended = run(&mut wirecost(["doctor", "--json"]));
    let document = expect_consistent(&ended);
    let namespaces = ["namespaces-as-root", "namespaces-as-user"];
    if !works_in_namespaces("true") {
        for id in namespaces {
            assert_ne!(status(&document, id), "yes");
        }
        skip("this user cannot make network namespaces");
        return;
    }
    for (id, script) in [
        ("veth", "ip link add x type veth peer name y"),
        ("bridge", "ip link add x type bridge"),
        (
            "vxlan",
            "ip link add x type vxlan id 1 remote 198.18.0.2 dstport 4789",
        ),
        ("geneve", "ip link add x type geneve id 1 remote 198.18.0.2"),
        (
            "vlan",
            "ip link add x type veth peer name y && ip link add link x name z type vlan id 100",
        ),
        ("ifb", "ip link add x type ifb"),
        (
            "netem",
            "ip link add x type veth peer name y && tc qdisc add dev x root netem delay 1ms",
        ),
        (
            "fq",
            "ip link add x type veth peer name y && tc qdisc add dev x root fq",
        ),
        (
            "tbf",
            "ip link add x type veth peer name y && \
             tc qdisc add dev x root tbf rate 1gbit burst 200kb latency 5ms",
        ),
    ] {
        let there = works_in_namespaces(script);
        let said = status(&document, id);
        let yes = said == "yes" || said == "limited";
        assert_eq!(yes, there, "{id}: {said}, `{script}`: {there}");
        if !there {
            let seen = checks(&document)[id]["seen"].to_string();
            assert!(seen.contains('E'), "the error's name: {seen}");
            assert_ne!(advice(&document, id), "");
        }
    }
}

#[test]
fn root_is_told_of_both_ways() {
    if !is_root() {
        return;
    }
    let document = expect_consistent(&run(&mut wirecost(["doctor", "--json"])));
    assert_eq!(status(&document, "namespaces-as-root"), "yes");
    let plain =
        succeeds(as_plain_user(Path::new("unshare")).args(["--user", "--net", "--mount", "true"]));
    let said = status(&document, "namespaces-as-user");
    assert_eq!(said == "yes", plain, "{document:#}");
    assert!(document["as_root"].is_boolean() && document["as_plain_user"].is_boolean());
    let seen = checks(&document)["namespaces-as-user"]["seen"].to_string();
    assert!(seen.contains("uid 65534"), "{seen}");
}

#[test]
fn a_plain_user_is_told_what_can_be_done_without_root() {
    let (_place, program) = program_for_everybody();
    let ended = run(as_plain_user(&program).args(["doctor", "--json"]));
    let document = expect_consistent(&ended);
    assert_eq!(document["as_root"], Value::Null);
    assert_eq!(status(&document, "namespaces-as-root"), "unknown");
    assert!(advice(&document, "namespaces-as-root").contains("sudo"));
    let unshared =
        succeeds(as_plain_user(Path::new("unshare")).args(["--user", "--net", "--mount", "true"]));
    assert_eq!(status(&document, "namespaces-as-user") == "yes", unshared);
    // No unprivileged user may load a classifier, on any kernel.
    assert_eq!(status(&document, "ebpf"), "no");
    assert!(advice(&document, "ebpf").contains("sudo"));
}

#[test]
fn where_user_namespaces_are_forbidden_it_names_the_setting_and_ends_with_1() {
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces";
    let inside = ["--user", "--map-root-user", "sh", "-c"];
    if !succeeds(Command::new("unshare").args(inside).arg(forbid)) {
        skip("no user namespace of our own to forbid them in");
        return;
    }
    // Root of that namespace, who then gives up every capability and cannot have them back.
    let script = format!(
        "{forbid} && exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\""
    );
    let doctor = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(inside).args([&script, "sh"]).arg(program());
        run(command.arg("doctor").args(arguments))
    };

    let ended = doctor(&["--json"]);

    ended.expect_code(1);
    assert_eq!(ended.stderr, "");
    let document = expect_consistent(&ended);
    assert_eq!(document["can_run_labs"], false);
    assert_eq!(document["as_plain_user"], false);
    assert_eq!(status(&document, "namespaces-as-user"), "no");
    let wanted = "`sysctl -w user.max_user_namespaces=16384` as root";
    assert!(advice(&document, "namespaces-as-user").contains(wanted));
    assert!(
        document["summary"]
            .as_str()
            .expect("text")
            .contains("namespaces")
    );
    // What could not be tried is not said to be missing.
    assert_eq!(status(&document, "vxlan"), "unknown");

    let ended = doctor(&[]);
    ended.expect_code(1);
    assert!(
        ended
            .stdout
            .starts_with("This machine cannot run the built-in plan")
    );
    assert!(
        ended.stdout.contains("user.max_user_namespaces is 0"),
        "{ended:#?}"
    );
}

#[test]
fn a_page_for_people_has_every_group_and_no_colour_in_a_pipe() {
    let ended = run(&mut wirecost(["doctor"]));
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.starts_with("This machine can"), "{ended:#?}");
    for group in [
        "\nEssentials\n",
        "\nEncapsulations and devices\n",
        "\neBPF and sockets\n",
        "\nMachine\n",
    ] {
        assert!(ended.stdout.contains(group), "{group}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\x1b'));
}

#[test]
fn a_reader_that_leaves_early_is_no_reason_to_complain() {
    let script = format!("{} doctor | true", program().display());
    let ended = run(Command::new("sh").args(["-c", &script]));
    ended.expect_code(0);
    assert_eq!(ended.stderr, "");
}

#[test]
fn nothing_is_left_behind_and_nothing_is_changed() {
    if !is_root() {
        return;
    }
    let (_place, program) = program_for_everybody();
    // Namespaces of its own stand for the machine: no other test changes anything in them.
    let state = "ip -d -s0 -o link show; ip addr; ip route show table all; tc qdisc show; \
                 sysctl -a 2>/dev/null | grep '^net\\.' | grep -v -e nr_conntrack -e '\\.tcp_mem' -e _key; \
                 find /run /sys/fs/bpf";
    let script = format!(
        "mount -t tmpfs none /run; mount -t bpf none /sys/fs/bpf; ip link set lo up; \
         ({state}) > before; cat /proc/self/mountinfo > mounts-before; \"$1\" doctor --json > answer; code=$?; \
         ({state}) > after; cat /proc/self/mountinfo > mounts-after; exit $code"
    );
    let directory = tempfile::tempdir().expect("directory");
    let mut command = Command::new("unshare");
    command
        .args(["--net", "--mount", "sh", "-c", &script, "sh"])
        .arg(&program)
        .current_dir(directory.path());
    let ended = run(&mut command);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).expect("written");
    let document: Value = serde_json::from_str(&read("answer")).expect("a document");
    let can = document["can_run_labs"].as_bool().expect("a yes or no");
    ended.expect_code(i32::from(!can));
    assert!(read("before").contains("lo:"), "{}", read("before"));
    assert_eq!(read("before"), read("after"));
    // Other tests' mounts are gone from here too when they remove what these were on.
    let before = read("mounts-before");
    let mounts: Vec<&str> = before.lines().collect();
    let after = read("mounts-after");
    let new: Vec<&str> = after
        .lines()
        .filter(|mount| !mounts.contains(mount))
        .collect();
    assert_eq!(new, [""; 0]);

    // And no process of that copy of the program, nor any that holds a namespace for it.
    wait_for("the last probe to be gone", || {
        let processes = fs::read_dir("/proc").expect("proc").flatten();
        let ours = processes.filter(|process| {
            fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == program)
        });
        (ours.count() == 0).then_some(())
    });
}

#[test]
fn a_probe_is_hidden_and_tells_line_by_line() {
    // Hidden, and harmless when called by hand: it tries, tells and ends.
    let ended = run(&mut wirecost(["doctor", "--probe", "plain"]));
    ended.expect_code(0);
    let lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(lines.last(), Some(&Value::from("done")));
    assert!(
        !run(&mut wirecost(["doctor", "--help"]))
            .stdout
            .contains("--probe")
    );
}
