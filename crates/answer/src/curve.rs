//! What the curve of a factor with many numeric levels shows: the level that has most of the gain, and the steps.

use wirecost_model::curve::{LevelCurve, Step};
use wirecost_model::effect::Verdict;

use crate::size::Sizes;
use crate::{Question, names};

/// What the curves of a factor show, in sentences without the last full stop; `None` for a factor without curves.
pub(crate) fn of(question: &Question, factor: &str) -> Option<String> {
    let curves: Vec<&LevelCurve> = question
        .curves
        .iter()
        .filter(|one| one.factor == factor)
        .collect();
    let first = curves.first()?;
    let place = |one: &LevelCurve| {
        let place = match curves.len() {
            1 => String::new(),
            _ => question.place(&one.where_),
        };
        if place.is_empty() {
            place
        } else {
            format!(" {place}")
        }
    };
    let knees: Vec<String> = curves
        .iter()
        .filter_map(|one| {
            let knee = one.curve.knee?;
            let pays = |at: f64| matches!(verdict(question, one, at), Some(Verdict::Pays));
            let last = levels(question, factor).next_back()?;
            if !pays(knee.at) || !pays(last) {
                return None;
            }
            let (at, share) = (knee.at, (knee.share * 100.0).round().min(100.0));
            Some(format!(
                "at {at}{} ({share:.0} % of {:.1} times)",
                place(one),
                knee.total_gain
            ))
        })
        .collect();
    let sizes = Sizes::new(first.metric, question.worth);
    let steps: Vec<String> = curves
        .iter()
        .flat_map(|one| {
            let step = |step: &Step| {
                let size = sizes.range([step.ratio].into_iter());
                format!("{size} from {} to {}{}", step.from, step.to, place(one))
            };
            // A step is told only where both its levels are comparable with the first level.
            let judged = |at: f64| match verdict(question, one, at) {
                Some(judged) => !matches!(judged, Verdict::NotComparable | Verdict::CannotTellYet),
                None => levels(question, factor).next() == Some(at),
            };
            let steps = one.curve.steps.iter();
            let steps = steps.filter(|step| judged(step.from) && judged(step.to));
            steps.map(step).collect::<Vec<_>>()
        })
        .collect();
    let knees = match &knees[..] {
        [] => "No early level certainly has most of the gain".to_owned(),
        knees => format!("Most of the gain is reached {}", names::list(knees)),
    };
    // Where the verdict on the last level is not known in any curve, neither knee nor steps are told.
    let last = levels(question, factor).next_back()?;
    let open = |one: &&&LevelCurve| {
        let judged = verdict(question, one, last);
        matches!(
            judged,
            None | Some(Verdict::CannotTellYet | Verdict::NotComparable)
        )
    };
    if curves.iter().filter(open).count() == curves.len() {
        return None;
    }
    Some(match &steps[..] {
        [] => format!("{knees}; no step stands out"),
        [step] => format!("{knees}. A step: {step}"),
        steps => format!("{knees}. Steps: {}", names::list(steps)),
    })
}

/// The factor's levels that are numbers, in the plan's order.
fn levels(question: &Question, factor: &str) -> impl DoubleEndedIterator<Item = f64> {
    let mut factors = question.factors.iter();
    let found = factors.find(|one| one.key == factor);
    let levels = found.into_iter().flat_map(|factor| &factor.levels);
    levels.filter_map(|level| level.parse().ok())
}

/// The verdict on level `at` against the first level, with the curve's load, metric and other levels.
fn verdict(question: &Question, one: &LevelCurve, at: f64) -> Option<Verdict> {
    let mut effects = question.effects.iter();
    let found = effects.find(|judged| {
        let effect = &judged.effect;
        effect.factor == one.factor
            && effect.load == one.load
            && effect.metric == one.metric
            && effect.where_ == one.where_
            && effect.to.parse() == Ok(at)
    });
    found.map(|judged| judged.verdict)
}
