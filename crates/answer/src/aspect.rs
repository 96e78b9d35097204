//! What a factor does to one figure, and where: `35 % slower through VXLAN at 1500, no difference elsewhere`.

use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::cell::Factor;
use wirecost_model::effect::{RemarkKind, Verdict};
use wirecost_model::metric::Metric;

use crate::names::{self, HOST};
use crate::place::{self, Dimension, Place};
use crate::size::Sizes;
use crate::{Question, Told, figures};

/// Effects farther apart than this factor are distinguished, if few words do it.
const APART: f64 = 1.25;

/// Sizes that are distinguished in one statement.
const SIZES: usize = 3;

/// From this ratio on a latency is told by its figures too.
const TOLD_BY_FIGURES: f64 = 2.0;

/// What a statement is about: figures that are spoken of together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Speed,
    Delivered,
    Median,
    P99,
    Cpu,
}

impl Kind {
    /// Of a metric; `None` of those that another one tells as well (datagrams by throughput, p99.9 by p99).
    pub(crate) const fn of(metric: Metric) -> Option<Self> {
        Some(match metric {
            Metric::Throughput | Metric::Transactions | Metric::DirtyLimit => Self::Speed,
            Metric::Delivered => Self::Delivered,
            Metric::LatencyMedian | Metric::MoveTime => Self::Median,
            Metric::LatencyP99 | Metric::Downtime => Self::P99,
            Metric::Datagrams | Metric::LatencyP999 => return None,
            _ => Self::Cpu,
        })
    }
}

/// A factor's effects on one kind of figure of one load.
#[derive(Debug)]
pub(crate) struct Aspect<'a> {
    pub(crate) load: &'a str,
    pub(crate) kind: Kind,
    pub(crate) effects: Vec<&'a Told>,
}

/// What one or more effects come to. The order is that of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Better,
    Worse,
    PerhapsBetter,
    PerhapsWorse,
    Same,
    Untold(Option<&'static str>),
    Barred(Option<RemarkKind>),
    /// Several of the two before: the sentence on what is not known has the reasons.
    Open,
}

impl Class {
    fn of(told: &Told) -> Self {
        match told.verdict {
            Verdict::Pays => Self::Better,
            Verdict::Costs => Self::Worse,
            Verdict::Gains => Self::PerhapsBetter,
            Verdict::Loses => Self::PerhapsWorse,
            Verdict::MakesNoDifference => Self::Same,
            Verdict::CannotTellYet => Self::Untold(told.no_ratio),
            Verdict::NotComparable => {
                Self::Barred(told.effect.not_comparable.as_ref().map(|why| why.kind))
            }
        }
    }
}

/// Effects that are told together.
#[derive(Debug, Clone)]
struct Group {
    class: Class,
    /// By their numbers in the aspect.
    members: BTreeSet<usize>,
}

impl<'a> Aspect<'a> {
    /// The aspects of a factor's effects, by load in the order of the effects, and within one speed first.
    pub(crate) fn of(question: &'a Question, factor: &Factor) -> Vec<Self> {
        let mut loads: Vec<&str> = Vec::new();
        let mut aspects: BTreeMap<(usize, Kind), Self> = BTreeMap::new();
        for told in question
            .effects
            .iter()
            .filter(|told| told.effect.factor == factor.key)
        {
            let Some(kind) = Kind::of(told.effect.metric) else {
                continue;
            };
            let load = told.effect.load.as_str();
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
            aspect.effects.push(told);
        }
        let mut aspects: Vec<Self> = aspects.into_values().collect();
        // A closed loop's transactions tell its median latency.
        let redundant: Vec<&str> = aspects
            .iter()
            .filter(|aspect| aspect.kind == Kind::Speed && aspect.is_settled())
            .map(|aspect| aspect.load)
            .collect();
        aspects.retain(|aspect| aspect.kind != Kind::Median || !redundant.contains(&aspect.load));
        aspects
    }

    fn is_settled(&self) -> bool {
        self.effects
            .iter()
            .any(|told| matches!(told.verdict, Verdict::Pays | Verdict::Costs))
    }

    /// The largest settled effect on the log scale, 0 without one.
    pub(crate) fn size(&self) -> f64 {
        let settled = self
            .effects
            .iter()
            .filter(|told| matches!(told.verdict, Verdict::Pays | Verdict::Costs));
        let sizes = settled.filter_map(|told| Some(told.effect.ratio?.ln().abs()));
        sizes.fold(0.0, f64::max)
    }

