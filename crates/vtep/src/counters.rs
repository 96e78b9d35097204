//! The programs' counters, summed over the CPUs.

use std::fmt;

/// An event that the programs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Counter {
    /// A frame was sent to the underlay; a super-packet counts once.
    Encapsulated,
    /// A frame from the underlay was delivered to a guest; a super-packet counts once.
    Decapsulated,
    /// A copy of a broadcast or multicast frame, or of one for an unknown MAC address, was sent.
    Flooded,
    /// A frame went from guest to guest of this host.
    Switched,
    /// A super-packet was segmented before its encapsulation, for the checksum of its last segment.
    Resegmented,
    /// A packet was too big for the underlay, and the guest was sent an ICMP error.
    TooBigAnswered,
    /// A packet was too big for the underlay and the guest was sent no ICMP error: the packet is for
    /// several receivers, not IP, a later fragment or itself an ICMP error, or errors are rate limited.
    TooBigUnanswered,
    /// The next hop's MAC address is unknown, and the frame is not IP.
    NoNeighbour,
    /// No remote and no guest has the destination address.
    NoDestination,
    /// A guest sent a tagged frame to an endpoint that adds its own tag.
    GuestTag,
    /// The packet is shorter than its headers say.
    Short,
    /// A fragment of an outer packet: endpoints do not reassemble (RFC 7348, section 4.3).
    Fragment,
    /// The tunnel header has no VNI, an unknown version, the control flag, or a payload other than Ethernet.
    BadHeader,
    /// The checksum of the outer IPv4 header or of outer UDP is wrong.
    BadChecksum,
    /// A Geneve option exceeds the options, or the options exceed the packet.
    OptionBeyond,
    /// A critical Geneve option is unknown.
    CriticalOption,
    /// No guest of this host has the VNI.
    UnknownVni,
    /// The outer source address is none of the remotes'.
    UnknownRemote,
    /// The inner frame ends within its headers, or before its IP packet does.
    InnerTruncated,
    /// The inner VLAN tag is not the expected one.
    InnerTag,
    /// The kernel refused to change the frame.
    KernelRefused,
}

impl Counter {
    /// All counters, in the order of `bpf/counters.h`.
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

    /// Whether the frame was lost. One that was too big and answered is not: the guest sends it again.
    pub fn is_drop(self) -> bool {
        self > Self::TooBigAnswered
    }

    /// Name in records and on the screen.
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

/// Counts since the endpoint was attached, as events.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    /// The count of an event.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Number of frames lost, for any reason.
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

    /// The counts since `before` was read.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].wrapping_sub(before.0[i])))
    }

    pub(crate) fn set(&mut self, counter: Counter, count: u64) {
        self.0[counter as usize] = count;
    }
}

/// Lists the counters that are not zero.
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
