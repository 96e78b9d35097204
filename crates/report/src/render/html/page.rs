//! The data of the page's template, in the order of the page.

use serde::Serialize;
use wirecost_stats::Margin;

use super::cells::{self, CellView};
use super::chart::{Chart, Limits};
use super::chart_figure::ChartLoad;
use super::verdicts::{self, Verdicts};
use super::{cpu, drift, forest, latency, overview, strip, study, window};
use crate::render::answer::{self, Sentence};
use crate::render::section::Section;
use crate::render::table::Table;
use crate::render::verdicts::{Meaning, meanings};
use crate::render::{
    adaptive, caveats, cells as cells_of, effects, flows, notes, published, rules, trust, wakeups,
    words,
};
use crate::result::document::{Document, Ending, Intervals};
use crate::result::gathered::IdleSteps;
use crate::result::read::RecordedRun;

#[derive(Debug, Serialize)]
pub(super) struct Page {
    title: String,
    name: String,
    description: Option<String>,
    /// Facts in short: cells, rounds, window, samples, start.
    facts: Vec<String>,
    lab: String,
    place: String,
    answers: Vec<Sentence>,
    trust: String,
    /// Why the run cannot be relied on.
    trust_warning: Option<Sentence>,
    /// Paced loads that did not keep their schedule.
    behind: Option<String>,
    /// How an adaptive run stopped.
    until: Option<String>,
    caveats: Option<Section>,
    /// Where one factor's effect depends on another's level.
    depends: Option<Section>,
    worth: String,
    verdicts: Option<Verdicts>,
    meanings: Vec<Meaning>,
    overview: Option<Chart>,
    effects: Vec<Chart>,
    cells: Section,
    flows: Option<Table>,
    wakeups: Option<Section>,
    rules: Section,
    charts: Vec<Chart>,
    published: Option<Section>,
    /// The charts of a published study.
    study: Vec<Chart>,
    plan: PlanText,
    environment: Vec<(&'static str, String)>,
    hosts: Vec<(String, String)>,
    sysctls: Vec<(String, String)>,
    measured: Vec<String>,
    reproduce: Reproduce,
    run_dir: String,
    record: String,
}

#[derive(Debug, Serialize)]
struct PlanText {
    /// The plan as the user wrote it, where the run directory has it.
    written: Option<String>,
    /// The effective plan with every key resolved, as JSON.
    effective: String,
}

#[derive(Debug, Serialize)]
struct Reproduce {
    commands: Vec<String>,
    /// What has to be done besides the commands.
    note: Option<String>,
}

pub(super) fn page(reading: &RecordedRun, doc: &Document, limits: Limits) -> Page {
    let run = &reading.run;
    let cells = cells::of(doc, run, limits.samples);
    let margin = Margin::of(doc.repeat.worth);
    let mut page = Page {
        title: match trust::line(doc) {
            Some((label, _)) => format!("{label} {}", notes::title(doc)),
            None => notes::title(doc),
        },
        name: doc.name.clone(),
        description: doc.description.clone(),
        facts: facts(doc),
        lab: notes::measures(doc),
        place: notes::place(doc, true),
        answers: answer::sentences(doc, '×'),
        trust: trust::sentence(doc),
        trust_warning: trust::line(doc).map(|(lead, rest)| Sentence {
            lead: lead.into(),
            rest,
        }),
        behind: notes::behind(doc),
        until: adaptive::sentence(doc),
        caveats: caveats::section(doc, true),
        depends: effects::section(doc, true, usize::MAX),
        worth: wirecost_model::units::format_fraction(doc.repeat.worth),
        verdicts: (!doc.effects.is_empty()).then(|| verdicts::table(doc, limits)),
        meanings: meanings(margin.low, margin.high),
        overview: overview::chart(doc),
        effects: forest::charts(doc, limits),
        cells: cells_of::section(doc),
        flows: flows::table(doc),
        wakeups: wakeups::section(doc),
        rules: rules::section(doc),
        charts: charts(doc, &cells, limits),
        published: published::section(doc),
        study: study::charts(doc),
        plan: PlanText {
            written: reading.plan_text.clone(),
            // Serialising a plan to JSON cannot fail: the keys of its maps are strings.
            effective: serde_json::to_string_pretty(&run.head.experiment.plan).unwrap_or_default(),
        },
        environment: environment(doc),
        hosts: hosts(doc),
        sysctls: doc.environment.sysctls.clone().into_iter().collect(),
        measured: measured(doc),
        reproduce: reproduce(reading, doc),
        run_dir: doc.run_dir.clone(),
        record: format!(
            "wirecost {}, record version {}",
            doc.program_version, doc.record_version
        ),
    };
    page.limit(limits);
    page
}

impl Page {
    /// Cuts tables, lists and the plan to the limits.
    fn limit(&mut self, limits: Limits) {
        let charts = self.overview.iter_mut().chain(&mut self.effects);
        let charts = charts.chain(&mut self.charts).chain(&mut self.study);
        let of_charts = charts.map(|chart| &mut chart.table);
        for table in of_charts.chain(&mut self.flows) {
            table.limit(limits.rows);
        }
        // The tables of cells and of published comparisons may be longer, to be complete if possible.
        for section in [&mut self.cells].into_iter().chain(&mut self.published) {
            section.limit(limits.rows * 4);
        }
        let sections = [&mut self.wakeups, &mut self.caveats, &mut self.depends];
        let sections = sections.into_iter().flatten();
        for section in sections.chain([&mut self.rules]) {
            section.limit(limits.rows);
        }
        let plan = &mut self.plan;
        for text in plan.written.iter_mut().chain([&mut plan.effective]) {
            if text.len() > limits.plan {
                let all = text.len();
                text.truncate(text.floor_char_boundary(limits.plan));
                text.push_str("…\n(");
                text.push_str(&all.to_string());
                text.push_str(" bytes in all: plan.yaml and run.json of the run directory)");
            }
        }
    }
}

/// The charts of each load, over the cells that run it.
fn charts(doc: &Document, cells: &[CellView], limits: Limits) -> Vec<Chart> {
    let mut charts = Vec::new();
    for load in ChartLoad::all(doc) {
        let cells = load.cells(cells);
        charts.extend(strip::charts(doc, &load, &cells, limits));
        charts.extend(latency::chart(doc, &load, &cells, limits));
        charts.extend(cpu::chart(doc, &load, &cells, limits));
        charts.push(drift::chart(doc, &load, &cells, limits));
        charts.extend(window::chart(doc, &load, &cells, limits));
    }
    charts
}

fn facts(doc: &Document) -> Vec<String> {
    let mut facts = vec![
        words::count(doc.cells.len(), "cell"),
        format!(
            "{} of {} s, warm-up {} s",
            words::count(doc.rounds_planned as usize, "round"),
            doc.repeat.seconds,
            doc.repeat.warmup
        ),
        words::count(doc.samples as usize, "sample"),
        doc.started.replace('T', " ").replace('Z', " UTC"),
    ];
    if doc.outcome == Ending::Complete && doc.invalid.is_empty() {
        facts.push("complete, every sample valid".into());
    } else if doc.outcome == Ending::Complete {
        facts.push("complete".into());
    }
    facts
}

fn environment(doc: &Document) -> Vec<(&'static str, String)> {
    let environment = &doc.environment;
    let machine = if environment.virtual_machine {
        " (virtual machine)"
    } else {
        ""
    };
    let mut rows = vec![
        ("Kernel", format!("Linux {}", environment.kernel)),
        ("Processor", format!("{}{machine}", environment.cpu_model)),
        ("Cores used", words::cores(&environment.cpus)),
        (
            "Memory",
            format!(
                "{:.1} GiB",
                environment.memory_bytes as f64 / f64::from(1 << 30)
            ),
        ),
        ("Clock source", environment.clock_source.clone()),
        ("Privilege", environment.privilege.clone()),
    ];
    if let Some(line) = &environment.line {
        rows.push(("Line", line.to_string()));
    }
    if let (Some(seconds), Some(share)) = (doc.seconds, doc.measured_share) {
        rows.push((
            "Time",
            format!(
                "{seconds:.0} s, {:.0} % of it within measured windows",
                share * 100.0
            ),
        ));
    }
    rows
}

fn hosts(doc: &Document) -> Vec<(String, String)> {
    let hosts = doc.environment.hosts.iter();
    let words = hosts.map(|(name, host)| {
        let cores = format!("{} ({})", words::cores(&host.cpus), host.cores);
        (format!("Host {name}"), cores)
    });
    words.collect()
}

/// How the figures were measured, as far as the record proves it.
fn measured(doc: &Document) -> Vec<String> {
    let cores = if notes::is_existing(doc) {
        "on all cores of each host"
    } else {
        "on the host's own cores"
    };
    vec![
        format!(
            "Every round measures each cell once, in random order (seed {}), and cells are compared within rounds: what \
             drifts between rounds cancels. The unit of replication is the round, never an interval within a window.",
            doc.seed
        ),
        proven(doc),
        format!(
            "After {} s of warm-up both hosts counted over a window of {} s. Throughput is what the receiving application \
             read; frames are counted by the sockets on both ends. CPU is all time that was not idle, waiting for I/O \
             or stolen, {cores}, {}.",
            doc.repeat.warmup,
            doc.repeat.seconds,
            idle_source(doc.gathered.idle_steps)
        ),
        "No sample is discarded. A sample that is not valid enters no verdict and is listed with its reason; one that \
         may have been disturbed, or that the load itself limited, is marked and counts."
            .into(),
        format!(
            "Intervals are 95 % Student's t intervals: of the logarithms of the paired ratios for effects, of the mean for a \
             cell. The margin of the verdicts is {}.{}",
            wirecost_model::units::format_fraction(doc.repeat.worth),
            match doc.until.as_ref().map(|until| until.intervals) {
                None => "",
                Some(Intervals::Reported) =>
                    " The number of rounds was not fixed: effects have t intervals at 95.7 %, which cover 95 % where \
                     the rule stops (share/doc/wirecost/statistics.md).",
                Some(Intervals::Lasting) =>
                    " The number of rounds was not fixed, and the rule did not stop the run: effects have intervals by \
                     O'Brien and Fleming's boundary, which hold at any stopping time (share/doc/wirecost/statistics.md).",
            }
        ),
    ]
}

/// How the path was proven, and what was set on it.
fn proven(doc: &Document) -> String {
    let proofs = doc.gathered.proofs;
    let had_to = "which nothing may segment or fragment, had to be acknowledged in both directions";
    let given = format!(
        "Of {} such proofs {} were given",
        proofs.tried, proofs.given
    );
    if notes::is_existing(doc) && !notes::is_tunnel(doc) {
        return format!(
            "Before and after each window a datagram of the size that both devices send, or of `guest_mtu` where the plan \
             has one, {had_to}; where a router or a host reported a smaller limit, a datagram of that size. {given}. \
             Nothing was set on the hosts but what the plan varies."
        );
    }
    let (place, of_path) = if notes::is_existing(doc) {
        (
            "the hosts' devices",
            "that the run made, and on none of the hosts themselves,",
        )
    } else {
        ("the underlay", "of the path")
    };
    format!(
        "Before and after each window a datagram of exactly the guest MTU, {had_to}. {given}; {} of the datagrams were \
         looked for on {place} and seen there as one unfragmented frame of guest MTU plus overhead. MTU and offloads were \
         set on every device {of_path} and read back.",
        proofs.seen
    )
}

/// Where CPU time was read, and how finely.
const fn idle_source(steps: IdleSteps) -> &'static str {
    match (steps.fine, steps.coarse) {
        (false, _) => "from /proc/stat in steps of 10 ms",
        (true, false) => "with idle time from /proc/timer_list in microseconds",
        (true, true) => {
            "with idle time from /proc/timer_list in microseconds where a host may read it, elsewhere from /proc/stat in \
             steps of 10 ms"
        }
    }
}

fn reproduce(reading: &RecordedRun, doc: &Document) -> Reproduce {
    let seed = u32::try_from(doc.seed).ok();
    let run = match seed {
        Some(seed) => format!("wirecost run plan.yaml --seed {seed}"),
        None => "wirecost run plan.yaml".into(),
    };
    let missing = reading.plan_text.is_none();
    Reproduce {
        commands: vec![
            format!(
                "wirecost --version    # this run: wirecost {}",
                doc.program_version
            ),
            run,
            "wirecost report RUN_DIR --html --out report.html".into(),
        ],
        note: match (missing, seed) {
            (true, _) => Some(
                "The run directory has no plan.yaml: write the plan from the effective one above."
                    .into(),
            ),
            (false, None) => Some(format!(
                "The seed is beyond what --seed takes: set `seed: {}` in the plan.",
                doc.seed
            )),
            (false, Some(_)) => None,
        },
    }
}
