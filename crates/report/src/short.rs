//! What a run comes to, in a few sentences.

use std::collections::BTreeMap;
use std::iter;

use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::metric::Metric;

use crate::document::Document;
use crate::document::{EffectResult, NoRatio};
use crate::{digits, self_test, skipped, words};

/// Changes that get a sentence: of every factor one, then those with the largest effects.
const CHANGES: usize = 5;

/// A cell this near to its line's limit fills the line.
const FILLS: f64 = 0.95;

/// Every change, its throughput and its CPU, the other factors taken together; then what limits the conclusions.
/// `times` stands before a ratio: `x` or `×`.
pub(crate) fn sentences(doc: &Document, times: char) -> Vec<String> {
    if doc.samples == doc.invalid.len() as u32 {
        let nothing = "No sample is valid: there is no result.".to_owned();
        let skipped = skipped::sentences(doc);
        return iter::once(nothing).chain(skipped).collect();
    }
    if doc.effects.is_empty() {
        let skipped = skipped::sentences(doc);
        let nothing = if skipped.is_empty() {
            "Nothing was varied, or no two cells differ in one factor alone: there is nothing to compare."
        } else {
            "Of the cells that were not skipped no two differ in one factor alone: there is nothing to compare."
        };
        let test = self_test::alarm(doc, times).or_else(|| self_test::passed(doc, times));
        let said = test.into_iter().chain(skipped);
        return said.chain([nothing.to_owned()]).collect();
    }
    let mut changes: Vec<Change> = doc
        .factors
        .iter()
        .flat_map(|factor| {
            let others = factor.levels.iter().skip(1);
            others.map(|to| Change::of(doc, &factor.key, to))
        })
        .filter(|change| !change.aspects.is_empty())
        .collect();
    let others = changes.len().saturating_sub(CHANGES);
    while changes.len() > CHANGES {
        let Some(least) = least(&changes) else { break };
        changes.remove(least);
    }
    let mut sentences: Vec<String> = self_test::alarm(doc, times).into_iter().collect();
    sentences.extend(changes.iter().map(|change| change.sentence(doc, times)));
    if others > 0 {
        let changes = words::count(others, "other change");
        sentences.push(format!("{changes} with smaller effects: see the verdicts."));
    }
    sentences.extend(skipped::sentences(doc));
    sentences.extend(limits(doc));
    sentences.extend(self_test::passed(doc, times));
    sentences
}

/// The change with the smallest effects, of a factor that has another one as long as there is such a factor: what
/// a plan asks with two levels is not crowded out by what it asks with five.
fn least(changes: &[Change]) -> Option<usize> {
    let alone = |change: &Change| {
        let same = changes.iter().filter(|other| other.factor == change.factor);
        same.count() == 1
    };
    (0..changes.len()).min_by(|&a, &b| {
        let (a, b) = (&changes[a], &changes[b]);
        (alone(a).cmp(&alone(b))).then_with(|| f64::total_cmp(&a.size(), &b.size()))
    })
}

/// One level of one factor against the reference, wherever it was measured.
struct Change<'a> {
    factor: &'a str,
    /// What of it: throughput, then latencies, then processors, load by load.
    aspects: Vec<(String, Vec<&'a EffectResult>)>,
}

impl<'a> Change<'a> {
    fn of(doc: &'a Document, factor: &'a str, to: &str) -> Self {
        let mut aspects: Vec<(String, Vec<&EffectResult>)> = Vec::new();
        let effects = doc.effects.iter();
        for effect in effects.filter(|effect| effect.factor == factor && effect.to == to) {
            let Some(aspect) = aspect(doc, effect) else {
                continue;
            };
            match aspects.iter_mut().find(|(known, _)| *known == aspect) {
                Some((_, effects)) => effects.push(effect),
                None => aspects.push((aspect, vec![effect])),
            }
        }
        Self { factor, aspects }
    }

    /// The largest effect of all, on the log scale.
    fn size(&self) -> f64 {
        let effects = self.aspects.iter().flat_map(|(_, effects)| effects);
        effects.map(|effect| size(effect)).fold(0.0, f64::max)
    }

    fn sentence(&self, doc: &Document, times: char) -> String {
        let effect = self.aspects[0].1[0];
        let mut text = words::contrast(&effect.factor, &effect.from, &effect.to);
        let untold =
            |effects: &[&EffectResult]| effects.iter().all(|e| e.told() == Verdict::CannotTellYet);
        let mut said: Vec<String> = self
            .aspects
            .iter()
            .filter(|(_, effects)| !untold(effects))
            .map(|(aspect, effects)| format!("in {aspect} it {}", tally(doc, effects, times)))
            .collect();
        let rest = self.aspects.iter().filter(|(_, effects)| untold(effects));
        let rest: Vec<&str> = rest.map(|(aspect, _)| aspect.as_str()).collect();
        if !rest.is_empty() {
            let verb = verb(Verdict::CannotTellYet);
            said.push(format!("in {} it {verb}", words::list(&rest)));
        }
        text.push_str(": ");
        text.push_str(&said.join("; "));
        text.push('.');
        let first = text[..1].to_uppercase();
        first + &text[1..]
    }
}

/// What an effect is on, the hosts taken together; what is as good as told by another is left out.
fn aspect(doc: &Document, effect: &EffectResult) -> Option<String> {
    let name = match effect.metric {
        Metric::SenderCpu | Metric::ReceiverCpu | Metric::Cpu => "CPU per Gbit/s",
        Metric::ClientCpu | Metric::ServerCpu | Metric::TransactionCpu => "CPU per transaction",
        Metric::Datagrams | Metric::LatencyP999 => return None,
        metric => metric.words(),
    };
    Some(if doc.several_loads() {
        format!("{} {name}", effect.load)
    } else {
        name.to_owned()
    })
}

