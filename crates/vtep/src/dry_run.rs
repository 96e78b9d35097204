//! What the programs would do with a frame (`BPF_PROG_TEST_RUN`): nothing is sent but copies for several receivers.

use aya::programs::{TestRun as _, TestRunOptions};

use crate::error::Error;
use crate::load::{DECAPSULATE, ENCAPSULATE, classifier};
use crate::vtep::Vtep;

/// `struct __sk_buff` (include/uapi/linux/bpf.h): its length and where the device stands in it.
pub(crate) const CONTEXT_BYTES: usize = 192;
const IFINDEX_AT: usize = 40;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Left to the host, as if the endpoint were not there.
    Passed,
    /// Dropped; the counters say why.
    Dropped,
    /// Sent on to another device.
    Redirected,
}

/// What a program made of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    /// Where it went.
    pub verdict: Verdict,
    /// The frame as it went there. A VLAN tag beside it is not in its bytes.
    pub frame: Vec<u8>,
}

impl Vtep {
    /// What happens to a frame that the guest behind `device` sends. It is counted like any other.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a device without a guest, [`Error::Refused`] where the kernel cannot try it.
    pub fn dry_run_from_guest(&mut self, device: &str, frame: &[u8]) -> Result<DryRun, Error> {
        let ifindex = self.guest_index(device)?;
        self.dry_run(ENCAPSULATE, ifindex, frame)
    }

    /// What happens to a frame that arrives on the underlay. It is counted like any other.
    ///
    /// # Errors
    /// [`Error::Refused`] where the kernel cannot try it: frames below 14 bytes, for one.
    pub fn dry_run_from_underlay(&mut self, frame: &[u8]) -> Result<DryRun, Error> {
        let ifindex = self.underlay_index();
        self.dry_run(DECAPSULATE, ifindex, frame)
    }

    fn dry_run(
        &mut self,
        program: &'static str,
        ifindex: u32,
        frame: &[u8],
    ) -> Result<DryRun, Error> {
        let mut context = [0; CONTEXT_BYTES];
        context[IFINDEX_AT..IFINDEX_AT + 4].copy_from_slice(&ifindex.to_ne_bytes());
        let mut out = vec![0; frame.len() + 512];
        let result = self
            .within(|object| {
                classifier(object, program).test_run(TestRunOptions {
                    data_in: Some(frame),
                    data_out: Some(&mut out),
                    ctx_in: Some(&context),
                    ..TestRunOptions::default()
                })
            })?
            .map_err(|source| Error::Refused {
                program,
                source: Box::new(source),
            })?;
        out.truncate(result.data_size_out as usize);
        let verdict = match result.return_value as i32 {
            2 => Verdict::Dropped,
            7 => Verdict::Redirected,
            _ => Verdict::Passed,
        };
        Ok(DryRun {
            verdict,
            frame: out,
        })
    }
}
