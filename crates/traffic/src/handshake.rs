//! The load's handshake: a header from the client that says which flow it opens, the server's answer, and at the end
//! the number of bytes or messages that arrived.
//!
//! Header and answer have the same length in every version, so that ends of different versions can say so. Numbers
//! are big-endian.

use std::io;

use wirecost_sys::secret::same;

use crate::error::Refusal;
use crate::options::Options;

/// Version of the protocol.
const VERSION: u16 = 2;
pub(crate) const MAGIC: [u8; 8] = *b"wirecost";

/// Length of a [`Header`], bytes.
pub(crate) const HEADER_BYTES: usize = 44;
/// Longest handshake datagram, bytes.
pub(crate) const CONTROL_BYTES: usize = HEADER_BYTES + COUNT_BYTES;
/// Offset of the secret in a header.
pub(crate) const SECRET: usize = 12;
/// Offset of the flow in a header.
pub(crate) const FLOW: usize = 28;
/// Offset of the phase in a header, and in the answer to it in a datagram.
const PHASE: usize = 11;
/// Length of an [`Answer`], bytes.
pub(crate) const ANSWER_BYTES: usize = 12;
/// Length of the count (`u64`) that a stream's receiver sends at the end of the stream, bytes. Only the application
/// can confirm what it read: its kernel acknowledges data that is never read.
pub(crate) const COUNT_BYTES: usize = 8;

/// What a header is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Opens a flow.
    Open = 0,
    /// Opens a connection for one transaction of an open flow.
    Transaction = 1,
    /// Ends a flow. Over UDP a count of 8 bytes follows: messages sent.
    Close = 2,
}

/// The client's header: magic 8, version 2, workload 1, phase 1, secret 16, flow 4, flows 4, request 4, response 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The workload's number.
    pub(crate) workload: u8,
    /// What the header is for.
    pub(crate) phase: Phase,
    /// The load's secret.
    pub(crate) secret: [u8; 16],
    /// The flow, from 0.
    pub(crate) flow: u32,
    /// Number of flows.
    pub(crate) flows: u32,
    /// Bytes of a message or request.
    pub(crate) request: u32,
    /// Bytes of a response.
    pub(crate) response: u32,
}

impl Header {
    /// The header of one flow of a load.
    pub(crate) fn new(options: &Options, flow: u32, phase: Phase) -> Self {
        Self {
            workload: options.load.workload as u8,
            phase,
            secret: options.secret,
            flow,
            flows: options.load.connections(),
            request: options.load.request,
            response: options.load.response,
        }
    }

    /// The encoded bytes.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = self.workload;
        bytes[PHASE] = self.phase as u8;
        bytes[SECRET..FLOW].copy_from_slice(&self.secret);
        let numbers = [self.flow, self.flows, self.request, self.response];
        for (place, number) in bytes[FLOW..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }
}

/// How the server judges a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderCheck {
    /// A flow of this load, in this phase.
    Flow(u32, Phase),
    /// A header of another load, run or version: answer it with the reason.
    Refuse(Answer),
    /// Not a header: no answer.
    Stray,
}

/// Whether a datagram belongs to the handshake. Data cannot start with the magic: its flow number would be out of
/// range.
pub(crate) fn is_control(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Checks a header at a server with these options.
pub(crate) fn check_header(bytes: &[u8; HEADER_BYTES], options: &Options) -> HeaderCheck {
    if bytes[..8] != MAGIC {
        return HeaderCheck::Stray;
    }
    if bytes[8..10] != VERSION.to_be_bytes() {
        return HeaderCheck::Refuse(Answer::OtherVersion);
    }
    if !same(&bytes[SECRET..FLOW], &options.secret) {
        return HeaderCheck::Refuse(Answer::OtherSecret);
    }
    let number =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (flow, flows, request, response) = (number(FLOW), number(32), number(36), number(40));
    let phase = [Phase::Open, Phase::Transaction, Phase::Close]
        .into_iter()
        .find(|phase| *phase as u8 == bytes[PHASE]);
    let sizes = (request, response) == (options.load.request, options.load.response);
    match phase {
        Some(phase) if bytes[10] == options.load.workload as u8 && sizes => {
            if flows == options.load.connections() && flow < flows {
                HeaderCheck::Flow(flow, phase)
            } else {
                HeaderCheck::Refuse(Answer::OtherFlow)
            }
        }
        _ => HeaderCheck::Refuse(Answer::OtherLoad),
    }
}

/// The server's answer: magic 8, version 2, code 1, and over UDP the phase 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Answer {
    /// The flow is accepted.
    Accepted = 0,
    /// See [`Refusal::Version`].
    OtherVersion = 1,
    /// See [`Refusal::Secret`].
    OtherSecret = 2,
    /// See [`Refusal::Flow`].
    OtherFlow = 3,
    /// See [`Refusal::Load`].
    OtherLoad = 4,
}

impl Answer {
    /// The encoded bytes.
    pub(crate) fn encode(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = self as u8;
        bytes
    }

    /// The encoded answer to this header over UDP, where answers may be late: it carries the header's phase.
    pub(crate) fn encode_to(self, header: &[u8; HEADER_BYTES]) -> [u8; ANSWER_BYTES] {
        let mut bytes = self.encode();
        bytes[PHASE] = header[PHASE];
        bytes
    }
}

