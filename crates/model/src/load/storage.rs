//! Options of a storage load: its I/O, and what its target keeps data in.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Smallest I/O, bytes: a sector. Every I/O size is a multiple of it.
pub const SECTOR: u32 = 512;
/// Largest I/O, bytes.
pub const MAX_IO: u32 = 4 << 20;
/// Largest export, bytes: the target keeps it in memory.
pub const MAX_EXPORT: u64 = 2 << 30;
/// Time allowed for opening a path and filling a file of the load's own, and for verifying and closing it.
pub const PATH_PATIENCE: Duration = Duration::from_mins(1);
/// Most writes of a connection between two flushes.
pub const MAX_FLUSH_EVERY: u32 = 1_000_000;

/// Kind and order of the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Reads at ascending offsets.
    SequentialRead,
    /// Writes at ascending offsets.
    SequentialWrite,
    /// Reads and writes at ascending offsets.
    SequentialMix,
    /// Reads at random offsets.
    RandomRead,
    /// Writes at random offsets.
    RandomWrite,
    /// Reads and writes at random offsets.
    RandomMix,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Self; 6] = [
        Self::SequentialRead,
        Self::SequentialWrite,
        Self::SequentialMix,
        Self::RandomRead,
        Self::RandomWrite,
        Self::RandomMix,
    ];

    /// The names of [`Self::ALL`], in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = [
        "sequential-read",
        "sequential-write",
        "sequential-mix",
        "random-read",
        "random-write",
        "random-mix",
    ];

    /// The name in plans, commands and records.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The pattern of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pattern| pattern.name() == name)
    }

    /// Whether offsets are random.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite | Self::RandomMix)
    }

    /// Whether both reads and writes occur.
    pub const fn is_mix(self) -> bool {
        matches!(self, Self::SequentialMix | Self::RandomMix)
    }

    /// Whether writes occur.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::SequentialRead | Self::RandomRead)
    }
}

/// What Wirecost's own target keeps an export in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Memory of the export's size.
    Memory,
    /// Nothing: written data is lost, and reads return arbitrary data. The target needs memory for one I/O only.
    Discard,
}

impl Backing {
    /// The names of all backings.
    pub const NAMES: [&'static str; 2] = ["memory", "discard"];

    /// The name in plans, commands and records.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The backing of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Memory, Self::Discard]
            .into_iter()
            .find(|backing| backing.name() == name)
    }
}

/// Options of a storage load besides those that every load has. The size of an I/O is [`super::Load::request`], the
/// number of connections [`super::Load::streams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Kind and order of the I/O.
    pub pattern: Pattern,
    /// Percent of reads in a mix, 1 to 99.
    pub reads: u8,
    /// What the target keeps the export in.
    pub target: Backing,
    /// Bytes of the export, which all connections share. For a file or device the bytes used, from its beginning; 0 for
    /// all of it.
    pub size: u64,
    /// Number of writes of a connection after which it asks for a flush (as fdatasync(2) does); 0 for never.
    #[serde(default)]
    pub flush_every: u32,
    /// Whether a sample has a second window, with the same I/O over a Unix socket on the target's host: the difference
    /// is the network's share of the latency.
    #[serde(default)]
    pub network_share: bool,
}

impl Storage {
    /// The default options.
    pub const USUAL: Self = Self {
        pattern: Pattern::RandomRead,
        reads: 70,
        target: Backing::Memory,
        size: 64 << 20,
        flush_every: 0,
        network_share: false,
    };

    /// Percent of reads among all I/O, 0 to 100.
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
