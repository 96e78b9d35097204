//! The emulated line of a lab host: netbuild makes the queue that packets wait in; where that is fq, an eBPF program of
//! vtep sets each packet's departure time.

use wirecost_model::line::{LineQdisc, LineRelease};
use wirecost_netbuild::{LabHost, fq};
use wirecost_vtep::{EdtProgram, Error, Hook, LineRate};

use crate::error::{Context, Result};

/// The line of a host. Dropping it detaches its program from the device.
#[derive(Debug)]
pub(crate) struct Line {
    release: LineRelease,
    /// Time between two releases of packets, nanoseconds.
    step_ns: u64,
    departures: Option<EdtProgram>,
}

impl Line {
    /// Chooses what emulates the line, where the host's network has one: fq in steps where the kernel has it and lets
    /// programs be loaded; else HTB where flows are divided among several links, which takes eBPF too; else TBF. The
    /// choice is the same on every host with the same kernel and user.
    ///
    /// # Errors
    /// The kernel refuses something that it supports; the message says what.
    pub(crate) fn of(host: &mut LabHost) -> Result<Option<Self>> {
        if host.spec().network.rate.is_none() {
            return Ok(None);
        }
        let step_us = host.spec().release_us;
        let departures = departures(host)?.map_err(|why| why.to_string());
        let (by, release, departures) = match departures {
            Ok(departures) => (
                LineQdisc::Fq,
                LineRelease::in_steps(step_us),
                Some(departures),
            ),
            Err(why) if host.spec().several_links => {
                let loaded = host.at_line(EdtProgram::load)?;
                let dividing =
                    loaded.context("dividing flows among links, which takes eBPF and so root")?;
                let release = LineRelease {
                    by: LineQdisc::Htb,
                    ..LineRelease::one_by_one(why)
                };
                (LineQdisc::Htb, release, Some(dividing))
            }
            Err(why) => (LineQdisc::Tbf, LineRelease::one_by_one(why), None),
        };
        host.emulate_line_by(by);
        Ok(Some(Self {
            release: LineRelease {
                core: host.spec().line_core,
                ..release
            },
            step_ns: u64::from(step_us) * 1000,
            departures,
        }))
    }

    /// How the line releases packets.
    pub(crate) const fn release(&self) -> &LineRelease {
        &self.release
    }

    /// Sets the departure times after [`LabHost::adapt`] or [`LabHost::set_line`] has set the queue.
    ///
    /// # Errors
    /// The kernel refuses the program or its configuration.
    pub(crate) fn set(&mut self, host: &LabHost) -> Result<()> {
        let (Some(departures), Some(line)) = (&mut self.departures, host.line()) else {
            return Ok(());
        };
        let pace = LineRate {
            rate: line.rate,
            step_ns: self.step_ns,
            limit_ns: line.limit_ns(),
            frames: line.frames,
            links: host.spec().network.links,
            classes: self.release.by == LineQdisc::Htb,
        };
        host.at_line(|_| departures.set(&pace, Hook::Best))?
            .context("setting the line's departure times")
    }

    /// Removes the departure times. To be called before [`LabHost::lift_line`].
    ///
    /// # Errors
    /// The kernel refuses to detach the program.
    pub(crate) fn lift(&mut self, host: &LabHost) -> Result<()> {
        let Some(departures) = &mut self.departures else {
            return Ok(());
        };
        host.at_line(|_| departures.lift())?
            .context("lifting the line's departure times")
    }
}

/// Why fq cannot emulate the line.
#[derive(Debug, thiserror::Error)]
enum NoDepartures {
    /// The kernel has no fq.
    #[error(
        "this kernel has no {} ({}, `modprobe {}` as root)",
        fq::KIND,
        fq::CONFIG,
        fq::MODULE
    )]
    NoFq,
    /// This process may not load eBPF programs.
    #[error("departure times are set by eBPF, which needs root")]
    NotAllowed,
    /// The program cannot be loaded. The message has the first line only: the rest is the verifier's log.
    #[error("{}", .0.to_string().lines().next().unwrap_or_default())]
    NotLoaded(#[source] Error),
}

/// Loads the program that sets departure times for fq; the inner error says why fq cannot emulate the line.
fn departures(host: &mut LabHost) -> Result<Result<EdtProgram, NoDepartures>> {
    if !host.has_fq()? {
        return Ok(Err(NoDepartures::NoFq));
    }
    Ok(host
        .at_line(EdtProgram::load)?
        .map_err(|error| match error {
            Error::NotAllowed => NoDepartures::NotAllowed,
            error => NoDepartures::NotLoaded(error),
        }))
}
