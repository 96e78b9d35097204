//! What an agent tells of TCP, by the million, mutated from what is right: `make fuzz-check`, or
//! `cargo run --release -p wirecost-check --example fuzz_check -- INPUTS SEED`.
//!
//! Whatever an agent says, judging it may not panic. What breaks that is printed, and ends it with exit code 1.

#[path = "../../wire/examples/shared/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};

use wirecost_check::{PathEnd, RequiredMtu, Segments, TcpReport, TcpShown, judge_tcp, tcp_notes};

use random::Random;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u64| {
        arguments
            .next()
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (inputs, seed) = (number(10_000_000), number(6351));
    let seeds: Vec<String> = [None, Some(1492)].into_iter().map(document).collect();
    let mut random = Random(seed);
    let mut read = 0u64;
    for input in 0..inputs {
        let mut bytes = seeds[random.below(seeds.len())].clone().into_bytes();
        mutate(&mut bytes, &mut random);
        if let Ok(some) = catch_unwind(AssertUnwindSafe(|| judged(&bytes))) {
            read += u64::from(some);
        } else {
            eprintln!(
                "input {input} of seed {seed}: {}",
                String::from_utf8_lossy(&bytes)
            );
            std::process::exit(1);
        }
    }
    println!("{inputs} inputs of seed {seed}: {read} read, none panicked");
}

fn document(fails: Option<u32>) -> String {
    let end = |host: &str, last| PathEnd {
        host: host.to_owned(),
        address: [10, 0, 0, last].into(),
    };
    let shown = TcpShown {
        failed: None,
        full: 1500,
        segments: Segments {
            passes: Some(1400),
            fails,
        },
        acknowledged: 1448,
        retransmits: 3,
        snd_mss: 1448,
        adv_mss: 1460,
        pmtu: (1500, 1400),
    };
    let ends = (end("a", 1), end("b", 2));
    let report = TcpReport::new(ends, 443, RequiredMtu::Device(1500), shown, 0.2);
    serde_json::to_string(&report).expect("a document")
}

/// Digits and everything else exchanged, ends cut.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << random.below(8),
            _ => {
                let digit = bytes.iter().skip(at).position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    bytes[at + digit] = b'0' + random.below(10) as u8;
                    if random.below(4) == 0 {
                        bytes.insert(at + digit, b'9');
                    }
                }
            }
        }
        if bytes.is_empty() {
            return;
        }
    }
}

fn judged(bytes: &[u8]) -> bool {
    let Ok(report) = serde_json::from_slice::<TcpReport>(bytes) else {
        return false;
    };
    let _ = (judge_tcp(&report), tcp_notes(&report));
    true
}
