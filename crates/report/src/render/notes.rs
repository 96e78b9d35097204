//! Notes around the verdicts, in sentences: machine, invalid samples, loads behind their schedule, how to
//! read a verdict. They are the same in every format.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use wirecost_model::datapath::Datapath;
use wirecost_model::plan::Cores;
use wirecost_model::record::ExistingHost;
use wirecost_model::switch::OvsDatapath;
use wirecost_model::units::format_per_second;
use wirecost_stats::Margin;

use crate::render::{digits, effects, loads, validity, words};
use crate::result::document::{CellResult, Document, InvalidSample};
use crate::result::skipped;

/// What the run measures, and what it does not.
pub(crate) fn measures(doc: &Document) -> String {
    let Some(missing) = missing(doc) else {
        return "Network namespaces on this machine: the cost of its software stack, not of a NIC."
            .to_owned();
    };
    let what = if is_tunnel(doc) {
        "Guests, bridges and tunnels made for the run, over the hosts' own network as it was, with the traffic of \
         others. Offloads are those of what was made."
    } else {
        "An existing network as it was: hosts, devices and everything on the path, with the traffic of others."
    };
    format!("{what} {missing}")
}

/// What samples between existing hosts lack that those of a lab have; `None` for a lab.
fn missing(doc: &Document) -> Option<&'static str> {
    is_existing(doc).then(|| {
        if is_tunnel(doc) {
            "Not as in a lab: cores are not pinned, and CPU includes other processes of the hosts."
        } else {
            "Not as in a lab: frames on the path are not captured, cores are not pinned, and CPU includes other processes of \
             the hosts."
        }
    })
}

/// The title of a result: `jumbo-or-not: 8 cells, 10 rounds of 0.8 s`.
pub(crate) fn title(doc: &Document) -> String {
    format!(
        "{}: {}, {} of {} s",
        doc.name,
        words::count(doc.cells.len(), "cell"),
        words::count(doc.rounds_planned as usize, "round"),
        doc.repeat.seconds
    )
}

/// The hosts of an existing network: `An existing network: a 10.0.0.1 on eth0 of MTU 9000 (Linux 6.1.0, AMD EPYC), b
/// ...`; `None` for a lab.
fn existing(doc: &Document) -> Option<String> {
    let hosts = doc.environment.hosts.iter();
    let hosts: Option<Vec<String>> = hosts
        .map(|(name, host)| {
            let host = host.existing.as_ref()?;
            let ExistingHost {
                address,
                device,
                mtu,
                machine,
                ..
            } = host;
            let (kernel, cpu) = (&machine.kernel, &machine.cpu_model);
            Some(format!(
                "{name} {address} on {device} of MTU {mtu} (Linux {kernel}, {cpu})"
            ))
        })
        .collect();
    let hosts = hosts.filter(|hosts| !hosts.is_empty())?;
    let one = doc
        .environment
        .hosts
        .values()
        .all(|host| host.cores == "shared");
    let one = if one { ", one machine" } else { "" };
    let what = if is_tunnel(doc) {
        "Tunnels over an existing network"
    } else {
        "An existing network"
    };
    Some(format!("{what}{one}: {}", hosts.join(", ")))
}

/// Whether the hosts existed before the run.
pub(crate) fn is_existing(doc: &Document) -> bool {
    existing(doc).is_some()
}

/// Whether tunnels were built on existing hosts: cells of an existing network as it was have no encapsulation.
pub(crate) fn is_tunnel(doc: &Document) -> bool {
    let mut cells = doc.cells.iter();
    cells.any(|cell| cell.all_levels.contains_key("encapsulation"))
}

