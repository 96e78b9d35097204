//! A comparison in sentences, which are the same in every format. They contain texts of records unescaped;
//! each format escapes them in its own way.

use std::fmt::Write as _;

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::metric::Metric;
use wirecost_model::plan::Levels;
use wirecost_model::units::format_fraction;
use wirecost_stats::Margin;

use crate::render::effects::words_of;
use crate::render::{digits, words};
use crate::result::compare::TRANSIT;
use crate::result::compare::{
    Area, ComparedCell, Comparison, Conclusion, Difference, FailOn, Figure, Side,
};

/// Note on the limits of comparing two runs.
pub(crate) const DRIFT: &str = "The rounds of two runs are not paired: an interval covers the noise within the runs, \
                                not what else changed on the machine between them.";

/// Note on a shift that all cells share.
pub(crate) const SHARED: &str = "A shift that all cells share may come from the machine and not from the change; to tell them apart, measure both \
     in one run.";

/// Every verdict, in the order of the counts: the worst first.
const VERDICTS: [Verdict; 7] = [
    Verdict::Costs,
    Verdict::Loses,
    Verdict::CannotTellYet,
    Verdict::MakesNoDifference,
    Verdict::Gains,
    Verdict::Pays,
    Verdict::NotComparable,
];

/// The first line where one of the runs was disturbed or ended early: which run, and why.
pub(crate) fn trust_warning(comparison: &Comparison) -> Option<String> {
    let sides = [("before", &comparison.before), ("after", &comparison.after)];
    let reasons: Vec<String> = sides
        .into_iter()
        .filter(|(_, side)| !side.trust.reasons.is_empty())
        .map(|(which, side)| format!("{which}, {}", side.trust.reasons.join("; ")))
        .collect();
    let label = if comparison.conclusion == Conclusion::CannotTell {
        "Cannot tell"
    } else {
        "Doubtful"
    };
    (!reasons.is_empty()).then(|| format!("{label}: {}.", reasons.join("; ")))
}

pub(crate) fn title(comparison: &Comparison) -> String {
    let (before, after) = (&comparison.before.name, &comparison.after.name);
    if before == after {
        format!("{after}: after against before")
    } else {
        format!("{after} (after) against {before} (before)")
    }
}

/// Describes a run: directory, start, program version, rounds measured.
pub(crate) fn side(side: &Side) -> String {
    format!(
        "{}, started {}, wirecost {}, {}",
        side.run_dir,
        side.started,
        side.program_version,
        words::count(side.rounds_done as usize, "round")
    )
}

/// The name of a difference: `sysctl net.ipv4.tcp_ecn`.
pub(crate) fn difference(difference: &Difference) -> String {
    let key = difference.key.as_str();
    match difference.area {
        Area::Plan => match key {
            "name" => "plan".into(),
            "repeat.seconds" => "window (s)".into(),
            "repeat.warmup" => "warm-up (s)".into(),
            "repeat.worth" => "worth".into(),
            "repeat.rounds" => "rounds planned".into(),
            "cores" => "cores of the hosts".into(),
            TRANSIT => "between the hosts".into(),
            key => words::factor(key.strip_prefix("repeat.").unwrap_or(key)).replace('_', " "),
        },
        Area::Program | Area::Environment => {
            if let Some(sysctl) = key.strip_prefix("sysctls.") {
                return format!("sysctl {sysctl}");
            }
            match key {
                "program_version" => "wirecost".into(),
                "cpu_model" => "CPU".into(),
                "cpus" => "cores".into(),
                "memory_bytes" => "memory (bytes)".into(),
                "line.by" => "what emulates the line".into(),
                "line.step_us" => "steps of the line (us)".into(),
                "line.why" => "why the line is not fq's".into(),
                key => match key.strip_prefix("hosts.") {
                    Some(host) => format!("host {}", host.replace(['.', '_'], " ")),
                    None => key.replace('_', " "),
                },
            }
        }
    }
}

/// A value of a difference, or that the record does not have it.
pub(crate) fn value(value: Option<&String>) -> &str {
    value.map_or("not recorded", String::as_str)
}

/// A cell by its levels of the factors that differ; where none does, by guest MTU, encapsulation and offload.
pub(crate) fn cell(comparison: &Comparison, levels: &Levels) -> String {
    let is_varied = |key: &str| comparison.factors.iter().any(|factor| factor.key == key);
    let known = |key: &str| matches!(key, "guest_mtu" | "encapsulation" | "offload");
    let some = levels.keys().any(|key| is_varied(key));
    let levels = levels
        .iter()
        .filter(|(key, _)| if some { is_varied(key) } else { known(key) });
    let levels: Levels = levels
        .map(|(key, level)| (key.clone(), level.clone()))
        .collect();
    words::levels(&comparison.factors, &levels)
}

