//! Machines at their destination.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use wirecost_model::load::{Migration, MoveEngine};
use wirecost_sys::shared_memory::SharedMemory;

use crate::options::Options;

/// One machine's memory.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) memory: SharedMemory,
    pub(crate) pages: u32,
    pub(crate) channels: u32,
    /// Connections that have brought everything.
    complete: AtomicU32,
}

impl Landing {
    /// A connection has brought everything.
    pub(crate) fn complete(&self) {
        self.complete.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the machine runs here: all of it is here.
    pub(crate) fn runs(&self) -> bool {
        self.complete.load(Ordering::Acquire) >= self.channels
    }

    /// The machines of a load, with nothing in their memory.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn of_load(options: &Options) -> io::Result<Box<[Self]>> {
        let machine = |migration: Migration| {
            Ok(Self {
                memory: SharedMemory::in_small_pages(migration.memory as usize)?,
                pages: migration.pages() as u32,
                channels: migration.channels,
                complete: AtomicU32::new(0),
            })
        };
        let migration = options.load.migration.into_iter();
        let migration = migration.filter(|one| one.engine == MoveEngine::Memory);
        let machines = migration.flat_map(|one| (0..options.load.streams).map(move |_| one));
        machines.map(machine).collect()
    }
}
