//! Counts a load's flows: in total, or between each pair of guests.

use wirecost_model::load::{Load, MAX_STREAMS, Workload};

use super::{Faults, Loads, Part};
use crate::node::Span;
use crate::read::{Levels, Reader};

/// A workload's options for the number of flows in total, and between each pair of guests.
const fn names(workload: Workload) -> (&'static str, &'static str) {
    if workload.is_storage() {
        ("connections", "connections_per_guest")
    } else if workload.is_migration() {
        ("machines", "machines_per_guest")
    } else {
        ("streams", "streams_per_guest")
    }
}

impl Loads {
    /// Decides for each load whether its flows are counted in total or for each pair of guests, and
    /// keeps only the option that counts them so. Both at once are a fault.
    pub(crate) fn resolve_stream_counts(&mut self, reader: &mut Reader, guests: &Levels<u32>) {
        let several = guests.levels.iter().any(|level| level.value > 1);
        for part in self.choices.iter_mut().flat_map(|choice| &mut choice.parts) {
            let (all, each) = names(part.workload);
            let (in_all, per_guest) = (part.written(all), part.written(each));
            if let (Some(_), Some((span, path))) = (&in_all, &per_guest) {
                let message = format!("`{each}` cannot be used with `{all}`");
                let help = format!(
                    "leave one of them out: `{all}` are divided evenly among the guests, `{each}` are between each \
                     pair of them"
                );
                reader.fault(span.clone(), path, message, "counted already", help);
            }
            let counts_per_guest = per_guest.is_some() || (several && in_all.is_none());
            let unused = if counts_per_guest { all } else { each };
            part.options.retain(|(key, _)| key.name() != unused);
        }
    }
}

impl Part {
    /// Where the plan writes an option.
    fn written(&self, option: &str) -> Option<(Span, String)> {
        let (_, levels) = self.options.iter().find(|(key, _)| key.name() == option)?;
        let level = levels.levels.iter().find(|level| level.written)?;
        Some((level.span.clone(), level.path.clone()))
    }

    fn counts_per_guest(&self) -> bool {
        let mut names = self.options.iter().map(|(key, _)| key.name());
        let (_, per_guest) = self::names(self.workload);
        names.any(|name| name == per_guest)
    }
}

impl Faults {
    /// Sets a load's flows to those of all guests together. Notes where these are too many, or
    /// cannot be divided evenly.
    pub(super) fn count(
        &mut self,
        part: &Part,
        load: &mut Load,
        guests: u32,
        places: &[(&str, Span, String)],
    ) {
        let (streams, per_guest) = names(part.workload);
        if part.counts_per_guest() {
            let each = load.streams;
            let all = each.saturating_mul(guests);
            load.streams = all.min(MAX_STREAMS);
            if all > MAX_STREAMS {
                let message =
                    format!("{guests} guests with {each} `{per_guest}` have {all} {streams}");
                let help = format!(
                    "a load has at most {MAX_STREAMS}: write fewer, or `exclude` the combination"
                );
                self.note(part, per_guest, places, [message, "too many".into(), help]);
            }
        } else if !load.streams.is_multiple_of(guests) {
            let message = format!(
                "{} `{streams}` cannot be divided evenly among {guests} guests",
                load.streams
            );
            let help = format!(
                "write a multiple of {guests}, or `{per_guest}` instead, or `exclude` the combination"
            );
            self.note(part, streams, places, [message, "not even".into(), help]);
        }
    }
}
