//! Inputs by the million through both ends of the protocol, mutated from exchanges that are right: `make fuzz-nbd`, or
//! `cargo run --release -p wirecost-nbd --example fuzz_nbd -- INPUTS SEED`.
//!
//! A panic ends it with the input's number, which with the seed makes the input again.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use wirecost_nbd::arrived::ArrivedData;
use wirecost_nbd::client::ClientHandshake;
use wirecost_nbd::export::Export;
use wirecost_nbd::protocol::{command, transmission};
use wirecost_nbd::reply::{Event, Outstanding, ReplyReader, data_chunk, error_chunk, simple};
use wirecost_nbd::request::{REQUEST_BYTES, Request};
use wirecost_nbd::server::{Next, ServerHandshake};

use fuzz::{Random, fuzz};

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

struct One(ArrivedData);

impl Outstanding for One {
    fn find(&mut self, cookie: u64) -> Option<(Request, &mut ArrivedData)> {
        (cookie == READ.cookie).then_some((READ, &mut self.0))
    }
}

fn main() {
    fuzz(&seeds(), take);
}

/// Bytes through all readers, in pieces; whether one of them had a use for all of them.
fn take(bytes: &[u8], random: &mut Random) -> bool {
    let piece = 1 + random.below(bytes.len());
    let pieces = || bytes.chunks(piece);
    let mut out = Vec::new();
    let mut server = ServerHandshake::new(EXPORT, "disk", &mut out);
    let handled = pieces().try_fold(Next::More, |next, mut input| match next {
        Next::More => server.receive(&mut input, &mut out),
        over => Ok(over),
    });
    let mut client = ClientHandshake::new("");
    let negotiated =
        pieces().try_for_each(|mut input| client.receive(&mut input, &mut out).map(drop));
    let (mut reader, mut one, mut read) = (ReplyReader::new(true), One(ArrivedData::default()), 0);
    let replied = pieces().try_for_each(|mut input| {
        while let Some(event) = reader.next(&mut input, &mut one)? {
            match event {
                Event::Data { offset, length, .. } | Event::Zeroes { offset, length, .. } => {
                    read += length;
                    assert!(
                        offset >= READ.offset && offset + u64::from(length) <= READ.offset + 512
                    );
                }
                Event::Done { .. } => one.0.clear(),
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
    handled.is_ok() || negotiated.is_ok() || replied.is_ok()
}

fn seeds() -> Vec<Vec<u8>> {
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let (mut all_to_client, mut all_to_server) = (Vec::new(), Vec::new());
    let mut server = ServerHandshake::new(EXPORT, "disk", &mut to_client);
    let mut client = ClientHandshake::new("disk");
    loop {
        let negotiated = client.receive(&mut &to_client[..], &mut to_server);
        all_to_client.append(&mut to_client);
        if negotiated.expect("an agreement").is_some() {
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
