//! The answer of a run as sentences: one for each factor, the most important first; what limits the answer; what to do.
//!
//! Every sentence follows from verdicts (corrected for all comparisons of the run) and, where it names absolute
//! figures, from the cells' medians. No statement is made without a verdict; *not known* and *not comparable* are
//! stated.
//!
//! Not here: I/O, statistics, and the layout of a sentence on a page.

mod advice;
mod aspect;
mod curve;
mod demand;
pub mod diagnosis;
mod dimension;
mod dominance;
mod factor;
mod figures;
mod limits;
pub mod names;
mod question;
mod size;
mod statement;
mod study;

use serde::Serialize;

pub use limits::FULL;
pub use question::{FigureValue, JudgedEffect, Measured, Question};
pub use study::Tally;

/// The answer of a run, in sentences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What each factor does, the most important one first.
    pub factors: Vec<FactorAnswer>,
    /// What limits the answer: the line, what cannot be determined, what is not comparable.
    pub limits: Vec<String>,
    /// What to do: the best cell, the cheapest change that comes near it, the single change that brings most.
    pub to_do: Vec<String>,
}

/// What one factor does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactorAnswer {
    /// The factor's key.
    pub factor: String,
    /// What the sentence is about: `Jumbo frames (8900)`.
    pub subject: String,
    /// The predicate, without the full stop: `1.9 times as fast without encapsulation, ...`.
    pub says: String,
}

impl FactorAnswer {
    /// Subject and predicate as one sentence, with the full stop.
    pub fn sentence(&self) -> String {
        format!("{}: {}.", self.subject, self.says)
    }
}

impl Answer {
    /// Every sentence: the factors, the limits, what to do.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let factors = self.factors.iter().map(FactorAnswer::sentence);
        let limits = self.limits.iter().cloned();
        factors.chain(limits).chain(self.to_do.iter().cloned())
    }
}

/// Computes the answer from what a run measured.
pub fn answer(question: &Question) -> Answer {
    let mut factors = factor::sentences(question);
    // The most important factor also says where it leaves the other factors little to change.
    if let Some(first) = factors.first_mut()
        && let Some(says) = dominance::of(question, &first.factor)
    {
        first.says.push_str(". ");
        first.says.push_str(&says);
    }
    for factor in &mut factors {
        if let Some(says) = curve::of(question, &factor.factor) {
            factor.says.push_str(". ");
            factor.says.push_str(&says);
        }
    }
    Answer {
        factors,
        limits: limits::sentences(question),
        to_do: advice::sentences(question),
    }
}
