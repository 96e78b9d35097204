//! Inputs by the million through the parsers, mutated from frames that are right: `make fuzz-wire`, or
//! `cargo run --release -p wirecost-wire --example fuzz_wire -- INPUTS SEED`.
//!
//! A panic ends it with the input's number, which with the seed makes the input again.

#[path = "shared/fuzz.rs"]
mod fuzz;

use etherparse::PacketBuilder;
use wirecost_wire::frame::{TunnelId, innermost_udp, outer};
use wirecost_wire::geneve::{self, GeneveId, Options};
use wirecost_wire::gre::{self, GreId};
use wirecost_wire::vlan::Tag;
use wirecost_wire::vxlan::{self, VxlanId};

use fuzz::{Random, fuzz};

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
    fuzz(&seeds(), parse);
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

/// Every parser; whether one took it. What was taken must account for every byte.
fn parse(bytes: &[u8], _: &mut Random) -> bool {
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
