//! The IEEE 802.1Q tag: four bytes between a frame's addresses and its type.

/// Length of a tag in bytes.
pub const TAG_BYTES: usize = 4;
/// Ethernet type of a customer tag (IEEE 802.1Q).
pub const TPID: u16 = 0x8100;
/// Ethernet type of a service tag (IEEE 802.1ad).
pub const SERVICE_TPID: u16 = 0x88a8;
/// Largest identifier of a VLAN; 0 is for priority tags, 4095 is reserved.
pub const LARGEST_ID: u16 = 4094;

/// A VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Ethernet type of the tag: [`TPID`] or [`SERVICE_TPID`].
    pub tpid: u16,
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
    /// VLAN identifier, 0 to 4095.
    pub id: u16,
}

impl Tag {
    /// A customer tag of priority 0; only the low 12 bits of `id` are used.
    pub const fn new(id: u16) -> Self {
        Self {
            tpid: TPID,
            priority: 0,
            drop_eligible: false,
            id: id & 0xfff,
        }
    }

    /// Tag control information: priority, drop eligibility and identifier, as in a frame.
    pub const fn tci(self) -> u16 {
        (self.priority as u16 & 7) << 13 | (self.drop_eligible as u16) << 12 | self.id & 0xfff
    }

    /// The tag's bytes.
    pub const fn bytes(self) -> [u8; TAG_BYTES] {
        let [t0, t1] = self.tpid.to_be_bytes();
        let [c0, c1] = self.tci().to_be_bytes();
        [t0, t1, c0, c1]
    }

    /// Parses a tag; `None` if the Ethernet type is not that of a tag.
    pub const fn read(bytes: [u8; TAG_BYTES]) -> Option<Self> {
        let tpid = u16::from_be_bytes([bytes[0], bytes[1]]);
        if tpid != TPID && tpid != SERVICE_TPID {
            return None;
        }
        let tci = u16::from_be_bytes([bytes[2], bytes[3]]);
        Some(Self {
            tpid,
            priority: (tci >> 13) as u8,
            drop_eligible: tci & 0x1000 != 0,
            id: tci & 0xfff,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tag_is_type_priority_and_identifier() {
        let tag = Tag {
            priority: 5,
            drop_eligible: true,
            ..Tag::new(0x123)
        };
        assert_eq!(tag.bytes(), [0x81, 0x00, 0xb1, 0x23]);
        assert_eq!(Tag::new(42).bytes(), [0x81, 0x00, 0x00, 0x2a]);
    }

    #[test]
    fn other_types_are_no_tag() {
        assert_eq!(Tag::read([0x08, 0x00, 0, 1]), None);
        assert!(Tag::read([0x88, 0xa8, 0, 1]).is_some());
    }

    proptest! {
        #[test]
        fn every_tag_reads_back(service: bool, tci: u16) {
            let tpid = if service { SERVICE_TPID } else { TPID };
            let [t0, t1] = tpid.to_be_bytes();
            let [c0, c1] = tci.to_be_bytes();
            let bytes = [t0, t1, c0, c1];
            prop_assert_eq!(Tag::read(bytes).map(Tag::bytes), Some(bytes));
        }
    }
}
