//! Inputs by the million through both ends of the protocol, mutated from exchanges that are right: `make fuzz-nbd`, or
//! `cargo run --release -p wirecost-nbd --example fuzz_nbd -- INPUTS SEED`.
//!
//! A panic ends it with the input's number, which with the seed makes the input again.

#[path = "../../wire/examples/shared/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};

use wirecost_nbd::client::ClientHandshake;
use wirecost_nbd::export::Export;
use wirecost_nbd::protocol::{command, transmission};
use wirecost_nbd::reply::{Event, Outstanding, ReplyReader, data_chunk, error_chunk, simple};
use wirecost_nbd::request::{REQUEST_BYTES, Request};
use wirecost_nbd::server::{Next, ServerHandshake};

use random::Random;

const EXPORT: Export = Export {
    size: 1 << 20,
    flags: transmission::HAS_FLAGS | transmission::SEND_FLUSH | transmission::CAN_MULTI_CONN,
    min_block: 512,
    max_block: 64 << 10,
};

const READ: Request = Request {
    flags: 0,
    command: command::READ,
    cookie: 7,
    offset: 4096,
    length: 512,
};

struct One(u32);

impl Outstanding for One {
    fn find(&mut self, cookie: u64) -> Option<(Request, &mut u32)> {
        (cookie == READ.cookie).then_some((READ, &mut self.0))
    }
}

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
        let piece = 1 + random.below(bytes.len());
        let outcome = catch_unwind(AssertUnwindSafe(|| take(&bytes, piece)));
        accepted += u64::from(
            outcome.unwrap_or_else(|_| panic!("input {input} of seed {seed}: {bytes:02x?}")),
        );
    }
    println!("{inputs} inputs of seed {seed}, {accepted} of them accepted");
}

/// Bytes through all readers, in pieces; whether one of them had a use for all of them.
fn take(bytes: &[u8], piece: usize) -> bool {
    let pieces = || bytes.chunks(piece.max(1));
    let mut out = Vec::new();
    let mut server = ServerHandshake::new(EXPORT, "disk", &mut out);
    let handled = pieces().try_fold(Next::More, |next, mut input| match next {
        Next::More => server.receive(&mut input, &mut out),
        over => Ok(over),
    });
    let mut client = ClientHandshake::new("");
    let agreed = pieces().try_for_each(|mut input| client.receive(&mut input, &mut out).map(drop));
    let (mut reader, mut one, mut read) = (ReplyReader::new(true), One(0), 0);
    let replied = pieces().try_for_each(|mut input| {
        while let Some(event) = reader.next(&mut input, &mut one)? {
            match event {
                Event::Data { offset, length, .. } | Event::Zeroes { offset, length, .. } => {
                    read += length;
                    assert!(
                        offset >= READ.offset && offset + u64::from(length) <= READ.offset + 512
                    );
                }
                Event::Done { .. } => one.0 = 0,
            }
        }
        Ok::<(), wirecost_nbd::NbdError>(())
    });
    assert!(u64::from(read) <= bytes.len() as u64 * 512);
    assert!(
        out.len() <= 16 * bytes.len() + 1024,
        "answers are bounded by questions"
    );
    if let Some(request) = bytes.first_chunk::<REQUEST_BYTES>()
        && let Ok(request) = Request::decode(request)
    {
        let _ = EXPORT.operation(&request);
    }
    handled.is_ok() || agreed.is_ok() || replied.is_ok()
}

fn seeds() -> Vec<Vec<u8>> {
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let (mut all_to_client, mut all_to_server) = (Vec::new(), Vec::new());
    let mut server = ServerHandshake::new(EXPORT, "disk", &mut to_client);
    let mut client = ClientHandshake::new("disk");
    loop {
        let agreed = client.receive(&mut &to_client[..], &mut to_server);
        all_to_client.append(&mut to_client);
        if agreed.expect("an agreement").is_some() {
            break;
        }
        let _ = server.receive(&mut &to_server[..], &mut to_client);
        all_to_server.append(&mut to_server);
    }
    let write = Request {
        command: command::WRITE,
        ..READ
    };
    vec![
        all_to_client,
        all_to_server,
        [&data_chunk(7, 4096, 512)[..], &[1; 512], &simple(7, 0)].concat(),
        error_chunk(7, 5).to_vec(),
        READ.encode().to_vec(),
        write.encode().to_vec(),
    ]
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.extend((0..random.below(40)).map(|_| random.next() as u8)),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 if at + 4 <= bytes.len() => {
                let value = [0, 1, 8, u32::MAX, 1 << 31][random.below(5)];
                bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
            }
            _ if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            _ => {}
        }
        if bytes.len() > 4096 {
            bytes.truncate(4096);
        }
    }
}
