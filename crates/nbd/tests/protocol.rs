//! Both ends against each other and against what no peer should send.

use proptest::prelude::*;
use wirecost_nbd::NbdError;
use wirecost_nbd::arrived::ArrivedData;
use wirecost_nbd::client::{ClientHandshake, Negotiated};
use wirecost_nbd::export::{Export, Operation};
use wirecost_nbd::protocol::{command, errno, option, option_reply, transmission};
use wirecost_nbd::reply::{Event, Outstanding, ReplyReader, data_chunk, error_chunk, simple};
use wirecost_nbd::request::Request;
use wirecost_nbd::server::{Next, ServerHandshake};

const EXPORT: Export = Export {
    size: 1 << 20,
    flags: transmission::HAS_FLAGS | transmission::SEND_FLUSH | transmission::CAN_MULTI_CONN,
    min_block: 512,
    max_block: 64 << 10,
};

const NAME: &str = "disk";

/// Exchanges bytes in pieces of `piece` until the client agrees, and returns what both ends know.
fn shake(name: &str, piece: usize) -> Result<(Negotiated, Next), NbdError> {
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    let mut server = ServerHandshake::new(EXPORT, NAME, &mut to_client);
    let mut client = ClientHandshake::new(name);
    let mut next = Next::More;
    for _ in 0..10_000 {
        let taken = to_client.len().min(piece);
        let sent: Vec<u8> = to_client.drain(..taken).collect();
        let mut input = &sent[..];
        if let Some(negotiated) = client.receive(&mut input, &mut to_server)? {
            assert!(input.is_empty() && to_server.is_empty());
            return Ok((negotiated, next));
        }
        let taken = to_server.len().min(piece);
        let sent: Vec<u8> = to_server.drain(..taken).collect();
        if next == Next::More {
            next = server.receive(&mut &sent[..], &mut to_client)?;
        }
    }
    panic!("neither agreed nor failed");
}

#[test]
fn both_ends_agree_whatever_pieces_their_bytes_arrive_in() {
    for piece in [1, 3, 17, 1000] {
        for name in ["", NAME] {
            let (negotiated, next) = shake(name, piece).expect("an agreement");
            assert_eq!((negotiated.export, negotiated.structured), (EXPORT, true));
            assert_eq!(next, Next::Requests { structured: true });
        }
    }
}

#[test]
fn an_unknown_export_is_named_with_the_reason() {
    let error = shake("other", 100).expect_err("a refusal");
    insta::assert_snapshot!(error, @"it refused GO: it has no export of that name");
}

#[test]
fn what_is_no_server_is_told_by_its_first_bytes() {
    let greet = |bytes: &[u8]| {
        let mut out = Vec::new();
        ClientHandshake::new("")
            .receive(&mut &bytes[..], &mut out)
            .expect_err("no server")
            .to_string()
    };
    insta::assert_snapshot!(greet(b"SSH-2.0-OpenSSH"), @"its first bytes are not an NBD server's (0x5353482d322e302d for NBDMAGIC)");
    let mut old = b"NBDMAGIC".to_vec();
    old.extend(0x0000_4202_8186_1253u64.to_be_bytes());
    old.extend([0; 2]);
    insta::assert_snapshot!(greet(&old), @"it speaks NBD's oldstyle handshake: a server of fixed newstyle is needed");
    insta::assert_snapshot!(greet(b"NBDMAGICIHAVEOPT\0\x02"), @"it speaks NBD's newstyle handshake, but not the fixed one");
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// What a server makes of a client's bytes: its next step, and the kinds of its replies.
fn serve(bytes: &[u8]) -> (Result<Next, NbdError>, Vec<u32>) {
    let mut out = Vec::new();
    let mut server = ServerHandshake::new(EXPORT, NAME, &mut out);
    out.clear();
    let next = server.receive(&mut &bytes[..], &mut out);
    let mut kinds = Vec::new();
    let mut rest = &out[..];
    while rest.len() >= 20 {
        let number = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("4 bytes"));
        kinds.push(number(12));
        rest = &rest[20 + number(16) as usize..];
    }
    (next, kinds)
}

fn flags_and(options: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend(options.concat());
    bytes
}