/// Kernel, processor, cores, and the share of the time that was measured. Not `full`: kernel and processor in a
/// sentence that says what a lab is.
pub(crate) fn place(doc: &Document, full: bool) -> String {
    let seconds = || {
        let seconds = doc.seconds.map(|seconds| format!("; {seconds:.0} s"));
        seconds.unwrap_or_default()
    };
    if let Some(hosts) = existing(doc) {
        // In full, what is missing stands with what was measured.
        let missing = missing(doc).filter(|_| !full);
        let end = missing.map_or_else(String::new, |missing| format!(". {missing}"));
        return format!("{hosts}{}{end}", seconds());
    }
    if !full {
        return format!(
            "A lab on this machine, its software stack and no NIC: Linux {}, {}{}.",
            doc.environment.kernel,
            doc.environment.cpu_model,
            seconds()
        );
    }
    let mut place = format!(
        "Linux {}, {}{}; {}",
        doc.environment.kernel,
        doc.environment.cpu_model,
        if doc.environment.virtual_machine {
            " (virtual machine)"
        } else {
            ""
        },
        cores(doc)
    );
    let built_by = |datapath| {
        let mut levels = doc.cells.iter().map(|cell| cell.all_levels.get("datapath"));
        !doc.cells.is_empty() && levels.all(|level| level.is_some_and(|level| level == datapath))
    };
    if built_by(Datapath::Ebpf.key()) {
        place.push_str("; encapsulated by eBPF");
    }
    if let Some(switch) = &doc.open_vswitch {
        let has = |datapath: Datapath| {
            let mut levels = doc.cells.iter().map(|cell| cell.all_levels.get("datapath"));
            levels.any(|level| level.is_some_and(|level| level == datapath.key()))
        };
        let of = |kind| {
            let mut all = Datapath::ALL.into_iter();
            all.any(|datapath| datapath.open_vswitch() == Some(kind) && has(datapath))
        };
        let (userspace, kernel) = (of(OvsDatapath::Userspace), of(OvsDatapath::Kernel));
        let mut switches = Datapath::ALL
            .into_iter()
            .filter(|datapath| datapath.open_vswitch().is_some());
        let by = if switches.any(|datapath| built_by(datapath.key())) {
            "encapsulated by"
        } else {
            "in some cells"
        };
        // Writing to a string does not fail.
        let _ = write!(place, "; {by} {switch}");
        if userspace && kernel {
            place.push_str(" and its other datapath");
        }
    }
    if let Some(line) = &doc.environment.line {
        // Writing to a string does not fail.
        let _ = write!(place, "; {line}");
    }
    if let (Some(seconds), Some(share)) = (doc.seconds, doc.measured_share) {
        // Writing to a string does not fail.
        let _ = write!(
            place,
            "; {seconds:.0} s, {:.0}% of it measured",
            share * 100.0
        );
    }
    place
}

fn cores(doc: &Document) -> String {
    let environment = &doc.environment;
    match doc.cores {
        Cores::Shared => format!(
            "both hosts share {}, so CPU is the machine's",
            words::cores(&environment.cpus)
        ),
        Cores::Split => environment
            .hosts
            .iter()
            .map(|(name, host)| format!("host {name} on {}", words::cores(&host.cpus)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// `2 of 80 samples not valid, not used in any verdict:`; `None` where all are valid.
pub(crate) fn invalid(doc: &Document) -> Option<String> {
    let invalid = invalid_of_built(doc).count();
    (invalid > 0).then(|| {
        format!(
            "{invalid} of {} not valid, not used in any verdict:",
            words::count((doc.samples - skipped::samples(doc)) as usize, "sample")
        )
    })
}

/// `3 samples measured again, after attempts that were not valid:`; `None` where there were none.
pub(crate) fn measured_again(doc: &Document) -> Option<String> {
    let again = doc.measured_again.iter();
    let samples: BTreeSet<(u32, u32)> = again.map(|one| (one.round, one.cell)).collect();
    (!samples.is_empty()).then(|| {
        format!(
            "{} measured again, after attempts that were not valid:",
            words::count(samples.len(), "sample")
        )
    })
}

/// The invalid samples, without those of skipped cells, which are reported with their cells.
pub(crate) fn invalid_of_built(doc: &Document) -> impl Iterator<Item = &InvalidSample> {
    let skipped = |number| {
        let mut cells = doc.cells.iter();
        cells.any(|cell| cell.cell == number && cell.skipped.is_some())
    };
    let invalid = doc.invalid.iter();
    invalid.filter(move |sample| !skipped(sample.cell))
}

/// Most rounds that are listed for one reason.
const ROUNDS: usize = 40;

/// Most lines of invalid samples.
const LINES: usize = 100;

/// The first lines on invalid samples or attempts, and how many more there are.
pub(crate) fn first_lines<'a>(
    doc: &Document,
    invalid: impl Iterator<Item = &'a InvalidSample>,
) -> Vec<String> {
    let mut lines = alike(doc, invalid);
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES);
        lines.push(format!(
            "and {more} more, in `wirecost report RUN_DIR --csv`"
        ));
    }
    lines
}

/// Cell, rounds and reason, one line for each cell and reason.
fn alike<'a>(doc: &Document, invalid: impl Iterator<Item = &'a InvalidSample>) -> Vec<String> {
    let mut alike: BTreeMap<(u32, &str), Vec<u32>> = BTreeMap::new();
    for sample in invalid {
        alike
            .entry((sample.cell, &sample.reason))
            .or_default()
            .push(sample.round + 1);
    }
    alike
        .iter()
        .map(|((cell, reason), rounds)| {
            let levels = words::cell_numbered(doc, *cell);
            let place = if levels.is_empty() {
                String::new()
            } else {
                format!("{levels}, ")
            };
            let noun = if rounds.len() == 1 { "round" } else { "rounds" };
            let more = rounds.len().saturating_sub(ROUNDS);
            let rounds = rounds.iter().take(ROUNDS).map(ToString::to_string);
            let mut named: Vec<String> = rounds.collect();
            if more > 0 {
                named.push(format!("and {more} more"));
            }
            format!("{place}{noun} {}: {reason}", named.join(", "))
        })
        .collect()
}

