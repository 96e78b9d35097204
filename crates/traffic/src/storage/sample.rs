//! Which I/Os of a flow are verified after the load.

use wirecost_model::load::Backing;
use wirecost_nbd::protocol::command;
use wirecost_nbd::request::Request;

use crate::options::Options;

/// Bytes that all flows together read back at most, but for one I/O each.
const BYTES: u32 = 1 << 20;
/// I/Os that all flows together read back at most.
const MOST: u32 = 64;

/// The last I/Os of a flow that are to be read back.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sample {
    pub(crate) offsets: Vec<u64>,
    /// Where the next one goes.
    next: usize,
    most: usize,
    /// Of which I/Os.
    pub(crate) command: u16,
}

impl Sample {
    /// `filled`: what is read was written before the load, with known content.
    pub(crate) fn new(options: &Options, flow: u32, filled: bool) -> Self {
        let load = &options.load;
        let Some(storage) = load.storage else {
            return Self::default();
        };
        let writes = storage.pattern.writes();
        // What our own target does not keep cannot be read back.
        let kept =
            storage.target == Backing::Memory || options.export.is_some() || load.path.is_some();
        let all = if kept && (writes || filled) {
            (BYTES / load.request).clamp(1, MOST)
        } else {
            0
        };
        let (each, more) = (all / load.streams, all % load.streams);
        Self {
            offsets: Vec::with_capacity((each + 1) as usize),
            next: 0,
            most: (each + u32::from(flow < more)) as usize,
            command: if writes {
                command::WRITE
            } else {
                command::READ
            },
        }
    }

    /// An I/O was answered.
    pub(crate) fn done(&mut self, request: &Request) {
        if request.command != self.command || self.most == 0 {
            return;
        }
        if self.offsets.len() < self.most {
            self.offsets.push(request.offset);
        } else {
            self.offsets[self.next] = request.offset;
            self.next = (self.next + 1) % self.most;
        }
    }
}
