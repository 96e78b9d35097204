//! Connections among guests: in all, or for each pair of them.

use std::collections::BTreeMap;

use wirecost_model::load::MAX_STREAMS;

use crate::factors::Factors;
use crate::keys;
use crate::read::Reader;

/// What does not work out, by level of the key that counts connections: the guests it was for.
#[derive(Debug, Default)]
pub(crate) struct Division {
    uneven: BTreeMap<usize, u32>,
    too_many: BTreeMap<usize, u32>,
}

/// Whether the plan counts connections twice, which is a fault.
pub(crate) fn check(reader: &mut Reader, factors: &Factors) {
    let written = |levels: &crate::read::Levels<u32>| {
        let level = levels.levels.iter().find(|level| level.written);
        level.map(|level| (level.span.clone(), level.path.clone()))
    };
    if let (Some(_), Some((span, path))) = (
        written(&factors.streams),
        written(&factors.streams_per_guest),
    ) {
        let message = "`streams_per_guest` cannot stand beside `streams`";
        let help = "leave one of them out: `streams` are divided evenly among the guests, \
                    `streams_per_guest` are between each pair of them";
        reader.fault(span, &path, message, "counted already", help);
    }
}

impl Division {
    /// Connections of a cell in all; notes where they do not divide among its guests.
    pub(crate) fn streams(
        &mut self,
        factors: &Factors,
        guests: u32,
        streams: usize,
        per_guest: usize,
    ) -> Option<u32> {
        if factors.counts_per_guest() {
            let each = factors.streams_per_guest.get(per_guest)?.value;
            let all = each * guests;
            if all > MAX_STREAMS {
                self.too_many.entry(per_guest).or_insert(guests);
                return None;
            }
            return Some(all);
        }
        let all = factors.streams.get(streams)?.value;
        if !all.is_multiple_of(guests) {
            self.uneven.entry(streams).or_insert(guests);
            return None;
        }
        Some(all)
    }

    pub(crate) fn report(self, reader: &mut Reader, factors: &Factors) {
        for (level, guests) in self.uneven {
            let Some(level) = factors.streams.get(level) else {
                continue;
            };
            let message = format!(
                "{} `streams` cannot be divided evenly among {guests} guests",
                level.value
            );
            let help = format!(
                "write a multiple of {guests}, or `streams_per_guest` instead, or `exclude` the combination"
            );
            reader.fault(level.span.clone(), &level.path, message, "not even", help);
        }
        for (level, guests) in self.too_many {
            let Some(level) = factors.streams_per_guest.get(level) else {
                continue;
            };
            let message = format!(
                "{guests} guests with {} `streams_per_guest` have {} connections",
                level.value,
                guests * level.value
            );
            let help = format!(
                "a load has at most {MAX_STREAMS}: write fewer, or `exclude` the combination"
            );
            reader.fault(level.span.clone(), &level.path, message, "too many", help);
        }
    }
}

/// Whether a factor means nothing to the plan's cells, because the other way of counting is used.
pub(crate) fn is_unused(factors: &Factors, path: &str) -> bool {
    let unused = if factors.counts_per_guest() {
        keys::STREAMS.path
    } else {
        keys::STREAMS_PER_GUEST.path
    };
    path == unused
}
