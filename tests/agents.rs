//! What an agent does and does not do for a controller, and which program it is.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::symlink;

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{Reply, Request, Secret, Side, Stage};
use wirecost_control::hosts::{AgentRole, Binaries, HostsContext, open};
use wirecost_model::vary::{CommandPair, Scope, Setting};

use crate::common::{PATIENCE, TestDir, install, program};
use crate::hosts::{NO_INTERRUPT, context, host};

fn opened(context: &HostsContext, text: &str) -> Result<Link, LinkError> {
    let links = open(context, &[&host(text)], &NO_INTERRUPT)?;
    Ok(links.into_iter().next().expect("one host"))
}

#[test]
fn an_agent_for_loads_runs_no_command() {
    let place = TestDir::new();
    let file = place.path().join("run");
    let context = HostsContext {
        role: AgentRole::Load,
        ..context()
    };
    let mut link = opened(&context, "local").expect("this machine");
    let here = IpAddr::from([127, 0, 0, 1]);
    let join = Request::Join {
        side: Side::A,
        address: here,
        peer: here,
        secret: Secret {
            probe: [7; 16],
            acknowledgement: [8; 8],
        },
    };
    let joined = link.call(&join, PATIENCE, &NO_INTERRUPT);
    assert!(matches!(joined, Ok(Reply::Joined(_))), "{joined:?}");
    let setting = Setting {
        factor: "f".into(),
        label: "l".into(),
        sysctl: BTreeMap::new(),
        ethtool: BTreeMap::new(),
        device: BTreeMap::new(),
        device_name: None,
        command: Some(CommandPair {
            before: format!("echo run > {}", file.display()),
            after: "true".into(),
        }),
        on: Scope::Hosts,
    };
    let apply = Request::ApplySettings(vec![setting]);
    let error = link
        .call(&apply, PATIENCE, &NO_INTERRUPT)
        .expect_err("refused");
    let LinkError::Refused { stage, message, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*stage, Stage::Setting);
    assert!(message.contains("`--duty load`"), "{message}");
    assert!(!file.exists());
    // It goes on.
    let reply = link.call(&Request::Machine, PATIENCE, &NO_INTERRUPT);
    assert!(matches!(reply, Ok(Reply::Machine(_))), "{reply:?}");
}

/// A host whose `uname -m` is `armv9`, and which has the programs that a copy needs, but no wirecost.
fn other_architecture(place: &TestDir) -> String {
    let programs = place.path().join("programs");
    fs::create_dir(&programs).expect("a directory");
    let path = std::env::var_os("PATH").expect("a PATH");
    for name in ["sh", "sha256sum", "gzip", "head", "mktemp", "chmod", "rm"] {
        let mut all = std::env::split_paths(&path).map(|directory| directory.join(name));
        let found = all.find(|program| program.is_file());
        symlink(found.expect(name), programs.join(name)).expect(name);
    }
    let uname = place.path().join("uname");
    fs::write(
        &uname,
        "#!/bin/sh\nif [ \"$1\" = -m ]; then echo armv9; else echo Linux; fi\n",
    )
    .expect("a script");
    install(&uname, &programs.join("uname"));
    let copies = place.path().join("copies");
    fs::create_dir(&copies).expect("a directory");
    let (programs, copies) = (programs.display(), copies.display());
    format!("exec:env PATH={programs} TMPDIR={copies}")
}

/// Agents as for another host: our own program is not at its path there.
fn elsewhere(place: &TestDir) -> HostsContext {
    HostsContext {
        program: place.path().join("not-here"),
        ..context()
    }
}

#[test]
fn a_host_of_another_architecture_is_named_with_it_and_what_to_do() {
    let place = TestDir::new();
    let host = other_architecture(&place);
    let error = opened(&elsewhere(&place), &host).expect_err("no program");
    let error = error.to_string();
    for words in [
        "it is Linux armv9, where this program",
        "there is no wirecost",
        "--agent-binary armv9=PATH",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_host_of_another_architecture_gets_the_program_that_is_given_for_it() {
    let place = TestDir::new();
    let host = other_architecture(&place);
    let given = place.path().join("wirecost-armv9");
    install(program(), &given);
    let context = HostsContext {
        binaries: Binaries {
            others: [("armv9".to_owned(), given)].into(),
        },
        ..elsewhere(&place)
    };
    let mut link = opened(&context, &host).expect("an agent");
    let reply = link.call(&Request::Machine, PATIENCE, &NO_INTERRUPT);
    assert!(matches!(reply, Ok(Reply::Machine(_))), "{reply:?}");
    let running = fs::read_link(format!("/proc/{}/exe", link.pid())).expect("the agent");
    let copies = place.path().join("copies");
    assert!(running.starts_with(&copies), "{}", running.display());
}