/// The unit of the CPU columns, and what only `--full` prints, so that a reader knows that more findings exist.
pub(crate) fn only_in_full(doc: &Document) -> String {
    let remarked = doc
        .effects
        .iter()
        .filter(|effect| !effects::differences(effect).is_empty());
    let findings = validity::sentences(doc).len() + effects::general_remarks(doc).len();
    let cpu = if loads::plain(doc) {
        "% of a core per Gbit/s"
    } else {
        "% of a core per Gbit/s or us per transaction"
    };
    let counted = [(findings, "finding"), (remarked.count(), "note")];
    let counted = counted
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(n, thing)| words::count(n, thing));
    let more: Vec<String> = counted
        .chain(["intervals".into(), "what each column is".into()])
        .collect();
    format!("CPU: {cpu}; --full: {}.", more.join(", "))
}

/// Loads that did not keep their rate, with the rate that they achieved; `None` where all did.
pub(crate) fn behind(doc: &Document) -> Option<String> {
    let behind = |cell: &CellResult| -> Option<String> {
        let loads = cell.loads.iter().filter(|load| load.missed_schedule > 0);
        let each: Vec<String> = loads
            .map(|load| {
                let asked = load.transactions_per_s.map(|all| {
                    let rate = format_per_second(all.median);
                    format!(" at {rate} transactions/s")
                });
                let sent = load.throughput_gbps.map(|all| {
                    let rate = digits::gbps(all.median);
                    format!(" at {rate} Gbit/s")
                });
                let achieved = asked.or(sent).unwrap_or_default();
                format!("{}{achieved}", load.name)
            })
            .collect();
        (!each.is_empty()).then(|| {
            let place = words::cell(doc, cell);
            let place = if place.is_empty() {
                place
            } else {
                format!(" ({place})")
            };
            format!("{}{place}", each.join(", "))
        })
    };
    let cells: Vec<String> = doc.cells.iter().filter_map(behind).collect();
    let (first, more) = (cells.first()?, cells.len() - 1);
    let more = if more > 0 {
        format!(" and {} more", words::count(more, "cell"))
    } else {
        String::new()
    };
    let mut loads = doc.cells.iter().flat_map(|cell| &cell.loads);
    let asks = loads.any(|load| load.missed_schedule > 0 && load.workload.is_request_response());
    let latencies = if asks {
        "; their latencies are not compared"
    } else {
        ""
    };
    Some(format!("Behind schedule: {first}{more}{latencies}."))
}

/// What the verdicts mean, with this run's margin.
pub(crate) fn how_to_read(doc: &Document) -> String {
    let margin = Margin::of(doc.repeat.worth);
    format!(
        "How to read: x is the ratio paired within rounds, [ ] its 95% interval. pays, costs: the whole interval is \
         outside the margin, {:.2} to {:.2}; makes no difference: the whole interval is within the margin; gains, \
         loses: the interval excludes 1 and reaches into the margin; cannot tell yet: more rounds are needed; not \
         comparable: something else differs and decides the figure.",
        margin.low, margin.high
    )
}
