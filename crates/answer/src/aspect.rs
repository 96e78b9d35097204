//! A factor's effects on one figure of one load, and the groups of effects that one statement covers.

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::cell::Factor;
use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::metric::Metric;

use crate::dimension::{self, Dimension, LevelIndices};
use crate::names::HOST;
use crate::{JudgedEffect, Question};

/// Effects whose ratios differ by more than this factor are reported separately where a short phrase can distinguish
/// them.
const DISTINCT_RATIO: f64 = 1.25;

/// Most sizes that one statement distinguishes.
const SIZES: usize = 3;

/// The subject of a statement: metrics that are reported as one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Speed,
    Delivered,
    Median,
    P99,
    Cpu,
}

impl Kind {
    /// The kind of a metric; `None` for metrics that another one implies (datagrams by throughput, p99.9 by p99).
    pub(crate) const fn of(metric: Metric) -> Option<Self> {
        Some(match metric {
            Metric::Throughput | Metric::Transactions | Metric::DirtyLimit => Self::Speed,
            Metric::Delivered => Self::Delivered,
            Metric::LatencyMedian | Metric::MoveTime => Self::Median,
            Metric::LatencyP99 | Metric::Downtime => Self::P99,
            Metric::Datagrams | Metric::LatencyP999 => return None,
            Metric::SenderCpu
            | Metric::ReceiverCpu
            | Metric::Cpu
            | Metric::ClientCpu
            | Metric::ServerCpu
            | Metric::TransactionCpu => Self::Cpu,
        })
    }
}

/// A factor's effects on one kind of figure of one load.
#[derive(Debug)]
pub(crate) struct Aspect<'a> {
    pub(crate) load: &'a str,
    pub(crate) kind: Kind,
    pub(crate) effects: Vec<&'a JudgedEffect>,
}

/// What one or more effects come to. The variants are in the order in which a statement names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Better,
    Worse,
    PerhapsBetter,
    PerhapsWorse,
    Same,
    Undecided(Option<&'static str>),
    NotComparable(Option<RemarkKind>),
    /// Several of [`Class::Undecided`] and [`Class::NotComparable`]: the sentence on the limits gives the reasons.
    Open,
}

impl Class {
    fn of(judged: &JudgedEffect) -> Self {
        match judged.verdict {
            Verdict::Pays => Self::Better,
            Verdict::Costs => Self::Worse,
            Verdict::Gains => Self::PerhapsBetter,
            Verdict::Loses => Self::PerhapsWorse,
            Verdict::MakesNoDifference => Self::Same,
            Verdict::CannotTellYet => Self::Undecided(judged.no_ratio),
            Verdict::NotComparable => {
                Self::NotComparable(judged.effect.not_comparable.as_ref().map(|why| why.kind))
            }
        }
    }

    /// Whether nothing is known of the effects of this class.
    pub(crate) const fn is_open(self) -> bool {
        matches!(
            self,
            Self::Undecided(_) | Self::NotComparable(_) | Self::Open
        )
    }
}

/// Effects that one part of a statement covers.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) class: Class,
    /// Indices into [`Aspect::effects`].
    pub(crate) members: BTreeSet<usize>,
}

impl<'a> Aspect<'a> {
    /// The aspects of a factor's effects: the loads in the order of the effects, the kinds of one load in the order of
    /// [`Kind`].
    pub(crate) fn of(question: &'a Question, factor: &Factor) -> Vec<Self> {
        let mut loads: Vec<&str> = Vec::new();
        let mut aspects: BTreeMap<(usize, Kind), Self> = BTreeMap::new();
        for judged in question
            .effects
            .iter()
            .filter(|judged| judged.effect.factor == factor.key)
        {
            let Some(kind) = Kind::of(judged.effect.metric) else {
                continue;
            };
            let load = judged.effect.load.as_str();
            let at = loads.iter().position(|known| *known == load);
            let at = at.unwrap_or_else(|| {
                loads.push(load);
                loads.len() - 1
            });
            let aspect = aspects.entry((at, kind)).or_insert_with(|| Self {
                load,
                kind,
                effects: Vec::new(),
            });
            aspect.effects.push(judged);
        }
        let mut aspects: Vec<Self> = aspects.into_values().collect();
        let speeds: Vec<(&str, Vec<&JudgedEffect>)> = aspects
            .iter()
            .filter(|aspect| aspect.kind == Kind::Speed)
            .map(|aspect| (aspect.load, aspect.settled().collect()))
            .collect();
        aspects.retain(|aspect| {
            let mut speeds = speeds.iter();
            let is_redundant = |(load, settled): &(&str, Vec<&JudgedEffect>)| {
                *load == aspect.load && aspect.is_implied_by(settled)
            };
            aspect.metric() != Metric::LatencyMedian || !speeds.any(is_redundant)
        });
        aspects
    }

