//! Machines at their destination.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use wirecost_model::load::{Migration, MoveEngine};
use wirecost_sys::shared_memory::SharedMemory;

use super::post_copy::PostCopy;
use crate::options::Options;
use crate::storage::content;

/// One machine at its destination.
#[derive(Debug)]
pub(crate) struct DestinationMachine {
    pub(crate) memory: Arc<SharedMemory>,
    pub(crate) pages: u32,
    pub(crate) channels: u32,
    /// Connections on which everything has arrived.
    complete: AtomicU32,
    /// With post-copy: the state of a machine that resumes before all of its pages have arrived.
    pub(crate) post_copy: Option<PostCopy>,
}

impl DestinationMachine {
    /// Notes that everything has arrived on one more connection.
    pub(crate) fn complete(&self) {
        self.complete.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the machine runs here: all of its pages have arrived, or it has resumed before that.
    pub(crate) fn runs(&self) -> bool {
        if let Some(post_copy) = &self.post_copy {
            return post_copy.runs();
        }
        self.complete.load(Ordering::Acquire) >= self.channels
    }

    /// The machines of a load, with zeroes in their memory; none where a hypervisor moves them.
    ///
    /// # Errors
    /// `ENOMEM`; with post-copy also those of [`PostCopy::of`].
    pub(crate) fn of_load(options: &Options) -> io::Result<Box<[Self]>> {
        let migration = options.load.migration;
        let Some(migration) = migration.filter(|one| one.engine == MoveEngine::Memory) else {
            return Ok(Box::default());
        };
        let machines = 0..options.load.streams;
        let seed = content::seed(options);
        machines
            .map(|number| Self::new(number, &migration, seed))
            .collect()
    }

    fn new(number: u32, migration: &Migration, seed: u64) -> io::Result<Self> {
        let memory = Arc::new(SharedMemory::in_small_pages(migration.memory as usize)?);
        let post_copy = migration
            .post_copy
            .then(|| PostCopy::of(&memory, migration, content::of_machine(seed, number)));
        Ok(Self {
            post_copy: post_copy.transpose()?,
            memory,
            pages: migration.pages() as u32,
            channels: migration.channels,
            complete: AtomicU32::new(0),
        })
    }
}
