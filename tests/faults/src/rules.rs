//! What has to hold in a file beyond its form: one function a rule. An error is the key, and what is wrong with it.

use crate::fault::{ExpectedFinding, Fault};

type Rule = Result<(), (String, String)>;

/// The kernel's `IFNAMSIZ`, without the zero at its end.
const NAME: usize = 15;
/// Kinds of a path in the JSON of a check.
const KINDS: [&str; 7] = [
    "ok",
    "device",
    "signalled",
    "fragmented",
    "silent",
    "dead",
    "undecided",
];

pub(crate) fn hold(fault: &Fault) -> Rule {
    told(fault)?;
    names(fault)?;
    wires(fault)?;
    equal_paths(fault)?;
    devices(fault)?;
    deeds(fault)?;
    hosts(fault)?;
    expected(fault)
}

fn wrong<T>(key: impl Into<String>, message: impl Into<String>) -> Result<T, (String, String)> {
    Err((key.into(), message.into()))
}

fn told(fault: &Fault) -> Rule {
    if fault.about.len() < 20 {
        return wrong("about", "say what the fault is, in a sentence");
    }
    match &fault.not_yet {
        Some(why) if why.len() < 20 => {
            wrong("not_yet", "say why it is not named yet, in a sentence")
        }
        _ => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    let fits = (1..=NAME).contains(&name.len());
    fits && name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn names(fault: &Fault) -> Rule {
    for (name, namespace) in &fault.namespaces {
        let made = namespace.bridges.keys().chain(namespace.vxlans.keys());
        let devices = made.chain(namespace.devices.keys());
        for word in std::iter::once(name).chain(devices) {
            if !is_name(word) {
                let message = format!("`{word}` is no name: 1 to {NAME} letters, digits, - or _");
                return wrong(format!("namespaces.{name}"), message);
            }
        }
    }
    Ok(())
}

fn known<'a>(fault: &Fault, key: &str, name: &'a str) -> Result<&'a str, (String, String)> {
    if fault.namespaces.contains_key(name) {
        return Ok(name);
    }
    let names: Vec<&str> = fault.namespaces.keys().map(String::as_str).collect();
    let message = format!(
        "there is no namespace `{name}`: there are {}",
        names.join(", ")
    );
    wrong(key, message)
}

/// `a.eth0` to the namespace and the device.
pub(crate) fn end(end: &str) -> Option<(&str, &str)> {
    end.split_once('.')
}

fn wires(fault: &Fault) -> Rule {
    let mut seen = Vec::new();
    for (at, wire) in fault.wires.iter().enumerate() {
        let key = format!("wires[{at}].ends");
        for text in &wire.ends {
            let Some((namespace, device)) = end(text).filter(|(_, device)| is_name(device)) else {
                return wrong(key, format!("`{text}` is no end: write NAMESPACE.DEVICE"));
            };
            known(fault, &key, namespace)?;
            if seen.contains(&text) {
                return wrong(key, format!("{namespace} has two devices {device}"));
            }
            seen.push(text);
        }
    }
    Ok(())
}

fn equal_paths(fault: &Fault) -> Rule {
    let Some(paths) = &fault.equal_paths else {
        return Ok(());
    };
    for router in &paths.between {
        known(fault, "equal_paths.between", router)?;
        if !fault.namespaces[router].forwards {
            let message = format!("{router} has to forward: write `forwards: true` there");
            return wrong("equal_paths.between", message);
        }
    }
    if paths.members < 2 {
        return wrong("equal_paths.members", "equal paths are two or more");
    }
    Ok(())
}

/// Devices that a namespace has.
pub(crate) fn devices_of<'a>(fault: &'a Fault, name: &'a str) -> Vec<String> {
    let ends = fault.wires.iter().flat_map(|wire| &wire.ends);
    let wired = ends
        .filter_map(|text| end(text))
        .filter(move |(namespace, _)| *namespace == name)
        .map(|(_, device)| device.to_owned());
    let namespace = &fault.namespaces[name];
    let made = namespace.bridges.keys().chain(namespace.vxlans.keys());
    let made = made.chain(namespace.devices.keys());
    let members = fault
        .equal_paths
        .iter()
        .filter(|paths| paths.between.iter().any(|router| router == name))
        .flat_map(|paths| (0..paths.members).map(|number| format!("m{number}")));
    wired.chain(made.cloned()).chain(members).collect()
}

fn devices(fault: &Fault) -> Rule {
    for (name, namespace) in &fault.namespaces {
        let there = devices_of(fault, name);
        let ports = namespace.bridges.iter().flat_map(|(bridge, made)| {
            let key = format!("namespaces.{name}.bridges.{bridge}.ports");
            made.ports.iter().map(move |port| (key.clone(), port))
        });
        let addressed = namespace
            .addresses
            .keys()
            .map(|device| (format!("namespaces.{name}.addresses"), device));
        for (key, device) in ports.chain(addressed) {
            if !there.contains(device) {
                let message = format!(
                    "{name} has no device `{device}`: it has {}",
                    there.join(", ")
                );
                return wrong(key, message);
            }
        }
    }
    Ok(())
}

fn deeds(fault: &Fault) -> Rule {
    for (at, deed) in fault.fault.iter().enumerate() {
        known(fault, &format!("fault[{at}].at"), &deed.at)?;
    }
    Ok(())
}

/// The hosts of the check are namespaces that it can enter.
fn hosts(fault: &Fault) -> Rule {
    let words = fault
        .check
        .iter()
        .filter_map(|word| word.strip_prefix("netns:"));
    let mut count = 0;
    for word in words {
        let name = word.split('=').next().unwrap_or(word);
        known(fault, "check", name)?;
        if fault.namespaces[name].hidden {
            return wrong(
                "check",
                format!("{name} is hidden, so that no check can enter it"),
            );
        }
        count += 1;
    }
    if count == 0 {
        return wrong("check", "name the hosts: `netns:NAMESPACE=ADDRESS`");
    }
    Ok(())
}

fn expected(fault: &Fault) -> Rule {
    let expect = &fault.expect;
    for (at, path) in expect.paths.iter().enumerate() {
        let key = format!("expect.paths[{at}]");
        known(fault, &format!("{key}.from"), &path.from)?;
        // An address: asked from one side.
        if path.to.parse::<std::net::IpAddr>().is_err() {
            known(fault, &format!("{key}.to"), &path.to)?;
        }
        if !KINDS.contains(&path.kind.as_str()) {
            let message = format!("`{}` is no kind: {}", path.kind, KINDS.join(", "));
            return wrong(format!("{key}.kind"), message);
        }
        let passes = path.mtu.is_some();
        if passes == (path.kind == "dead") {
            let message = "a dead path has the MTU `~`, and no other has";
            return wrong(format!("{key}.mtu"), message);
        }
    }
    let lists: [(&str, &[ExpectedFinding]); 2] = [
        ("findings", &expect.findings),
        ("by_chance", &expect.by_chance),
    ];
    for (list, findings) in lists {
        for (at, finding) in findings.iter().enumerate() {
            let key = format!("expect.{list}[{at}]");
            known(fault, &format!("{key}.at"), &finding.at)?;
            let Some(device) = &finding.device else {
                continue;
            };
            if !devices_of(fault, &finding.at).contains(device) {
                let message = format!("{} has no device `{device}`", finding.at);
                return wrong(format!("{key}.device"), message);
            }
        }
    }
    Ok(())
}
