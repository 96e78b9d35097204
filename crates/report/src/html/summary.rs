//! The table of cells.

use std::collections::BTreeMap;

use wirecost_model::metric::Metric;
use wirecost_stats::Summary;

use super::chart::{Table, figure};
use crate::document::{CellResult, Document};
use crate::{digits, loads, skipped, words};

/// A column of figures: its head, and its field where the cell has a figure.
type Figure = (&'static str, fn(&CellResult) -> Option<String>);

const FIGURES: [Figure; 11] = [
    ("Gbit/s#", |cell| {
        Some(digits::gbps(cell.throughput_gbps?.median))
    }),
    ("95 % interval#", |cell| {
        let summary = cell.throughput_gbps?;
        Some(format!(
            "[{}, {}]",
            digits::gbps(summary.low?),
            digits::gbps(summary.high?)
        ))
    }),
    ("±%#", |cell| {
        Some(format!("{:.1}", cell.throughput_gbps?.relative_sd? * 100.0))
    }),
    ("line limit#", |cell| {
        Some(digits::gbps(cell.line_limit_gbps?))
    }),
    ("% of limit#", |cell| {
        let share = cell.throughput_gbps?.median / cell.line_limit_gbps?;
        Some(format!("{:.0}", share * 100.0))
    }),
    ("published#", |cell| {
        Some(digits::gbps(cell.published_gbps?))
    }),
    ("sender CPU#", |cell| cell.cpu(Metric::SenderCpu)),
    ("receiver CPU#", |cell| cell.cpu(Metric::ReceiverCpu)),
    ("CPU#", |cell| cell.cpu(Metric::Cpu)),
    ("kframes/s#", |cell| {
        Some(format!("{:.0}", cell.wire_frames_per_s?.median / 1e3))
    }),
    ("segments/ packet#", |cell| {
        median(cell.segments_per_packet, 1)
    }),
];

/// Of these each load has columns of its own, where there are columns of loads.
const OF_A_LOAD: [&str; 6] = [
    "Gbit/s#",
    "95 % interval#",
    "±%#",
    "sender CPU#",
    "receiver CPU#",
    "CPU#",
];

fn median(summary: Option<Summary>, digits: usize) -> Option<String> {
    Some(figure(Some(summary?.median), digits))
}

/// The figures of every load, by the number of the cell; none where the other columns say all.
fn of_loads(doc: &Document) -> Vec<(String, BTreeMap<u32, String>)> {
    if loads::plain(doc) {
        return Vec::new();
    }
    let mut columns = Vec::new();
    for (name, workload) in loads::named(doc) {
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

/// The columns of figures that are no load's own: what no cell has a figure for is not a column of this run, and where
/// loads have columns of theirs, their speed and CPU stand there.
fn figures(doc: &Document) -> Vec<Figure> {
    let plain = loads::plain(doc);
    let of_run = |head: &str| plain || !OF_A_LOAD.contains(&head);
    FIGURES
        .into_iter()
        .filter(|(head, figure)| {
            of_run(head) && doc.cells.iter().any(|cell| figure(cell).is_some())
        })
        .collect()
}

/// What the columns show, below them.
pub(super) fn meanings(doc: &Document) -> String {
    let mut meanings: Vec<String> = Vec::new();
    if loads::plain(doc) {
        let plain = [
            "Gbit/s: what the receiving application read",
            "±%: relative standard deviation",
            "CPU: percent of one core per Gbit/s, all time that was not idle",
        ];
        meanings.extend(plain.map(str::to_owned));
    } else {
        for (_, workload) in loads::named(doc) {
            let columns = loads::columns(workload).iter();
            for meaning in columns.map(|column| column.meaning) {
                if !meaning.is_empty() && meanings.iter().all(|known| known != meaning) {
                    meanings.push(meaning.to_owned());
                }
            }
        }
    }
    for (head, _) in figures(doc) {
        let meaning = match head {
            "line limit#" => {
                "line limit: the most TCP payload that the line carries in such frames, Gbit/s"
            }
            "kframes/s#" => "kframes/s: thousand frames a second on the wire, both directions",
            "segments/ packet#" => {
                "segments/packet: segments on the wire per packet that the receiver's TCP handled"
            }
            _ => continue,
        };
        meanings.push(meaning.to_owned());
    }
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
    let figures = figures(doc);
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
        .chain(figures.iter().map(|(head, _)| (*head).to_owned()))
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
                .map(|(_, figure)| figure(cell).unwrap_or_else(none)),
        );
        fields.extend(of_loads.iter().map(|(_, fields)| {
            let field = fields.get(&cell.cell).cloned();
            field.unwrap_or_else(none)
        }));
        fields.push(median(cell.retransmits, 0).unwrap_or_else(none));
        fields.push(skipped::or_valid(cell));
        fields.push(cell.marked.to_string());
        table.row(Some(cell.cell), fields);
    }
    table.finish("`cells` of `wirecost report RUN_DIR --json`.")
}
