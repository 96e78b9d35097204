//! The statement on an aspect: `35 % slower through VXLAN at 1500, no difference elsewhere`.

use std::collections::BTreeSet;

use crate::aspect::{Aspect, Class, Group};
use crate::dimension::{self, Dimension, LevelIndices};
use crate::size::Sizes;
use crate::{Question, figures, names};

/// From this ratio on, and below its reciprocal, a change of latency is also given in absolute figures.
const IN_FIGURES: f64 = 2.0;

/// Units that a statement does not repeat from one size to the next.
const UNITS: [&str; 6] = [
    " times as fast",
    " times as high",
    " % faster",
    " % slower",
    " % higher",
    " % lower",
];

/// One clause of a statement: `35 % slower`, `through VXLAN at 1500`, absolute figures; the last two may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    what: String,
    place: String,
    detail: String,
    /// Whether the effects pay or cost.
    is_settled: bool,
}

/// What a statement has to say of an aspect.
#[derive(Debug)]
pub(crate) enum Statement {
    /// Effects of some size, each with its place.
    Sized(Vec<Clause>),
    /// No difference anywhere: the ends of the effects' intervals.
    Same(Vec<f64>),
    /// Nothing is known anywhere: the classes with the reasons.
    Unknown(BTreeSet<Class>),
}

