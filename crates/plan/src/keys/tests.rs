use super::*;

#[test]
fn every_key_has_a_sentence_an_example_and_something_to_write() {
    for key in keys() {
        assert!(key.doc.ends_with('.'), "{}", key.path);
        assert!(!key.example.is_empty(), "{}", key.path);
        assert!(!key.expects().is_empty(), "{}", key.path);
    }
}

#[test]
fn every_key_stands_in_a_mapping_of_the_table() {
    for key in keys().iter().filter(|key| !key.parent().is_empty()) {
        let parent = keys().iter().find(|other| other.path == key.parent());
        let parent = parent.unwrap_or_else(|| panic!("{} has no parent", key.path));
        assert!(
            matches!(
                parent.kind,
                Kind::Map
                    | Kind::Choice
                    | Kind::Maps
                    | Kind::Choices
                    | Kind::Members
                    | Kind::Named
                    | Kind::Mix
            ),
            "{}",
            key.path
        );
    }
}

#[test]
fn what_a_key_expects_reads_as_words() {
    assert_eq!(
        GUEST_MTU.expects(),
        "`max` or a whole number from 576 to 65535"
    );
    assert_eq!(
        UNDERLAY_RATE.expects(),
        "`none` or a rate from 100mbit to 10000gbit"
    );
    assert_eq!(WORTH.expects(), "a share above 0% and at most 100%");
    assert_eq!(CORES.expects(), "`split` or `shared`");
}
