//! Rules of nft with a verdict map: `meta l4proto vmap { tcp : accept, udp : drop }` (nft(8)).

use std::collections::HashMap;

/// Words of a listing's named maps, by table and name: `inet filter ports`.
pub(super) type NamedMaps<'a> = HashMap<String, Vec<&'a str>>;

/// Words that may follow the key of an element: `udp timeout 1h expires 59m : drop`.
const AFTER_KEY: [&str; 7] = [
    "comment", "counter", "expires", "last", "limit", "quota", "timeout",
];

/// What the map of a rule drops, as the words of a rule with a set: `meta l4proto { udp }`. `None` where the rule has
/// no map, or one that drops nothing.
pub(super) fn dropped<'a>(
    words: &[&'a str],
    table: &str,
    maps: &NamedMaps<'a>,
) -> Option<Vec<&'a str>> {
    let at = words.iter().position(|word| *word == "vmap")?;
    let (matched, map) = (&words[..at], &words[at + 1..]);
    let map = match map.first()?.strip_prefix('@') {
        Some(name) => &maps.get(&format!("{table} {name}"))?[..],
        None => map,
    };
    let elements = map.iter().skip_while(|word| **word != "{").skip(1);
    let elements: Vec<&str> = elements.take_while(|word| **word != "}").copied().collect();
    let elements: Vec<(&[&str], bool)> = elements
        .split_inclusive(|word| word.ends_with(','))
        .filter_map(|element| {
            let colon = element.iter().position(|word| *word == ":")?;
            let verdict = element.get(colon + 1)?.trim_end_matches(',');
            let mut key = element[..colon].iter();
            let end = key.position(|word| AFTER_KEY.contains(word));
            Some((&element[..end.unwrap_or(colon)], verdict == "drop"))
        })
        .collect();
    let keys = |drop: bool| -> Vec<&str> {
        let of_verdict = elements.iter().filter(|element| element.1 == drop);
        of_verdict.flat_map(|element| element.0).copied().collect()
    };
    let dropped = keys(true);
    if dropped.is_empty() {
        return None;
    }
    // `*` matches what is in no other element.
    let (not, keys): (&[&str], _) = if dropped.contains(&"*") {
        (&["!="], keys(false))
    } else {
        (&[], dropped)
    };
    Some([matched, not, &["{"][..], &keys[..], &["}"][..]].concat())
}
