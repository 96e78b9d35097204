//! The loads of a plan: one, a list of which each is measured by itself, or a mix of several at once.

mod guests;
mod setting;

use std::borrow::Cow;
use std::collections::BTreeSet;

use wirecost_model::cell::LOAD;
use wirecost_model::load::{Limit, Load, LoadLevel, LoadPart, NamedLoad, Workload};

use crate::factors::Axis;
use crate::keys::{self, Key, LOAD_NAME_MAX, TELLING, options};
use crate::read::{Entry, Fields, Levels, Reader, join, quoted};
use crate::values::word;
use crate::yaml::{Node, Span, Value};
use setting::{LIMIT, Setting};

/// The levels of `load`.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    choices: Vec<Choice>,
    /// Whether every level that the plan wrote could be read.
    sound: bool,
}

/// One level: what runs at once.
#[derive(Debug)]
struct Choice {
    /// The workload's name, or those of the parts: `bulk+ping`.
    label: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    name: String,
    workload: Workload,
    /// The levels of every option that the workload has.
    options: Vec<(&'static Key, Levels<Setting>)>,
    span: Span,
    path: String,
}

/// Reads `load`.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>) -> Loads {
    let Some(entry) = root.get(reader, &keys::LOAD) else {
        return Loads::default();
    };
    let faults = reader.faults.len();
    let items = entry.items(reader);
    let choices: Vec<Choice> = items
        .iter()
        .filter_map(|item| choice(reader, item))
        .collect();
    clashes(reader, &choices);
    Loads {
        choices,
        sound: reader.faults.len() == faults,
    }
}

/// A workload's name, a mapping of one workload to its options, or a mix.
fn choice(reader: &mut Reader, entry: &Entry<'_>) -> Option<Choice> {
    let is_mix = |pairs: &[(Node, Node)]| pairs.iter().any(|(key, _)| key.text() == Some("mix"));
    let parts = match &entry.node.value {
        Value::Map(pairs) if is_mix(pairs) => mix(reader, entry)?,
        _ => vec![part(reader, entry, None)?],
    };
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    Some(Choice {
        label: names.join("+"),
        parts,
    })
}

/// One load; by its workload's name where it has none of its own.
fn part(reader: &mut Reader, entry: &Entry<'_>, name: Option<&str>) -> Option<Part> {
    let (workload, node) = match &entry.node.value {
        Value::Map(pairs) => {
            if pairs.is_empty() {
                reader.wrong(entry, "names no load");
            }
            // Unknown workloads are its faults.
            Fields::open(reader, keys::LOAD.path, &entry.path, &entry.node)?;
            let known = |(key, node): &'_ (Node, Node)| {
                let text = key.text()?;
                Some((Workload::by_name(text)?, key.span.clone(), node.clone()))
            };
            let mut named = pairs.iter().filter_map(known);
            let (workload, _, node) = named.next()?;
            if let Some((other, span, _)) = named.next() {
                let message = format!("`{}` names two loads", entry.path);
                let help = format!(
                    "a list measures each by itself: `[{{ {workload}: ... }}, {{ {other}: ... }}]`; both at once are \
                     `{{ mix: {{ one: ..., other: ... }} }}`"
                );
                reader.fault(span, &entry.path, message, "the second", help);
                return None;
            }
            (workload, Some(node))
        }
        _ => (Workload::by_name(word(reader, entry)?)?, None),
    };
    let path = join(&entry.path, workload.name());
    let fields = match &node {
        None => Fields::absent(),
        Some(node) => {
            let opened = Fields::open(reader, &section(workload), &path, node);
            if opened.is_none() && node.value != Value::Refused {
                let key = keys::keys()
                    .iter()
                    .find(|key| key.path == section(workload))?;
                reader.wrong(&Entry::at(key, path.clone(), node), "not a mapping");
            }
            opened?
        }
    };
    let options = options(workload)
        .iter()
        .map(|key| {
            let entry = fields.get(reader, key);
            let levels = entry.map(|entry| entry.levels(reader, setting::read, setting::label));
            let unread = Levels {
                levels: Vec::new(),
                sound: false,
            };
            (key, levels.unwrap_or(unread))
        })
        .collect();
    Some(Part {
        name: name.unwrap_or(workload.name()).to_owned(),
        workload,
        options,
        span: entry.node.span.clone(),
        path: entry.path.clone(),
    })
}

fn section(workload: Workload) -> String {
    format!("{}.{}", keys::LOAD.path, workload.name())
}

