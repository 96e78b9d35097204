//! What a case is: a plan, what is done beside it, and what may be said of it.

use wirecost_model::metric::Metric;

/// One experiment whose right answer is known.
#[derive(Debug)]
pub(crate) struct Case {
    /// What it is called.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The plan's text, a file of bench/truth.
    pub(crate) plan: &'static str,
    pub(crate) way: RunMethod,
    /// Why the expected answer is right.
    pub(crate) why: &'static str,
    pub(crate) claims: &'static [Claim],
}

/// Whether something is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something of the lab differs, and of the network nothing that matters.
    Artefact,
    /// The network differs by a tenth or more.
    Effect,
}

/// How a case's plan is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RunMethod {
    /// As `wirecost run` does.
    Run,
    /// On one core for both hosts (taskset(1)).
    OneCore,
    /// The record is changed before the result is made of it: in samples of this level of this factor the cores were
    /// four times as far apart.
    CoresMoved(&'static str, &'static str),
    /// A second run of the plan is compared with the first.
    Compare(SecondRun),
}

/// What differs in the second of two runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SecondRun {
    /// Another program on a core of host b.
    WithBusyLoop,
    /// Both hosts on one core.
    OneCore,
    /// What is between the hosts: this plan.
    Plan(&'static str),
    /// Bytes received, of which its record has this share.
    Fewer(f64),
}

/// What may be said of some effects of a case.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The factor's key; empty in comparisons of two runs.
    pub(crate) factor: &'static str,
    /// Levels of the effect, that of `factor` being the one that is compared; those left out may be any.
    pub(crate) at: &'static [(&'static str, &'static str)],
    /// On what; none: on everything.
    pub(crate) metrics: &'static [Metric],
    pub(crate) expectation: Expectation,
}

/// What may be said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Expectation {
    /// Neither pays nor costs.
    Silent,
    /// The same, and no "makes no difference" either: what was asked for did not happen.
    Mute,
    /// Neither pays nor costs, where there is such an effect at all.
    SilentIfThere,
    /// Pays and costs only where both cells aggregate alike at the receiver, and only in this direction.
    Alike(Direction),
    /// Pays and costs only with a ratio within these.
    Within(f64, f64),
    /// Never in this direction, not even perhaps.
    Never(Direction),
    /// Never in this direction, and no "makes no difference".
    Neither(Direction),
    /// Pays or gains, costs or loses.
    Found(Direction),
    /// The plan or the cell is refused, with this word in the reason.
    Refused(&'static str),
    /// The same, or the ratio is within these.
    RefusedOrWithin(f64, f64),
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Better,
    Worse,
}

impl Direction {
    /// Verdicts that are spoken in this direction, the certain one first.
    pub(crate) const fn verdicts(self) -> [&'static str; 2] {
        match self {
            Self::Better => ["pays", "gains"],
            Self::Worse => ["costs", "loses"],
        }
    }
}

impl Kind {
    /// In tables and JSON.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Artefact => "artefact",
            Self::Effect => "effect",
        }
    }
}

impl Expectation {
    /// In words.
    pub(crate) fn words(self) -> String {
        let list = |direction: Direction| direction.verdicts().join(" or ");
        match self {
            Self::Silent | Self::SilentIfThere => "neither pays nor costs".into(),
            Self::Mute => "not comparable, or cannot be told".into(),
            Self::Alike(direction) => {
                let word = direction.verdicts()[0];
                format!("{word} only where both aggregate alike, and never the other way")
            }
            Self::Within(low, high) => format!("pays and costs only within x{low} to x{high}"),
            Self::Never(direction) => format!("never {}", list(direction)),
            Self::Neither(direction) => {
                format!(
                    "neither {} nor makes no difference",
                    direction.verdicts()[0]
                )
            }
            Self::Found(direction) => list(direction),
            Self::Refused(word) => format!("refused, the reason has `{word}`"),
            Self::RefusedOrWithin(low, high) => {
                format!("refused, or pays and costs only within x{low} to x{high}")
            }
        }
    }
}
