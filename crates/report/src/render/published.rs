//! Published ratios compared with measured ones.

use super::section::{Item, Section};
use super::table::Table;
use super::{digits, study, words};
use crate::result::document::{Document, PublishedNote, PublishedRatio};

/// A section with a row for each published ratio; `None` where the plan has nothing published.
pub(crate) fn section(doc: &Document) -> Option<Section> {
    let published = doc.published.as_ref()?;
    if let Some(study) = study::section(doc) {
        return Some(study);
    }
    let heads = ["change", "published#", "here#", "95 % interval#"];
    let mut table = Table::new("", heads);
    for ratio in &published.ratios {
        let here = digits::ratio_and_interval(ratio.here, ratio.low, ratio.high);
        let here = here.unwrap_or_else(|| "not measured".into());
        let (here, interval) = match here.split_once(' ') {
            Some((here, interval)) if interval.starts_with('[') => (here, interval),
            _ => (here.as_str(), super::table::NONE),
        };
        let times = |text: &str| text.replacen('x', "×", 1);
        let fields = vec![
            contrast(doc, ratio),
            times(&digits::ratio(ratio.published)),
            times(here),
            interval.into(),
        ];
        table.row(None, fields);
    }
    let notes = published.notes.iter();
    Some(Section {
        heading: "Compared with published figures".into(),
        sentences: vec![published.source.clone()],
        tables: vec![table.finish("`published` of `wirecost report RUN_DIR --json`.")],
        items: notes.map(|of| Item::of(note(doc, of))).collect(),
        ..Section::default()
    })
}

/// The change that a published ratio is of, in words.
fn contrast(doc: &Document, ratio: &PublishedRatio) -> String {
    let mut what = words::contrast(&ratio.factor, &ratio.from, &ratio.to);
    if !ratio.where_.is_empty() {
        what.push_str(", ");
        what.push_str(&words::levels(&doc.factors, &ratio.where_));
    }
    what
}

/// How a published configuration differs from the cells.
fn note(doc: &Document, note: &PublishedNote) -> String {
    format!(
        "Published for {}: {}",
        words::levels(&doc.factors, &note.levels),
        note.note
    )
}