/// Whether a datagram answers this question.
pub(crate) fn answers(answer: &[u8], question: &[u8]) -> bool {
    is_control(answer) && answer.get(PHASE) == question.get(PHASE)
}

/// Decodes an answer: accepted, or refused with the reason.
///
/// # Errors
/// `InvalidData` where it is not a server's answer.
pub(crate) fn read_answer(bytes: [u8; ANSWER_BYTES]) -> io::Result<Result<(), Refusal>> {
    let theirs = u16::from_be_bytes([bytes[8], bytes[9]]);
    if bytes[..8] != MAGIC {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its first bytes are not a server's",
        ));
    }
    if theirs != VERSION || bytes[10] == Answer::OtherVersion as u8 {
        return Ok(Err(Refusal::Version {
            ours: VERSION,
            theirs,
        }));
    }
    match bytes[10] {
        code if code == Answer::Accepted as u8 => Ok(Ok(())),
        code if code == Answer::OtherSecret as u8 => Ok(Err(Refusal::Secret)),
        code if code == Answer::OtherFlow as u8 => Ok(Err(Refusal::Flow)),
        code if code == Answer::OtherLoad as u8 => Ok(Err(Refusal::Load)),
        code => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it answered with the unknown code {code}"),
        )),
    }
}

/// Decodes the first bytes of a flow as both ends do. Returns whether they open a flow of the load. For the fuzzer.
#[doc(hidden)]
pub fn opens_a_flow(bytes: &[u8], options: &Options) -> bool {
    if let Some(answer) = bytes.first_chunk() {
        let _ = read_answer(*answer);
    }
    let header = bytes.first_chunk();
    header.is_some_and(|header| matches!(check_header(header, options), HeaderCheck::Flow(..)))
}

/// The header that opens a flow. For the fuzzer.
#[doc(hidden)]
pub fn opening(options: &Options, flow: u32) -> Vec<u8> {
    Header::new(options, flow, Phase::Open).encode().to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Workload;

    fn options(secret: [u8; 16], streams: u32) -> Options {
        Options::new(Workload::TcpRr, secret).with(|load| load.streams = streams)
    }

    proptest! {
        #[test]
        fn a_flow_of_this_load_is_recognised(secret: [u8; 16], flows in 1u32.., flow: u32) {
            let options = options(secret, flows);
            for phase in [Phase::Open, Phase::Transaction, Phase::Close] {
                let header = Header::new(&options, flow % flows, phase);
                prop_assert_eq!(check_header(&header.encode(), &options), HeaderCheck::Flow(flow % flows, phase));
            }
        }

        #[test]
        fn one_changed_byte_is_never_taken_for_the_same_flow(
            secret: [u8; 16], flows in 1u32.., flow: u32, at in 0..HEADER_BYTES, change in 1u8..,
        ) {
            let flow = flow % flows;
            let options = options(secret, flows);
            let mut bytes = Header::new(&options, flow, Phase::Open).encode();
            bytes[at] ^= change;
            prop_assert_ne!(check_header(&bytes, &options), HeaderCheck::Flow(flow, Phase::Open));
        }

        #[test]
        fn whatever_is_received_is_judged_without_a_panic(bytes: [u8; HEADER_BYTES], answer: [u8; ANSWER_BYTES]) {
            check_header(&bytes, &options([0; 16], 4));
            let _ = read_answer(answer);
        }
    }

    #[test]
    fn another_version_is_told_with_both_numbers() {
        let options = options([1; 16], 1);
        let mut header = Header::new(&options, 0, Phase::Open).encode();
        header[9] = 9;
        assert_eq!(
            check_header(&header, &options),
            HeaderCheck::Refuse(Answer::OtherVersion)
        );

        let mut answer = Answer::OtherVersion.encode();
        answer[9] = 9;
        let refusal = read_answer(answer).unwrap().unwrap_err();
        insta::assert_snapshot!(refusal, @"it speaks version 9 of the load's protocol, this end version 2");
    }

    #[test]
    fn every_answer_reads_back() {
        assert_eq!(read_answer(Answer::Accepted.encode()).unwrap(), Ok(()));
        assert_eq!(
            read_answer(Answer::OtherSecret.encode()).unwrap(),
            Err(Refusal::Secret)
        );
        assert_eq!(
            read_answer(Answer::OtherFlow.encode()).unwrap(),
            Err(Refusal::Flow)
        );
        assert_eq!(
            read_answer(Answer::OtherLoad.encode()).unwrap(),
            Err(Refusal::Load)
        );
        assert!(read_answer(*b"SSH-2.0-Open").is_err());
    }

    #[test]
    fn a_late_answer_to_the_opening_does_not_close_a_flow() {
        let options = options([1; 16], 1);
        let header = |phase| Header::new(&options, 0, phase).encode();
        let late = Answer::Accepted.encode_to(&header(Phase::Open));
        assert!(answers(&late, &header(Phase::Open)));
        assert!(!answers(&late, &header(Phase::Close)));
        assert_eq!(read_answer(late).unwrap(), Ok(()));
    }
}
