//! Every network of the catalogue is built, side by side, and leaves nothing behind.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use wirecost_faults::{Fault, Lab, LabError, catalogue};

/// The namespaces that can be seen from the calling thread.
fn seen() -> BTreeSet<String> {
    wirecost_sys::namespace::names().into_iter().collect()
}

/// `false`, with a word about it, where this machine does not let us.
fn build(fault: &Fault) -> bool {
    let began = Instant::now();
    let expected = fault.namespaces.iter().filter(|(_, made)| !made.hidden);
    let expected: BTreeSet<String> = expected.map(|(name, _)| name.clone()).collect();
    match Lab::with(fault, |_| assert_eq!(seen(), expected, "{}", fault.name)) {
        Ok(()) => {
            println!("{}: {:.2} s", fault.name, began.elapsed().as_secs_f64());
            true
        }
        Err(LabError::Unprivileged(why)) => {
            wirecost_skips::skip(format!("labs of faults need root: {why}"))
        }
        Err(error @ LabError::Lacks { .. }) => {
            wirecost_skips::lacks(error);
            true
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_network_is_built_beside_another_and_its_names_are_seen_in_it_only() {
    let faults = catalogue().unwrap_or_else(|error| panic!("{error}"));
    let before = seen();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !build(fault) {
                        return;
                    }
                }
            });
        }
    });
    // Others may make and remove theirs meanwhile; ours would be called so.
    let ours: BTreeSet<&String> = faults
        .iter()
        .flat_map(|fault| fault.namespaces.keys())
        .collect();
    let after = seen();
    let left: Vec<_> = after
        .difference(&before)
        .filter(|name| ours.contains(name))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_command_that_is_refused_is_told_with_file_and_place() {
    let faults = catalogue().unwrap_or_else(|error| panic!("{error}"));
    let mut fault = faults
        .into_iter()
        .find(|fault| fault.name == "right-as-expected")
        .expect("a file");
    let routes = &mut fault.namespaces.get_mut("a").expect("a").routes;
    routes.push("10.9.9.0/24 via 10.8.8.8".into());
    let error = match Lab::with(&fault, |_| ()) {
        Err(LabError::Unprivileged(why)) => {
            wirecost_skips::skip(format!("labs of faults need root: {why}"));
            return;
        }
        other => other.expect_err("no such gateway").to_string(),
    };
    for part in [
        "right-as-expected: a: ",
        "+ ip route add 10.9.9.0/24",
        "Nexthop",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}
