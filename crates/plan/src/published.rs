//! Reads `published`, and checks it against the plan's factors and cells.

use wirecost_model::cell::Experiment;
use wirecost_model::comparison_cells::cells_with;
use wirecost_model::plan::Levels;
use wirecost_model::published::{
    Outcome, Published, PublishedChart, PublishedComparison, PublishedFigure, PublishedValue, Rule,
    Unmeasured,
};

use crate::axis::Axis;
use crate::keys::{self, Key};
use crate::node::{Span, Value};
use crate::read::{Entry, Fields, Reader, describe, value};
use crate::select;
use crate::values::{number, numbers, switch, text, word};

/// The section as read, with the positions of its comparisons.
#[derive(Debug)]
pub(crate) struct PublishedSection {
    pub(crate) published: Published,
    positions: Vec<ComparisonPosition>,
}

/// The position of a comparison in the plan.
#[derive(Debug)]
struct ComparisonPosition {
    path: String,
    span: Span,
}

/// Reads the section.
pub(crate) fn read(
    reader: &mut Reader,
    entry: &Entry<'_>,
    axes: &[Axis],
) -> Option<PublishedSection> {
    let fields = Fields::open(reader, entry.key.path, &entry.path, &entry.node)?;
    let source = value(reader, &fields, &keys::SOURCE, text);
    let title = value(reader, &fields, &keys::PUBLISHED_TITLE, text);
    let environment = value(reader, &fields, &keys::PUBLISHED_ENVIRONMENT, text);
    let scaled = value(reader, &fields, &keys::PUBLISHED_SCALED, text);
    let ovn = value(reader, &fields, &keys::PUBLISHED_OVN, switch).unwrap_or(false);
    let rule = value(reader, &fields, &keys::PUBLISHED_RULE, word);
    let figures = each(reader, &fields, &keys::FIGURES, |reader, fields, _| {
        figure(reader, fields, axes)
    });
    let compared = each(reader, &fields, &keys::COMPARISONS, |reader, fields, at| {
        let position = ComparisonPosition {
            path: at.path.clone(),
            span: at.node.span.clone(),
        };
        Some((comparison(reader, fields, at, axes)?, position))
    });
    let unmeasured = each(reader, &fields, &keys::UNMEASURED, |reader, fields, _| {
        let what = value(reader, fields, &keys::UNMEASURED_WHAT, text);
        let why = value(reader, fields, &keys::UNMEASURED_WHY, text);
        Some(Unmeasured {
            what: what?,
            why: why?,
        })
    });
    let charts = each(reader, &fields, &keys::CHARTS, |reader, fields, _| {
        chart(reader, fields, axes)
    });
    let (comparisons, positions) = compared.into_iter().unzip();
    Some(PublishedSection {
        published: Published {
            source: source?,
            title,
            environment,
            scaled,
            ovn,
            rule: rule.and_then(|word| {
                let mut all = Rule::ALL.into_iter();
                all.find(|(known, _)| *known == word).map(|(_, rule)| rule)
            }),
            figures,
            comparisons,
            unmeasured,
            charts,
        },
        positions,
    })
}

/// Reads each mapping of a list with `read`.
fn each<T>(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &'static Key,
    mut read: impl FnMut(&mut Reader, &Fields<'_>, &Entry<'_>) -> Option<T>,
) -> Vec<T> {
    let Some(list) = fields.get(reader, key) else {
        return Vec::new();
    };
    if !matches!(list.node.value, Value::List(_)) {
        reader.wrong(&list, "not a list");
        return Vec::new();
    }
    let items = list.items(reader);
    let mut all = Vec::new();
    for item in &items {
        match Fields::open(reader, item.key.path, &item.path, &item.node) {
            Some(fields) => all.extend(read(reader, &fields, item)),
            None => not_a_mapping(reader, item),
        }
    }
    all
}

fn not_a_mapping(reader: &mut Reader, item: &Entry<'_>) {
    let value = &item.node.value;
    if *value != Value::Refused {
        let message = format!("`{}` cannot be {}", item.path, describe(value));
        let first = item.key.example.trim_start_matches('[');
        let help = format!("write a mapping, such as `{}`", first.trim_end_matches(']'));
        let span = item.node.span.clone();
        reader.fault(span, &item.path, message, "not a mapping", help);
    }
}

fn levels(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &'static Key,
    axes: &[Axis],
) -> Option<Levels> {
    let entry = fields.get(reader, key)?;
    select::levels(reader, &entry, axes)
}

fn figure(reader: &mut Reader, fields: &Fields<'_>, axes: &[Axis]) -> Option<PublishedFigure> {
    let levels = levels(reader, fields, &keys::WHERE, axes);
    let gbps = value(reader, fields, &keys::GBPS, number);
    let note = value(reader, fields, &keys::NOTE, text);
    Some(PublishedFigure {
        levels: levels?,
        gbps: gbps?,
        note,
    })
}

