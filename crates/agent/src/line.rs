//! The emulated line of a lab host: netbuild makes the queue that packets wait in, and where that is fq, vtep's program gives
//! each its departure time.

use wirecost_model::line::{LineBy, LineRelease};
use wirecost_netbuild::{LabHost, fq};
use wirecost_vtep::{Departures, Error, Hook, LineRate};

use crate::error::{Result, Step};

/// A host's line. Dropping it takes its program off the device.
#[derive(Debug)]
pub(crate) struct Line {
    release: LineRelease,
    /// Nanoseconds between two releases.
    step_ns: u64,
    departures: Option<Departures>,
}

impl Line {
    /// Finds out what emulates the line here, where the host's network has one: fq in steps where the kernel has it and lets
    /// programs be loaded, else a token bucket. The same on every host of one kernel and one user.
    ///
    /// # Errors
    /// In words, where the kernel refuses what it has.
    pub(crate) fn of(host: &mut LabHost) -> Result<Option<Self>> {
        if host.spec().network.rate.is_none() {
            return Ok(None);
        }
        let step_us = host.spec().release_us;
        let departures = departures(host)?;
        let (by, release, departures) = match departures {
            Ok(departures) => (LineBy::Fq, LineRelease::in_steps(step_us), Some(departures)),
            Err(why) if host.spec().several_links => {
                let loaded = host.at_line(Departures::load)?;
                let dividing =
                    loaded.step("dividing flows among links, which takes eBPF and so root")?;
                let release = LineRelease {
                    by: LineBy::Htb,
                    ..LineRelease::one_by_one(why)
                };
                (LineBy::Htb, release, Some(dividing))
            }
            Err(why) => (LineBy::Tbf, LineRelease::one_by_one(why), None),
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

    /// How it lets packets out.
    pub(crate) const fn release(&self) -> &LineRelease {
        &self.release
    }

    /// Completes what [`LabHost::adapt`] or [`LabHost::set_line`] has set.
    ///
    /// # Errors
    /// In words.
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
            classes: self.release.by == LineBy::Htb,
        };
        host.at_line(|_| departures.set(&pace, Hook::Best))?
            .step("setting the line's departure times")
    }

    /// To be done before [`LabHost::lift_line`].
    ///
    /// # Errors
    /// In words.
    pub(crate) fn lift(&mut self, host: &LabHost) -> Result<()> {
        let Some(departures) = &mut self.departures else {
            return Ok(());
        };
        host.at_line(|_| departures.lift())?
            .step("lifting the line's departure times")
    }
}

/// The program that fq needs, loaded; the inner error says why the line cannot be fq's.
fn departures(host: &mut LabHost) -> Result<Result<Departures, String>> {
    if !host.has_fq()? {
        let (kind, option, module) = (fq::KIND, fq::CONFIG, fq::MODULE);
        return Ok(Err(format!(
            "this kernel has no {kind} ({option}, `modprobe {module}` as root)"
        )));
    }
    Ok(match host.at_line(Departures::load)? {
        Ok(departures) => Ok(departures),
        Err(Error::NotAllowed) => Err("departure times are set by eBPF, which needs root".into()),
        // Without the verifier's log.
        Err(error) => Err(error.to_string().lines().next().unwrap_or_default().into()),
    })
}