#[test]
fn options_are_answered_as_the_protocol_says() {
    use option_reply::{ACK, INFO, INVALID, SERVER, UNKNOWN, UNSUPPORTED};
    let go = |name: &str, infos: u16| {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend(infos.to_be_bytes());
        data
    };
    let cases = [
        (option::LIST, vec![], vec![SERVER, ACK]),
        (option::LIST, vec![1], vec![INVALID]),
        (option::STRUCTURED_REPLY, vec![], vec![ACK]),
        (option::INFO, go(NAME, 0), vec![INFO, INFO, ACK]),
        (option::GO, go("other", 0), vec![UNKNOWN]),
        (option::GO, go(NAME, 1), vec![INVALID]),
        (option::GO, vec![0xff; 8], vec![INVALID]),
        // STARTTLS, and metadata contexts.
        (5, vec![], vec![UNSUPPORTED]),
        (10, vec![0; 8], vec![UNSUPPORTED]),
    ];
    for (number, data, kinds) in cases {
        let (next, replies) = serve(&flags_and(&[option(number, &data)]));
        assert_eq!((next, replies), (Ok(Next::More), kinds), "{number}");
    }
    let (next, _) = serve(&flags_and(&[option(option::ABORT, &[])]));
    assert_eq!(next, Ok(Next::Aborted));
    let (next, _) = serve(&flags_and(&[option(option::EXPORT_NAME, b"disk")]));
    assert_eq!(next, Ok(Next::Requests { structured: false }));
}

