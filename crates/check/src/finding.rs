//! What can be found about a path: every id once. docs/check.md has a section for each.

use wirecost_audit::{FINDINGS, FindingKind, Severity};

const fn kind(id: &'static str, severity: Severity, title: &'static str) -> FindingKind {
    FindingKind {
        id,
        severity,
        title,
    }
}

use Severity::{Error, Info, Warning};

/// Every kind of finding that [`judge`](crate::judge()) can make.
pub const PATH_FINDINGS: &[FindingKind] = &[
    kind("path-dead", Error, "nothing passes, not even small packets"),
    kind(
        "path-drops-silently",
        Error,
        "packets that the sender's device takes vanish on the way, and nobody says so",
    ),
    kind(
        "bad-checksums",
        Error,
        "packets arrive with a wrong checksum, and the receiving host drops them",
    ),
    kind(
        "tcp-blocked",
        Error,
        "datagrams pass, and TCP connections are not made",
    ),
    kind(
        "tcp-segments-lost",
        Error,
        "datagrams of a size pass, and TCP segments of that size vanish",
    ),
    kind(
        "large-udp-blocked",
        Error,
        "TCP segments of a size pass, and datagrams of that size vanish",
    ),
    kind(
        "too-big-dropped-here",
        Error,
        "a router says what passes, and the host's own filter drops the message",
    ),
    kind(
        "host-fragments",
        Warning,
        "a host fragments what carries its own packets",
    ),
    kind(
        "one-path-of-several",
        Error,
        "some flows carry less than others: one of several equal paths is narrow",
    ),
    kind(
        "expected-size-fails",
        Error,
        "the path does not carry the size that was expected of it",
    ),
    kind(
        "signal-names-wrong-size",
        Error,
        "a too-big message names another size than the one that passes",
    ),
    kind(
        "path-fragments",
        Warning,
        "something on the way fragments packets that forbid it",
    ),
    kind(
        "path-signals",
        Warning,
        "a router on the way carries less than the sender's device, and says so",
    ),
    kind(
        "directions-differ",
        Warning,
        "the two directions of a path carry different sizes",
    ),
    kind(
        "path-undecided",
        Warning,
        "the probes do not say what a path carries",
    ),
    kind(
        "path-loses-packets",
        Warning,
        "many packets are lost, whatever their size",
    ),
    kind(
        "few-flows",
        Info,
        "some flows fail, and too few were asked to meet every equal path",
    ),
];

/// The findings about paths, and those about hosts.
pub fn catalogue() -> impl Iterator<Item = &'static FindingKind> {
    PATH_FINDINGS.iter().chain(FINDINGS)
}
