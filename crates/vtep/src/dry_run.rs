//! Dry runs of the programs on single frames (`BPF_PROG_TEST_RUN`). Nothing is sent, except the copies for several
//! receivers.

use aya::programs::{TestRun as _, TestRunOptions};

use crate::error::Error;
use crate::load::{DECAPSULATE, ENCAPSULATE, classifier};
use crate::vtep::Vtep;

/// Length of `struct __sk_buff` (include/uapi/linux/bpf.h), and offset of the device's index in it, bytes.
pub(crate) const CONTEXT_BYTES: usize = 192;
const IFINDEX_AT: usize = 40;

/// What a program did with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Passed on to the host, as if the endpoint did not exist.
    Passed,
    /// Dropped; the counters tell why.
    Dropped,
    /// Redirected to another device.
    Redirected,
}

/// Result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    /// What the program did.
    pub verdict: Verdict,
    /// The frame afterwards, without a VLAN tag that is kept in the packet's metadata.
    pub frame: Vec<u8>,
}

impl Vtep {
    /// Runs the program for a frame that the guest behind `device` sends. The frame is counted like any other.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a device without a guest, [`Error::Refused`] if the kernel cannot run it.
    pub fn dry_run_from_guest(&mut self, device: &str, frame: &[u8]) -> Result<DryRun, Error> {
        let ifindex = self.guest_index(device)?;
        self.dry_run(ENCAPSULATE, ifindex, frame)
    }

    /// Runs the program for a frame that arrives on the underlay. The frame is counted like any other.
    ///
    /// # Errors
    /// [`Error::Refused`] if the kernel cannot run it, as for frames below 14 bytes.
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
