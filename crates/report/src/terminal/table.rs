//! The table of cells: as many columns as the width has room for, the more important ones first.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use wirecost_model::metric::Metric;
use wirecost_stats::Summary;

use super::page::{Page, visible_width};
use crate::document::{CellResult, Document};
use crate::loads;
use crate::{digits, words};

/// Spaces between columns: the padding, and where the line beneath the head has its junction.
const GAP: u16 = PADDING + 1;
const PADDING: u16 = 1;

/// What to show where there is no figure.
pub(super) const NONE: &str = "-";

pub(super) struct Column {
    /// One or two lines.
    pub(super) head: String,
    /// The column with the highest number is the first to be left out; 0 never is.
    pub(super) rank: u8,
    /// What it shows, for the text below.
    pub(super) meaning: &'static str,
    pub(super) cells: Vec<String>,
    pub(super) align: CellAlignment,
}

impl Column {
    /// The head in one line.
    fn name(&self) -> String {
        let joined = self.head.replace("-\n", "").replace("/\n", "/");
        joined.replace("\n/", "/").replace('\n', " ")
    }

    fn width(&self) -> usize {
        let lines = self
            .head
            .lines()
            .chain(self.cells.iter().map(String::as_str));
        lines.map(visible_width).max().unwrap_or(0)
    }
}

pub(super) fn print(doc: &Document, page: &mut Page) {
    print_columns(columns(doc), loads::shared(doc), page);
}

/// Prints as many of the columns as there is room for, what they mean, and what else is to be said about them.
pub(super) fn print_columns(mut columns: Vec<Column>, says: Option<&str>, page: &mut Page) {
    let mut left_out = Vec::new();
    while total_width(&columns) > page.width() {
        let Some(least) = (0..columns.len())
            .max_by_key(|&at| columns[at].rank)
            .filter(|&at| columns[at].rank > 0)
        else {
            break;
        };
        left_out.push(columns.remove(least).name());
    }
    for line in render(&columns, page.width()).lines() {
        // Only the last column's padding hangs over the edge.
        let line: String = line.chars().take(page.width()).collect();
        page.line(&line);
    }
    page.gap();
    let legend: Vec<&str> = columns
        .iter()
        .map(|column| column.meaning)
        .filter(|meaning| !meaning.is_empty())
        .collect();
    if !legend.is_empty() {
        page.paragraph(&format!("{}.", legend.join("; ")));
    }
    if let Some(says) = says {
        page.paragraph(says);
    }
    if !left_out.is_empty() {
        left_out.reverse();
        left_out.dedup();
        page.paragraph(&format!("For a wider terminal: {}.", left_out.join(", ")));
    }
}

fn total_width(columns: &[Column]) -> usize {
    let widths: usize = columns
        .iter()
        .map(|column| column.width() + GAP as usize)
        .sum();
    widths.saturating_sub(GAP as usize)
}

fn render(columns: &[Column], width: usize) -> Table {
    let mut table = Table::new();
    // The last column's padding may hang over the edge: it is cut off.
    let width = u16::try_from(width)
        .unwrap_or(u16::MAX)
        .saturating_add(PADDING);
    table
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(columns.iter().map(|column| column.head.as_str()));
    let rows = columns
        .iter()
        .map(|column| column.cells.len())
        .max()
        .unwrap_or(0);
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| column.cells[row].as_str()));
    }
    for (column, ours) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, PADDING));
        column.set_cell_alignment(ours.align);
    }
    table
}