impl Aspect<'_> {
    /// What the aspect's effects come to. `in_detail` tells different sizes separately by place, where few words do it.
    pub(crate) fn statement(&self, question: &Question, in_detail: bool) -> Statement {
        let (dimensions, places) = self.places(question);
        let sizes = Sizes::new(self.metric(), question.worth);
        let mut groups = self.groups(&dimensions, &places, in_detail);
        if groups.iter().all(|group| group.class.is_open()) {
            return Statement::Unknown(groups.iter().map(|group| group.class).collect());
        }
        if let [one] = &groups[..]
            && one.class == Class::Same
        {
            return Statement::Same(self.ends(one).collect());
        }
        groups.sort_by(|a, b| {
            let size = |group: &Group| self.sizes(group).fold(0.0, f64::max);
            let rank = |group: &Group| {
                (!matches!(group.class, Class::Better | Class::Worse)).then_some(group.class)
            };
            rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a)))
        });
        let mut groups = together(groups);
        // Without detail, effects of which nothing is known are left to the sentence on the limits, which counts them.
        let all = groups.len();
        groups.retain(|group| in_detail || !group.class.is_open());
        let rest = groups.len() == all;
        let last = groups.len() - 1;
        let parts = groups.iter().enumerate().map(|(at, group)| Clause {
            what: self.what(group, sizes),
            place: self.place(
                group,
                question,
                (&dimensions, &places),
                (at == last && rest, in_detail),
            ),
            detail: self.detail(group, question, sizes),
            is_settled: matches!(group.class, Class::Better | Class::Worse),
        });
        Statement::Sized(parts.collect())
    }

    /// The size of the group's effects, or why none is known.
    fn what(&self, group: &Group, sizes: Sizes) -> String {
        match group.class {
            Class::Better | Class::Worse | Class::PerhapsBetter | Class::PerhapsWorse => {
                sizes.range(self.ratios(group))
            }
            Class::Same => "no difference".into(),
            open => open.words(),
        }
    }

    /// The place of the group's effects; empty where they are everywhere.
    fn place(
        &self,
        group: &Group,
        question: &Question,
        (dimensions, places): (&[Dimension], &[LevelIndices]),
        (last, in_detail): (bool, bool),
    ) -> String {
        if group.members.len() == places.len() {
            return String::new();
        }
        if group.class == Class::Open {
            return "elsewhere".into();
        }
        match dimension::conditions(dimensions, places, &group.members) {
            Some(parts) if parts.len() == 1 && (!last || parts[0].len() == 1) => {
                question.conditions(self.load, dimensions, &parts[0])
            }
            _ if last => "elsewhere".into(),
            Some(parts) if in_detail => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| question.conditions(self.load, dimensions, part))
                    .collect();
                parts.join(" or ")
            }
            _ => format!("in {} of {}", group.members.len(), places.len()),
        }
    }

    /// The text after the place: an upper bound where there is no difference, absolute latencies where they change
    /// much.
    fn detail(&self, group: &Group, question: &Question, sizes: Sizes) -> String {
        match group.class {
            Class::PerhapsBetter | Class::PerhapsWorse => "(maybe less)".into(),
            Class::Same => {
                let at_most = sizes.at_most(self.ends(group));
                at_most.map_or_else(String::new, |text| format!("({text})"))
            }
            Class::Better | Class::Worse if self.metric().is_latency() => {
                self.in_figures(group, question).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    /// `(60 -> 4800 us)`, where each latency of the group changes by at least [`IN_FIGURES`].
    fn in_figures(&self, group: &Group, question: &Question) -> Option<String> {
        let much = |ratio: f64| ratio >= IN_FIGURES || ratio <= 1.0 / IN_FIGURES;
        if !self.ratios(group).all(much) {
            return None;
        }
        let pairs: Option<Vec<[f64; 2]>> = self
            .members(group)
            .map(|judged| question.figures_of(judged))
            .collect();
        let pairs = pairs?;
        let side = |at: usize| pairs.iter().map(|pair| pair[at]).collect::<Vec<_>>();
        let largest = pairs.iter().flatten().copied().fold(0.0, f64::max);
        let unit = figures::Unit::of(self.metric(), question.workload(self.load), largest);
        let (from, to) = (unit.range(&side(0)), unit.range(&side(1)));
        let unit = unit.name;
        let effect = &self.members(group).next()?.effect;
        Some(
            if question.is_load(&effect.factor) && effect.from == "none" {
                format!("(idle {from} {unit} -> loaded {to} {unit})")
            } else {
                format!("({from} -> {to} {unit})")
            },
        )
    }
}

/// Merges the groups of which nothing is known, unless there is one and it has a reason of its own: the sentence on the
/// limits gives the reasons.
fn together(groups: Vec<Group>) -> Vec<Group> {
    let (unknown, mut groups): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| group.class.is_open());
    match &unknown[..] {
        [] => {}
        [one] if one.class != Class::Undecided(None) => groups.extend(unknown),
        _ => groups.push(Group {
            class: Class::Open,
            members: unknown
                .into_iter()
                .flat_map(|group| group.members)
                .collect(),
        }),
    }
    groups
}

impl Clause {
    fn text(&self) -> String {
        let parts = [&self.what, &self.place, &self.detail].map(String::as_str);
        let some: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        some.join(" ")
    }
}

/// Replaces the place of the first part by `there` where it is that of the statement before (`8 % higher there`), and
/// drops the other parts unless one of them pays or costs.
pub(crate) fn after(before: &[Clause], mut parts: Vec<Clause>) -> Vec<Clause> {
    let alike = before.first().zip(parts.first());
    if alike.is_some_and(|(a, b)| a.place == b.place && !a.place.is_empty()) {
        parts[0].place = "there".into();
        if !parts[1..].iter().any(|part| part.is_settled) {
            parts.truncate(1);
        }
    }
    parts
}

/// The parts as one text: `2.9 times as fast through VXLAN, 1.9 times without`.
pub(crate) fn text(parts: &[Clause]) -> String {
    let said: Vec<String> = parts.iter().map(Clause::text).collect();
    let mut text = said[0].clone();
    for (before, one) in said.iter().zip(&said[1..]) {
        let mut units = UNITS.into_iter();
        let repeated = units.find(|unit| before.contains(unit) && one.contains(unit));
        let short = repeated.and_then(|unit| {
            let (short, _) = unit.rsplit_once(" as ").or_else(|| unit.rsplit_once(' '))?;
            Some(one.replacen(unit, short, 1))
        });
        text.push_str(", ");
        text.push_str(short.as_ref().unwrap_or(one));
    }
    text
}

/// Why nothing is known, as the end of a sentence: `not known yet`, `not comparable (aggregation)`.
pub(crate) fn unknown(reasons: &BTreeSet<Class>) -> String {
    let mut reasons = reasons.iter();
    match (reasons.next(), reasons.next()) {
        (Some(only), None) => only.words(),
        _ => Class::Open.words(),
    }
}

impl Class {
    /// Why nothing is known of effects of this class.
    fn words(self) -> String {
        match self {
            Self::Undecided(None) => "not known yet".into(),
            Self::Undecided(Some(why)) => format!("not known ({why})"),
            Self::NotComparable(None) => "not comparable".into(),
            Self::NotComparable(Some(kind)) => format!("not comparable ({})", names::kind(kind)),
            _ => "not known".into(),
        }
    }
}
