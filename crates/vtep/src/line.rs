//! A line on a device's egress, by departure times: a program decides when each packet leaves, and
//! fq, which the caller puts on the device, holds it back until then (EDT, net/sched/sch_fq.c).
//! Without fq nothing is held back.
//!
//! Times are on `CLOCK_MONOTONIC`. Waiting packets leave at multiples of the step, so that one
//! timer releases all of them, as a card's interrupt moderation does. fq's `timer_slack` alone
//! makes no such steps: whenever a packet is enqueued, fq also releases what is due by then. The
//! rate is exact over any time: a packet occupies the line from the end of the one before it,
//! however late a timer was.

use aya::maps::{Array, MapData};
use aya::programs::{TcAttachType, TestRun as _, TestRunOptions};
use aya::{Ebpf, EbpfLoader};
use wirecost_model::cell::MAX_LINKS;
use wirecost_wire::size_table::FrameSizes;

use crate::config::Hook;
use crate::dry_run::CONTEXT_BYTES;
use crate::error::Error;
use crate::load::{self, Attached, attach_to, classifier};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/line.bpf.o.gz"));

const DEPART: &str = "depart";
/// Bits of fraction of a cost: `FRACTION` and `COST_FRACTION` of `bpf/line.bpf.c`.
const COST_BITS: u32 = 7 + 16;
/// Offset of `tstamp` in `struct __sk_buff`, bytes: after 38 words and one pointer (include/uapi/linux/bpf.h).
const TSTAMP_AT: usize = 152;

/// Properties of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRate {
    /// Rate in bit/s, 1e8 to 1e13.
    pub rate: u64,
    /// Interval between two releases, nanoseconds; 0 releases each packet on its own.
    pub step_ns: u64,
    /// Longest queue, nanoseconds at the line's rate; a packet that would wait longer is dropped.
    pub limit_ns: u64,
    /// Sizes of frames, for the bytes that a packet takes on the line.
    pub frames: FrameSizes,
    /// Number of links, each a line of this rate, among which flows are divided by addresses and
    /// ports; 1 to [`MAX_LINKS`].
    pub links: u32,
    /// Whether packets get the class of their link instead of a departure time, 1:1 for the first
    /// link, for an htb on the device.
    pub classes: bool,
}

type LineBytes = [u8; 48];

impl LineRate {
    /// Encodes `struct line`.
    fn bytes(&self) -> LineBytes {
        let mut bytes = [0; size_of::<LineBytes>()];
        let cost = (8_000_000_000u128 << COST_BITS) / u128::from(self.rate.max(1));
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let wide = [cost, self.step_ns, self.limit_ns].map(u64::to_ne_bytes);
        let FrameSizes {
            header,
            payload,
            unseen,
        } = self.frames;
        let links = self.links.clamp(1, MAX_LINKS);
        let narrow = [
            header,
            payload,
            unseen,
            FrameSizes::SHORTEST,
            links,
            self.classes.into(),
        ]
        .map(u32::to_ne_bytes);
        let all = wide.as_flattened().iter().chain(narrow.as_flattened());
        for (place, byte) in bytes.iter_mut().zip(all) {
            *place = *byte;
        }
        bytes
    }
}

/// The loaded program, attached while a rate limit is set. Dropping it, in the device's namespace, detaches it.
pub struct EdtProgram {
    // Dropped first: off the hook before anything else is freed.
    attached: Option<Attached>,
    device: String,
    line: Array<MapData, LineBytes>,
    idle_from: Array<MapData, u64>,
    object: Ebpf,
}

impl std::fmt::Debug for EdtProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EdtProgram")
            .field("device", &self.device)
            .field("attached", &self.attached.is_some())
            .finish_non_exhaustive()
    }
}

impl EdtProgram {
    /// Loads the program for a device of the calling thread's network namespace, without attaching it.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] without privilege, [`Error::Refused`] with the verifier's log.
    pub fn load(device: &str) -> Result<Self, Error> {
        let mut object = load::verify(EbpfLoader::new().load(&load::unpack(OBJECT)), &[DEPART])?;
        Ok(Self {
            attached: None,
            device: device.to_owned(),
            line: load::typed(&mut object, "line")?,
            idle_from: load::typed(&mut object, "idle_from")?,
            object,
        })
    }