    /// What the figure is called before its statement; nothing for the speed of the only load.
    pub(crate) fn noun(&self, question: &Question) -> String {
        let metric = self.metric();
        let name = match (self.kind, metric) {
            (Kind::Speed, Metric::Throughput) => "",
            (Kind::Speed, Metric::DirtyLimit) => metric.words(),
            (Kind::Speed, _) => "transactions/s",
            (Kind::Delivered, _) => "share of datagrams delivered",
            (Kind::Median | Kind::P99, metric) => metric.words(),
            (Kind::Cpu, Metric::ClientCpu | Metric::ServerCpu | Metric::TransactionCpu) => {
                "CPU per transaction"
            }
            (Kind::Cpu, _) => "CPU per Gbit/s",
        };
        match (question.several_loads(), name) {
            (false, name) => name.to_owned(),
            (true, "") => self.load.to_owned(),
            (true, name) => format!("{} {name}", self.load),
        }
    }

    fn metric(&self) -> Metric {
        self.effects[0].effect.metric
    }

    /// The statement: which sizes where.
    pub(crate) fn says(&self, question: &Question) -> String {
        let (dimensions, places) = self.places(question);
        let sizes = Sizes::new(self.metric(), question.worth);
        let mut groups = self.groups(&dimensions, &places);
        groups.sort_by(|a, b| {
            let size = |group: &Group| self.sizes(group).fold(0.0, f64::max);
            let rank = |group: &Group| {
                (!matches!(group.class, Class::Better | Class::Worse)).then_some(group.class)
            };
            rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a)))
        });
        let open = |group: &Group| matches!(group.class, Class::Untold(_) | Class::Barred(_));
        let settled = groups.iter().filter(|group| !open(group)).count();
        let is_plain = |group: &Group| group.class == Class::Untold(None);
        if settled > 0 && (groups.len() > settled + 1 || groups.iter().any(is_plain)) {
            let (known, unknown): (Vec<_>, Vec<_>) = groups.into_iter().partition(|one| !open(one));
            let members = unknown.into_iter().flat_map(|group| group.members);
            let rest = Group {
                class: Class::Open,
                members: members.collect(),
            };
            groups = known.into_iter().chain([rest]).collect();
        } else if groups.len() > 1 && settled == 0 {
            // Where nothing is known, it is of no interest which of it for which reason.
            let each = groups.iter().map(|group| {
                format!(
                    "{} in {} of {}",
                    self.what(group, sizes),
                    group.members.len(),
                    places.len()
                )
            });
            return each.collect::<Vec<_>>().join(", ");
        }
        let last = groups.len() - 1;
        let said: Vec<String> = groups
            .iter()
            .enumerate()
            .map(|(at, group)| {
                let what = self.what(group, sizes);
                let place = Self::place(group, question, (&dimensions, &places), at == last);
                let detail = self.detail(group, question, sizes);
                let parts = [what, place, detail];
                let parts: Vec<String> =
                    parts.into_iter().filter(|part| !part.is_empty()).collect();
                parts.join(" ")
            })
            .collect();
        let mut text = said[0].clone();
        for (before, one) in said.iter().zip(&said[1..]) {
            // `2.9 times as fast through VXLAN, 1.9 times without`.
            let units = [
                " times as fast",
                " times as high",
                " % faster",
                " % slower",
                " % higher",
                " % lower",
            ];
            let repeated = units
                .into_iter()
                .find(|unit| before.contains(unit) && one.contains(unit));
            let one = repeated.map_or_else(
                || one.clone(),
                |unit| match unit.rsplit_once(" as ").or_else(|| unit.rsplit_once(' ')) {
                    Some((short, _)) => one.replacen(unit, short, 1),
                    None => one.clone(),
                },
            );
            text.push_str(", ");
            text.push_str(&one);
        }
        text
    }

    /// Where every effect is.
    fn places(&self, question: &Question) -> (Vec<Dimension>, Vec<Place>) {
        let effects = || self.effects.iter().map(|told| &told.effect);
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

    /// By class, and those with sizes by size, where few words tell which is where.
    fn groups(&self, dimensions: &[Dimension], places: &[Place]) -> Vec<Group> {
        let mut by_class: BTreeMap<Class, BTreeSet<usize>> = BTreeMap::new();
        for (at, told) in self.effects.iter().enumerate() {
            by_class.entry(Class::of(told)).or_default().insert(at);
        }
        let told = |members: &BTreeSet<usize>| {
            place::conditions(dimensions, places, members).is_some_and(|parts| parts.len() == 1)
        };
        let mut groups = Vec::new();
        for (class, members) in by_class {
            let mut splits = self.splits(class, &members).into_iter();
            let few = splits.find(|split| split.iter().all(told));
            let split = few.unwrap_or_else(|| vec![members]);
            groups.extend(split.into_iter().map(|members| Group { class, members }));
        }
        groups
    }

    /// Ways to separate sizes, at the widest gaps between them; the finest first.
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
            .filter(|gap| *gap > APART.ln())
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

    fn sizes(&self, group: &Group) -> impl Iterator<Item = f64> {
        let members = group.members.iter();
        members.filter_map(|&at| Some(self.effects[at].effect.ratio?.ln().abs()))
    }

    /// What the group's effects are.
    fn what(&self, group: &Group, sizes: Sizes) -> String {
        let ratios = group
            .members
            .iter()
            .filter_map(|&at| self.effects[at].effect.ratio);
        let size = || sizes.range(ratios.clone());
        match group.class {
            Class::Better | Class::Worse | Class::PerhapsBetter | Class::PerhapsWorse => size(),
            Class::Same => "no difference".into(),
            Class::Untold(None) => "cannot be told yet".into(),
            Class::Untold(Some(why)) => format!("cannot be told ({why})"),
            Class::Open => "else not known".into(),
            Class::Barred(kind) => {
                let why = kind.map_or_else(String::new, |kind| format!(" ({})", names::kind(kind)));
                format!("not comparable{why}")
            }
        }
    }

    /// Where they are.
    fn place(
        group: &Group,
        question: &Question,
        (dimensions, places): (&[Dimension], &[Place]),
        last: bool,
    ) -> String {
        let everywhere = group.members.len() == places.len();
        if everywhere || group.class == Class::Open {
            return String::new();
        }
        match place::conditions(dimensions, places, &group.members) {
            Some(parts) if parts.len() == 1 && (!last || parts[0].len() == 1) => {
                question.conditions(dimensions, &parts[0])
            }
            _ if last => "elsewhere".into(),
            Some(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| question.conditions(dimensions, part))
                    .collect();
                parts.join(" or ")
            }
            None => format!("in {} of {}", group.members.len(), places.len()),
        }
    }

    /// Figures behind it: how much at most where there is no difference, and a latency that changes much.
    fn detail(&self, group: &Group, question: &Question, sizes: Sizes) -> String {
        let effects = || group.members.iter().map(|&at| self.effects[at]);
        if matches!(group.class, Class::PerhapsBetter | Class::PerhapsWorse) {
            return "(maybe less)".into();
        }
        if group.class == Class::Same {
            let ends = effects().flat_map(|told| [told.effect.low, told.effect.high]);
            let at_most = sizes.at_most(ends.flatten());
            return at_most.map_or_else(String::new, |text| format!("({text})"));
        }
        let much = effects().all(|told| {
            let ratio = told.effect.ratio.unwrap_or(1.0);
            ratio >= TOLD_BY_FIGURES || ratio <= 1.0 / TOLD_BY_FIGURES
        });
        if !self.metric().is_latency()
            || group.class != Class::Better && group.class != Class::Worse
            || !much
        {
            return String::new();
        }
        let pairs: Option<Vec<[f64; 2]>> =
            effects().map(|told| question.figures_of(told)).collect();
        let Some(pairs) = pairs else {
            return String::new();
        };
        let side = |at: usize| pairs.iter().map(|pair| pair[at]).collect::<Vec<_>>();
        let largest = pairs.iter().flatten().copied().fold(0.0, f64::max);
        let (from, unit) = figures::range(self.metric(), &side(0), largest);
        let (to, _) = figures::range(self.metric(), &side(1), largest);
        let effect = &effects().next().map(|told| &told.effect);
        let loaded =
            effect.is_some_and(|effect| question.is_load(&effect.factor) && effect.from == "none");
        if loaded {
            format!("(idle {from} {unit} -> loaded {to} {unit})")
        } else {
            format!("({from} -> {to} {unit})")
        }
    }
}

/// Whose figure it is, where hosts have one each.
const fn host(metric: Metric) -> &'static str {
    match metric {
        Metric::SenderCpu => "sender",
        Metric::ReceiverCpu => "receiver",
        Metric::ClientCpu => "client",
        Metric::ServerCpu => "server",
        _ => "",
    }
}