/// `{ mix: { NAME: LOAD, ... } }`.
fn mix(reader: &mut Reader, entry: &Entry<'_>) -> Option<Vec<Part>> {
    let fields = Fields::open(reader, keys::LOAD.path, &entry.path, &entry.node)?;
    let mix = fields.get(reader, &keys::MIX)?;
    if let Value::Map(pairs) = &entry.node.value
        && let Some((other, _)) = pairs.iter().find(|(key, _)| {
            key.text()
                .is_some_and(|key| Workload::by_name(key).is_some())
        })
    {
        let message = format!("`{}` names a load beside its mix", entry.path);
        let help = "what runs at once with the others is one of the mix: `{ mix: { bulk: tcp-stream, ping: tcp-rr } }`";
        reader.fault(
            other.span.clone(),
            &entry.path,
            message,
            "outside of the mix",
            help,
        );
    }
    let Value::Map(pairs) = &mix.node.value else {
        reader.wrong(&mix, "not a mapping");
        return None;
    };
    if pairs.len() < 2 && mix.node.value != Value::Refused {
        let message = format!("`{}` has fewer than two loads", mix.path);
        let help = "a mix is several loads at once: `{ bulk: tcp-stream, ping: tcp-rr }`";
        reader.fault(
            mix.node.span.clone(),
            &mix.path,
            message,
            "one is no mix",
            help,
        );
    }
    let mut parts = Vec::new();
    let mut sound = true;
    for (key, node) in pairs {
        let Some(name) = name(reader, &mix.path, key) else {
            sound = false;
            continue;
        };
        let entry = Entry::at(&keys::LOAD, join(&mix.path, &name), node);
        let nested = matches!(&node.value, Value::Map(pairs) if pairs.iter().any(|(key, _)| key.text() == Some("mix")));
        if nested {
            let message = format!("`{}` is a mix within a mix", entry.path);
            let help = "name all loads in the outer one: they run at once";
            reader.fault(node.span.clone(), &entry.path, message, "a mix again", help);
            sound = false;
            continue;
        }
        match part(reader, &entry, Some(&name)) {
            Some(part) => parts.push(part),
            None => sound = false,
        }
    }
    (sound && parts.len() > 1).then_some(parts)
}

/// The name of a load of a mix.
fn name(reader: &mut Reader, path: &str, key: &Node) -> Option<String> {
    let name = key.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let sound = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(fits)
        && name.len() <= LOAD_NAME_MAX;
    if !sound {
        let message = format!("{} cannot name a load", quoted(name));
        let help = format!(
            "a name has letters, digits, `_` and `-`, begins with a letter or digit, and has at most {LOAD_NAME_MAX} characters"
        );
        reader.fault(
            key.span.clone(),
            &join(path, name),
            message,
            "not such a name",
            help,
        );
    }
    sound.then(|| name.to_owned())
}

/// Loads are told apart by their names.
fn clashes(reader: &mut Reader, choices: &[Choice]) {
    let mut known = BTreeSet::new();
    for part in choices.iter().flat_map(|choice| &choice.parts) {
        if !known.insert(&part.name) {
            let message = format!("two loads are called `{}`", part.name);
            let help = "options that differ are lists of one load (`{ tcp-rr: { streams: [1, 64] } }`); loads of two mixes \
                        have names of their own";
            reader.fault(part.span.clone(), &part.path, message, "the second", help);
        }
    }
}

impl Loads {
    /// How many levels there are to go through; at least one, so that everything else is checked where none could be
    /// read.
    pub(crate) fn count(&self) -> usize {
        self.choices.len().max(1)
    }

    /// Whether options have to say which load they are of.
    fn several(&self) -> bool {
        self.choices
            .iter()
            .map(|choice| choice.parts.len())
            .sum::<usize>()
            > 1
    }

    /// The options that are factors, with the number of the level of `load` that each belongs to.
    fn factors(&self) -> impl Iterator<Item = (usize, &Part, &'static Key, &Levels<Setting>)> {
        self.choices
            .iter()
            .enumerate()
            .flat_map(|(number, choice)| {
                choice.parts.iter().flat_map(move |part| {
                    part.options
                        .iter()
                        .filter(|(key, levels)| is_factor(key, levels))
                        .map(move |(key, levels)| (number, part, *key, levels))
                })
            })
    }

