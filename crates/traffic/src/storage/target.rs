//! Our NBD target: an export in memory, or one that keeps nothing.

use std::io;

use wirecost_model::load::{Backing, MAX_IO, SECTOR, Storage};
use wirecost_nbd::export::Export;
use wirecost_nbd::protocol::transmission;
use wirecost_sys::shared_memory::SharedMemory;

use super::content::{STAMP_BYTES, Writer, body, rest, seed, stamp};
use crate::options::Options;

/// Name of the export; the empty name selects it as well.
pub(crate) const NAME: &str = "wirecost";

/// An export and its memory, shared by all connections.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) export: Export,
    pub(crate) memory: SharedMemory,
    /// Whether all offsets share the same memory: the export keeps nothing.
    null: bool,
}

impl Target {
    /// An export of zeroes, or one that keeps nothing ([`Backing::Discard`]).
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn new(storage: &Storage) -> io::Result<Self> {
        let null = storage.target == Backing::Discard;
        let bytes = if null { MAX_IO.into() } else { storage.size };
        Ok(Self {
            export: Export {
                size: storage.size,
                flags: transmission::HAS_FLAGS
                    | transmission::SEND_FLUSH
                    | transmission::SEND_FUA
                    | transmission::CAN_MULTI_CONN,
                min_block: SECTOR,
                max_block: MAX_IO,
            },
            memory: SharedMemory::new(bytes as usize)?,
            null,
        })
    }

    /// The export of a load. Unless it keeps nothing, every I/O of the load's size has content that can be verified.
    pub(crate) fn of_load(storage: &Storage, options: &Options) -> io::Result<Self> {
        let target = Self::new(storage)?;
        if !target.null {
            let (seed, body, length) = (seed(options), body(options), options.load.request);
            for place in 0..storage.size / u64::from(length) {
                let offset = place * u64::from(length);
                let at = offset as usize;
                target
                    .memory
                    .store(at, &stamp(seed, Writer::Target, offset));
                let rest = rest(&body, offset, length as usize);
                target.memory.store(at + STAMP_BYTES, rest);
            }
        }
        Ok(target)
    }

    /// Index in the memory of the byte at an offset of the export.
    pub(crate) fn place(&self, offset: u64) -> usize {
        if self.null { 0 } else { offset as usize }
    }
}
