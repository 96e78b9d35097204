//! The columns of the tables of cells.

use super::column::Column;
use super::digits;
use super::loads::{self, CPU, RECEIVER_CPU, SENDER_CPU, THROUGHPUT};
use crate::result::document::{CellResult, Document};

/// A column of a table of cells.
const fn cell(
    head: &'static str,
    meaning: &'static str,
    field: fn(&CellResult) -> Option<String>,
) -> Column<CellResult> {
    Column::new(head, meaning, field)
}

/// The columns of loads, for cells with a single load.
const GBPS: Column<CellResult> =
    THROUGHPUT.with_field(|cell| (THROUGHPUT.field)(cell.loads.first()?));
const SPREAD: Column<CellResult> =
    loads::SPREAD.with_field(|cell| (loads::SPREAD.field)(cell.loads.first()?));
const MESSAGES: Column<CellResult> =
    loads::MESSAGES.with_field(|cell| (loads::MESSAGES.field)(cell.loads.first()?));
const SENDER: Column<CellResult> =
    SENDER_CPU.with_field(|cell| (SENDER_CPU.field)(cell.loads.first()?));
const RECEIVER: Column<CellResult> =
    RECEIVER_CPU.with_field(|cell| (RECEIVER_CPU.field)(cell.loads.first()?));
const MACHINE: Column<CellResult> = CPU.with_field(|cell| (CPU.field)(cell.loads.first()?));

const INTERVAL: Column<CellResult> = cell("95 % interval", "", |cell| {
    let summary = cell.throughput_gbps?;
    let (low, high) = (summary.low?, summary.high?);
    Some(format!("[{}, {}]", digits::gbps(low), digits::gbps(high)))
})
.on_page();

const LIMIT: Column<CellResult> = cell(
    "line limit",
    "line limit: the TCP payload that the line carries in such frames",
    |cell| Some(digits::gbps(cell.line_limit_gbps?)),
);

const SHARE: Column<CellResult> = cell("% of limit", "", |cell| {
    let share = cell.throughput_gbps?.median / cell.line_limit_gbps?;
    Some(format!("{:.0}", share * 100.0))
})
.on_page();

const PUBLISHED: Column<CellResult> = cell("published", "published: see below", |cell| {
    Some(digits::gbps(cell.published_gbps?))
})
.narrow("pub-\nlished")
.in_full();

const FRAMES: Column<CellResult> = cell(
    "kframes/s",
    "kframes/s: thousand frames a second on the wire, both directions",
    |cell| {
        Some(format!(
            "{:.0}",
            cell.figures.wire_frames_per_s?.median / 1e3
        ))
    },
)
.narrow("kframes\n/s")
.in_full();

const SEGMENTS: Column<CellResult> = cell(
    "segs/packet",
    "segs/packet: segments on the wire per packet that the receiver's TCP handled",
    |cell| Some(format!("{:.1}", cell.figures.segments_per_packet?.median)),
)
.narrow("segs/\npacket")
.in_full();

/// The columns of a table of cells, those for which some cell has a figure.
pub(crate) fn of_cells(doc: &Document) -> Vec<Column<CellResult>> {
    with_figures(
        doc,
        &[
            GBPS, INTERVAL, SPREAD, MESSAGES, LIMIT, SHARE, PUBLISHED, SENDER, RECEIVER, MACHINE,
            FRAMES, SEGMENTS,
        ],
    )
}

/// The columns of a table of cells whose loads have tables of their own.
pub(crate) fn shared_columns(doc: &Document) -> Vec<Column<CellResult>> {
    with_figures(doc, &[LIMIT, SHARE, PUBLISHED, FRAMES, SEGMENTS])
}

fn with_figures(doc: &Document, columns: &[Column<CellResult>]) -> Vec<Column<CellResult>> {
    let has_figure =
        |column: &&Column<CellResult>| doc.cells.iter().any(|cell| (column.field)(cell).is_some());
    columns.iter().filter(has_figure).copied().collect()
}
