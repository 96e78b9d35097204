//! CPU with and without the line, and wake-ups, in words.

use super::cells::Labels;
use super::digits;
use super::section::Section;
use super::table::{ColumnHead, NONE, Table, figure};
use crate::result::document::{Document, WakeupsResult};

const HEADS: [&str; 9] = [
    "host",
    "Gbit/s#",
    "% core#",
    "wake-ups %#",
    "wake-ups per Gbit#",
    "CPU per Gbit/s#",
    "no line: Gbit/s#",
    "no line: CPU per Gbit/s#",
    "no line: wake-ups per Gbit#",
];

/// A section with a row for each host of each cell whose only load is a stream; `None` where the document has none.
pub(crate) fn section(doc: &Document) -> Option<Section> {
    let result = doc.wakeups.as_ref()?;
    let labels = Labels::of(doc);
    let heads = HEADS.into_iter().map(ColumnHead::new);
    let mut table = Table::of("", labels.heads().into_iter().chain(heads).collect());
    for of in &result.cells {
        let Some(cell) = doc.cells.iter().find(|cell| cell.cell == of.cell) else {
            continue;
        };
        for host in &of.hosts {
            let (usual, without) = (&host.usual, host.without_line.as_ref());
            let mut fields = labels.fields(cell);
            fields.extend([
                host.host.to_owned(),
                digits::gbps(usual.gbps),
                figure(Some(usual.percent_of_a_core), 0),
                figure(usual.wakeup_share.map(|share| share * 100.0), 0),
                figure(usual.wakeups_per_gbit, 0),
                figure(Some(usual.percent_per_gbps), 1),
                without.map_or_else(|| NONE.into(), |window| digits::gbps(window.gbps)),
                figure(without.map(|window| window.percent_per_gbps), 1),
                figure(without.and_then(|window| window.wakeups_per_gbit), 0),
            ]);
            table.row(Some(cell.cell), fields);
        }
    }
    let table = table.finish("`wakeups` of `wirecost report RUN_DIR --json`.");
    Some(Section {
        heading: result.title().into(),
        tables: table.with_figures().into_iter().collect(),
        meanings: vec![result.meaning()],
        ..Section::default()
    })
}

impl WakeupsResult {
    /// The heading of the section.
    pub(crate) fn title(&self) -> &'static str {
        if self.has_line() {
            "CPU at the line, and wake-ups"
        } else {
            "CPU and wake-ups"
        }
    }

    fn has_line(&self) -> bool {
        let mut hosts = self.cells.iter().flat_map(|cell| &cell.hosts);
        hosts.any(|host| host.without_line.is_some())
    }

    /// What the columns mean.
    pub(crate) fn meaning(&self) -> String {
        let at = if self.has_line() {
            "At the line: CPU in percent of a core, and the share of it that its wake-ups take. Without the line: \
             percent of a core per Gbit/s when the line does not limit the load; verdicts on CPU use this."
        } else {
            "CPU in percent of a core, and the share of it that its wake-ups take."
        };
        let cost = match self.cost {
            Some(cost) => format!(
                " A wake-up is an interrupt; a timer interrupt costs {:.1} us of a core here.",
                cost.timer_ns as f64 / 1e3
            ),
            None => " The cost of a wake-up here is not known.".to_owned(),
        };
        format!("{at}{cost}")
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::record::WakeupCost;

    use super::*;
    use crate::result::document::{CellWakeups, HostWakeups, WindowCpu};

    #[test]
    fn the_cost_is_told_where_it_is_known_and_the_line_where_there_is_one() {
        let usual = WindowCpu {
            gbps: 9.8,
            percent_of_a_core: 70.0,
            percent_per_gbps: 7.1,
            wakeups_per_gbit: Some(2_000.0),
            wakeup_share: Some(0.5),
        };
        let result = |without_line, cost| WakeupsResult {
            cost,
            cells: vec![CellWakeups {
                cell: 0,
                hosts: vec![HostWakeups {
                    host: "sender",
                    usual,
                    without_line,
                }],
            }],
        };
        let cost = Some(WakeupCost {
            timer_ns: 17_148,
            other_core_ns: 12_925,
        });
        let with = result(Some(usual), cost);
        assert!(
            with.meaning().starts_with("At the line:"),
            "{}",
            with.meaning()
        );
        assert!(with.meaning().ends_with("costs 17.1 us of a core here."));
        let without = result(None, None);
        assert_eq!(without.title(), "CPU and wake-ups");
        assert!(without.meaning().ends_with("is not known."));
    }
}