    /// Sets the line's rate on the device's egress, after other programs there, or changes it. To be called in the
    /// device's namespace, with fq on the device.
    ///
    /// # Errors
    /// [`Error::Attach`] if the program cannot be attached, [`Error::Map`] if the line cannot be written.
    pub fn set(&mut self, pace: &LineRate, hook: Hook) -> Result<(), Error> {
        self.pace(pace)?;
        if self.attached.is_none() {
            let side = TcAttachType::Egress;
            let attached = attach_to(&mut self.object, DEPART, &self.device, side, hook)?;
            self.attached = Some(attached);
        }
        Ok(())
    }

    fn pace(&mut self, pace: &LineRate) -> Result<(), Error> {
        let written = self.line.set(0, pace.bytes(), 0);
        written.map_err(|source| Error::Map {
            map: "line",
            source: Box::new(source),
        })
    }

    /// Lifts the line: packets leave as they come. The state of its queue is reset.
    ///
    /// # Errors
    /// [`Error::Attach`] if the program cannot be detached, [`Error::Map`] if the state cannot be written.
    pub fn lift(&mut self) -> Result<(), Error> {
        if let Some(attached) = self.attached.take() {
            attached.detach(DEPART, &self.device)?;
        }
        for link in 0..MAX_LINKS {
            let forgotten = self.idle_from.set(link, 0, 0);
            forgotten.map_err(|source| Error::Map {
                map: "idle_from",
                source: Box::new(source),
            })?;
        }
        Ok(())
    }

    /// Departure time of a frame, nanoseconds of `CLOCK_MONOTONIC`; `None` if it would be dropped.
    /// The frame takes its time on the line like any other (`BPF_PROG_TEST_RUN`). For tests.
    ///
    /// # Errors
    /// [`Error::Map`], or [`Error::Refused`] if the kernel cannot run the program, as for frames below 14 bytes.
    pub fn dry_run(&mut self, pace: &LineRate, frame: &[u8]) -> Result<Option<u64>, Error> {
        self.pace(pace)?;
        let (context, mut after) = ([0; CONTEXT_BYTES], [0; CONTEXT_BYTES]);
        let result = classifier(&mut self.object, DEPART)
            .test_run(TestRunOptions {
                data_in: Some(frame),
                ctx_in: Some(&context),
                ctx_out: Some(&mut after),
                ..TestRunOptions::default()
            })
            .map_err(|source| Error::Refused {
                program: DEPART,
                source: Box::new(source),
            })?;
        let mut at = [0; 8];
        at.copy_from_slice(&after[TSTAMP_AT..TSTAMP_AT + 8]);
        Ok((result.return_value as i32 != 2).then_some(u64::from_ne_bytes(at)))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use wirecost_model::ip::IpVersion;
    use wirecost_sys::bpf::PassingClassifier;
    use wirecost_sys::namespace::HeldNetns;

    use super::*;

    #[test]
    fn the_bytes_are_those_of_struct_line() {
        let pace = LineRate {
            rate: 10_000_000_000,
            step_ns: 100_000,
            limit_ns: 5_000_000,
            frames: FrameSizes::new(1450, 50, IpVersion::Ipv4, 4),
            links: 2,
            classes: true,
        };
        // 0.8 ns a byte.
        let cost = (0.8 * f64::from(1 << COST_BITS)) as u64;
        let expected: Vec<u8> = [
            &cost.to_ne_bytes()[..],
            &100_000u64.to_ne_bytes(),
            &5_000_000u64.to_ne_bytes(),
            &116u32.to_ne_bytes(),
            &1398u32.to_ne_bytes(),
            &28u32.to_ne_bytes(),
            &60u32.to_ne_bytes(),
            &2u32.to_ne_bytes(),
            &1u32.to_ne_bytes(),
        ]
        .concat();
        assert_eq!(pace.bytes().as_slice(), expected);
    }

    #[test]
    fn a_program_that_is_being_detached_is_waited_for() {
        if let Err(error) = PassingClassifier::load() {
            wirecost_skips::skip(format!("eBPF programs cannot be loaded here: {error}"));
            return;
        }
        let held = HeldNetns::create("vtep-line").expect("a namespace");
        let attached = held.netns().within(|| {
            let mut line = EdtProgram::load("lo").unwrap_or_else(|error| panic!("{error}"));
            let side = TcAttachType::Egress;
            let mut attach = || attach_to(&mut line.object, DEPART, "lo", side, Hook::Tcx);
            let Ok(first) = attach() else {
                wirecost_skips::lacks("this kernel has no tcx");
                return Ok(());
            };
            thread::scope(|scope| {
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(100));
                    drop(first);
                });
                attach().map(drop)
            })
        });
        attached.expect("the namespace").expect("attached again");
    }
}
