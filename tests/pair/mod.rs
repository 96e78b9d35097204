//! Two hosts as tests have them: named network namespaces, joined by a veth.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::namespaces::Namespaces;
use crate::common::run;

/// Two named namespaces of this test, joined by a veth.
pub(crate) struct Pair {
    pub(crate) a: String,
    pub(crate) b: String,
    _made: Namespaces,
}

impl Pair {
    pub(crate) fn new(test: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (own, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = |side: &str| format!("wct-{test}-{own}-{number}-{side}");
        let [a, b] = [name("a"), name("b")];
        let pair = Self {
            _made: Namespaces::new(&[&a, &b]),
            a,
            b,
        };
        let [a, b] = [pair.a.as_str(), &pair.b];
        ip(&[
            "-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b,
        ]);
        for (netns, v4, v6) in [
            (a, "10.77.0.1/24", "fd77::1/64"),
            (b, "10.77.0.2/24", "fd77::2/64"),
        ] {
            ip(&["-n", netns, "address", "add", v4, "dev", "eth0"]);
            ip(&["-n", netns, "address", "add", v6, "dev", "eth0", "nodad"]);
            for device in ["lo", "eth0"] {
                ip(&["-n", netns, "link", "set", device, "up"]);
            }
        }
        pair
    }
}

/// Three named namespaces of this test: a joined with b, and a with c, by a veth each, at 10.77.0.0/24 and
/// 10.78.0.0/24.
pub(crate) struct Star {
    pub(crate) pair: Pair,
    pub(crate) c: String,
    _made: Namespaces,
}

impl Star {
    pub(crate) fn new(test: &str) -> Self {
        let pair = Pair::new(test);
        let c = format!("{}c", pair.b.trim_end_matches('b'));
        let made = Namespaces::new(&[&c]);
        ip(&[
            "-n", &pair.a, "link", "add", "eth1", "type", "veth", "peer", "name", "eth0", "netns",
            &c,
        ]);
        for (netns, device, address) in [
            (&pair.a, "eth1", "10.78.0.1/24"),
            (&c, "eth0", "10.78.0.3/24"),
        ] {
            ip(&["-n", netns, "address", "add", address, "dev", device]);
            for device in ["lo", device] {
                ip(&["-n", netns, "link", "set", device, "up"]);
            }
        }
        Self {
            pair,
            c,
            _made: made,
        }
    }
}

#[track_caller]
pub(crate) fn ip(arguments: &[&str]) {
    run(Command::new("ip").args(arguments)).expect_code(0);
}
