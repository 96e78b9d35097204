//! Payload of a probe and of its acknowledgement. The acknowledgement is shorter, so that a
//! responder can never be used to amplify traffic.

use serde::{Deserialize, Serialize};
use wirecost_sys::secret::same;

/// `WCP` and the version of the format.
const MAGIC: [u8; 4] = *b"WCP2";
const PROBE: u8 = 1;
const ACKNOWLEDGEMENT: u8 = 3;

/// Length of a probe's message: magic, kind, secret, flow, id; bytes.
pub const PROBE_BYTES: usize = 4 + 1 + 16 + 4 + 8;
/// Length of an acknowledgement: magic, kind, secret, flow, id, size of the largest fragment; bytes.
pub const ACKNOWLEDGEMENT_BYTES: usize = 4 + 1 + 8 + 4 + 8 + 4;

/// Secrets known only to both ends of a run: random, made anew for each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// Carried by every probe.
    pub probe: [u8; 16],
    /// Carried by every acknowledgement.
    pub acknowledgement: [u8; 8],
}

/// Content of a probe; the rest of the datagram is padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeMessage {
    /// Number of the flow, from 0.
    pub flow: u32,
    /// Id of the probe, counted per flow.
    pub id: u64,
}

/// Content of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Flow of the probe.
    pub flow: u32,
    /// Id of the probe.
    pub id: u64,
    /// Size of the largest fragment's IP packet, bytes; `None` if the probe arrived whole.
    pub fragment: Option<u32>,
}

impl ProbeMessage {
    /// Encodes the message, the head of a probe.
    pub fn write(&self, secret: &Secret) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = PROBE;
        bytes[5..21].copy_from_slice(&secret.probe);
        bytes[21..25].copy_from_slice(&self.flow.to_be_bytes());
        bytes[25..33].copy_from_slice(&self.id.to_be_bytes());
        bytes
    }

    /// Decodes a probe; `None` if it is not of this run.
    pub fn parse(bytes: &[u8], secret: &Secret) -> Option<Self> {
        let head: &[u8; PROBE_BYTES] = bytes.first_chunk()?;
        let ours = head[..4] == MAGIC && head[4] == PROBE && same(&head[5..21], &secret.probe);
        ours.then_some(Self {
            flow: u32::from_be_bytes(*head[21..].first_chunk()?),
            id: u64::from_be_bytes(*head[25..].first_chunk()?),
        })
    }
}

impl Acknowledgement {
    /// Encodes the acknowledgement, a whole datagram.
    pub fn write(&self, secret: &Secret) -> [u8; ACKNOWLEDGEMENT_BYTES] {
        let mut bytes = [0; ACKNOWLEDGEMENT_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = ACKNOWLEDGEMENT;
        bytes[5..13].copy_from_slice(&secret.acknowledgement);
        bytes[13..17].copy_from_slice(&self.flow.to_be_bytes());
        bytes[17..25].copy_from_slice(&self.id.to_be_bytes());
        bytes[25..29].copy_from_slice(&self.fragment.unwrap_or(0).to_be_bytes());
        bytes
    }

    /// Decodes an acknowledgement; `None` if it is not of this run.
    pub fn parse(bytes: &[u8], secret: &Secret) -> Option<Self> {
        let bytes: &[u8; ACKNOWLEDGEMENT_BYTES] = bytes.try_into().ok()?;
        let ours = bytes[..4] == MAGIC
            && bytes[4] == ACKNOWLEDGEMENT
            && same(&bytes[5..13], &secret.acknowledgement);
        let fragment = u32::from_be_bytes(*bytes[25..].first_chunk()?);
        ours.then_some(Self {
            flow: u32::from_be_bytes(*bytes[13..].first_chunk()?),
            id: u64::from_be_bytes(*bytes[17..].first_chunk()?),
            fragment: (fragment > 0).then_some(fragment),
        })
    }
}

/// The responder's answer to a datagram, which is shorter than a probe; `None` if the datagram is
/// no probe of this run.
pub fn answer(
    datagram: &[u8],
    fragment: Option<u32>,
    secret: &Secret,
) -> Option<[u8; ACKNOWLEDGEMENT_BYTES]> {
    let ProbeMessage { flow, id } = ProbeMessage::parse(datagram, secret)?;
    let acknowledgement = Acknowledgement { flow, id, fragment };
    Some(acknowledgement.write(secret))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: Secret = Secret {
        probe: [7; 16],
        acknowledgement: [9; 8],
    };
    const _: () = assert!(ACKNOWLEDGEMENT_BYTES < PROBE_BYTES);

    proptest! {
        #[test]
        fn what_is_written_reads_back(flow: u32, id: u64, fragment in prop::option::of(1u32..70_000)) {
            let probe = ProbeMessage { flow, id };
            let mut datagram = probe.write(&SECRET).to_vec();
            datagram.resize(1400, 0x5a);
            prop_assert_eq!(ProbeMessage::parse(&datagram, &SECRET), Some(probe));
            let answer = answer(&datagram, fragment, &SECRET).expect("an answer");
            prop_assert_eq!(Acknowledgement::parse(&answer, &SECRET), Some(Acknowledgement { flow, id, fragment }));
            // Neither is ever taken for the other: two responders cannot talk to each other for ever.
            prop_assert_eq!(ProbeMessage::parse(&answer, &SECRET), None);
            prop_assert_eq!(Acknowledgement::parse(&datagram, &SECRET), None);
        }

        #[test]
        fn nothing_without_the_runs_secret_is_answered_and_no_answer_is_longer(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            dress: bool,
            flip in 0usize..21,
        ) {
            if dress && bytes.len() >= PROBE_BYTES {
                let head = ProbeMessage { flow: 1, id: 2 }.write(&SECRET);
                bytes[..PROBE_BYTES].copy_from_slice(&head);
                prop_assert!(answer(&bytes, None, &SECRET).expect("an answer").len() < bytes.len());
                bytes[flip] ^= 1;
            }
            prop_assert_eq!(answer(&bytes, None, &SECRET), None);
        }
    }
}
