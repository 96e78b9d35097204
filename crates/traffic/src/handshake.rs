//! The first bytes of every connection: who it belongs to, and the sink's answer; and the last: the sink's count.
//!
//! The first two have a fixed length, the same in every version, so that ends of different versions can tell each other so.
//! Numbers are big-endian.

use std::io;

use crate::error::Refusal;

/// The version of what follows on the connection.
const VERSION: u16 = 1;
const MAGIC: [u8; 8] = *b"wirecost";

/// Bytes of an encoded [`Header`].
pub(crate) const HEADER_BYTES: usize = 36;
/// Bytes of an encoded [`Answer`].
pub(crate) const ANSWER_BYTES: usize = 12;
/// Bytes of the count that the sink sends once it has read to the end of the stream, a `u64`. Only the application
/// that read can say so: its kernel acknowledges what nobody ever reads.
pub(crate) const COUNT_BYTES: usize = 8;

/// What the source says first: magic 8, version 2, zero 2, secret 16, flow 4, flows 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The run's secret.
    pub(crate) secret: [u8; 16],
    /// This flow, from 0.
    pub(crate) flow: u32,
    /// Flows in all.
    pub(crate) flows: u32,
}

impl Header {
    /// As it is sent.
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[12..28].copy_from_slice(&self.secret);
        bytes[28..32].copy_from_slice(&self.flow.to_be_bytes());
        bytes[32..].copy_from_slice(&self.flows.to_be_bytes());
        bytes
    }
}

/// What the sink makes of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// This flow of this load.
    Flow(u32),
    /// Not ours, but of our kind: answer it so.
    Refuse(Answer),
    /// Something else altogether: no answer.
    Stray,
}

/// Judges a header at the sink of `flows` flows that was given `secret`.
pub(crate) fn judge(bytes: &[u8; HEADER_BYTES], secret: &[u8; 16], flows: u32) -> Judgement {
    if bytes[..8] != MAGIC {
        return Judgement::Stray;
    }
    if bytes[8..10] != VERSION.to_be_bytes() {
        return Judgement::Refuse(Answer::OtherVersion);
    }
    if bytes[12..28] != *secret {
        return Judgement::Refuse(Answer::OtherSecret);
    }
    let number =
        |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (flow, theirs) = (number(28), number(32));
    if theirs == flows && flow < flows {
        Judgement::Flow(flow)
    } else {
        Judgement::Refuse(Answer::OtherFlow)
    }
}

/// The sink's answer: magic 8, version 2, this 1, zero 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Answer {
    /// The flow is taken, and read from now on.
    Taken = 0,
    /// See [`Refusal::Version`].
    OtherVersion = 1,
    /// See [`Refusal::Secret`].
    OtherSecret = 2,
    /// See [`Refusal::Flow`].
    OtherFlow = 3,
}

impl Answer {
    /// As it is sent.
    pub(crate) fn encode(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10] = self as u8;
        bytes
    }
}

/// Reads an answer at the source: taken, or refused and why.
///
/// # Errors
/// `InvalidData` where it is no answer of a sink.
pub(crate) fn read_answer(bytes: [u8; ANSWER_BYTES]) -> io::Result<Result<(), Refusal>> {
    let theirs = u16::from_be_bytes([bytes[8], bytes[9]]);
    if bytes[..8] != MAGIC {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "its first bytes are not a sink's",
        ));
    }
    if theirs != VERSION || bytes[10] == Answer::OtherVersion as u8 {
        return Ok(Err(Refusal::Version {
            ours: VERSION,
            theirs,
        }));
    }
    match bytes[10] {
        code if code == Answer::Taken as u8 => Ok(Ok(())),
        code if code == Answer::OtherSecret as u8 => Ok(Err(Refusal::Secret)),
        code if code == Answer::OtherFlow as u8 => Ok(Err(Refusal::Flow)),
        code => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it answered with the unknown code {code}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_flow_of_this_load_is_recognised(secret: [u8; 16], flows in 1u32.., flow: u32) {
            let header = Header { secret, flow: flow % flows, flows };
            prop_assert_eq!(judge(&header.encode(), &secret, flows), Judgement::Flow(flow % flows));
        }

        #[test]
        fn one_changed_byte_of_what_counts_is_never_taken_for_the_same_flow(
            secret: [u8; 16], flows in 1u32.., flow: u32, at in 0..HEADER_BYTES, change in 1u8..,
        ) {
            prop_assume!(!(10..12).contains(&at));
            let flow = flow % flows;
            let mut bytes = Header { secret, flow, flows }.encode();
            bytes[at] ^= change;
            prop_assert_ne!(judge(&bytes, &secret, flows), Judgement::Flow(flow));
        }

        #[test]
        fn whatever_is_received_is_judged_without_a_panic(bytes: [u8; HEADER_BYTES], answer: [u8; ANSWER_BYTES]) {
            judge(&bytes, &[0; 16], 4);
            let _ = read_answer(answer);
        }
    }

    #[test]
    fn another_version_is_told_with_both_numbers() {
        let mut header = Header {
            secret: [1; 16],
            flow: 0,
            flows: 1,
        }
        .encode();
        header[9] = 9;
        assert_eq!(
            judge(&header, &[1; 16], 1),
            Judgement::Refuse(Answer::OtherVersion)
        );

        let mut answer = Answer::OtherVersion.encode();
        answer[9] = 9;
        let refusal = read_answer(answer).unwrap().unwrap_err();
        insta::assert_snapshot!(refusal, @"it speaks version 9 of the stream's protocol, this end version 1");
    }

    #[test]
    fn every_answer_reads_back() {
        assert_eq!(read_answer(Answer::Taken.encode()).unwrap(), Ok(()));
        assert_eq!(
            read_answer(Answer::OtherSecret.encode()).unwrap(),
            Err(Refusal::Secret)
        );
        assert_eq!(
            read_answer(Answer::OtherFlow.encode()).unwrap(),
            Err(Refusal::Flow)
        );
        assert!(read_answer(*b"SSH-2.0-Open").is_err());
    }
}