fn columns(doc: &Document) -> Vec<Column> {
    let number =
        |head: &str, rank, meaning, figure: &dyn Fn(&CellResult) -> Option<String>| Column {
            head: head.into(),
            rank,
            meaning,
            cells: doc
                .cells
                .iter()
                .map(|cell| figure(cell).unwrap_or_else(|| NONE.into()))
                .collect(),
            align: CellAlignment::Right,
        };
    let median = |summary: &Option<Summary>, digits: usize| {
        summary.map(|summary| format!("{:.digits$}", summary.median))
    };
    let mut columns = levels(doc);
    if !loads::plain(doc) {
        columns.extend(of_loads(doc));
        columns.push(valid(doc));
        return columns;
    }
    columns.push(number(
        "Gbit/s",
        0,
        "Gbit/s: what the receiving application read, median of valid samples",
        &|cell| Some(digits::gbps(cell.throughput_gbps?.median)),
    ));
    columns.push(number(
        "±%",
        3,
        "±%: its relative standard deviation",
        &|cell| Some(format!("{:.1}", cell.throughput_gbps?.relative_sd? * 100.0)),
    ));
    columns.push(number(
        "line\nlimit",
        5,
        "line limit: the TCP payload that the line carries in such frames",
        &|cell| Some(digits::gbps(cell.line_limit_gbps?)),
    ));
    columns.push(number("pub-\nlished", 4, "published: see below", &|cell| {
        Some(digits::gbps(cell.published_gbps?))
    }));
    columns.push(number(
        "sender\nCPU",
        1,
        "CPU: percent of one core per Gbit/s, all time that was not idle",
        &|cell| cell.cpu(Metric::SenderCpu),
    ));
    columns.push(number("recei-\nver CPU", 1, "", &|cell| {
        cell.cpu(Metric::ReceiverCpu)
    }));
    columns.push(number(
        "CPU",
        1,
        "CPU: percent of one core of the machine per Gbit/s, everything that was not idle",
        &|cell| cell.cpu(Metric::Cpu),
    ));
    columns.push(number(
        "kframes\n/s",
        7,
        "kframes/s: thousand frames a second on the wire, both directions",
        &|cell| Some(format!("{:.0}", cell.wire_frames_per_s?.median / 1e3)),
    ));
    columns.push(number(
        "segs/\npacket",
        8,
        "segs/packet: segments on the wire per packet that the receiver's TCP handled",
        &|cell| median(&cell.segments_per_packet, 1),
    ));
    // What no cell has a figure for is not a column of this run.
    columns.retain(|column| column.rank == 0 || column.cells.iter().any(|figure| figure != NONE));
    columns.push(valid(doc));
    columns
}

/// The figures of every load, those of one beside each other.
fn of_loads(doc: &Document) -> Vec<Column> {
    let named = loads::named(doc);
    let several = named.len() > 1;
    let mut said: Vec<&str> = Vec::new();
    let mut columns = Vec::new();
    for (name, workload) in named {
        for of in loads::columns(workload) {
            let field = |cell: &CellResult| {
                let load = cell.loads.iter().find(|load| load.name == name)?;
                (of.field)(load)
            };
            let cells: Vec<String> = doc
                .cells
                .iter()
                .map(|cell| field(cell).unwrap_or_else(|| NONE.into()))
                .collect();
            if of.rank > 0 && cells.iter().all(|figure| figure == NONE) {
                continue;
            }
            let head = of
                .head
                .replacen("transactions/s", "trans/s", usize::from(several));
            let repeated = said.contains(&of.meaning);
            said.push(of.meaning);
            columns.push(Column {
                head: if several {
                    format!("{name}\n{head}")
                } else {
                    head.replace(' ', "\n")
                },
                rank: of.rank,
                meaning: if repeated { "" } else { of.meaning },
                cells,
                align: CellAlignment::Right,
            });
        }
    }
    columns
}

pub(super) fn levels(doc: &Document) -> Vec<Column> {
    let keys: Vec<&String> = if doc.factors.is_empty() {
        let first = doc.cells.first();
        first.map_or_else(Vec::new, |cell| cell.all_levels.keys().collect())
    } else {
        doc.factors.iter().map(|factor| &factor.key).collect()
    };
    let constant = |key: &str| !matches!(key, "guest_mtu" | "encapsulation" | "offload");
    keys.into_iter()
        .filter(|key| !doc.factors.is_empty() || !constant(key))
        .map(|key| Column {
            head: words::column(key),
            rank: 0,
            meaning: "",
            cells: doc
                .cells
                .iter()
                .map(|cell| {
                    cell.all_levels
                        .get(key)
                        .cloned()
                        .unwrap_or_else(|| NONE.into())
                })
                .collect(),
            align: CellAlignment::Left,
        })
        .collect()
}

/// How many samples count: of no interest while it is all of them.
fn valid(doc: &Document) -> Column {
    let all = doc
        .cells
        .iter()
        .all(|cell| cell.valid == doc.rounds_planned);
    Column {
        head: "valid".into(),
        rank: if all { 6 } else { 2 },
        meaning: "valid: samples that count, of those taken",
        cells: doc
            .cells
            .iter()
            .map(|cell| {
                if cell.skipped.is_some() {
                    "skipped".into()
                } else if cell.valid == cell.samples {
                    cell.valid.to_string()
                } else {
                    format!("{}/{}", cell.valid, cell.samples)
                }
            })
            .collect(),
        align: CellAlignment::Right,
    }
}
