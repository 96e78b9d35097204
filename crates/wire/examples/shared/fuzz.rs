//! Inputs by the million through the parsers of a crate, mutated from ones that are right: `make fuzz`, or
//! `cargo run --release -p wirecost-CRATE --example fuzz_NAME -- INPUTS SEED`.
//!
//! Nothing may panic, run for ever or take memory without bound. What does is printed with its number, which with the
//! seed makes it again, and ends the program with exit code 1.

use std::sync::{Arc, Mutex};

/// Longest input in bytes.
const LONGEST: usize = 1 << 16;
/// Progress is printed after so many inputs.
const PROGRESS: u64 = 1_000_000;
/// The most address space that all inputs together may add to the process, kB.
const MEMORY_KB: u64 = 512 << 10;

/// splitmix64 (Steele, Lea, Flood 2014): any seed is a good one.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Has `take` read as many inputs as the command line says; it tells whether it accepted one.
pub(crate) fn fuzz(seeds: &[Vec<u8>], mut take: impl FnMut(&[u8], &mut Random) -> bool) {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: u64| {
        arguments
            .next()
            .map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (inputs, seed) = (number(10_000_000), number(6351));
    let mut random = Random(seed);
    let current = Arc::new(Mutex::new((0, Vec::new())));
    // In the hook: the release profile ends the process at a panic.
    let panicked = Arc::clone(&current);
    std::panic::set_hook(Box::new(move |panic| {
        let (input, bytes) = &*panicked.lock().expect("the input");
        eprintln!("input {input} of seed {seed}: {panic}");
        eprintln!("{}\n{bytes:02x?}", String::from_utf8_lossy(bytes));
        std::process::exit(1);
    }));
    let (before, mut accepted) = (address_space_kb(), 0u64);
    for input in 0..inputs {
        if input > 0 && input % PROGRESS == 0 {
            eprintln!("{input} inputs, {accepted} accepted");
        }
        let mut bytes = seeds[random.below(seeds.len())].clone();
        mutate(&mut bytes, &mut random);
        *current.lock().expect("the input") = (input, bytes.clone());
        accepted += u64::from(take(&bytes, &mut random));
    }
    let _ = std::panic::take_hook();
    assert!(accepted > 0, "no input gets past the first check");
    let grown = address_space_kb().saturating_sub(before);
    assert!(grown <= MEMORY_KB, "{grown} kB of memory");
    println!(
        "{inputs} inputs of seed {seed}: {accepted} accepted, none panicked, {grown} kB more memory"
    );
}

/// The most address space that this process has had (proc_pid_status(5), `VmPeak`).
fn address_space_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let number = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
    number.expect("a peak").parse().expect("a number")
}

/// Bits flipped, numbers replaced, digits exchanged, ends cut, parts doubled, taken out or put in.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.extend_from_within(at..),
            2 => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(8)))),
            3 => {
                let new = (0..random.below(8)).map(|_| random.next() as u8);
                let new: Vec<u8> = new.collect();
                bytes.splice(at..at, new);
            }
            4 if at + 4 <= bytes.len() => {
                let value = [0, 1, 8, u32::MAX, 1 << 31][random.below(5)];
                bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
            }
            5 => {
                let digit = bytes.iter().skip(at).position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    bytes[at + digit] = b"0123456789-.e"[random.below(13)];
                }
            }
            _ if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
        bytes.truncate(LONGEST);
    }
}
