//! An effect, and what other methods and the whole family say of it.

use std::ops::Deref;

use serde::Serialize;
use wirecost_model::effect::{Effect, Verdict};
use wirecost_stats::{Corrected, SecondOpinion};

/// An effect with what stands beside it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectResult {
    /// The effect, by Student's t.
    #[serde(flatten)]
    pub effect: Effect,
    /// What other methods say, those that have rounds enough.
    pub second_opinions: Vec<SecondOpinion>,
    /// Whether one of them has another verdict, or its estimate outside the interval.
    pub disagreement: bool,
    /// p-values and the verdict when all effects of the run that have one are judged together; `null` in an adaptive
    /// run that its rule did not stop, and where the cells are not comparable.
    pub corrected: Option<Corrected>,
    /// Why there is no ratio, where there is none.
    pub no_ratio: Option<NoRatio>,
}

/// Why an effect has no ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRatio {
    /// In no round were both samples valid.
    NoValidPair,
    /// No window had transactions enough for the percentile in both cells.
    TooFewTransactions,
    /// The cores were busy for too few steps of their counter.
    TooFewSteps,
    /// Samples of both are valid, and in no round both have the figure.
    NoFigure,
    /// In no pair of samples every machine of a migration moved.
    NotMoved,
}

impl NoRatio {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoValidPair => "no valid pair",
            Self::TooFewTransactions => "too few transactions for this percentile",
            Self::TooFewSteps => "too little CPU time for this figure",
            Self::NoFigure => "no pair of samples with this figure",
            Self::NotMoved => "in no pair of samples every machine moved",
        }
    }
}

impl EffectResult {
    /// The corrected verdict where there is one: what is counted.
    pub(crate) fn told(&self) -> Verdict {
        self.corrected
            .map_or(self.effect.verdict, |corrected| corrected.verdict)
    }

    /// Why there is no ratio, in words.
    pub(crate) const fn no_pair(&self) -> &'static str {
        match self.no_ratio {
            Some(why) => why.words(),
            None => NoRatio::NoFigure.words(),
        }
    }
}

/// An effect with second opinions is used as an effect.
impl Deref for EffectResult {
    type Target = Effect;

    fn deref(&self) -> &Effect {
        &self.effect
    }
}
