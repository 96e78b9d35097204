//! Where one level of a factor leaves the other factors little to change:
//! `With offloads, frame size and VXLAN change throughput by at most 8 %.`

use std::collections::BTreeSet;

use wirecost_model::effect::Verdict;
use wirecost_model::metric::Metric;

use crate::limits::FULL;
use crate::size::Sizes;
use crate::{JudgedEffect, Measured, Question, names};

/// Upper bound on what the other factors change there, as a multiple of [`Question::worth`].
const LITTLE_CHANGE: f64 = 2.0;

/// How many times larger an effect of the other factors has to be elsewhere, on the log scale.
const MORE: f64 = 3.0;

/// The sentence on the level of this factor at which the other factors change throughput least. `None` unless that is
/// little ([`LITTLE_CHANGE`]), an effect elsewhere is much larger ([`MORE`]), and the run has a single load.
pub(crate) fn of(question: &Question, factor: &str) -> Option<String> {
    if question.several_loads() {
        return None;
    }
    let factors = question.factors.iter().filter(|one| one.key == factor);
    let found = factors.flat_map(|factor| {
        let levels = factor.levels.iter();
        levels.filter_map(|level| at(question, &factor.key, level))
    });
    let least = found.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(least.1)
}

/// For one level: the largest change by other factors there (absolute logarithm of the ratio), and the sentence.
fn at(question: &Question, key: &str, level: &String) -> Option<(f64, String)> {
    let throughput = |judged: &&JudgedEffect| {
        judged.effect.metric == Metric::Throughput && judged.effect.factor != key
    };
    let others: Vec<&JudgedEffect> = question.effects.iter().filter(throughput).collect();
    let (here, elsewhere): (Vec<&JudgedEffect>, Vec<&JudgedEffect>) = others
        .into_iter()
        .partition(|judged| judged.effect.where_.get(key) == Some(level));
    let settled = here.iter().all(|judged| {
        !matches!(
            judged.verdict,
            Verdict::CannotTellYet | Verdict::NotComparable
        )
    });
    let changed: BTreeSet<&str> = here
        .iter()
        .map(|judged| judged.effect.factor.as_str())
        .collect();
    if !settled || changed.len() < 2 {
        return None;
    }
    // Where every cell of this level fills its line, the line decides and not the factor.
    let mut cells = question.cells.iter();
    let here_full = |cell: &Measured| {
        cell.levels.get(key) != Some(level) || cell.line_share.is_some_and(|share| share >= FULL)
    };
    if cells.all(here_full) {
        return None;
    }
    let ends: Option<Vec<f64>> = here
        .iter()
        .flat_map(|judged| [judged.effect.low, judged.effect.high])
        .collect();
    let ends = ends?;
    let far = ends.iter().map(|end| end.ln().abs()).fold(0.0, f64::max);
    let paid = elsewhere
        .iter()
        .filter(|judged| matches!(judged.verdict, Verdict::Pays | Verdict::Costs));
    let most = paid
        .filter_map(|judged| Some(judged.effect.ratio?.ln().abs()))
        .fold(0.0, f64::max);
    if far > (question.worth * LITTLE_CHANGE).ln_1p() || most < far * MORE {
        return None;
    }
    let subjects: Vec<String> = changed
        .iter()
        .map(|key| names::factor(key).into_owned())
        .collect();
    let at_most = Sizes::new(Metric::Throughput, question.worth).at_most(ends.into_iter())?;
    let place = names::capital(&question.place(&[(key.to_owned(), level.clone())].into()));
    let text = format!(
        "{place}, {} change throughput by {at_most}",
        names::list(&subjects)
    );
    Some((far, text))
}
