//! What an agent does and does not do for a controller, and which program it is.

use std::collections::BTreeMap;
use std::net::IpAddr;

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::{Reply, Request, Secret, Side, Stage};
use wirecost_control::hosts::{Duty, HostsContext, open};
use wirecost_model::vary::{CommandPair, Scope, Setting};

use crate::common::{PATIENCE, Place};
use crate::hosts::{NO_INTERRUPT, context, host};

fn opened(context: &HostsContext, text: &str) -> Result<Link, LinkError> {
    let links = open(context, &[&host(text)], &NO_INTERRUPT)?;
    Ok(links.into_iter().next().expect("one host"))
}

#[test]
fn an_agent_for_loads_runs_no_command() {
    let place = Place::new();
    let file = place.path().join("run");
    let context = HostsContext {
        duty: Duty::Load,
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
