//! The loads of a plan: one, a list of loads measured separately, or a mix of several at once.

mod faults;
mod guests;
mod reading;
mod setting;

use std::borrow::Cow;

use wirecost_model::cell::LOAD;
use wirecost_model::ip::IpVersion;
use wirecost_model::load::{Load, LoadLevel, LoadPart, NamedLoad, Workload};

use crate::axis::{Axis, LoadSwitch};
use crate::keys::{self, ALWAYS_FACTORS, Key};
use crate::node::Span;
use crate::read::{Level, Levels, Reader};
pub(crate) use faults::Faults;
pub(crate) use reading::read;
use setting::OptionValue;

const MESSAGE: &str = "message";

/// The word for no load in a list within a mix.
const NONE: &str = "none";

/// The levels of `load`.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    choices: Vec<Choice>,
    /// Whether every level that the plan wrote could be read.
    all_read: bool,
}

/// One level of `load`: the loads that run at the same time.
#[derive(Debug)]
struct Choice {
    /// Label of the level: the load's name, or those of a mix joined: `bulk+ping`.
    label: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    name: String,
    workload: Workload,
    /// For a load that the others are measured with and without, the number of the level without it, 0 or 1.
    without: Option<usize>,
    /// The levels of every option that the workload has.
    options: Vec<(&'static Key, Levels<OptionValue>)>,
    span: Span,
    path: String,
}

impl Loads {
    /// Number of levels; at least one, so that everything else is checked where none could be read.
    pub(crate) fn count(&self) -> usize {
        self.choices.len().max(1)
    }

    /// Whether the names of options need that of their load.
    fn several(&self) -> bool {
        self.choices
            .iter()
            .map(|choice| choice.parts.len())
            .sum::<usize>()
            > 1
    }

    /// The factors in the order of the cross product: the load, where there are several; then for
    /// each load whether it runs, where the plan asks for both, and its options.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let mut axes = Vec::new();
        if self.choices.len() > 1 {
            axes.push(Axis {
                labels: self.choices.iter().map(|one| one.label.clone()).collect(),
                all_read: self.all_read,
                ..Axis::of_words(Cow::Borrowed(LOAD), &keys::LOAD)
            });
        }
        let several = self.several();
        for (number, choice) in self.choices.iter().enumerate() {
            for part in &choice.parts {
                let runs_by = part.without.map(|without| LoadSwitch {
                    axis: axes.len(),
                    without,
                });
                if part.without.is_some() {
                    axes.push(Axis {
                        labels: part.levels(),
                        of_load: Some(number),
                        ..Axis::of_words(Cow::Owned(part.name.clone()), &keys::MIX)
                    });
                }
                axes.extend(part.factors().map(|(key, levels)| Axis {
                    name: if several {
                        Cow::Owned(format!("{}.{}", part.name, key.name()))
                    } else {
                        Cow::Borrowed(key.name())
                    },
                    key,
                    labels: levels.levels.iter().map(|l| l.label.clone()).collect(),
                    all_read: levels.all_read,
                    read: |reader, entry| setting::read(reader, entry).as_ref().map(setting::label),
                    of_load: Some(number),
                    runs_by,
                }));
            }
        }
        axes
    }

    /// A fault where a lab's load names a server or path: a lab does not reach these.
    pub(crate) fn in_a_lab(&self, reader: &mut Reader) {
        let parts = self.choices.iter().flat_map(|choice| &choice.parts);
        for (key, levels) in parts.flat_map(|part| &part.options) {
            let servers = levels.levels.iter().filter(|level| {
                key.name() == setting::TARGET && !matches!(level.value, OptionValue::Word(_))
            });
            for level in servers {
                let what = match level.value {
                    OptionValue::Path(_) => {
                        "a path, whose I/O does not go over the network of a lab or a tunnel"
                    }
                    _ => "a server that the hosts of a lab do not reach",
                };
                let message = format!("`{}` is {what}", key.name());
                let help =
                    "leave it out for the lab's own target, or name existing hosts (`hosts`)";
                reader.fault(
                    level.span.clone(),
                    &level.path,
                    message,
                    "not in a lab",
                    help,
                );
            }
        }
    }

    /// A fault where a load that is a factor has the name of another factor.
    pub(crate) fn check_unique_names(&self, reader: &mut Reader, axes: &[Axis]) {
        let parts = self.choices.iter().flat_map(|choice| &choice.parts);
        for part in parts.filter(|part| part.without.is_some()) {
            let name = &part.name;
            if axes.iter().filter(|axis| axis.name == *name).count() > 1 {
                let message = format!("`{name}` cannot be a factor: another one has that name");
                let help = format!(
                    "the others are measured without it and with it, so `{name}` is a factor: give the load another name"
                );
                reader.fault(part.span.clone(), &part.path, message, "taken", help);
            }
        }
    }

