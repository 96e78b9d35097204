//! Our target: an export in memory, or none at all.

use std::io;

use wirecost_model::load::{Backing, MAX_IO, SECTOR, Storage};
use wirecost_nbd::export::Export;
use wirecost_nbd::protocol::transmission;
use wirecost_sys::shared_memory::SharedMemory;

use super::content::{STAMP_BYTES, Writer, body, rest, seed, stamp};
use crate::options::Options;

/// What the export is called; the empty name is it as well.
pub(crate) const NAME: &str = "wirecost";

/// An export and what it is kept in: all connections share it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) export: Export,
    pub(crate) memory: SharedMemory,
    /// Every offset is the same memory.
    null: bool,
}

impl Target {
    /// Zeroes, or nothing.
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

    /// For a load: every I/O of its size has content that can be verified.
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

    /// Where in the memory the bytes at an offset of the export are.
    pub(crate) fn place(&self, offset: u64) -> usize {
        if self.null { 0 } else { offset as usize }
    }
}
