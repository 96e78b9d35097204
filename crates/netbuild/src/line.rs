//! The emulated line on a host's underlay device: set, lifted, and read back.
//!
//! What emulates it is a token bucket ([`crate::tbf`]); nobody else has to know.

use wirecost_wire::size_table::SizeTable;

use crate::error::{BuildError, Step, same};
use crate::host::LabHost;
use crate::spec::UNDERLAY_DEVICE;
use crate::tbf;

/// A line as the last adaptation has set it.
#[derive(Debug)]
pub(crate) struct Line {
    /// Bits per second.
    pub(crate) rate: u64,
    /// What a packet takes of it.
    pub(crate) sizes: SizeTable,
}

impl LabHost {
    /// Limits the underlay device to the rate of the host's line, for frames of the guest MTU that was adapted to last; where
    /// the network has no line, or before the first adaptation, nothing is done.
    ///
    /// # Errors
    /// Where the kernel refuses, or another rate is read back.
    pub fn set_line(&mut self) -> Result<(), BuildError> {
        let Some(Line { rate, .. }) = self.line else {
            return Ok(());
        };
        let index = self.underlay_index()?;
        let step = || format!("limiting `{UNDERLAY_DEVICE}` with tbf to {rate} bit/s");
        if let Some(line) = &self.line {
            tbf::set(&mut self.netlink, index, rate, &line.sizes).step(step)?;
        }
        let found = tbf::read_rate(&mut self.netlink, index).step(step)?;
        same(step, &(rate / 8 * 8), &found.unwrap_or(0))
    }

    /// Lets the underlay device send as fast as it can, until the line is set again. Packets that wait for the line are lost.
    ///
    /// # Errors
    /// Where the kernel refuses, or a limit is read back.
    pub fn lift_line(&mut self) -> Result<(), BuildError> {
        let index = self.underlay_index()?;
        let step = || format!("lifting the line from `{UNDERLAY_DEVICE}`");
        tbf::remove(&mut self.netlink, index).step(step)?;
        let found = tbf::read_rate(&mut self.netlink, index).step(step)?;
        same(step, &0, &found.unwrap_or(0))
    }
}