    /// The levels as the record has them.
    pub(crate) fn levels(&self) -> Vec<LoadLevel> {
        let part = |part: &Part| LoadPart {
            name: part.name.clone(),
            workload: part.workload,
            levels: part.levels(),
            options: part
                .factors()
                .map(|(key, levels)| {
                    let labels = levels.levels.iter().map(|level| level.label.clone());
                    (key.name().to_owned(), labels.collect())
                })
                .collect(),
        };
        let level = |choice: &Choice| LoadLevel {
            label: choice.label.clone(),
            parts: choice.parts.iter().map(part).collect(),
        };
        self.choices.iter().map(level).collect()
    }

    /// The loads of a cell: those of level `number` of `load`, with the levels of their options.
    /// `picked` has a level number for each of [`Self::axes`]; `guests` is the number of guests per
    /// host.
    pub(crate) fn cell(
        &self,
        number: usize,
        picked: &[usize],
        guests: u32,
        faults: &mut Faults,
    ) -> Vec<NamedLoad> {
        let Some(choice) = self.choices.get(number) else {
            return Vec::new();
        };
        let first = usize::from(self.choices.len() > 1);
        let before = self.choices[..number].iter().map(Choice::axes);
        let mut picked = picked
            .iter()
            .copied()
            .skip(first + before.sum::<usize>())
            .chain(std::iter::repeat(0));
        let mut loads: Vec<NamedLoad> = Vec::with_capacity(choice.parts.len());
        let mut limits = Vec::new();
        for part in &choice.parts {
            let runs = match part.without {
                Some(without) => picked.next() != Some(without),
                None => true,
            };
            let mut load = Load::new(part.workload);
            let mut total = None;
            let mut places = Vec::new();
            for (key, levels) in &part.options {
                let level = if is_factor(key, levels) {
                    levels.get(picked.next().unwrap_or_default())
                } else {
                    levels.get(0)
                };
                let Some(level) = level else { continue };
                level.value.apply(key.name(), &mut load, &mut total);
                if level.written {
                    places.push((key.name(), level.span.clone(), level.path.clone()));
                }
            }
            if !runs {
                continue;
            }
            if let (Some(_), Some(storage)) = (&load.path, &mut load.storage)
                && places.iter().all(|(name, ..)| *name != setting::SIZE)
            {
                // Size 0 is the whole file or device.
                storage.size = 0;
            }
            faults.count(part, &mut load, guests, &places);
            faults.judge(part, &mut load, total, &places);
            faults.too_little(part, &load, guests, &places);
            // Other loads of a mix with a migration run until its machines have moved.
            if !load.workload.is_migration() {
                limits.push((part, load.limit.is_some(), places));
            }
            loads.push(NamedLoad {
                name: part.name.clone(),
                load,
            });
        }
        faults.endless(&limits);
        if loads.is_empty() {
            faults.idle(choice);
        }
        loads
    }

    /// Checks a cell's loads, those of level `number` of `load`, against the guests' MTU and IP version.
    pub(crate) fn check_fit(
        &self,
        number: usize,
        loads: &[NamedLoad],
        network: (u32, IpVersion),
        faults: &mut Faults,
    ) {
        let parts = self.choices.get(number).map(|choice| &choice.parts[..]);
        for NamedLoad { name, load } in loads {
            let Some(part) = parts.and_then(|parts| parts.iter().find(|one| one.name == *name))
            else {
                continue;
            };
            faults.too_long(load, network, part.place_of_message(load.request));
        }
    }
}

impl Choice {
    /// Number of factors of this level in [`Loads::axes`].
    fn axes(&self) -> usize {
        let of = |part: &Part| usize::from(part.without.is_some()) + part.factors().count();
        self.parts.iter().map(of).sum()
    }
}

impl Part {
    /// The labels of a load that the others are measured with and without, in the plan's order;
    /// empty for any other load.
    fn levels(&self) -> Vec<String> {
        let name = self.workload.name();
        let labels: &[&str] = match self.without {
            None => &[],
            Some(0) => &[NONE, name],
            Some(_) => &[name, NONE],
        };
        labels.iter().map(|&label| label.to_owned()).collect()
    }

    /// Where the message size of so many bytes is written, or else the load.
    fn place_of_message(&self, bytes: u32) -> (Span, String) {
        let mut options = self.options.iter();
        let levels = options
            .find(|(key, _)| key.name() == MESSAGE)
            .map(|(_, levels)| &levels.levels[..]);
        let says = |level: &&Level<OptionValue>| {
            let mut load = Load::new(self.workload);
            level.value.apply(MESSAGE, &mut load, &mut None);
            level.written && load.request == bytes
        };
        match levels.unwrap_or_default().iter().find(says) {
            Some(level) => (level.span.clone(), level.path.clone()),
            None => (self.span.clone(), self.path.clone()),
        }
    }

    /// The options that are factors, with their levels.
    fn factors(&self) -> impl Iterator<Item = (&'static Key, &Levels<OptionValue>)> {
        let options = self.options.iter().map(|(key, levels)| (*key, levels));
        options.filter(|(key, levels)| is_factor(key, levels))
    }
}

/// Whether an option is a factor of the run: written in the plan, or characteristic of such a load.
fn is_factor(key: &Key, levels: &Levels<OptionValue>) -> bool {
    ALWAYS_FACTORS.contains(&key.name()) || levels.levels.iter().any(|level| level.written)
}