/// The medians before and after, with the sign `to` between them: `4.90 -> 4.41`.
pub(crate) fn medians(figure: &Figure, to: &str) -> Option<String> {
    let (before, after) = (figure.before?, figure.after?);
    let digits = if figure.unit.starts_with("Gbit/s") {
        digits::gbps
    } else {
        digits::figure
    };
    let [before, after] = [before.median, after.median].map(digits);
    Some(format!("{before} {to} {after}"))
}

/// The ratio after / before with its interval: `x0.90 [0.89, 0.91]`.
pub(crate) fn ratio(figure: &Figure) -> Option<String> {
    let unpaired = &figure.judged.unpaired;
    let interval = unpaired.interval;
    digits::ratio_and_interval(
        unpaired.ratio,
        interval.map(|interval| interval.low),
        interval.map(|interval| interval.high),
    )
}

/// Notes next to the verdict: other verdicts, too few samples, remarks.
pub(crate) fn notes(figure: &Figure) -> Vec<String> {
    let judged = &figure.judged;
    let mut all = Vec::new();
    if let Some(barred) = &figure.not_comparable {
        // A disturbance is the same for all figures, and is reported once.
        if barred.kind != RemarkKind::Disturbed {
            all.push(words_of(barred));
        }
        return all;
    }
    if judged.corrected.verdict != judged.verdict {
        all.push(format!("corrected: {}", judged.corrected.verdict));
    }
    if let Some(ranks) = judged.rank_verdict
        && ranks != judged.verdict
    {
        all.push(format!("by ranks: {ranks}"));
    }
    let (from, to) = (judged.unpaired.from_samples, judged.unpaired.to_samples);
    if from == 0 || to == 0 {
        all.push("no figure in one of the runs".into());
    } else if from == 1 || to == 1 {
        all.push("an interval needs two samples of each run".into());
    }
    let differences = figure.remarks.iter();
    let own = differences.filter(|remark| remark.kind != RemarkKind::TransitCpu);
    all.extend(own.map(|remark| format!("note: {}", words_of(remark))));
    all
}

/// A figure's name, with the load's where there are `several`.
pub(crate) fn name(several: bool, figure: &Figure) -> String {
    let words = figure.metric.words_of(figure.workload);
    words::figure_of(several, &figure.load, words)
}

/// A figure in one line, for formats of plain lines.
pub(crate) fn figure(figure: &Figure) -> String {
    let mut said = String::new();
    // Writing to a string does not fail.
    if let Some(medians) = medians(figure, "->") {
        let _ = write!(said, "{medians} {}, ", figure.unit);
    }
    if let Some(ratio) = ratio(figure) {
        said.push_str(&ratio);
        said.push_str(" - ");
    }
    said.push_str(&figure.judged.verdict.to_string());
    for note in notes(figure) {
        said.push_str("; ");
        said.push_str(&note);
    }
    said
}

/// Cells that are not compared: whether that fails the comparison, and the cell with the reason. Failing ones are
/// first.
pub(crate) fn left_out(comparison: &Comparison) -> Vec<(bool, String)> {
    let mut all: Vec<(bool, String)> = comparison
        .not_comparable
        .iter()
        .map(|cell| {
            let levels = self::cell(comparison, &cell.all_levels);
            (cell.fails, format!("{levels}: {}", cell.reason))
        })
        .collect();
    let missing = comparison.fail_on >= FailOn::CannotTell;
    for (only, which, fails) in [
        (&comparison.only_before, "before", missing),
        (&comparison.only_after, "after", false),
    ] {
        all.extend(only.iter().map(|levels| {
            let levels = cell(comparison, levels);
            (fails, format!("{levels}: {which} only"))
        }));
    }
    all.sort_by_key(|(fails, _)| !fails);
    all
}

