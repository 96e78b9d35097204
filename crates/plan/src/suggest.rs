//! Finds the known word nearest to an unknown one, for "did you mean".

/// The candidate of which `word` is most likely a misspelling; `None` if none is near enough. A
/// third of its letters may differ; case, and `-` against `_`, do not count.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    // No name in a plan is longer, and the distance takes quadratic time.
    if word.len() > 64 {
        return None;
    }
    let allowed = word.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&word, &plain(candidate));
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Joins words in quotes: `` `a`, `b` and `c` ``, or with another last conjunction.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>, and: &str) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    joined(&quoted, and)
}

/// Like [`listed`], for phrases that have their own quotes.
pub(crate) fn joined(phrases: &[String], and: &str) -> String {
    match phrases {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {and} {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_word_it_was_meant_to_be() {
        assert_eq!(
            nearest("tunel", ["none", "plain", "tunnel"]),
            Some("tunnel")
        );
        assert_eq!(
            nearest("guest-mtu", ["name", "guest_mtu"]),
            Some("guest_mtu")
        );
        assert_eq!(nearest("NONE", ["none", "vxlan"]), Some("none"));
    }

    #[test]
    fn a_word_unlike_all_others_suggests_nothing() {
        assert_eq!(nearest("geneve", ["none", "vxlan"]), None);
        assert_eq!(nearest(&"x".repeat(10_000), ["none"]), None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(listed(["a"], "and"), "`a`");
        assert_eq!(listed(["a", "b", "c"], "or"), "`a`, `b` or `c`");
    }
}
