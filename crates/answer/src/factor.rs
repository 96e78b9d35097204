//! One sentence for each factor, the most important one first.

use wirecost_model::cell::Factor;

use crate::aspect::Aspect;
use crate::{FactorAnswer, Question, names};

/// What every factor with effects does. Important is what has the largest settled effect, in whatever figure.
pub(crate) fn sentences(question: &Question) -> Vec<FactorAnswer> {
    let mut said: Vec<(f64, FactorAnswer)> = question
        .factors
        .iter()
        .filter_map(|factor| {
            let aspects = Aspect::of(question, factor);
            let size = aspects.iter().map(Aspect::size).fold(0.0, f64::max);
            (!aspects.is_empty()).then(|| (size, sentence(question, factor, &aspects)))
        })
        .collect();
    // Stable: equal ones stay in the plan's order.
    said.sort_by(|a, b| b.0.total_cmp(&a.0));
    said.into_iter().map(|(_, sentence)| sentence).collect()
}

fn sentence(question: &Question, factor: &Factor, aspects: &[Aspect]) -> FactorAnswer {
    let mut statements: Vec<(String, Vec<String>)> = Vec::new();
    for aspect in aspects {
        let (says, noun) = (aspect.says(question), aspect.noun(question));
        match statements.iter_mut().find(|(known, _)| *known == says) {
            Some((_, nouns)) => nouns.push(noun),
            None => statements.push((says, vec![noun])),
        }
    }
    let alone = aspects.len() == 1;
    let said: Vec<String> = statements
        .iter()
        .map(|(says, nouns)| statement(says, nouns, alone))
        .collect();
    FactorAnswer {
        factor: factor.key.clone(),
        subject: subject(question, factor, aspects),
        says: said.join("; "),
    }
}

/// A statement with the figures that it is about.
fn statement(says: &str, nouns: &[String], alone: bool) -> String {
    let word = |noun: &String| {
        if noun.is_empty() {
            "throughput".to_owned()
        } else {
            noun.clone()
        }
    };
    let names = names::list(&nouns.iter().map(word).collect::<Vec<_>>());
    let sized = says.starts_with(|c: char| c.is_ascii_digit());
    if let Some(rest) = says.strip_prefix("no difference") {
        return match nouns {
            [noun] if alone && noun.is_empty() => says.to_owned(),
            _ => format!("no difference in {names}{rest}"),
        };
    }
    if let Some(rest) = says.strip_prefix("not comparable") {
        let are = if nouns.len() == 1 { "is" } else { "are" };
        return format!("{names} {are} not comparable{rest}");
    }
    match nouns {
        [noun] if noun.is_empty() && (sized || says.starts_with("under")) => says.to_owned(),
        _ => format!("{names} {says}"),
    }
}

fn subject(question: &Question, factor: &Factor, aspects: &[Aspect]) -> String {
    let from = &factor.levels[0];
    let mut others: Vec<&String> = aspects
        .iter()
        .flat_map(|aspect| &aspect.effects)
        .map(|told| &told.effect.to)
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
