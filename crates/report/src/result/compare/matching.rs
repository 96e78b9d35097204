//! Matches the cells of two runs by the levels of all factors, the constant ones included.

use std::collections::{BTreeMap, VecDeque};

use wirecost_model::cell::{Cell, Experiment, Factor, Network};
use wirecost_model::plan::Levels;

use super::NotComparedReason;
use wirecost_answer::names as words;

const RATE: &str = "underlay.rate";

/// A cell with all its levels, including those of factors that its record's version did not have yet.
#[derive(Debug, Clone)]
pub(super) struct KeyedCell<'a> {
    pub(super) cell: &'a Cell,
    pub(super) levels: Levels,
    /// The levels by which the cell is matched.
    key: Levels,
}

/// Two cells with the same levels, or with levels that differ in the line's rate alone.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) before: &'a Cell,
    pub(super) after: &'a Cell,
    pub(super) levels: Levels,
}

/// A factor that only one of the runs has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnsharedFactor {
    pub(super) key: String,
    /// Whether the run before lacks the factor; else the run after does.
    pub(super) unknown_before: bool,
    pub(super) what: MissingFactor,
}

/// What a factor means for the run that lacks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MissingFactor {
    /// The cells of that run had these levels, as what was built shows.
    Had(Vec<String>),
    /// The other run has this level in every cell: cells are matched without the factor.
    Constant(String),
    /// The other run varies the factor: its cells have no counterpart.
    Varied,
}

/// The cells of two runs, matched.
#[derive(Debug)]
pub(super) struct MatchedCells<'a> {
    pub(super) pairs: Vec<Pair<'a>>,
    pub(super) only_before: Vec<KeyedCell<'a>>,
    pub(super) only_after: Vec<KeyedCell<'a>>,
    pub(super) unshared: Vec<UnsharedFactor>,
}

/// Matches the cells of two runs; where several cells of a run have the same levels, in their order.
pub(super) fn match_cells<'a>(before: &'a Experiment, after: &'a Experiment) -> MatchedCells<'a> {
    let mut unshared = unshared(before, after, true);
    unshared.extend(self::unshared(after, before, false));
    let (before, after) = (
        keyed(before, after, &unshared),
        keyed(after, before, &unshared),
    );
    let (mut pairs, before, after) = join(before, after, |keyed| keyed.key.clone());
    // The cells that are left may be the same cell on another line, which is reported as such.
    let (other_rate, only_before, only_after) = join(before, after, |keyed| {
        let mut key = keyed.key.clone();
        key.remove(RATE);
        key
    });
    pairs.extend(other_rate);
    pairs.sort_by_key(|pair| pair.after.index);
    MatchedCells {
        pairs,
        only_before,
        only_after,
        unshared,
    }
}

/// The factors with more than one level in the two runs together.
pub(super) fn varied_factors(before: &Experiment, after: &Experiment) -> Vec<Factor> {
    let mut factors = after.factors.clone();
    for factor in &before.factors {
        match factors.iter_mut().find(|other| other.key == factor.key) {
            Some(other) => {
                for level in &factor.levels {
                    if !other.levels.contains(level) {
                        other.levels.push(level.clone());
                    }
                }
            }
            None => factors.push(factor.clone()),
        }
    }
    factors.retain(|factor| factor.levels.len() > 1);
    factors
}

/// The level of a factor that a later version of the record introduced, from what was built:
/// `None` where that does not show it.
fn built(cell: &Cell, key: &str) -> Option<Built> {
    let network = &cell.network;
    match key {
        "guest_ip" => Some(Built::Level(network.guest_ip.key().into())),
        "datapath" => Some(Built::Level(network.datapath.key().into())),
        "topology" | "acl" => {
            let level = match key {
                "topology" => network.logical.topology.key(),
                _ => network.logical.acl.key(),
            };
            let by_ovn = network.datapath.is_ovn();
            Some(if by_ovn {
                Built::Level(level.into())
            } else {
                Built::Meaningless
            })
        }
        // Without the factor, the encapsulation's label tells whether a UDP checksum is computed.
        "udp_checksum" => Some(match network.encapsulation.udp() {
            Some(udp) if !udp.udp_checksum => Built::Level("off".into()),
            _ => Built::Meaningless,
        }),
        "guests" => Some(Built::Level(network.guests.to_string())),
        "streams_per_guest" | "connections_per_guest" => Some(Built::Meaningless),
        "underlay.links" => Some(Built::Level(network.links.to_string())),
        "underlay.ip" => {
            let level = Built::Level(network.underlay_ip.key().into());
            let tunnel = network.encapsulation.is_tunnel();
            Some(if tunnel { level } else { Built::Meaningless })
        }
        "steering.queues" => Some(Built::Level(network.steering.queues.to_string())),
        "steering.rps" => Some(Built::Level(network.steering.rps.to_string())),
        _ => None,
    }
}

