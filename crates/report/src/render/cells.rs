//! The tables of cells: one for each load, and one of the figures that the loads of a cell have in common.

use super::column::Column;
use super::section::Section;
use super::table::{ColumnHead, NONE, ShownIn, Table, figure};
use super::{columns, loads, words};
use crate::result::document::{CellLoad, CellResult, Document};
use crate::result::loads::named;

const ELSEWHERE: &str = "`cells` of `wirecost report RUN_DIR --json`.";
const VALID: &str = "valid: samples that count, of those taken";
const MARKED: &str = "marked: disturbed, or limited by the load itself; they count";

/// The columns that name a cell, and their fields: levels of the varied factors; where nothing was varied, guest MTU,
/// encapsulation and offload.
#[derive(Debug)]
pub(crate) struct Labels {
    keys: Vec<String>,
}

impl Labels {
    pub(crate) fn of(doc: &Document) -> Self {
        let known =
            |key: &&String| matches!(key.as_str(), "guest_mtu" | "encapsulation" | "offload");
        let keys = if doc.factors.is_empty() {
            let first = doc.cells.first();
            first.map_or_else(Vec::new, |cell| {
                cell.all_levels.keys().filter(known).cloned().collect()
            })
        } else {
            doc.factors
                .iter()
                .map(|factor| factor.key.clone())
                .collect()
        };
        Self { keys }
    }

    pub(crate) fn heads(&self) -> Vec<ColumnHead> {
        let head = |key: &String| ColumnHead::new(&words::factor(key)).lines(words::column(key));
        self.keys.iter().map(head).collect()
    }

    pub(crate) fn fields(&self, cell: &CellResult) -> Vec<String> {
        let level = |key| cell.all_levels.get(key).cloned();
        let fields = self.keys.iter().map(level);
        fields
            .map(|field| field.unwrap_or_else(|| NONE.into()))
            .collect()
    }
}

/// The section with the cells' figures.
pub(crate) fn section(doc: &Document) -> Section {
    let labels = Labels::of(doc);
    let tables = if loads::plain(doc) {
        vec![of_cells(
            doc,
            &labels,
            &columns::of_cells(doc),
            ShownIn::Always,
        )]
    } else {
        let named = named(doc);
        let several = named.len() > 1;
        let of = named.into_iter().map(|(name, workload)| {
            let title = if several { name } else { "" };
            of_load(doc, &labels, title, name, loads::columns(workload))
        });
        let common = of_cells(doc, &labels, &columns::shared_columns(doc), ShownIn::OnPage);
        of.flatten().chain([common]).collect()
    };
    Section {
        heading: "Cells".into(),
        tables,
        meanings: loads::shared(doc).map(str::to_owned).into_iter().collect(),
        ..Section::default()
    }
}

fn head<T>(column: &Column<T>) -> ColumnHead {
    let head = ColumnHead::new(&format!("{}#", column.head)).lines(column.lines());
    head.shown(column.shown, column.meaning)
}

/// A table with a row for each cell. Its columns are shown from the form `least` on.
fn of_cells(
    doc: &Document,
    labels: &Labels,
    columns: &[Column<CellResult>],
    least: ShownIn,
) -> Table {
    let mut heads = labels.heads();
    heads.extend(columns.iter().map(|column| {
        let shown = column.shown.max(least);
        head(column).shown(shown, column.meaning)
    }));
    heads.push(ColumnHead::new("retransmits#").shown(ShownIn::OnPage, ""));
    heads.push(ColumnHead::new("valid#").shown(least, VALID));
    heads.push(ColumnHead::new("marked#").shown(ShownIn::OnPage, MARKED));
    let title = match least {
        ShownIn::OnPage => "Each cell, its loads together",
        _ => "",
    };
    let mut table = Table::of(title, heads);
    for cell in &doc.cells {
        let mut fields = labels.fields(cell);
        let figures = columns.iter().map(|column| (column.field)(cell));
        fields.extend(figures.map(|field| field.unwrap_or_else(|| NONE.into())));
        fields.push(figure(cell.figures.retransmits.map(|all| all.median), 0));
        fields.push(valid(cell));
        fields.push(cell.marked.to_string());
        table.row(Some(cell.cell), fields);
    }
    table.finish(ELSEWHERE)
}

/// A table of one load's figures in the cells that run it; `None` where it has none.
fn of_load(
    doc: &Document,
    labels: &Labels,
    title: &str,
    name: &str,
    columns: &[loads::Column],
) -> Option<Table> {
    let runs = |cell: &&CellResult| cell.loads.iter().any(|load| load.name == name);
    let cells: Vec<&CellResult> = doc.cells.iter().filter(runs).collect();
    // A factor with the same level in all cells of the load, such as `load`, is no column.
    let rows: Vec<Vec<String>> = cells.iter().map(|cell| labels.fields(cell)).collect();
    let varies = |at: usize| rows.len() < 2 || rows.windows(2).any(|two| two[0][at] != two[1][at]);
    let all = labels.heads();
    let mut kept: Vec<usize> = (0..all.len()).filter(|at| varies(*at)).collect();
    if kept.is_empty() {
        kept = (0..all.len()).collect();
    }
    let mut heads: Vec<ColumnHead> = kept.iter().map(|at| all[*at].clone()).collect();
    heads.extend(columns.iter().map(head));
    heads.push(ColumnHead::new("valid#").shown(ShownIn::Always, VALID));
    let mut table = Table::of(title, heads);
    for (cell, labels) in cells.iter().zip(&rows) {
        let load = cell.loads.iter().find(|load| load.name == name);
        let field = |column: &loads::Column| {
            let field = |load: &CellLoad| (column.field)(load);
            load.and_then(field).unwrap_or_else(|| NONE.into())
        };
        let mut fields: Vec<String> = kept.iter().map(|at| labels[*at].clone()).collect();
        fields.extend(columns.iter().map(field));
        fields.push(valid(cell));
        table.row(Some(cell.cell), fields);
    }
    table.finish(ELSEWHERE).with_figures()
}

/// Valid samples of those taken: `5` (all), `4/5`, `skipped`.
fn valid(cell: &CellResult) -> String {
    match cell.skipped {
        Some(_) => "skipped".into(),
        None if cell.valid == cell.samples => cell.valid.to_string(),
        None => format!("{}/{}", cell.valid, cell.samples),
    }
}
