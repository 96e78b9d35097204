//! Datagrams and packets by the million at a responder, mutated from ones that are right: `make fuzz-probe`, or
//! `cargo run --release -p wirecost-probe --example fuzz_probe -- INPUTS SEED`.
//!
//! Nothing may panic, nothing without the secret may be answered, and no answer may be as long as what it answers. What
//! breaks that is printed, and ends it with exit code 1.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use std::net::SocketAddr;
use wirecost_probe::message::{ProbeMessage, Secret, answer};
use wirecost_probe::{icmp, parse_datagram};

use fuzz::fuzz;

const SECRET: Secret = Secret {
    probe: *b"sixteen-bytes-16",
    acknowledgement: *b"eight--8",
};

fn main() {
    let ends = [
        SocketAddr::from(([10, 0, 0, 2], 4789)),
        SocketAddr::from(([10, 0, 0, 2], 0)),
        "[fd00::2]:4789".parse().expect("an address"),
        "[fd00::2]:0".parse().expect("an address"),
    ];
    fuzz(&seeds(), |bytes, _| respond(bytes, &ends));
}

/// A probe by itself, and in packets of both families, whole and as a first fragment.
fn seeds() -> Vec<Vec<u8>> {
    let mut probe = ProbeMessage { flow: 3, id: 77 }.write(&SECRET).to_vec();
    probe.resize(80, 0);
    let udp = [&[0x80, 0, 0x12, 0xb5, 0, 88, 0, 0][..], &probe].concat();
    let four = |flags: u8| {
        let header = [
            0x45, 0, 0, 108, 0, 1, flags, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        [&header[..], &udp].concat()
    };
    let six = |next: u8, between: &[u8]| {
        let mut header = vec![0x60, 0, 0, 0, 0, 88 + between.len() as u8, next, 64];
        for last in [1, 2] {
            header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        [&header[..], between, &udp].concat()
    };
    let fragment = [17, 0, 0, 1, 0, 0, 0, 9];
    vec![
        probe,
        four(0x40),
        four(0x20),
        six(17, &[]),
        six(44, &fragment),
        too_big(&four(0x40)),
        too_big6(&six(17, &[]), 2),
        too_big6(&six(17, &[]), 1),
    ]
}

/// A router's message about a packet of IPv4.
fn too_big(packet: &[u8]) -> Vec<u8> {
    let mut message = packet[..20].to_vec();
    message[9] = 1;
    message.extend([3, 4, 0, 0, 0, 0, 0x05, 0x78]);
    message.extend(packet);
    message
}

/// A router's message about a packet of IPv6, of this type.
fn too_big6(packet: &[u8], kind: u8) -> Vec<u8> {
    let mut message = packet[..40].to_vec();
    message[6] = 58;
    message.extend([kind, 0, 0, 0, 0, 0, 0x05, 0x78]);
    message.extend(packet);
    message
}

/// All that a responder does with what arrives; whether it answers.
fn respond(bytes: &[u8], ends: &[SocketAddr]) -> bool {
    let mut answers = u32::from(answers(bytes, None));
    for end in ends {
        let _ = icmp(bytes, *end);
        if let Some(found) = parse_datagram(bytes, *end) {
            assert!(found.payload.len() < bytes.len(), "more than there was");
            answers += u32::from(self::answers(found.payload, found.fragment));
        }
    }
    answers > 0
}

fn answers(datagram: &[u8], fragment: Option<u32>) -> bool {
    let Some(answer) = answer(datagram, fragment, &SECRET) else {
        return false;
    };
    assert!(
        answer.len() < datagram.len(),
        "an answer that is not shorter"
    );
    let secret = datagram.windows(SECRET.probe.len());
    assert!(
        secret.into_iter().any(|part| part == SECRET.probe),
        "answered without the secret"
    );
    true
}
