//! The VXLAN header (RFC 7348, section 5).

/// Length of the header in bytes.
pub const HEADER_BYTES: usize = 8;
/// Flag I: the header carries a VNI.
const FLAG_VNI: u8 = 0x08;

/// Identifies one overlay segment on an underlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VxlanId {
    /// UDP destination port; IANA's is 4789.
    pub port: u16,
    /// VXLAN network identifier, below 2^24.
    pub vni: u32,
}

/// The header for segment `vni`; only the low 24 bits of `vni` are used.
pub const fn header(vni: u32) -> [u8; HEADER_BYTES] {
    let [_, high, middle, low] = vni.to_be_bytes();
    [FLAG_VNI, 0, 0, 0, high, middle, low, 0]
}

/// The VNI of a header; `None` without flag I. Reserved bits are ignored, as the RFC requires of a receiver.
pub const fn vni(header: &[u8; HEADER_BYTES]) -> Option<u32> {
    let [flags, _, _, _, high, middle, low, _] = *header;
    if flags & FLAG_VNI == 0 {
        return None;
    }
    Some(u32::from_be_bytes([0, high, middle, low]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_header_is_the_figure_of_rfc_7348() {
        assert_eq!(header(0x12_3456), [0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0]);
    }

    #[test]
    fn without_flag_i_there_is_no_vni() {
        assert_eq!(vni(&[0xf7, 0, 0, 0, 1, 2, 3, 0]), None);
    }

    proptest! {
        #[test]
        fn a_vni_reads_back_whatever_the_reserved_bits(id in 0u32..1 << 24, flags: u8, reserved: [u8; 4]) {
            let mut bytes = header(id);
            prop_assert_eq!(vni(&bytes), Some(id));
            bytes[0] |= flags;
            bytes[1..4].copy_from_slice(&reserved[..3]);
            bytes[7] = reserved[3];
            prop_assert_eq!(vni(&bytes), Some(id));
        }
    }
}
