//! The table of flows: how evenly they share the path, and the state of their sockets.

use super::table::{NONE, Table, figure};
use crate::render::{digits, words};
use crate::result::document::Document;
use crate::result::flows::FlowsResult;
use crate::result::loads::named;

type Column = (&'static str, fn(&FlowsResult) -> Option<String>);

const COLUMNS: [Column; 10] = [
    ("slowest, Gbit/s#", |of| {
        Some(digits::gbps(of.slowest_gbps?))
    }),
    ("middle, Gbit/s#", |of| Some(digits::gbps(of.middle_gbps?))),
    ("fastest, Gbit/s#", |of| {
        Some(digits::gbps(of.fastest_gbps?))
    }),
    ("retransmits#", |of| whole(of.retransmits)),
    ("rtt, us#", |of| whole(of.rtt_us)),
    ("lowest rtt, us#", |of| whole(of.min_rtt_us)),
    ("cwnd, segments#", |of| whole(of.cwnd)),
    ("MSS#", |of| whole(of.mss)),
    ("path MTU#", |of| whole(of.path_mtu)),
    ("congestion control", |of| of.congestion.clone()),
];

fn whole(value: Option<f64>) -> Option<String> {
    Some(figure(Some(value?), 0))
}

/// A row for each load of each cell that has flows; `None` where none has.
pub(crate) fn table(doc: &Document) -> Option<Table> {
    let several = named(doc).len() > 1;
    let rows: Vec<_> = doc
        .cells
        .iter()
        .flat_map(|cell| cell.loads.iter().map(move |load| (cell, load)))
        .filter_map(|(cell, load)| Some((cell, load, load.flows.as_ref()?)))
        .collect();
    // Only columns for which some load has a figure.
    let columns: Vec<Column> = COLUMNS
        .into_iter()
        .filter(|(_, field)| rows.iter().any(|(_, _, flows)| field(flows).is_some()))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let load = several.then_some("load");
    let heads = ["cell"].into_iter().chain(load).chain(["flows#"]);
    let fair = rows.iter().any(|(_, load, _)| load.fairness.is_some());
    let heads = heads.chain(fair.then_some("fairness#"));
    let heads = heads.chain(columns.iter().map(|(head, _)| *head));
    let mut table = Table::new(
        "The flows of each cell: medians over its valid samples, of sockets over all flows",
        heads,
    );
    for (cell, load, flows) in rows {
        let mut fields = vec![words::cell(doc, cell)];
        fields.extend(several.then(|| load.name.clone()));
        fields.push(flows.count.to_string());
        fields.extend(fair.then(|| figure(load.fairness.map(|fairness| fairness.median), 4)));
        let none = || NONE.to_owned();
        fields.extend(
            columns
                .iter()
                .map(|(_, field)| field(flows).unwrap_or_else(none)),
        );
        table.row(Some(cell.cell), fields);
    }
    Some(table.finish("`cells` of `wirecost report RUN_DIR --json`."))
}
