//! The table of cells.

use std::collections::BTreeMap;

use super::chart::{Table, figure};
use crate::result::document::Document;
use crate::result::loads::named;
use crate::say::{column, columns, loads, skipped, words};

/// The figures of every load, by the number of the cell; none where the other columns say all.
fn of_loads(doc: &Document) -> Vec<(String, BTreeMap<u32, String>)> {
    if loads::plain(doc) {
        return Vec::new();
    }
    let mut columns = Vec::new();
    for (name, workload) in named(doc) {
        for column in loads::columns(workload) {
            let fields: BTreeMap<u32, String> = doc
                .cells
                .iter()
                .filter_map(|cell| {
                    let load = cell.loads.iter().find(|load| load.name == name)?;
                    Some((cell.cell, (column.field)(load)?))
                })
                .collect();
            if !fields.is_empty() {
                columns.push((format!("{name} {}#", column.head), fields));
            }
        }
    }
    columns
}

/// What the columns show, below them.
pub(super) fn meanings(doc: &Document) -> String {
    let mut meanings: Vec<String> = Vec::new();
    let mut add = |meaning: &str| {
        if meanings.iter().all(|known| known != meaning) {
            meanings.push(meaning.to_owned());
        }
    };
    if !loads::plain(doc) {
        let named = named(doc);
        let of_loads = named.iter().map(|(_, workload)| loads::columns(*workload));
        of_loads.flat_map(column::meanings).for_each(&mut add);
    }
    let of_cells = columns::of_page(doc, loads::plain(doc));
    column::meanings(&of_cells).into_iter().for_each(add);
    meanings.push("marked: samples that may have been disturbed; they count".to_owned());
    meanings.extend(loads::shared(doc).map(|text| text.trim_end_matches('.').to_owned()));
    let sentence = |meaning: String| {
        let mut letters = meaning.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string());
        format!("{}{}.", first.unwrap_or_default(), letters.as_str())
    };
    let sentences: Vec<String> = meanings.into_iter().map(sentence).collect();
    sentences.join(" ")
}

pub(super) fn table(doc: &Document) -> Table {
    let figures = columns::of_page(doc, loads::plain(doc));
    let of_loads = of_loads(doc);
    let levels: Vec<String> = doc
        .factors
        .iter()
        .map(|factor| words::factor(&factor.key).into_owned())
        .collect();
    let first = if levels.is_empty() {
        vec!["cell".to_owned()]
    } else {
        levels
    };
    let heads = first
        .into_iter()
        .chain(figures.iter().map(|column| format!("{}#", column.head)))
        .chain(of_loads.iter().map(|(head, _)| head.clone()));
    let heads = heads.chain(["retransmits#", "valid#", "marked#"].map(str::to_owned));
    let heads: Vec<String> = heads.collect();
    let mut table = Table::new(
        "Every cell: medians of its valid samples",
        heads.iter().map(String::as_str),
    );
    for cell in &doc.cells {
        let mut fields: Vec<String> = doc
            .factors
            .iter()
            .map(|factor| cell.levels.get(&factor.key).cloned().unwrap_or_default())
            .collect();
        if fields.is_empty() {
            fields.push(words::cell(doc, cell));
        }
        let none = || "–".to_owned();
        fields.extend(
            figures
                .iter()
                .map(|column| (column.field)(cell).unwrap_or_else(none)),
        );
        fields.extend(of_loads.iter().map(|(_, fields)| {
            let field = fields.get(&cell.cell).cloned();
            field.unwrap_or_else(none)
        }));
        fields.push(figure(cell.retransmits.map(|all| all.median), 0));
        fields.push(skipped::or_valid(cell));
        fields.push(cell.marked.to_string());
        table.row(Some(cell.cell), fields);
    }
    table.finish("`cells` of `wirecost report RUN_DIR --json`.")
}