    /// The factors in the order of the cross product: which load, where there are several, then the options of each.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let mut axes = Vec::new();
        if self.choices.len() > 1 {
            axes.push(Axis {
                name: Cow::Borrowed(LOAD),
                key: &keys::LOAD,
                labels: self.choices.iter().map(|one| one.label.clone()).collect(),
                sound: self.sound,
                read: |_, entry| entry.node.text().map(str::to_owned),
                of_load: None,
            });
        }
        let several = self.several();
        axes.extend(self.factors().map(|(number, part, key, levels)| Axis {
            name: if several {
                Cow::Owned(format!("{}.{}", part.name, key.name()))
            } else {
                Cow::Borrowed(key.name())
            },
            key,
            labels: levels.levels.iter().map(|l| l.label.clone()).collect(),
            sound: levels.sound,
            read: |reader, entry| setting::read(reader, entry).as_ref().map(setting::label),
            of_load: Some(number),
        }));
        axes
    }

    /// What the plan says, for the record.
    pub(crate) fn levels(&self) -> Vec<LoadLevel> {
        let part = |part: &Part| LoadPart {
            name: part.name.clone(),
            workload: part.workload,
            options: part
                .options
                .iter()
                .filter(|(key, levels)| is_factor(key, levels))
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

    /// The loads of a cell: of the level `number` of `load`, with the levels of its options. `picked` has a number for
    /// each of [`Self::axes`]; `guests` is how many each host has.
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
        let before = self.factors().filter(|(of, ..)| *of < number).count();
        let mut next = first + before;
        let mut loads: Vec<NamedLoad> = Vec::with_capacity(choice.parts.len());
        let mut limits = Vec::new();
        for part in &choice.parts {
            let mut load = Load::new(part.workload);
            let mut total = None;
            let mut places = Vec::new();
            for (key, levels) in &part.options {
                let level = if is_factor(key, levels) {
                    next += 1;
                    levels.get(picked.get(next - 1).copied().unwrap_or_default())
                } else {
                    levels.get(0)
                };
                let Some(level) = level else { continue };
                level.value.apply(key.name(), &mut load, &mut total);
                if level.written {
                    places.push((key.name(), level.span.clone(), level.path.clone()));
                }
            }
            faults.count(part, &mut load, guests, &places);
            faults.judge(part, &mut load, total, &places);
            faults.too_little(part, &load, guests, &places);
            limits.push((part, load.limit.is_some(), places));
            loads.push(NamedLoad {
                name: part.name.clone(),
                load,
            });
        }
        faults.endless(&limits);
        loads
    }
}

/// Where a load's options were written, by name.
type Places = Vec<(&'static str, Span, String)>;

/// Whether an option is a factor of the run: said by the plan, or what such a load is known by.
fn is_factor(key: &Key, levels: &Levels<Setting>) -> bool {
    TELLING.contains(&key.name()) || levels.levels.iter().any(|level| level.written)
}

/// What no load can have, each thing once, whatever the number of cells with it.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<Fault>,
}

#[derive(Debug, PartialEq)]
struct Fault {
    span: Span,
    path: String,
    /// Message, label and help.
    words: [String; 3],
}

impl Faults {
    /// Resolves the rate of all flows, and holds a load against the rules of all loads.
    fn judge(
        &mut self,
        part: &Part,
        load: &mut Load,
        total: Option<wirecost_model::load::Rate>,
        places: &[(&str, Span, String)],
    ) {
        let mut rate_option = "rate";
        if let Some(total) = total {
            if load.rate.is_some() {
                self.add(
                    part,
                    "total_rate",
                    "`rate` and `total_rate` are two ways to say how fast",
                    places,
                );
            }
            load.rate = Some(setting::share(total, load.streams));
            rate_option = "total_rate";
        }
        for fault in load.faults() {
            let option = if fault.option == "rate" {
                rate_option
            } else {
                fault.option
            };
            self.add(part, option, &fault.message, places);
        }
    }

    /// A limit is divided among the guests.
    fn too_little(
        &mut self,
        part: &Part,
        load: &Load,
        guests: u32,
        places: &[(&str, Span, String)],
    ) {
        if let Some(Limit::Bytes(all) | Limit::Transactions(all)) = load.limit
            && all < u64::from(guests)
        {
            let message = format!("a limit of {all} leaves nothing for some of {guests} guests");
            self.add(part, LIMIT, &message, places);
        }
    }

    /// What runs at once is over at once: of a mix every load ends by itself, or none does.
    fn endless(&mut self, limits: &[(&Part, bool, Places)]) {
        let Some((without, ..)) = limits.iter().find(|(_, limited, _)| !limited) else {
            return;
        };
        for (part, _, places) in limits.iter().filter(|(_, limited, _)| *limited) {
            let message = format!(
                "`{}` has a limit and `{}` beside it has none",
                part.name, without.name
            );
            self.note(
                part,
                LIMIT,
                places,
                [
                    message,
                    "this ends, and the other does not".to_owned(),
                    "give every load of the mix a `limit`, or none".to_owned(),
                ],
            );
        }
    }

    fn add(&mut self, part: &Part, option: &str, message: &str, places: &[(&str, Span, String)]) {
        let words = [
            message,
            "no load can have this",
            "change one of them, or `exclude` the combination",
        ];
        self.note(part, option, places, words.map(str::to_owned));
    }

    fn note(
        &mut self,
        part: &Part,
        option: &str,
        places: &[(&str, Span, String)],
        words: [String; 3],
    ) {
        let place = places.iter().find(|(name, ..)| *name == option);
        let (span, path) = match place {
            Some((_, span, path)) => (span.clone(), path.clone()),
            None => (part.span.clone(), part.path.clone()),
        };
        let fault = Fault { span, path, words };
        if !self.found.contains(&fault) {
            self.found.push(fault);
        }
    }

    pub(crate) fn report(self, reader: &mut Reader) {
        for Fault { span, path, words } in self.found {
            let [message, label, help] = words;
            reader.fault(span, &path, message, label, help);
        }
    }
}