fn size(effect: &EffectResult) -> f64 {
    effect.ratio.map_or(0.0, |ratio| ratio.ln().abs())
}

/// `pays in 2 of 4 (most x1.98: vxlan, offload none), makes no difference in 2`.
fn tally(doc: &Document, effects: &[&EffectResult], times: char) -> String {
    let mut parts: Vec<String> = Vec::new();
    for verdict in [
        Verdict::Pays,
        Verdict::Costs,
        Verdict::Gains,
        Verdict::Loses,
        Verdict::MakesNoDifference,
        Verdict::CannotTellYet,
        Verdict::NotComparable,
    ] {
        let these = effects.iter().filter(|effect| effect.told() == verdict);
        let Some(most) = these
            .clone()
            .max_by(|a, b| f64::total_cmp(&size(a), &size(b)))
        else {
            continue;
        };
        let count = these.count();
        let share = match (count, effects.len()) {
            (1, 1) => String::new(),
            (n, all) if n == all => format!(" in all {all}"),
            (n, all) if parts.is_empty() => format!(" in {n} of {all}"),
            (n, _) => format!(" in {n}"),
        };
        let settled = !matches!(
            verdict,
            Verdict::MakesNoDifference | Verdict::CannotTellYet | Verdict::NotComparable
        );
        let example = match most.ratio {
            Some(ratio) if settled => format!(" ({})", example(doc, most, ratio, count, times)),
            _ => String::new(),
        };
        parts.push(format!("{}{share}{example}", verb(verdict)));
    }
    parts.join(", ")
}

/// The verdict within a sentence whose subject is the change.
const fn verb(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "pays",
        Verdict::Costs => "costs",
        Verdict::Gains => "gains (perhaps within the margin)",
        Verdict::Loses => "loses (perhaps within the margin)",
        Verdict::MakesNoDifference => "makes no difference",
        Verdict::CannotTellYet => "cannot be told yet",
        Verdict::NotComparable => "is not comparable",
    }
}

/// How many effects are not comparable, and what differs: `6 of 24 comparisons are not comparable (aggregation 4, ...)`.
fn barred(doc: &Document) -> Option<String> {
    let mut kinds: BTreeMap<RemarkKind, usize> = BTreeMap::new();
    for remark in doc
        .effects
        .iter()
        .filter_map(|effect| effect.not_comparable.as_ref())
    {
        *kinds.entry(remark.kind).or_default() += 1;
    }
    let all: usize = kinds.values().sum();
    let each: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("{} {count}", words::kind(*kind)))
        .collect();
    (all > 0).then(|| {
        format!(
            "{all} of {} not comparable, something else differs: {}",
            words::count(doc.effects.len(), "comparison"),
            each.join(", ")
        )
    })
}

/// `most x1.98: vxlan, offload none`; of the only one, no `most`.
fn example(doc: &Document, effect: &EffectResult, ratio: f64, of: usize, times: char) -> String {
    let mut text = String::new();
    if of > 1 {
        text.push_str("most ");
    }
    text.push(times);
    text.push_str(&digits::figure(ratio));
    let place = words::levels(&doc.factors, &effect.where_);
    let side = match effect.metric {
        Metric::SenderCpu => "sender",
        Metric::ReceiverCpu => "receiver",
        Metric::ClientCpu => "client",
        Metric::ServerCpu => "server",
        _ => "",
    };
    let place: Vec<&str> = [side, &place]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    if !place.is_empty() {
        text.push_str(": ");
        text.push_str(&place.join(", "));
    }
    text
}

fn limits(doc: &Document) -> Option<String> {
    let full = doc
        .cells
        .iter()
        .filter(|cell| {
            let pair = cell.throughput_gbps.zip(cell.line_limit_gbps);
            pair.is_some_and(|(throughput, limit)| throughput.median >= FILLS * limit)
        })
        .count();
    let unclear = || {
        let all = doc.effects.iter();
        all.filter(|effect| effect.told() == Verdict::CannotTellYet)
    };
    // No number of rounds helps what has not one pair.
    let bare = |why| {
        unclear()
            .filter(move |effect| effect.no_ratio == Some(why))
            .count()
    };
    let reasons = [
        (
            bare(NoRatio::NoValidPair),
            "in no round were both sides valid",
        ),
        (
            bare(NoRatio::TooFewTransactions),
            "too few transactions for the percentile: measure longer windows",
        ),
        (
            bare(NoRatio::TooFewSteps),
            "too little CPU time for this figures counter: longer windows",
        ),
        (
            bare(NoRatio::NoFigure),
            "in no round did both sides have the figure",
        ),
    ];
    let unclear = unclear().filter(|effect| effect.no_ratio.is_none()).count();
    let mut parts = Vec::new();
    if full > 1 {
        parts.push(format!(
            "{full} of {} are at the line's limit (within 5%): there the line limits throughput, and CPU shows the \
             difference",
            words::count(doc.cells.len(), "cell")
        ));
    }
    if unclear > 0 {
        parts.push(format!(
            "{unclear} of {} cannot be told yet: more rounds are needed",
            words::count(doc.effects.len(), "comparison")
        ));
    }
    for (bare, why) in reasons.into_iter().filter(|(bare, _)| *bare > 0) {
        parts.push(format!(
            "{bare} of {} cannot be told: {why}",
            words::count(doc.effects.len(), "comparison")
        ));
    }
    parts.extend(barred(doc));
    (!parts.is_empty()).then(|| parts.join("; ") + ".")
}
