//! Proofs that a lab's path carries datagrams of a given size unfragmented.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PROOF_PER_GUEST, ProofResult, Reply, Request};
use wirecost_model::sample::{CapturedFrame, Proof, ProofTime};

use super::Lab;
use crate::timeouts::PROMPT;

impl Lab {
    /// Proves between every pair of guests, in both directions, that the path carries IP datagrams of exactly `size`
    /// bytes.
    /// The first time for each size, also that each crosses the underlay as one frame of the expected length.
    pub fn prove(
        &mut self,
        when: ProofTime,
        size: u32,
        interrupt: &AtomicBool,
    ) -> Result<Vec<Proof>, LinkError> {
        self.prove_size(when, (size, true), interrupt)
    }

    /// Looks again whether datagrams cross the underlay whole at the next proof of each size: what was seen is recorded
    /// in a proof of a sample that is not valid.
    pub(crate) fn watch_underlay_again(&mut self) {
        self.seen.clear();
    }

    /// [`Lab::prove`]; where `exact` is false, proves the largest size up to `size` that a router or the host's own
    /// device reports to pass.
    pub(crate) fn prove_size(
        &mut self,
        when: ProofTime,
        (size, exact): (u32, bool),
        interrupt: &AtomicBool,
    ) -> Result<Vec<Proof>, LinkError> {
        let in_lab = self.existing.is_none();
        let watch = in_lab && when == ProofTime::Before && self.seen.insert(size);
        if watch {
            self.both_done(&Request::StartCapture, &Request::StartCapture, interrupt)?;
        }
        let prove = |targets: &[SocketAddr]| Request::Prove {
            targets: targets.to_vec(),
            size,
            exact,
        };
        let [to_a, to_b] = self
            .built
            .responders
            .each_ref()
            .map(|targets| prove(targets));
        let guests = self.built.responders[0].len() as u32;
        let within = PROMPT + PROOF_PER_GUEST * guests;
        let replies = self.call_both(&to_b, &to_a, within, interrupt)?;
        let seen = if watch {
            let request = Request::ReadCapture { size };
            let [at_a, at_b] = self.call_both(&request, &request, PROMPT, interrupt)?;
            // Host b sees what host a's guests sent, and host a what host b's guests sent.
            [Some(at_b), Some(at_a)]
        } else {
            [None, None]
        };
        let mut proofs = Vec::with_capacity(2);
        for ((reply, seen), from) in replies.into_iter().zip(seen).zip(["a", "b"]) {
            let Reply::Proof(result) = reply else {
                return Err(self.a.unexpected_reply("Prove"));
            };
            let mut proof = proof(when, from, result);
            match seen {
                None => {}
                // Other traffic on the hosts' own network may exceed what the capture holds.
                Some(Reply::Captured(None)) if self.between.is_some() => {}
                Some(Reply::Captured(frame)) => judge_captured(&mut proof, frame),
                Some(_) => return Err(self.a.unexpected_reply("ReadCapture")),
            }
            proofs.push(proof);
        }
        Ok(proofs)
    }
}

fn proof(when: ProofTime, from: &str, result: ProofResult) -> Proof {
    Proof {
        when,
        from: from.to_owned(),
        size: result.size,
        proven: result.proven,
        reason: result.reason,
        probes: result.probes,
        seconds: result.seconds,
        seen: None,
    }
}

/// Revokes a proof whose datagram was acknowledged but not seen on the underlay, or crossed it in fragments or with
/// another length than expected.
fn judge_captured(proof: &mut Proof, frame: Option<CapturedFrame>) {
    let problem = match &frame {
        _ if !proof.proven => None,
        None => Some("it was acknowledged, but not seen on the underlay".to_owned()),
        Some(frame) if frame.fragment => Some("it crossed the underlay in fragments".to_owned()),
        Some(frame) if frame.outer_ip_bytes != frame.expected_outer_ip_bytes => Some(format!(
            "it crossed the underlay as {} bytes of IP, not {}",
            frame.outer_ip_bytes, frame.expected_outer_ip_bytes
        )),
        Some(CapturedFrame {
            frame_bytes,
            expected_frame_bytes: Some(expected),
            ..
        }) if frame_bytes != expected => Some(format!(
            "it crossed the underlay in a frame of {frame_bytes} bytes, not {expected}"
        )),
        Some(_) => None,
    };
    if let Some(problem) = problem {
        proof.proven = false;
        proof.reason = Some(problem);
    }
    proof.seen = frame;
}
