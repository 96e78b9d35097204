//! What the programs count, summed over the processors.

use std::fmt;

/// Something that happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Counter {
    /// Sent to the underlay; a super-packet counts once.
    Encapsulated,
    /// Handed to a guest from the underlay; a super-packet counts once.
    Decapsulated,
    /// Copies of a frame for everyone, or for a station that is not known.
    Flooded,
    /// From guest to guest of this host.
    Switched,
    /// Super-packets segmented before they were encapsulated, for their last segment's checksum.
    Resegmented,
    /// Too big for the underlay, and the guest was informed.
    TooBigAnswered,
    /// Too big for the underlay, and the guest was not told: a group's packet, no IP, or told too often already.
    TooBigUnanswered,
    /// The next hop's address is not known, and the frame is not IP.
    NoNeighbour,
    /// No destination: no remote and no guest has this address.
    NoDestination,
    /// A guest sent a tag where the endpoint puts its own.
    GuestTag,
    /// Shorter than its headers say.
    Short,
    /// A fragment of an outer packet: endpoints do not reassemble (RFC 7348, section 4.3).
    Fragment,
    /// No VNI, an unknown version, a control packet, or no Ethernet inside.
    BadHeader,
    /// The outer IPv4 header's checksum or the outer UDP checksum is wrong.
    BadChecksum,
    /// A Geneve option is longer than the options, or the options longer than the packet.
    OptionBeyond,
    /// A critical Geneve option that is not known.
    CriticalOption,
    /// No guest here has this VNI.
    UnknownVni,
    /// The sender is not among the remotes.
    UnknownRemote,
    /// The inner frame ends in its headers, or before its IP packet does.
    InnerTruncated,
    /// The inner tag is not the one that is expected.
    InnerTag,
    /// The kernel refused a change to the frame.
    KernelRefused,
}

impl Counter {
    /// All, in the order of `bpf/counters.h`.
    pub const ALL: [Self; 21] = [
        Self::Encapsulated,
        Self::Decapsulated,
        Self::Flooded,
        Self::Switched,
        Self::Resegmented,
        Self::TooBigAnswered,
        Self::TooBigUnanswered,
        Self::NoNeighbour,
        Self::NoDestination,
        Self::GuestTag,
        Self::Short,
        Self::Fragment,
        Self::BadHeader,
        Self::BadChecksum,
        Self::OptionBeyond,
        Self::CriticalOption,
        Self::UnknownVni,
        Self::UnknownRemote,
        Self::InnerTruncated,
        Self::InnerTag,
        Self::KernelRefused,
    ];

    /// Whether the frame was lost; one that was too big and answered is the guest's to send again.
    pub fn is_drop(self) -> bool {
        self > Self::TooBigAnswered
    }

    /// The name in records and on the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encapsulated => "encapsulated",
            Self::Decapsulated => "decapsulated",
            Self::Flooded => "flooded",
            Self::Switched => "switched",
            Self::Resegmented => "resegmented",
            Self::TooBigAnswered => "too_big_answered",
            Self::TooBigUnanswered => "too_big_unanswered",
            Self::NoNeighbour => "no_neighbour",
            Self::NoDestination => "no_destination",
            Self::GuestTag => "guest_tag",
            Self::Short => "short",
            Self::Fragment => "fragment",
            Self::BadHeader => "bad_header",
            Self::BadChecksum => "bad_checksum",
            Self::OptionBeyond => "option_beyond",
            Self::CriticalOption => "critical_option",
            Self::UnknownVni => "unknown_vni",
            Self::UnknownRemote => "unknown_remote",
            Self::InnerTruncated => "inner_truncated",
            Self::InnerTag => "inner_tag",
            Self::KernelRefused => "kernel_refused",
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts since the endpoint was attached.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    /// How often something happened.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Frames lost, whatever the reason.
    pub fn dropped(&self) -> u64 {
        self.iter()
            .filter(|(counter, _)| counter.is_drop())
            .map(|(_, count)| count)
            .sum()
    }

    /// Every counter with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> {
        Counter::ALL
            .into_iter()
            .map(|counter| (counter, self.get(counter)))
    }

    /// What has been counted since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].wrapping_sub(before.0[i])))
    }

    pub(crate) fn set(&mut self, counter: Counter, count: u64) {
        self.0[counter as usize] = count;
    }
}

/// Those that are not zero.
impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.iter().filter(|&(_, count)| count > 0);
        f.debug_map()
            .entries(counted.map(|(counter, count)| (counter.name(), count)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_count_by_the_same_names_in_the_same_order() {
        let header = include_str!("../bpf/counters.h");
        let theirs: Vec<String> = header
            .lines()
            .filter_map(|line| line.strip_prefix('\t')?.strip_suffix(','))
            .map(str::to_lowercase)
            .collect();
        let ours: Vec<&str> = Counter::ALL.into_iter().map(Counter::name).collect();
        assert_eq!(theirs, ours);
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index);
        }
    }

    #[test]
    fn what_went_its_way_is_no_drop() {
        let mut counters = Counters::default();
        counters.set(Counter::Encapsulated, 5);
        counters.set(Counter::TooBigAnswered, 2);
        assert_eq!(counters.dropped(), 0);
        counters.set(Counter::UnknownVni, 3);
        counters.set(Counter::TooBigUnanswered, 1);
        assert_eq!(counters.dropped(), 4);
    }
}