    /// The effects that certainly matter.
    fn settled(&self) -> impl Iterator<Item = &'a JudgedEffect> {
        let effects = self.effects.iter().copied();
        effects.filter(|judged| matches!(judged.verdict, Verdict::Pays | Verdict::Costs))
    }

    /// Whether this median adds nothing to the settled effects on transactions/s, which imply it in a closed loop: each
    /// settled one has its effect among them. A median of which nothing is known adds nothing.
    fn is_implied_by(&self, speeds: &[&JudgedEffect]) -> bool {
        let has_speed = |median: &JudgedEffect| {
            speeds.iter().any(|speed| {
                speed.effect.to == median.effect.to && speed.effect.where_ == median.effect.where_
            })
        };
        self.is_open() || !speeds.is_empty() && self.settled().all(has_speed)
    }

    /// Whether nothing is known of any effect of this aspect.
    fn is_open(&self) -> bool {
        self.effects
            .iter()
            .all(|judged| Class::of(judged).is_open())
    }

    /// The largest settled effect as an absolute logarithm of its ratio; 0 without one.
    pub(crate) fn size(&self) -> f64 {
        let sizes = self
            .settled()
            .filter_map(|judged| Some(judged.effect.ratio?.ln().abs()));
        sizes.fold(0.0, f64::max)
    }

    /// The figure's name in a sentence.
    pub(crate) fn noun(&self, question: &Question) -> &'static str {
        let workload = question.workload(self.load);
        match (self.kind, self.metric()) {
            (Kind::Speed, Metric::Transactions) if !workload.is_storage() => "transactions/s",
            (Kind::Cpu, Metric::ClientCpu | Metric::ServerCpu | Metric::TransactionCpu) => {
                Metric::TransactionCpu.words_of(workload)
            }
            (Kind::Cpu, _) => Metric::Cpu.words(),
            (_, metric) => metric.words_of(workload),
        }
    }

    pub(crate) fn metric(&self) -> Metric {
        self.effects[0].effect.metric
    }

    pub(crate) fn is_throughput(&self) -> bool {
        self.metric() == Metric::Throughput
    }

    /// The place of every effect: its level of each factor that varies among the effects, and the host of its figure.
    pub(crate) fn places(&self, question: &Question) -> (Vec<Dimension>, Vec<LevelIndices>) {
        let effects = || self.effects.iter().map(|judged| &judged.effect);
        let mut dimensions: Vec<Dimension> = Vec::new();
        let mut add = |key: &str, levels: Vec<String>| {
            if levels.len() > 1 {
                dimensions.push(Dimension {
                    key: key.to_owned(),
                    levels,
                });
            }
        };
        for factor in &question.factors {
            let has = |level: &&String| {
                effects().any(|effect| {
                    if effect.factor == factor.key {
                        effect.to == **level
                    } else {
                        effect.where_.get(&factor.key) == Some(level)
                    }
                })
            };
            add(
                &factor.key,
                factor.levels.iter().filter(has).cloned().collect(),
            );
        }
        let hosts: BTreeSet<&str> = effects().map(|effect| host(effect.metric)).collect();
        add(HOST, hosts.into_iter().map(str::to_owned).collect());
        let places = effects().map(|effect| {
            let level = |dimension: &Dimension| {
                let level = match &dimension.key {
                    key if *key == effect.factor => Some(effect.to.as_str()),
                    key if key == HOST => Some(host(effect.metric)),
                    key => effect.where_.get(key).map(String::as_str),
                };
                let level = level?;
                dimension.levels.iter().position(|known| known == level)
            };
            dimensions.iter().map(level).collect()
        });
        let places = places.collect();
        (dimensions, places)
    }

    /// The effects by class; `in_detail` also by size, where one condition each tells which effects have which size.
    pub(crate) fn groups(
        &self,
        dimensions: &[Dimension],
        places: &[LevelIndices],
        in_detail: bool,
    ) -> Vec<Group> {
        let mut by_class: BTreeMap<Class, BTreeSet<usize>> = BTreeMap::new();
        for (at, judged) in self.effects.iter().enumerate() {
            by_class.entry(Class::of(judged)).or_default().insert(at);
        }
        let expressible = |members: &BTreeSet<usize>| {
            dimension::conditions(dimensions, places, members).is_some_and(|parts| parts.len() == 1)
        };
        let mut groups = Vec::new();
        for (class, members) in by_class {
            let splits = in_detail.then(|| self.splits(class, &members));
            let mut splits = splits.into_iter().flatten();
            let few = splits.find(|split| split.iter().all(expressible));
            let split = few.unwrap_or_else(|| vec![members]);
            groups.extend(split.into_iter().map(|members| Group { class, members }));
        }
        groups
    }

    /// Ways to separate the members by size at the widest gaps between sizes, the finest separation first.
    fn splits(&self, class: Class, members: &BTreeSet<usize>) -> Vec<Vec<BTreeSet<usize>>> {
        if !matches!(class, Class::Better | Class::Worse) {
            return Vec::new();
        }
        let size = |at: usize| {
            self.effects[at]
                .effect
                .ratio
                .map_or(0.0, |ratio| ratio.ln().abs())
        };
        let mut order: Vec<usize> = members.iter().copied().collect();
        order.sort_by(|&a, &b| size(a).total_cmp(&size(b)));
        let mut gaps: Vec<f64> = order
            .windows(2)
            .map(|pair| size(pair[1]) - size(pair[0]))
            .filter(|gap| *gap > DISTINCT_RATIO.ln())
            .collect();
        gaps.sort_by(|a, b| b.total_cmp(a));
        gaps.truncate(SIZES - 1);
        gaps.iter()
            .rev()
            .map(|least| {
                let chunks = order.chunk_by(|&a, &b| size(b) - size(a) < *least);
                chunks
                    .map(|chunk| chunk.iter().copied().collect())
                    .collect()
            })
            .collect()
    }

    /// The group's effects.
    pub(crate) fn members(&self, group: &Group) -> impl Iterator<Item = &'a JudgedEffect> + Clone {
        group.members.iter().map(|&at| self.effects[at])
    }

    /// The ratios of the group's effects; effects without a ratio are left out.
    pub(crate) fn ratios(&self, group: &Group) -> impl Iterator<Item = f64> + Clone {
        self.members(group).filter_map(|judged| judged.effect.ratio)
    }

    /// The absolute logarithms of the ratios of the group's effects.
    pub(crate) fn sizes(&self, group: &Group) -> impl Iterator<Item = f64> {
        self.ratios(group).map(|ratio| ratio.ln().abs())
    }

    /// The lower and upper ends of the intervals of the group's effects.
    pub(crate) fn ends(&self, group: &Group) -> impl Iterator<Item = f64> {
        let members = self.members(group);
        members.flat_map(|judged| {
            [judged.effect.low, judged.effect.high]
                .into_iter()
                .flatten()
        })
    }
}

/// The host that a CPU metric is about; empty for a metric of both hosts or of none.
const fn host(metric: Metric) -> &'static str {
    match metric {
        Metric::SenderCpu => "sender",
        Metric::ReceiverCpu => "receiver",
        Metric::ClientCpu => "client",
        Metric::ServerCpu => "server",
        _ => "",
    }
}
