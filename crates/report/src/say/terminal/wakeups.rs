//! CPU at the line and wake-ups, beneath the table of cells.

use super::page::Page;
use super::table::{Column, NONE, levels, print_columns};
use crate::result::document::Document;
use crate::result::document::{HostWakeups, WindowCpu};
use crate::say::digits;

pub(super) fn print(doc: &Document, page: &mut Page) {
    let Some(result) = &doc.wakeups else { return };
    page.heading(result.title());
    let column = |head: &str, figure: &dyn Fn(&[HostWakeups]) -> Option<String>| Column {
        cells: doc
            .cells
            .iter()
            .map(|cell| {
                let found = result.cells.iter().find(|one| one.cell == cell.cell);
                found
                    .and_then(|one| figure(&one.hosts))
                    .unwrap_or_else(|| NONE.into())
            })
            .collect(),
        ..Column::figures(head, false, "")
    };
    let mut columns = levels(doc);
    columns.push(column("Gbit/s", &|hosts| {
        Some(digits::gbps(hosts.first()?.usual.gbps))
    }));
    for (host, short) in [
        ("sender", "sender"),
        ("receiver", "recv."),
        ("machine", "machine"),
    ] {
        let usual = |hosts: &[HostWakeups]| {
            hosts
                .iter()
                .find(|one| one.host == host)
                .map(|one| one.usual)
        };
        let without =
            |hosts: &[HostWakeups]| hosts.iter().find(|one| one.host == host)?.without_line;
        let share = |window: WindowCpu| Some(format!("{:.0}%", window.wakeup_share? * 100.0));
        let woken = |window: WindowCpu| Some(format!("{:.0}", window.wakeups_per_gbit?));
        let cpu = |window: WindowCpu| format!("{:.1}", window.percent_per_gbps);
        columns.extend([
            column(&format!("{short}\n% core"), &|hosts| {
                Some(format!("{:.0}", usual(hosts)?.percent_of_a_core))
            }),
            column("wake-\nups", &|hosts| share(usual(hosts)?)),
            column("wake-ups\n/Gbit", &|hosts| woken(usual(hosts)?)),
            column("CPU per\nGbit/s", &|hosts| Some(cpu(usual(hosts)?))),
            column("without\nline", &|hosts| Some(cpu(without(hosts)?))),
            column("wake-ups\n/Gbit", &|hosts| woken(without(hosts)?)),
        ]);
    }
    columns.retain(|column| column.cells.iter().any(|figure| figure != NONE));
    print_columns(columns, Some(&result.meaning()), page);
}
