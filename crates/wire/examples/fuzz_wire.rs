//! Inputs by the million through the parsers, mutated from frames that are right: `make fuzz-wire`, or
//! `cargo run --release -p wirecost-wire --example fuzz_wire -- INPUTS SEED`.
//!
//! A panic ends it with the input's number, which with the seed makes the input again.

#[path = "shared/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};

use etherparse::PacketBuilder;
use wirecost_wire::frame::{TunnelId, innermost_udp, outer};
use wirecost_wire::geneve::{self, GeneveId, Options};
use wirecost_wire::gre::{self, GreId};
use wirecost_wire::vlan::Tag;
use wirecost_wire::vxlan::{self, VxlanId};

use random::Random;

const TUNNEL: VxlanId = VxlanId {
    port: 4789,
    vni: 42,
};

const GENEVE: GeneveId = GeneveId {
    port: geneve::PORT,
    vni: 42,
};

const KEYED: GreId = GreId {
    key: Some(42),
    frames: false,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u64| {
        arguments
            .next()
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (inputs, seed) = (number(10_000_000), number(7348));
    let seeds = seeds();
    let mut random = Random(seed);
    let mut accepted = 0u64;
    for input in 0..inputs {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        mutate(&mut bytes, &mut random);
        match catch_unwind(AssertUnwindSafe(|| parse(&bytes))) {
            Ok(true) => accepted += 1,
            Ok(false) => {}
            Err(_) => {
                eprintln!("input {input} of seed {seed}: {bytes:02x?}");
                std::process::exit(1);
            }
        }
    }
    println!("{inputs} inputs of seed {seed}: {accepted} accepted by a parser, none panicked");
}

/// Frames and headers that are right.
fn seeds() -> Vec<Vec<u8>> {
    let udp = |six: bool, port: u16, payload: &[u8]| {
        let mut frame = Vec::new();
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        if six {
            ethernet
                .ipv6([1; 16], [2; 16], 64)
                .udp(1, port)
                .write(&mut frame, payload)
        } else {
            ethernet
                .ipv4([10; 4], [11; 4], 64)
                .udp(1, port)
                .write(&mut frame, payload)
        }
        .expect("a datagram");
        frame
    };
    let mut seeds = Vec::new();
    for six in [false, true] {
        let inner = udp(!six, 2000, b"payload");
        let mut tagged = inner.clone();
        tagged.splice(12..12, Tag::new(7).bytes());
        for inside in [&inner, &tagged] {
            let wrapped = [&vxlan::header(TUNNEL.vni)[..], inside].concat();
            seeds.push(udp(six, TUNNEL.port, &wrapped));
        }
        seeds.extend([inner, tagged]);
    }
    for options in [
        Options::none(),
        Options::ovn(1, 2),
        Options::of_size(252).expect("a size"),
    ] {
        seeds.push([geneve::header(42, &options), vec![0x55; 20]].concat());
    }
    seeds
}

/// Bits flipped, bytes replaced, ends cut, parts doubled.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.extend_from_within(at..),
            2 => drop(bytes.drain(at..bytes.len().min(at + 4))),
            3 => bytes
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|byte| *byte ^= 1 << (at % 8)),
            _ => {
                let byte = random.next() as u8;
                bytes
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|place| *place = byte);
            }
        }
    }
}

/// Every parser; whether one took it. What was taken must account for every byte.
fn parse(bytes: &[u8]) -> bool {
    let length = bytes.len() as u32;
    let _ = outer(bytes, length);
    let plain = innermost_udp(bytes, length, None);
    let tunnelled = innermost_udp(bytes, length, Some(TUNNEL.into()));
    let in_geneve = innermost_udp(bytes, length, Some(GENEVE.into()));
    let in_gre = innermost_udp(bytes, length, Some(KEYED.into()));
    let in_ip = innermost_udp(bytes, length, Some(TunnelId::IpInIp));
    for seen in [&plain, &tunnelled, &in_geneve, &in_gre, &in_ip]
        .into_iter()
        .flatten()
    {
        assert!(seen.payload.len() <= bytes.len());
    }
    let geneve = geneve::read(bytes);
    if let Ok(found) = &geneve {
        let options: usize = found
            .options
            .iter()
            .map(|option| 4 + option.data.len())
            .sum();
        assert_eq!(
            geneve::HEADER_BYTES + options + found.payload.len(),
            bytes.len()
        );
        assert!(found.vni < 1 << 24);
    }
    if let Ok(found) = gre::read(bytes) {
        assert!(bytes.ends_with(found.payload));
        assert!(bytes.len() >= found.payload.len() + gre::HEADER_BYTES);
    }
    let header = bytes.first_chunk().and_then(vxlan::vni);
    assert!(header.is_none_or(|vni| vni < 1 << 24));
    let tag = bytes.first_chunk().copied().and_then(Tag::read);
    assert!(tag.is_none_or(|tag| bytes.starts_with(&tag.bytes())));
    plain.is_ok() || tunnelled.is_ok() || geneve.is_ok() || in_gre.is_ok() || in_ip.is_ok()
}
