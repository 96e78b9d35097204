//! Messages of the kernel about routes and their exceptions by the million, mutated from ones that are right:
//! `make fuzz-check`, or `cargo run --release -p wirecost-audit --example fuzz_audit -- INPUTS SEED`.
//!
//! Nothing may panic or run for ever. What breaks that is printed, and ends it with exit code 1.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use fuzz::fuzz;

/// An exception: RTM_F_CLONED.
const CLONED: u32 = 0x200;

fn main() {
    let seeds = seeds();
    for known in &seeds {
        assert!(wirecost_audit::reads_route(known), "a seed is not read");
    }
    fuzz(&seeds, |bytes, _| wirecost_audit::reads_route(bytes));
}

/// A route with an MTU, one of two equal hops, and an exception; of IPv4 and of IPv6.
fn seeds() -> Vec<Vec<u8>> {
    let attribute = |kind: u16, value: &[u8]| {
        let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let mut seeds = Vec::new();
    for (family, address) in [(2u8, vec![10, 0, 0, 2]), (10, [[0xfd; 8], [1; 8]].concat())] {
        let message = |flags: u32, attributes: &[Vec<u8>]| {
            let bits = (address.len() * 8) as u8;
            let mut bytes = vec![family, bits, 0, 0, 254, 0, 0, 1];
            bytes.extend(flags.to_ne_bytes());
            bytes.extend(attributes.concat());
            bytes
        };
        let (to, device) = (attribute(1, &address), attribute(4, &7u32.to_ne_bytes()));
        let metrics = attribute(8, &attribute(2, &1400u32.to_ne_bytes()));
        let mut hop = vec![16, 0, 0, 1, 7, 0, 0, 0];
        hop.extend(attribute(5, &[10, 0, 0, 254]));
        let hops = attribute(9, &[hop.clone(), hop].concat());
        seeds.push(message(0, &[to.clone(), device.clone(), metrics.clone()]));
        seeds.push(message(0, &[to.clone(), hops, metrics.clone()]));
        seeds.push(message(CLONED, &[to, device, metrics]));
    }
    seeds
}