#[test]
fn a_hostile_client_is_refused_by_name_and_takes_no_memory() {
    let said = |bytes: &[u8]| serve(bytes).0.expect_err("refused").to_string();
    insta::assert_snapshot!(said(&[0, 0, 0, 0x83]), @"the client's flags 0x83 have bits that were not offered");
    insta::assert_snapshot!(said(&flags_and(&[vec![7; 16]])), @"an option begins with 0x707070707070707 and not with its magic number");
    let mut long = flags_and(&[]);
    long.extend(b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff");
    insta::assert_snapshot!(said(&long), @"GO with 4294967295 bytes: at most 8192");
    let many = vec![option(option::LIST, &[]); 65];
    insta::assert_snapshot!(said(&flags_and(&many)), @"more than 64 options or replies in one handshake");
    insta::assert_snapshot!(said(&flags_and(&[option(option::EXPORT_NAME, b"x")])), @"there is no export `x`");
}

const fn request(command: u16, offset: u64, length: u32) -> Request {
    Request {
        flags: 0,
        command,
        cookie: 7,
        offset,
        length,
    }
}

#[test]
fn an_export_serves_what_lies_within_it() {
    use command::{DISCONNECT, FLUSH, READ, WRITE};
    let end = EXPORT.size;
    let cases = [
        (request(READ, end - 512, 512), Operation::Read),
        (
            request(READ, end - 512, 1024),
            Operation::Refuse(errno::EINVAL),
        ),
        (
            request(READ, u64::MAX, 512),
            Operation::Refuse(errno::EINVAL),
        ),
        (request(READ, 1, 512), Operation::Refuse(errno::EINVAL)),
        (request(READ, 0, 0), Operation::Refuse(errno::EINVAL)),
        (
            request(READ, 0, 128 << 10),
            Operation::Refuse(errno::EINVAL),
        ),
        (request(WRITE, 0, 512), Operation::Write),
        (
            request(WRITE, end, 512),
            Operation::RefuseWrite(errno::ENOSPC),
        ),
        (
            request(WRITE, 0, 100),
            Operation::RefuseWrite(errno::EINVAL),
        ),
        (request(FLUSH, 0, 0), Operation::Flush),
        (request(DISCONNECT, 0, 0), Operation::Disconnect),
        (request(77, 0, 0), Operation::Refuse(errno::EINVAL)),
    ];
    for (request, operation) in cases {
        assert_eq!(EXPORT.operation(&request), Ok(operation), "{request:?}");
    }
    let error = EXPORT
        .operation(&request(WRITE, 0, u32::MAX))
        .expect_err("too long");
    insta::assert_snapshot!(error, @"a write of 4294967295 bytes: at most 65536");
    let locked = Export {
        flags: EXPORT.flags | transmission::READ_ONLY,
        ..EXPORT
    };
    let refused = Ok(Operation::RefuseWrite(errno::EPERM));
    assert_eq!(locked.operation(&request(WRITE, 0, 512)), refused);
}

/// One request.
struct One(Request, ArrivedData);

impl Outstanding for One {
    fn find(&mut self, cookie: u64) -> Option<(Request, &mut ArrivedData)> {
        (cookie == self.0.cookie).then_some((self.0, &mut self.1))
    }
}

/// What a client makes of bytes that arrive in pieces: bytes of data, and whether the request was answered.
fn replies(
    of: Request,
    structured: bool,
    bytes: &[u8],
    piece: usize,
) -> Result<(u64, bool), NbdError> {
    let mut reader = ReplyReader::new(structured);
    let mut one = One(of, ArrivedData::default());
    let (mut data, mut done) = (0, false);
    for mut input in bytes.chunks(piece) {
        while let Some(event) = reader.next(&mut input, &mut one)? {
            match event {
                Event::Data { length, .. } | Event::Zeroes { length, .. } => {
                    data += u64::from(length);
                }
                Event::Done { .. } => done = true,
            }
        }
    }
    Ok((data, done))
}

fn chunk(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = 0x668e_33efu32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(7u64.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[test]
fn replies_of_every_kind_are_read_in_any_pieces() {
    let read = request(command::READ, 4096, 1024);
    let at = |offset: u64, more: &[u8]| [&offset.to_be_bytes()[..], more].concat();
    let whole = [&data_chunk(7, 4096, 1024)[..], &[9; 1024]].concat();
    let parts = [
        chunk(1, 0, &at(4608, &[9; 512])),
        chunk(2, 0, &at(4096, &512u32.to_be_bytes())),
        chunk(0, 1, &[]),
    ]
    .concat();
    for piece in [1, 5, 19, 4096] {
        assert_eq!(replies(read, true, &whole, piece), Ok((1024, true)));
        assert_eq!(replies(read, true, &parts, piece), Ok((1024, true)));
        let plain = [&simple(7, 0)[..], &[9; 1024]].concat();
        assert_eq!(replies(read, false, &plain, piece), Ok((1024, true)));
        let write = request(command::WRITE, 0, 1024);
        assert_eq!(replies(write, true, &simple(7, 0), piece), Ok((0, true)));
        let error = replies(read, true, &error_chunk(7, errno::EIO), piece);
        let error = error.expect_err("a failure");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"a read of 1024 bytes at offset 4096 failed with EIO (5)");
        }
    }
}

#[test]
fn a_hostile_servers_replies_are_refused_by_name() {
    let read = request(command::READ, 4096, 1024);
    let write = request(command::WRITE, 0, 512);
    let at = |offset: u64, more: &[u8]| [&offset.to_be_bytes()[..], more].concat();
    let cases: &[(Request, Vec<u8>, &str)] = &[
        (read, vec![0; 16], "begins with 0x0"),
        (read, simple(8, 0).to_vec(), "cookie 0x8"),
        (read, simple(7, 0).to_vec(), "structured ones were agreed"),
        (read, chunk(0, 1, &[]), "without all of its data"),
        (read, chunk(0, 0, &[]), "not the last"),
        (read, chunk(0, 1, &[0]), "with a payload"),
        (
            read,
            chunk(1, 1, &at(4096, &[1])),
            "without all of its data",
        ),
        (read, chunk(1, 0, &at(0, &[1])), "not asked for"),
        (read, chunk(1, 0, &at(u64::MAX, &[1])), "not asked for"),
        (
            read,
            chunk(2, 0, &at(4096, &u32::MAX.to_be_bytes())),
            "not asked for",
        ),
        (
            read,
            [
                chunk(2, 0, &at(4096, &1024u32.to_be_bytes())),
                chunk(1, 0, &at(4096, &[1])),
            ]
            .concat(),
            "came twice",
        ),
        // The second half is missing.
        (
            read,
            [
                chunk(2, 0, &at(4096, &512u32.to_be_bytes())),
                chunk(2, 1, &at(4096, &512u32.to_be_bytes())),
            ]
            .concat(),
            "came twice",
        ),
        (read, chunk(3, 1, &[0; 12]), "unknown type"),
        (read, chunk(0x8001, 1, &[0; 5]), "impossible length"),
        (write, chunk(1, 1, &at(0, &[1; 512])), "no read can have"),
    ];
    for (request, bytes, words) in cases {
        let error = replies(*request, true, bytes, 4096)
            .expect_err(words)
            .to_string();
        assert!(error.contains(words), "{error} instead of {words}");
    }
}

proptest! {
    #[test]
    fn a_request_reads_back(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) {
        let request = Request { flags, command, cookie, offset, length };
        prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
        // Never outside of the export.
        if let Ok(Operation::Read | Operation::Write) = EXPORT.operation(&request) {
            prop_assert!(offset + u64::from(length) <= EXPORT.size && length <= EXPORT.max_block);
        }
    }

    #[test]
    fn pieces_make_no_difference(bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1usize..40, cut in 0usize..64) {
        // Bytes that are right up to a point.
        let mut all = [&data_chunk(7, 4096, 64)[..], &[3; 64]].concat();
        all.truncate(cut.min(all.len()));
        all.extend(&bytes);
        let read = request(command::READ, 4096, 64);
        let whole = replies(read, true, &all, all.len().max(1));
        let pieces = replies(read, true, &all, piece);
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn a_server_takes_any_bytes_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = serve(&bytes);
        let mut out = Vec::new();
        let _ = ClientHandshake::new("").receive(&mut &bytes[..], &mut out);
        let mut greeted = b"NBDMAGICIHAVEOPT\0\x03".to_vec();
        greeted.extend(&bytes);
        let _ = ClientHandshake::new("").receive(&mut &greeted[..], &mut out);
    }
}
