//! One sentence for each factor, the most important one first.

use std::collections::BTreeSet;

use wirecost_model::cell::Factor;

use crate::aspect::{Aspect, Class};
use crate::size::Sizes;
use crate::statement::{self, Clause, Statement, unknown};
use crate::{FactorAnswer, Question, demand, names};

/// Up to so many figures without a difference are named; more are `any figure`.
const LISTED: usize = 2;

/// One answer for each factor that has effects, sorted by the largest settled effect on any figure. Options of loads
/// come after all other factors: their effects are trivially the largest.
pub(crate) fn sentences(question: &Question) -> Vec<FactorAnswer> {
    let mut said: Vec<(bool, f64, FactorAnswer)> = question
        .factors
        .iter()
        .filter_map(|factor| {
            let aspects = Aspect::of(question, factor);
            let size = aspects.iter().map(Aspect::size).fold(0.0, f64::max);
            let demanded = demand::is_of_load(&factor.key);
            let says = || sentence(question, factor, &aspects, demanded);
            (!aspects.is_empty()).then(|| (demanded, size, says()))
        })
        .collect();
    // The sort is stable: factors with equal effects stay in the plan's order.
    said.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    said.into_iter().map(|(_, _, sentence)| sentence).collect()
}

/// The sentence on one factor. Only the first figure of each load tells its sizes by place; the other figures, and
/// factors that are `demanded`, get a range.
fn sentence(
    question: &Question,
    factor: &Factor,
    aspects: &[Aspect],
    demanded: bool,
) -> FactorAnswer {
    let mut known = "";
    let mut sized: Vec<(Vec<Clause>, Vec<&Aspect>)> = Vec::new();
    let (mut same, mut ends) = (Vec::new(), Vec::new());
    let (mut open, mut reasons) = (Vec::new(), BTreeSet::new());
    for aspect in aspects {
        let in_detail = !demanded && aspect.load != known;
        known = aspect.load;
        match aspect.statement(question, in_detail) {
            Statement::Sized(says) => match sized.iter_mut().find(|(other, _)| *other == says) {
                Some((_, all)) => all.push(aspect),
                None => sized.push((says, vec![aspect])),
            },
            Statement::Same(own) => {
                same.push(aspect);
                ends.extend(own);
            }
            Statement::Unknown(own) => {
                open.push(aspect);
                reasons.extend(own);
            }
        }
    }
    let mut said = with_sizes(question, &sized);
    said.extend(without_difference(
        question,
        &same,
        &ends,
        same.len() == aspects.len(),
    ));
    said.extend(not_known(
        question,
        &open,
        &reasons,
        open.len() == aspects.len(),
    ));
    FactorAnswer {
        factor: factor.key.clone(),
        subject: subject(question, factor, aspects),
        says: said.join("; "),
    }
}

/// One statement for each distinct size; the load is named where it changes.
fn with_sizes(question: &Question, sized: &[(Vec<Clause>, Vec<&Aspect>)]) -> Vec<String> {
    let mut whose = "";
    let mut before: &[Clause] = &[];
    let mut said = Vec::new();
    for (parts, aspects) in sized {
        let first = aspects[0];
        let named = question.several_loads() && whose != first.load;
        let says = if whose == first.load {
            statement::text(&statement::after(before, parts.clone()))
        } else {
            statement::text(parts)
        };
        before = parts;
        whose = first.load;
        let nouns = match &aspects[..] {
            [only] if only.is_throughput() && !question.several_loads() => String::new(),
            [only] if only.is_throughput() && named => format!("{} ", only.load),
            _ => nouns(question, aspects, named) + " ",
        };
        said.push(match says.strip_prefix("no difference") {
            Some(rest) if !nouns.is_empty() => format!("no difference in {}{rest}", nouns.trim()),
            _ => format!("{nouns}{says}"),
        });
    }
    said
}

/// `no difference in throughput and CPU per Gbit/s (at most 3 %)`; `all` if no figure of the factor differs.
fn without_difference(
    question: &Question,
    same: &[&Aspect],
    ends: &[f64],
    all: bool,
) -> Option<String> {
    let first = same.first()?;
    let sizes = Sizes::new(first.metric(), question.worth);
    let at_most = sizes.at_most(ends.iter().copied());
    let at_most = at_most.map_or_else(String::new, |text| format!(" ({text})"));
    let what = match same {
        [only] if all && only.is_throughput() => String::new(),
        many if all && many.len() > LISTED => " in any figure".into(),
        _ => format!(" in {}", nouns(question, same, question.several_loads())),
    };
    Some(format!("no difference{what}{at_most}"))
}

/// `CPU per Gbit/s not known yet`; only the reason where nothing is known of `all` figures.
fn not_known(
    question: &Question,
    open: &[&Aspect],
    reasons: &BTreeSet<Class>,
    all: bool,
) -> Option<String> {
    open.first()?;
    if all {
        return Some(unknown(reasons));
    }
    let figures = nouns(question, open, question.several_loads());
    Some(format!("{figures} {}", unknown(reasons)))
}

/// The figures' names: `throughput and CPU per Gbit/s`; with several loads `ping transactions/s and p99 latency`.
fn nouns(question: &Question, aspects: &[&Aspect], named: bool) -> String {
    let mut whose = if named { "" } else { aspects[0].load };
    let words = aspects.iter().map(|aspect| {
        let figure = aspect.noun(question);
        if question.several_loads() && whose != aspect.load {
            whose = aspect.load;
            format!("{whose} {figure}")
        } else {
            figure.to_owned()
        }
    });
    names::list(&words.collect::<Vec<_>>())
}

fn subject(question: &Question, factor: &Factor, aspects: &[Aspect]) -> String {
    let from = &factor.levels[0];
    let mut others: Vec<&String> = aspects
        .iter()
        .flat_map(|aspect| &aspect.effects)
        .map(|judged| &judged.effect.to)
        .collect();
    others.dedup();
    let key = factor.key.as_str();
    let one = others.iter().all(|to| *to == others[0]);
    match others.first() {
        Some(_) if one && question.is_load(key) && from == "none" => {
            format!("{} running at the same time", names::capital(key))
        }
        Some(to) if one => names::capital(&names::change(key, from, to)),
        _ => {
            let name = names::factor(key);
            let against = names::level(key, from);
            let against = against
                .strip_prefix(&format!("{name} "))
                .unwrap_or(&against);
            format!(
                "{} (against {})",
                names::capital(&name),
                against
                    .trim_start_matches("with ")
                    .replace("without offloads", "none")
            )
        }
    }
}