enum Built {
    Level(String),
    /// The factor does not apply to the cell.
    Meaningless,
}

impl Built {
    fn level(self) -> Option<String> {
        match self {
            Self::Level(level) => Some(level),
            Self::Meaningless => None,
        }
    }
}

/// The factors of `knows` that `other` lacks.
fn unshared(other: &Experiment, knows: &Experiment, unknown_before: bool) -> Vec<UnsharedFactor> {
    let has = |key: &str| other.factors.iter().any(|factor| factor.key == key);
    let mut unshared = Vec::new();
    for factor in knows.factors.iter().filter(|factor| !has(&factor.key)) {
        let had: Option<Vec<Built>> = other
            .cells
            .iter()
            .map(|cell| built(cell, &factor.key))
            .collect();
        let what = match (had, factor.levels.as_slice()) {
            (Some(had), _) => {
                let mut had: Vec<String> = had.into_iter().filter_map(Built::level).collect();
                had.sort();
                had.dedup();
                MissingFactor::Had(had)
            }
            (None, [only]) => MissingFactor::Constant(only.clone()),
            (None, _) => MissingFactor::Varied,
        };
        unshared.push(UnsharedFactor {
            key: factor.key.clone(),
            unknown_before,
            what,
        });
    }
    unshared
}

fn keyed<'a>(
    own: &'a Experiment,
    other: &Experiment,
    unshared: &[UnsharedFactor],
) -> Vec<KeyedCell<'a>> {
    let unknown = |factor: &&Factor| own.factors.iter().all(|known| known.key != factor.key);
    own.cells
        .iter()
        .map(|cell| {
            let mut levels = cell.levels.clone();
            for factor in other.factors.iter().filter(unknown) {
                if let Some(Built::Level(level)) = built(cell, &factor.key) {
                    levels.insert(factor.key.clone(), level);
                }
            }
            let mut key = levels.clone();
            for factor in unshared {
                if matches!(factor.what, MissingFactor::Constant(_)) {
                    key.remove(&factor.key);
                }
            }
            KeyedCell { cell, levels, key }
        })
        .collect()
}

type Joined<'a> = (Vec<Pair<'a>>, Vec<KeyedCell<'a>>, Vec<KeyedCell<'a>>);

fn join<'a>(
    before: Vec<KeyedCell<'a>>,
    after: Vec<KeyedCell<'a>>,
    key: impl Fn(&KeyedCell<'a>) -> Levels,
) -> Joined<'a> {
    let mut waiting: BTreeMap<Levels, VecDeque<KeyedCell<'a>>> = BTreeMap::new();
    for keyed in before {
        waiting.entry(key(&keyed)).or_default().push_back(keyed);
    }
    let (mut pairs, mut only_after) = (Vec::new(), Vec::new());
    for keyed in after {
        match waiting.get_mut(&key(&keyed)).and_then(VecDeque::pop_front) {
            Some(found) => pairs.push(Pair {
                before: found.cell,
                after: keyed.cell,
                levels: keyed.levels,
            }),
            None => only_after.push(keyed),
        }
    }
    let mut only_before: Vec<KeyedCell<'a>> = waiting.into_values().flatten().collect();
    only_before.sort_by_key(|keyed| keyed.cell.index);
    (pairs, only_before, only_after)
}

impl Pair<'_> {
    /// Why the figures of the two cells cannot be compared; `None` where they can.
    pub(super) fn not_comparable(&self) -> Option<(NotComparedReason, String)> {
        let (before, after) = (self.before, self.after);
        if before.network.rate != after.network.rate {
            let rate = |network: &Network| {
                network.rate.map_or_else(
                    || "no rate limit".to_owned(),
                    wirecost_model::units::format_rate,
                )
            };
            return Some((
                NotComparedReason::LineRate,
                format!(
                    "the line differs: {} before, {} after",
                    rate(&before.network),
                    rate(&after.network)
                ),
            ));
        }
        if before.network.transit != after.network.transit {
            return Some((
                NotComparedReason::BuiltDifferently,
                format!(
                    "what lies between the hosts differs: {} before, {} after",
                    before.network.transit, after.network.transit
                ),
            ));
        }
        if before.guest_mtu != after.guest_mtu {
            return Some((
                NotComparedReason::BuiltDifferently,
                format!(
                    "{} came to {} before and to {} after",
                    words::factor("guest_mtu"),
                    before.guest_mtu,
                    after.guest_mtu
                ),
            ));
        }
        // How the hosts share the cores is no property of a cell; it is reported among the differences.
        let network = |cell: &Cell| Network {
            cores: after.network.cores,
            ..cell.network.clone()
        };
        let same = network(before) == network(after)
            && before.offload == after.offload
            && before.loads == after.loads
            && before.settings == after.settings;
        (!same).then(|| {
            (
                NotComparedReason::BuiltDifferently,
                "the same names of levels stand for different settings: see the cells in run.json of both"
                    .into(),
            )
        })
    }
}
