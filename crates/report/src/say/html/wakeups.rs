//! The table of CPU at the line and of wake-ups.

use super::chart::{Table, figure};
use crate::result::document::Document;
use crate::say::{digits, words};

const HEADS: [&str; 10] = [
    "cell",
    "host",
    "Gbit/s#",
    "% of a core#",
    "of it wake-ups, %#",
    "wake-ups per Gbit#",
    "% of a core per Gbit/s#",
    "without the line: Gbit/s#",
    "% of a core per Gbit/s#",
    "wake-ups per Gbit#",
];

/// A row for each host of each cell that has a stream alone; nothing where there is nothing to tell.
pub(super) fn table(doc: &Document) -> Option<Table> {
    let result = doc.wakeups.as_ref()?;
    let mut table = Table::new(result.title(), HEADS);
    for of in &result.cells {
        let Some(cell) = doc.cells.iter().find(|cell| cell.cell == of.cell) else {
            continue;
        };
        for host in &of.hosts {
            let (usual, without) = (&host.usual, host.without_line.as_ref());
            table.row(
                Some(cell.cell),
                vec![
                    words::cell(doc, cell),
                    host.host.to_owned(),
                    digits::gbps(usual.gbps),
                    figure(Some(usual.percent_of_a_core), 0),
                    figure(usual.wakeup_share.map(|share| share * 100.0), 0),
                    figure(usual.wakeups_per_gbit, 0),
                    figure(Some(usual.percent_per_gbps), 1),
                    without.map_or_else(|| figure(None, 0), |window| digits::gbps(window.gbps)),
                    figure(without.map(|window| window.percent_per_gbps), 1),
                    figure(without.and_then(|window| window.wakeups_per_gbit), 0),
                ],
            );
        }
    }
    Some(table.finish("`wakeups` of `wirecost report RUN_DIR --json`."))
}