fn comparison(
    reader: &mut Reader,
    fields: &Fields<'_>,
    at: &Entry<'_>,
    axes: &[Axis],
) -> Option<PublishedComparison> {
    let what = value(reader, fields, &keys::COMPARED_WHAT, text);
    let metric = value(reader, fields, &keys::COMPARED_METRIC, word);
    let shared = levels(reader, fields, &keys::COMPARED_WHERE, axes);
    let from = levels(reader, fields, &keys::COMPARED_FROM, axes);
    let to = levels(reader, fields, &keys::COMPARED_TO, axes);
    let values = value(reader, fields, &keys::COMPARED_VALUES, numbers);
    let ratio = value(reader, fields, &keys::COMPARED_RATIO, number);
    let difference = value(reader, fields, &keys::COMPARED_DIFFERENCE, number);
    let at_most = value(reader, fields, &keys::COMPARED_AT_MOST, number);
    let inferred = value(reader, fields, &keys::COMPARED_INFERRED, switch);
    let note = value(reader, fields, &keys::COMPARED_NOTE, text);
    let published = [
        values.map(PublishedValue::Values),
        ratio.map(PublishedValue::Ratio),
        difference.map(PublishedValue::Difference),
        at_most.map(PublishedValue::AtMost),
    ];
    let mut published = published.into_iter().flatten();
    let first = published.next();
    if published.next().is_some() {
        let message = format!("`{}` has more than one of its published figures", at.path);
        let help = "write one of `values`, `ratio`, `difference` and `at_most`, or none where nothing was published";
        let span = at.node.span.clone();
        reader.fault(span, &at.path, message, "several figures", help);
    }
    let with = |own: Levels| {
        let mut all = shared.clone().unwrap_or_default();
        all.extend(own);
        all
    };
    Some(PublishedComparison {
        what: what?,
        metric: Outcome::of_word(metric?)?,
        cells: [with(from?), with(to?)],
        value: first,
        inferred: inferred?,
        note,
    })
}

fn chart(reader: &mut Reader, fields: &Fields<'_>, axes: &[Axis]) -> Option<PublishedChart> {
    let title = value(reader, fields, &keys::CHART_TITLE, text);
    let metric = value(reader, fields, &keys::CHART_METRIC, word);
    let by = factor(reader, fields, &keys::CHART_BY, axes);
    let series = factors(reader, fields, &keys::CHART_SERIES, axes);
    let levels = levels(reader, fields, &keys::CHART_WHERE, axes);
    Some(PublishedChart {
        title: title?,
        metric: Outcome::of_word(metric?)?,
        by: by?,
        series,
        levels: levels.unwrap_or_default(),
    })
}

/// Reads the name of a factor of the plan.
fn factor(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &'static Key,
    axes: &[Axis],
) -> Option<String> {
    let entry = fields.get(reader, key)?;
    let name = text(reader, &entry)?;
    known(reader, &entry, &name, axes).then_some(name)
}

/// Reads names of factors of the plan, separated by commas.
fn factors(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &'static Key,
    axes: &[Axis],
) -> Option<String> {
    let entry = fields.get(reader, key)?;
    let names = text(reader, &entry)?;
    let mut each = names.split(',').map(str::trim);
    each.all(|name| known(reader, &entry, name, axes))
        .then_some(names)
}

fn known(reader: &mut Reader, entry: &Entry<'_>, name: &str, axes: &[Axis]) -> bool {
    let known = axes.iter().any(|axis| axis.name == name);
    if !known {
        select::unknown_factor(reader, &entry.node, name, &entry.path, axes);
    }
    known
}

/// Checks the comparisons against the cells: each side must match exactly one cell, and a load of
/// both must have the figure.
pub(crate) fn check(reader: &mut Reader, read: &PublishedSection, experiment: &Experiment) {
    for (comparison, position) in read.published.comparisons.iter().zip(&read.positions) {
        let mut all_read = true;
        for (levels, side) in comparison.cells.iter().zip(["from", "to"]) {
            let cells = cells_with(experiment, levels).count();
            if cells == 1 {
                continue;
            }
            all_read = false;
            let path = format!("{}.{side}", position.path);
            let cells = match cells {
                0 => "no cell".to_owned(),
                cells => format!("{cells} cells"),
            };
            let named: Vec<String> = levels
                .iter()
                .map(|(key, level)| format!("{key}: {level}"))
                .collect();
            let message = format!(
                "`{path}` is not of exactly one cell: {cells} of the plan have `{{ {} }}`",
                named.join(", ")
            );
            let help = "name the levels of one cell, in `where` those that both sides share; \
                        `wirecost run PLAN --dry-run` lists the cells once this entry is gone";
            reader.fault(position.span.clone(), &path, message, "not one cell", help);
        }
        let cells = comparison.cells(experiment).filter(|_| all_read);
        if cells.is_some_and(|cells| comparison.metric.load(experiment, cells).is_none()) {
            let word = comparison.metric.word();
            let message = format!("`{}`: no load of both cells has `{word}`", position.path);
            let help = "compare cells that run the same load, by a figure of that load: a stream has `throughput`, \
                        request/response and storage have `transactions`, a migration has `move-time`; with \
                        `cores: shared` CPU is `cpu` or `transaction-cpu`";
            let span = position.span.clone();
            reader.fault(span, &position.path, message, "no such figure", help);
        }
    }
}
