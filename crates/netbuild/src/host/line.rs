//! The emulated line: on a host's underlay device, or, where the line has a core of its own, on a device of another
//! namespace ([`crate::underlay::line_namespace`]). Set, lifted, and read back.
//!
//! The line is emulated by a token bucket ([`crate::tbf`]), by htb where there are several links ([`crate::htb`]), or
//! by fq behind a program that sets the packets' departure times ([`crate::fq`]). The program is the caller's, as all
//! programs are: it is attached after the line is set here, and detached before the line is lifted.

use wirecost_model::line::LineQdisc;
use wirecost_wire::size_table::FrameSizes;

use crate::error::{BuildError, Context, error_code, same};
use crate::host::LabHost;
use crate::names::UNDERLAY_DEVICE;
use crate::netlink::Netlink;
use crate::underlay::line_namespace::FAR;
use crate::{device, fq, htb, qdisc, tbf};

/// `ENOENT`: no such qdisc (net/sched/sch_api.c).
const ENOENT: i32 = 2;

/// A line as the last adaptation has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Rate of the line, bit/s.
    pub rate: u64,
    /// How many bytes of the line a packet takes.
    pub frames: FrameSizes,
}

impl Line {
    /// Upper bound on the queue of the line, nanoseconds at its rate: the `limit` of a token bucket.
    pub fn limit_ns(&self) -> u64 {
        let bits = u64::from(tbf::limit_bytes(self.rate)) * 8;
        let nanoseconds = u128::from(bits) * 1_000_000_000 / u128::from(self.rate.max(1));
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

impl LabHost {
    /// Whether this kernel has fq, tried on the device that has the line, and removed again.
    ///
    /// # Errors
    /// Where the kernel refuses for another reason than that it has no fq.
    pub fn has_fq(&mut self) -> Result<bool, BuildError> {
        let (netlink, index, name) = self.line_device()?;
        let step = || format!("trying fq on `{name}`");
        match fq::set(netlink, index) {
            Err(error) if error_code(&error) == Some(ENOENT) => return Ok(false),
            other => other.with_context(step)?,
        }
        let found = fq::is_there(netlink, index).with_context(step)?;
        qdisc::remove(netlink, index).with_context(step)?;
        same(step, &true, &found)?;
        Ok(true)
    }

    /// Selects what emulates the lines that are set from now on.
    pub fn emulate_line_by(&mut self, by: LineQdisc) {
        self.line_by = by;
    }

    /// The line that the last adaptation has set, where the network has one.
    pub fn line(&self) -> Option<&Line> {
        self.line.as_ref()
    }

    /// Limits the device that has the line to the line's rate, for frames of the guest MTU of the last adaptation. Does
    /// nothing where the network has no line, or before the first adaptation. With fq nothing is limited until the
    /// caller's program is attached.
    ///
    /// # Errors
    /// Where the kernel refuses, or the line does not read back as set.
    pub fn set_line(&mut self) -> Result<(), BuildError> {
        let Some(Line { rate, frames }) = self.line else {
            return Ok(());
        };
        let (by, links) = (self.line_by, self.spec.network.links);
        let (netlink, index, name) = self.line_device()?;
        match by {
            LineQdisc::Htb => {
                let step = || format!("giving `{name}` {links} links of {rate} bit/s with htb");
                htb::set(netlink, index, (rate, links), &frames.table()).with_context(step)?;
                let found = htb::read_rates(netlink, index).with_context(step)?;
                let text = |rates: &[u64]| {
                    let rates: Vec<String> = rates.iter().map(u64::to_string).collect();
                    rates.join(" ")
                };
                let wanted = vec![rate / 8 * 8; links as usize];
                same(step, &text(&wanted), &text(&found))
            }
            LineQdisc::Tbf => {
                let step = || format!("limiting `{name}` with tbf to {rate} bit/s");
                tbf::set(netlink, index, rate, &frames.table()).with_context(step)?;
                let found = tbf::read_rate(netlink, index).with_context(step)?;
                same(step, &(rate / 8 * 8), &found.unwrap_or(0))
            }
            LineQdisc::Fq => {
                let step = || format!("putting fq on `{name}`");
                fq::set(netlink, index).with_context(step)?;
                let found = fq::is_there(netlink, index).with_context(step)?;
                same(step, &true, &found)
            }
        }
    }

    /// Removes the line, so that the device sends as fast as it can until the line is set again. Packets that wait for
    /// the line are lost. A line that is not there is no error.
    ///
    /// # Errors
    /// Where the kernel refuses, or a line is still read back.
    pub fn lift_line(&mut self) -> Result<(), BuildError> {
        let by = self.line_by;
        let (netlink, index, name) = self.line_device()?;
        let step = || format!("lifting the line from `{name}`");
        let has_line = |netlink: &mut Netlink| match by {
            LineQdisc::Tbf => Ok(tbf::read_rate(netlink, index)?.is_some()),
            LineQdisc::Fq => fq::is_there(netlink, index),
            LineQdisc::Htb => htb::is_there(netlink, index),
        };
        if has_line(netlink).with_context(step)? {
            qdisc::remove(netlink, index).with_context(step)?;
        }
        same(step, &false, &has_line(netlink).with_context(step)?)
    }

    /// Runs `work` in the namespace of the device that has the line, with that device's name.
    ///
    /// # Errors
    /// Where the namespace cannot be entered.
    pub fn at_line<T>(&self, work: impl FnOnce(&str) -> T) -> Result<T, BuildError> {
        match &self.line_namespace {
            Some(line_namespace) => {
                let within = line_namespace.netns().within(|| work(FAR));
                within.with_context(|| "entering the namespace of the line".into())
            }
            None => Ok(work(UNDERLAY_DEVICE)),
        }
    }

    /// The device that has the line: netlink connection of its namespace, interface index, name.
    fn line_device(&mut self) -> Result<(&mut Netlink, u32, &'static str), BuildError> {
        let (netlink, name) = match &mut self.line_namespace {
            Some(line_namespace) => (line_namespace.netlink(), FAR),
            None => (&mut self.netlink, UNDERLAY_DEVICE),
        };
        let device = device::read(netlink, name).with_context(|| format!("reading `{name}`"))?;
        Ok((netlink, device.index, name))
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::ip::IpVersion;

    use super::*;

    #[test]
    fn as_much_waits_as_in_a_token_bucket() {
        let limit = |rate| {
            let frames = FrameSizes::new(1500, 0, IpVersion::Ipv4, 0);
            Line { rate, frames }.limit_ns()
        };
        assert_eq!(limit(10_000_000_000), 5_000_000);
        // 4 ms, and the 160 KiB that the largest super-packet needs.
        assert_eq!(limit(100_000_000), 4_000_000 + 13_107_200);
    }
}
