//! An effect with second opinions of other methods and the verdict corrected for the family.

use std::ops::Deref;

use serde::Serialize;
use wirecost_model::effect::{Effect, Verdict};
use wirecost_stats::{Corrected, SecondOpinion};

/// An effect with second opinions and the corrected verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectResult {
    /// The effect, with its interval and verdict.
    #[serde(flatten)]
    pub effect: Effect,
    /// Results of other methods, those for which there are enough rounds.
    pub second_opinions: Vec<SecondOpinion>,
    /// Whether one of these methods has another verdict, or an estimate outside the interval.
    pub disagreement: bool,
    /// p-values and the verdict where all effects of the run that have a verdict are judged as one family (Holm);
    /// `null` in an adaptive run that its rule did not stop, and where the cells are not comparable.
    pub corrected: Option<Corrected>,
    /// Why there is no ratio; `null` where there is one.
    pub no_ratio: Option<NoRatio>,
}

/// Why an effect has no ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRatio {
    /// No round has valid samples of both cells.
    NoValidPair,
    /// A sample of one of the cells has too few transactions for the percentile.
    TooFewTransactions,
    /// The cores were busy for too few steps of their counter.
    TooFewSteps,
    /// Rounds with valid samples of both cells exist, but in none of them both have the figure.
    NoFigure,
    /// In no pair of samples all machines of the migration moved.
    NotMoved,
}

impl NoRatio {
    /// The reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoValidPair => "no valid pair",
            Self::TooFewTransactions => "too few transactions for this percentile",
            Self::TooFewSteps => "too little CPU time for this figure",
            Self::NoFigure => "no pair of samples with this figure",
            Self::NotMoved => "no pair of samples in which every machine moved",
        }
    }
}

impl EffectResult {
    /// The verdict that counts: the corrected one where there is one.
    pub(crate) fn final_verdict(&self) -> Verdict {
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

/// Gives access to the fields of the effect itself.
impl Deref for EffectResult {
    type Target = Effect;

    fn deref(&self) -> &Effect {
        &self.effect
    }
}
