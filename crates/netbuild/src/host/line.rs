//! The emulated line on a host's underlay device, or where that has a core of its own on another
//! ([`crate::underlay::line_namespace`]): set, lifted, and read back.
//!
//! What emulates it is a token bucket ([`crate::tbf`]), or fq behind a program that gives packets their departure times
//! ([`crate::fq`]). The program is the caller's, as all programs are: it is attached after the line was set here, and taken
//! off before it is lifted.

use wirecost_model::line::LineBy;
use wirecost_wire::size_table::Frames;

use crate::error::{BuildError, Step, error_code, same};
use crate::host::LabHost;
use crate::names::UNDERLAY_DEVICE;
use crate::netlink::Netlink;
use crate::underlay::line_namespace::FAR;
use crate::{device, fq, htb, qdisc, tbf};

/// No such qdisc (net/sched/sch_api.c).
const ENOENT: i32 = 2;

/// A line as the last adaptation has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Bits per second.
    pub rate: u64,
    /// What a packet takes of it.
    pub frames: Frames,
}

impl Line {
    /// The most that may wait, in nanoseconds of the line: what a token bucket's `limit` is there.
    pub fn limit_ns(&self) -> u64 {
        let bits = u64::from(tbf::limit_bytes(self.rate)) * 8;
        let nanoseconds = u128::from(bits) * 1_000_000_000 / u128::from(self.rate.max(1));
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

impl LabHost {
    /// Whether this kernel has fq, found out by putting it on the underlay device; it is taken off again.
    ///
    /// # Errors
    /// Where the kernel refuses for another reason than that it has none.
    pub fn has_fq(&mut self) -> Result<bool, BuildError> {
        let (netlink, index, name) = self.line_device()?;
        let step = || format!("trying fq on `{name}`");
        match fq::set(netlink, index) {
            Err(error) if error_code(&error) == Some(ENOENT) => return Ok(false),
            other => other.step(step)?,
        }
        let found = fq::is_there(netlink, index).step(step)?;
        qdisc::remove(netlink, index).step(step)?;
        same(step, &true, &found)?;
        Ok(true)
    }

    /// Has lines that are set from now on emulated by that.
    pub fn emulate_line_by(&mut self, by: LineBy) {
        self.line_by = by;
    }

    /// The line that the last adaptation has set, where the network has one.
    pub fn line(&self) -> Option<&Line> {
        self.line.as_ref()
    }

    /// Limits the underlay device to the rate of the host's line, for frames of the guest MTU that was adapted to last; where
    /// the network has no line, or before the first adaptation, nothing is done. By fq nothing is limited before the
    /// caller's program is there.
    ///
    /// # Errors
    /// Where the kernel refuses, or something else is read back.
    pub fn set_line(&mut self) -> Result<(), BuildError> {
        let Some(Line { rate, frames }) = self.line else {
            return Ok(());
        };
        let (by, links) = (self.line_by, self.spec.network.links);
        let (netlink, index, name) = self.line_device()?;
        match by {
            LineBy::Htb => {
                let step = || format!("giving `{name}` {links} links of {rate} bit/s with htb");
                htb::set(netlink, index, (rate, links), &frames.table()).step(step)?;
                let found = htb::is_there(netlink, index).step(step)?;
                same(step, &true, &found)
            }
            LineBy::Tbf => {
                let step = || format!("limiting `{name}` with tbf to {rate} bit/s");
                tbf::set(netlink, index, rate, &frames.table()).step(step)?;
                let found = tbf::read_rate(netlink, index).step(step)?;
                same(step, &(rate / 8 * 8), &found.unwrap_or(0))
            }
            LineBy::Fq => {
                let step = || format!("putting fq on `{name}`");
                fq::set(netlink, index).step(step)?;
                let found = fq::is_there(netlink, index).step(step)?;
                same(step, &true, &found)
            }
        }
    }

    /// Lets the underlay device send as fast as it can, until the line is set again. Packets that wait for the line are lost.
    /// Where there is none to lift, that is fine too.
    ///
    /// # Errors
    /// Where the kernel refuses, or a line is read back.
    pub fn lift_line(&mut self) -> Result<(), BuildError> {
        let by = self.line_by;
        let (netlink, index, name) = self.line_device()?;
        let step = || format!("lifting the line from `{name}`");
        let has_line = |netlink: &mut Netlink| match by {
            LineBy::Tbf => Ok(tbf::read_rate(netlink, index)?.is_some()),
            LineBy::Fq => fq::is_there(netlink, index),
            LineBy::Htb => htb::is_there(netlink, index),
        };
        if has_line(netlink).step(step)? {
            qdisc::remove(netlink, index).step(step)?;
        }
        same(step, &false, &has_line(netlink).step(step)?)
    }

    /// Runs work in the namespace of the device that has the line, and tells it that device's name.
    ///
    /// # Errors
    /// Where the namespace cannot be entered.
    pub fn at_line<T>(&self, work: impl FnOnce(&str) -> T) -> Result<T, BuildError> {
        match &self.line_namespace {
            Some(line_namespace) => {
                let within = line_namespace.netns().within(|| work(FAR));
                within.step(|| "entering the namespace of the line".into())
            }
            None => Ok(work(UNDERLAY_DEVICE)),
        }
    }

    /// The device that has the line: its namespace's netlink, its index there, its name.
    fn line_device(&mut self) -> Result<(&mut Netlink, u32, &'static str), BuildError> {
        let (netlink, name) = match &mut self.line_namespace {
            Some(line_namespace) => (line_namespace.netlink(), FAR),
            None => (&mut self.netlink, UNDERLAY_DEVICE),
        };
        let device = device::read(netlink, name).step(|| format!("reading `{name}`"))?;
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
            let frames = Frames::new(1500, 0, IpVersion::Ipv4, 0);
            Line { rate, frames }.limit_ns()
        };
        assert_eq!(limit(10_000_000_000), 5_000_000);
        // 4 ms, and the 160 KiB that the largest super-packet needs.
        assert_eq!(limit(100_000_000), 4_000_000 + 13_107_200);
    }
}
