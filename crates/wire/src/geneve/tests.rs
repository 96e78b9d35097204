use proptest::prelude::*;

use super::*;

#[test]
fn the_header_is_the_figure_of_rfc_8926() {
    assert_eq!(
        header(0x12_3456, &Options::none()),
        [0x00, 0x00, 0x65, 0x58, 0x12, 0x34, 0x56, 0x00]
    );
}

#[test]
fn ovn_puts_one_critical_option_and_says_so() {
    assert_eq!(
        header(42, &Options::ovn(3, 0x8001)),
        [
            0x02, 0x40, 0x65, 0x58, 0, 0, 42, 0, // two words of options, flag C
            0x01, 0x02, 0x80, 0x01, 0x00, 0x03, 0x80, 0x01,
        ]
    );
}

#[test]
fn options_of_a_size_take_exactly_that() {
    for bytes in (0..=MOST_OPTION_BYTES).step_by(4) {
        let options = Options::of_size(bytes).expect("a size that fits");
        assert_eq!(options.bytes().len(), bytes);
        assert!(!options.are_critical());
        assert_eq!(
            read(&header(1, &options)).expect("ours").options.len(),
            options.iter().count()
        );
    }
    assert_eq!(Options::of_size(6), Err(BuildError::NotWords(6)));
    assert_eq!(Options::of_size(256), Err(BuildError::TooMany(256)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = [0; 128];
    let option = |data| GeneveOption {
        class: 1,
        kind: 2,
        data,
    };
    let mut options = Options::none();
    assert_eq!(
        options.push(option(&data)),
        Err(BuildError::DataTooLong(128))
    );
    assert_eq!(
        options.push(option(&data[..3])),
        Err(BuildError::NotWords(3))
    );
    options.push(option(&data[..124])).expect("room");
    assert_eq!(
        options.push(option(&data[..124])),
        Err(BuildError::TooMany(256))
    );
    options
        .push(option(&data[..120]))
        .expect("room for the rest");
    assert_eq!(options.bytes().len(), MOST_OPTION_BYTES);
}

#[test]
fn an_error_says_what_ends_too_early() {
    let whole = header(1, &Options::ovn(1, 2));
    let said = |bytes: &[u8]| read(bytes).expect_err("broken").to_string();
    assert_eq!(
        said(&whole[..7]),
        "a Geneve header has 8 bytes, there are 7"
    );
    assert_eq!(
        said(&whole[..12]),
        "8 bytes of Geneve options announced, 4 there"
    );
    let mut longer = whole.clone();
    longer[11] = 2;
    assert_eq!(said(&longer), "a Geneve option of 8 bytes where 4 are left");
    let mut newer = whole;
    newer[0] |= 0x40;
    assert_eq!(said(&newer), "Geneve version 1 is not known");
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        vni in 0u32..1 << 24,
        given in prop::collection::vec((any::<u16>(), any::<u8>(), 0usize..8), 0..7),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let data = [0xa5; 28];
        let mut options = Options::none();
        for &(class, kind, words) in &given {
            options.push(GeneveOption { class, kind, data: &data[..words * 4] }).expect("room");
        }
        let bytes = [header(vni, &options), payload.clone()].concat();
        let found = read(&bytes).expect("ours");
        prop_assert_eq!(found.vni, vni);
        prop_assert_eq!(found.critical, given.iter().any(|(_, kind, _)| kind & 0x80 != 0));
        prop_assert_eq!(found.payload, &payload[..]);
        let seen: Vec<_> = found.options.iter().map(|o| (o.class, o.kind, o.data.len() / 4)).collect();
        prop_assert_eq!(seen, given);
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(found) = read(&bytes) {
            let options: usize = found.options.iter().map(|o| 4 + o.data.len()).sum();
            prop_assert_eq!(HEADER_BYTES + options + found.payload.len(), bytes.len());
        }
    }
}
