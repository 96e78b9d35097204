//! Reads scalars: words, numbers and quantities, checked against their key's range.

use std::ops::{Bound, RangeBounds};

use wirecost_model::load::NbdUri;
use wirecost_model::units::{parse_bytes, parse_fraction, parse_rate, parse_seconds};

use crate::keys::{CONGESTION_MAX, Kind, NAME_MAX};
use crate::node::Value;
use crate::read::{Entry, Reader};

/// The text of a scalar; anything else is a fault.
fn scalar<'e>(reader: &mut Reader, entry: &'e Entry<'_>) -> Option<&'e str> {
    match &entry.node.value {
        Value::Scalar(text) => return Some(text),
        Value::Null | Value::Refused => reader.wrong(entry, "no value"),
        Value::List(_) => reader.wrong(entry, "one value is wanted"),
        Value::Map(_) => reader.wrong(entry, "a mapping"),
    }
    None
}

/// One of the key's words, if the value is one.
pub(crate) fn as_word(entry: &Entry<'_>) -> Option<&'static str> {
    let text = entry.node.text()?;
    entry.key.words.iter().find(|word| **word == text).copied()
}

/// One of the key's words; anything else is a fault.
pub(crate) fn word(reader: &mut Reader, entry: &Entry<'_>) -> Option<&'static str> {
    scalar(reader, entry)?;
    let found = as_word(entry);
    if found.is_none() {
        reader.wrong(entry, "unknown word");
    }
    found
}

/// `on` or `off`, or a boolean as YAML 1.2 writes them (section 10.3.2).
pub(crate) fn switch(reader: &mut Reader, entry: &Entry<'_>) -> Option<bool> {
    match entry.node.text() {
        Some("true" | "True" | "TRUE") => Some(true),
        Some("false" | "False" | "FALSE") => Some(false),
        _ => word(reader, entry).map(|word| word == "on"),
    }
}

/// Text that is not blank.
pub(crate) fn text(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let text = scalar(reader, entry)?.trim();
    if text.is_empty() {
        reader.wrong(entry, "blank");
        return None;
    }
    Some(text.to_owned())
}

/// A name that is valid as a directory's name.
pub(crate) fn name(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let text = scalar(reader, entry)?;
    let stray = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if let Some(stray) = text.chars().find(stray) {
        reader.wrong(entry, format!("has {stray:?}"));
    } else if text.is_empty() || text.len() > NAME_MAX {
        reader.wrong(entry, format!("1 to {NAME_MAX} characters"));
    } else if text.chars().all(|c| c == '.') {
        reader.wrong(entry, "dots only");
    } else {
        return Some(text.to_owned());
    }
    None
}

/// The name of a congestion control, as `TCP_CONGESTION` takes it. Whether the kernel has it is not checked.
pub(crate) fn congestion(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let text = scalar(reader, entry)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let valid = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(fits);
    let is_boolean = text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
    if valid && !is_boolean && text.len() <= CONGESTION_MAX {
        return Some(text.to_owned());
    }
    reader.wrong(entry, "not such a name");
    None
}

/// An absolute path.
pub(crate) fn path(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let text = scalar(reader, entry)?;
    if text.starts_with('/') {
        return Some(text.to_owned());
    }
    reader.wrong(entry, "a path begins with a slash");
    None
}

/// The URI of an NBD server.
pub(crate) fn nbd_uri(reader: &mut Reader, entry: &Entry<'_>) -> Option<NbdUri> {
    match scalar(reader, entry)?.parse() {
        Ok(uri) => Some(uri),
        Err(words) => {
            reader.wrong(entry, words);
            None
        }
    }
}

/// A whole number in the key's range.
pub(crate) fn integer(reader: &mut Reader, entry: &Entry<'_>) -> Option<u64> {
    let Ok(number) = scalar(reader, entry)?.parse::<i128>() else {
        reader.wrong(entry, "not a whole number");
        return None;
    };
    in_range(reader, entry, number as f64)?;
    let fits = u64::try_from(number).ok();
    if fits.is_none() {
        reader.wrong(entry, "does not fit in 64 bits");
    }
    fits
}

/// A whole number whose range lies within 32 bits.
pub(crate) fn integer32(reader: &mut Reader, entry: &Entry<'_>) -> Option<u32> {
    integer(reader, entry)?.try_into().ok()
}

/// A size in bytes.
pub(crate) fn bytes(reader: &mut Reader, entry: &Entry<'_>) -> Option<u64> {
    let bytes = quantity(reader, entry, "not a size", |text| {
        Some(parse_bytes(text).ok()? as f64)
    })?;
    Some(bytes as u64)
}

/// A size in bytes whose range lies within 32 bits.
pub(crate) fn size(reader: &mut Reader, entry: &Entry<'_>) -> Option<u32> {
    bytes(reader, entry)?.try_into().ok()
}

/// A rate in bits per second; its unit is required.
pub(crate) fn rate(reader: &mut Reader, entry: &Entry<'_>) -> Option<u64> {
    let label = match entry.node.text() {
        Some(text) if text.parse::<f64>().is_ok() => "a rate needs its unit",
        _ => "not a rate",
    };
    let bits = quantity(reader, entry, label, |text| {
        Some(parse_rate(text).ok()? as f64)
    })?;
    Some(bits as u64)
}

/// A number: seconds for durations, a fraction for shares, else without a unit.
pub(crate) fn number(reader: &mut Reader, entry: &Entry<'_>) -> Option<f64> {
    match entry.key.kind {
        Kind::Seconds => quantity(reader, entry, "not a duration", |text| {
            parse_seconds(text).ok()
        }),
        Kind::Share => quantity(reader, entry, "not a share", |text| {
            parse_fraction(text).ok()
        }),
        _ => quantity(reader, entry, "not a number", |text| text.parse().ok()),
    }
}

/// Two numbers in a list, each in the key's range.
pub(crate) fn numbers(reader: &mut Reader, entry: &Entry<'_>) -> Option<[f64; 2]> {
    let Value::List(items) = &entry.node.value else {
        reader.wrong(entry, "not a list");
        return None;
    };
    if items.len() != 2 {
        reader.wrong(entry, "not two numbers");
        return None;
    }
    let both: Vec<f64> = entry
        .items(reader)
        .iter()
        .filter_map(|item| number(reader, item))
        .collect();
    both.try_into().ok()
}

fn quantity(
    reader: &mut Reader,
    entry: &Entry<'_>,
    otherwise: &str,
    parse: impl Fn(&str) -> Option<f64>,
) -> Option<f64> {
    let text = scalar(reader, entry)?;
    // Units take no sign: parse the number behind it, so that the fault is about the range.
    let value = match text.strip_prefix('-') {
        _ if text.trim() != text => None,
        // Negative even for `-0`, so that no quantity has a sign.
        Some(rest) => parse(rest).map(|number| -number.max(f64::MIN_POSITIVE)),
        None => parse(text),
    };
    if value.is_none() {
        reader.wrong(entry, otherwise);
    }
    in_range(reader, entry, value?)
}

/// `number` if it is in the key's range; otherwise a fault that names the bound that it exceeds.
fn in_range(reader: &mut Reader, entry: &Entry<'_>, number: f64) -> Option<f64> {
    let key = entry.key;
    if key.range.contains(&number) {
        return Some(number);
    }
    let label = match key.range {
        (Bound::Included(low), _) if number < low => format!("below {}", key.amount(low)),
        (Bound::Excluded(low), _) if number <= low => format!("not above {}", key.amount(low)),
        (_, Bound::Included(high)) if number > high => format!("above {}", key.amount(high)),
        _ => "out of range".to_owned(),
    };
    reader.wrong(entry, label);
    None
}
