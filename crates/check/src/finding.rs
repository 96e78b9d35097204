//! The catalogue of findings about paths: every id once. docs/check.md has a section for each.

use wirecost_audit::{FINDINGS, FindingKind, Severity};

const fn kind(id: &'static str, severity: Severity, title: &'static str) -> FindingKind {
    FindingKind {
        id,
        severity,
        title,
    }
}

use Severity::{Error, Info, Warning};

/// Every kind of finding that [`judge`](crate::judge()) reports.
pub const PATH_FINDINGS: &[FindingKind] = &[
    kind("path-dead", Error, "nothing passes, not even small packets"),
    kind(
        "path-drops-silently",
        Error,
        "PMTU black hole: larger packets are dropped without ICMP",
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
        "datagrams of a size pass, and TCP segments of that size are lost",
    ),
    kind(
        "large-udp-blocked",
        Error,
        "TCP segments of a size pass, and datagrams of that size are lost",
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
        "some flows have a smaller path MTU: one of several equal paths is narrow",
    ),
    kind(
        "expected-size-fails",
        Error,
        "the path MTU is smaller than expected",
    ),
    kind(
        "signal-names-wrong-size",
        Error,
        "an ICMP too-big message reports another MTU than the path carries",
    ),
    kind(
        "path-fragments",
        Warning,
        "packets with DF set are fragmented on the way",
    ),
    kind(
        "path-signals",
        Warning,
        "a router has a smaller MTU than the sender's device, and reports it by ICMP",
    ),
    kind(
        "directions-differ",
        Warning,
        "the two directions have different path MTUs",
    ),
    kind(
        "path-undecided",
        Warning,
        "the probes did not determine the path MTU",
    ),
    kind(
        "path-loses-packets",
        Warning,
        "packet loss that does not depend on the packet size",
    ),
    kind(
        "few-flows",
        Info,
        "some flows fail, and too few flows were probed to cover every equal path",
    ),
];

/// All kinds of findings: those about paths, then those about hosts.
pub fn catalogue() -> impl Iterator<Item = &'static FindingKind> {
    PATH_FINDINGS.iter().chain(FINDINGS)
}