/// How many figures have which verdict, uncorrected and corrected.
pub(crate) fn counts(comparison: &Comparison) -> Option<String> {
    let figures: Vec<&Figure> = figures(comparison).collect();
    if figures.is_empty() {
        return None;
    }
    let count = |verdict: fn(&Figure) -> Verdict| {
        VERDICTS
            .into_iter()
            .filter_map(|wanted| {
                let n = figures.iter().filter(|f| verdict(f) == wanted).count();
                (n > 0).then(|| format!("{n} {}", short(wanted)))
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let raw = count(|figure| figure.judged.verdict);
    let corrected = count(|figure| figure.judged.corrected.verdict);
    let corrected = if raw == corrected {
        "the same".to_owned()
    } else {
        corrected
    };
    Some(format!(
        "{} of {}: {raw}. Corrected for their number (Holm): {corrected}.",
        words::count(figures.len(), "figure"),
        words::count(comparison.cells.len(), "cell")
    ))
}

const fn short(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "pays",
        Verdict::Costs => "costs",
        Verdict::MakesNoDifference => "no difference",
        Verdict::Gains => "gains",
        Verdict::Loses => "loses",
        Verdict::CannotTellYet => "cannot tell yet",
        Verdict::NotComparable => "not comparable",
    }
}

/// Whether the figures are of several loads, so that each has to name its load.
pub(crate) fn several_loads(comparison: &Comparison) -> bool {
    let mut loads = figures(comparison).map(|figure| &figure.load);
    let first = loads.next();
    loads.any(|load| Some(load) != first)
}

/// The shifts of all cells together, in a sentence; `None` where there are none.
pub(crate) fn shifts(comparison: &Comparison) -> Option<String> {
    let cells = comparison.shifts.iter().map(|shift| shift.cells).max()?;
    let several = several_loads(comparison);
    let each: Vec<String> = comparison
        .shifts
        .iter()
        .map(|shift| {
            format!(
                "{} {} ({} to {})",
                words::figure_of(several, &shift.load, shift.metric.words_of(shift.workload)),
                digits::ratio(shift.median),
                digits::figure(shift.min),
                digits::figure(shift.max)
            )
        })
        .collect();
    let mut said = format!(
        "All {cells} cells together, median and range: {}.",
        each.join("; ")
    );
    let mut shifts = comparison.shifts.iter();
    if let Some(speed) = shifts.find(|shift| shift.metric == Metric::Throughput) {
        // Writing to a string does not fail.
        let _ = write!(
            said,
            " It is as if the whole machine were {} as fast.",
            digits::ratio(speed.median)
        );
    }
    Some(said)
}

/// The conclusion: a label, and the reason.
pub(crate) fn conclusion(comparison: &Comparison) -> (String, String) {
    let rule = rule(comparison);
    match comparison.conclusion {
        Conclusion::NothingComparable => (
            "Nothing is comparable:".into(),
            "no cell is in both runs and measured in both.".into(),
        ),
        Conclusion::NoRegression => ("No regression".into(), format!("by {rule}.")),
        Conclusion::CannotTell => (
            "Cannot tell:".into(),
            "too many samples were disturbed, so no figure of the two runs is comparable. Measure again on a quiet machine.".into(),
        ),
        Conclusion::Regression => {
            let figures = figures(comparison).filter(|figure| figure.fails).count();
            let cells = comparison.failures as usize - figures;
            let mut what = Vec::new();
            if figures > 0 {
                what.push(words::count(figures, "figure"));
            }
            if cells > 0 {
                what.push(words::count(cells, "cell"));
            }
            (
                "Regression:".into(),
                format!("{} by {rule}.", what.join(" and ")),
            )
        }
    }
}

/// The rule as options of the command line: `--fail-on costs`.
fn rule(comparison: &Comparison) -> String {
    let corrected = if comparison.by_corrected {
        " --corrected"
    } else {
        ""
    };
    format!("--fail-on {}{corrected}", fail_on(comparison.fail_on))
}

/// The value of the option `--fail-on`.
pub(crate) const fn fail_on(fail_on: FailOn) -> &'static str {
    match fail_on {
        FailOn::Never => "never",
        FailOn::Costs => "costs",
        FailOn::Loses => "loses",
        FailOn::CannotTell => "cannot-tell",
    }
}

/// What the verdicts mean, with this comparison's margin.
pub(crate) fn how_to_read(comparison: &Comparison) -> String {
    let margin = Margin::of(comparison.worth);
    format!(
        "How to read: medians before and after, x the ratio after / before of the geometric means, [ ] its 95% interval \
         (Welch). pays, costs: the whole interval is outside the margin, {:.2} to {:.2} (worth {}, of the plan \
         after); makes no difference: the whole interval is within the margin; gains, loses: the interval excludes 1 \
         and reaches into the margin; cannot tell yet: more rounds are needed; not comparable: something else differs \
         and decides the figure. For throughput more is better, for CPU less. corrected: the verdict after Holm's \
         correction for the number of figures; by ranks: the verdict of the Hodges-Lehmann interval.",
        margin.low,
        margin.high,
        format_fraction(comparison.worth)
    )
}

/// Every figure of every cell.
pub(crate) fn figures(comparison: &Comparison) -> impl Iterator<Item = &Figure> {
    comparison.cells.iter().flat_map(|cell| &cell.figures)
}

/// The cells, those with a failing figure first, else in the plan's order.
pub(crate) fn failing_first(comparison: &Comparison) -> Vec<&ComparedCell> {
    let mut cells: Vec<&ComparedCell> = comparison.cells.iter().collect();
    cells.sort_by_key(|cell| !cell.figures.iter().any(|figure| figure.fails));
    cells
}
