//! Which I/Os of a flow are verified after the load.

use wirecost_model::load::Backing;
use wirecost_nbd::protocol::command;
use wirecost_nbd::request::Request;

use crate::options::Options;

/// Upper bound on the bytes that all flows together read back, unless a single I/O is larger.
const MAX_READ_BACK_BYTES: u32 = 1 << 20;
/// Upper bound on the I/Os that all flows together read back.
const MAX_READ_BACKS: u32 = 64;

/// The last I/Os of a flow that are to be read back.
#[derive(Debug, Default, Clone)]
pub(crate) struct ReadBack {
    pub(crate) offsets: Vec<u64>,
    /// Index in `offsets` that the next I/O replaces, once there are `most`.
    next: usize,
    most: usize,
    /// Command of these I/Os: `READ` or `WRITE`.
    pub(crate) command: u16,
}

impl ReadBack {
    /// The empty sample of a flow. `filled`: the target was filled with known content before the load.
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
            (MAX_READ_BACK_BYTES / load.request).clamp(1, MAX_READ_BACKS)
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

    /// Notes an I/O that was answered, if it has the sample's command.
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
