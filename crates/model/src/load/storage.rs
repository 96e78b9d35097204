//! What a storage load reads and writes, and what its target keeps it in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Smallest I/O, bytes: a sector, to a multiple of which every other one is rounded.
pub const SECTOR: u32 = 512;
/// Largest I/O, bytes.
pub const MAX_IO: u32 = 4 << 20;
/// Largest export, bytes: the target keeps it in memory.
pub const MAX_EXPORT: u64 = 2 << 30;
/// How long a path may take to be opened, and filled where the file is ours, or to be verified and closed.
pub const PATH_PATIENCE: Duration = Duration::from_mins(1);
/// Most writes of a connection between two flushes.
pub const MAX_FLUSH_EVERY: u32 = 1_000_000;

/// In which order which kind of I/O is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Reads, one after the other.
    SequentialRead,
    /// Writes, one after the other.
    SequentialWrite,
    /// Reads and writes, one after the other.
    SequentialMix,
    /// Reads anywhere.
    RandomRead,
    /// Writes anywhere.
    RandomWrite,
    /// Reads and writes anywhere.
    RandomMix,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 6] = [
        Self::SequentialRead,
        Self::SequentialWrite,
        Self::SequentialMix,
        Self::RandomRead,
        Self::RandomWrite,
        Self::RandomMix,
    ];

    /// Their names, in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = [
        "sequential-read",
        "sequential-write",
        "sequential-mix",
        "random-read",
        "random-write",
        "random-mix",
    ];

    /// As plans, commands and records write it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pattern| pattern.name() == name)
    }

    /// Whether offsets are random.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite | Self::RandomMix)
    }

    /// Whether it has both reads and writes.
    pub const fn is_mix(self) -> bool {
        matches!(self, Self::SequentialMix | Self::RandomMix)
    }

    /// Whether it writes at all.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::SequentialRead | Self::RandomRead)
    }
}

/// What our target keeps an export in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Memory of the export's size.
    Memory,
    /// Nothing: what is written is lost, and reads return anything. No memory but for one I/O.
    Discard,
}

impl Backing {
    /// Their names.
    pub const NAMES: [&'static str; 2] = ["memory", "discard"];

    /// As plans, commands and records write it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Memory, Self::Discard]
            .into_iter()
            .find(|backing| backing.name() == name)
    }
}

/// Options of a storage load, besides those that every load has. The size of an I/O is [`super::Load::request`], its
/// connections are [`super::Load::streams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// In which order which kind of I/O is made.
    pub pattern: Pattern,
    /// Percent of a mix that are reads, 1 to 99.
    pub reads: u8,
    /// What the target keeps the export in.
    pub target: Backing,
    /// Bytes of the export: all connections share it. Of a file or device the bytes from its beginning that are used; 0:
    /// all of it.
    pub size: u64,
    /// A connection asks for a flush (as fdatasync(2) does) after so many of its writes; 0: never.
    #[serde(default)]
    pub flush_every: u32,
    /// Whether a sample has a second window, with the same I/O over a Unix socket on the target's host.
    #[serde(default)]
    pub network_share: bool,
}

impl Storage {
    /// As it is usually run.
    pub const USUAL: Self = Self {
        pattern: Pattern::RandomRead,
        reads: 70,
        target: Backing::Memory,
        size: 64 << 20,
        flush_every: 0,
        network_share: false,
    };

    /// Percent of all I/O that are reads.
    pub const fn reads_percent(&self) -> u8 {
        if self.pattern.is_mix() {
            self.reads
        } else if self.pattern.writes() {
            0
        } else {
            100
        }
    }
}
