//! A level of a load's option: how it is read, labelled and applied to a load.

use std::time::Duration;

use wirecost_model::load::{
    Backing, Direction, DirtyOrder, Fallback, Limit, Load, Migration, MoveEngine, NbdUri, Pattern,
    Rate, Receiving, Segmentation, Sending, Storage, WaitMode,
};
use wirecost_model::units::{format_bytes, format_rate};

use crate::keys::{Key, Kind};
use crate::read::{Entry, Reader};
use crate::values::{
    as_word, bytes, congestion, integer, integer32, nbd_uri, number, path, rate, size, switch, word,
};

/// The option after which a load ends by itself.
pub(super) const LIMIT: &str = "limit";
/// The option that names the storage that is loaded.
pub(super) const TARGET: &str = "target";
/// The option for the number of bytes of it that are used.
pub(super) const SIZE: &str = "size";

/// The level of an option.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OptionValue {
    /// One of the key's words.
    Word(&'static str),
    /// `on` or `off`.
    Switch(bool),
    /// A number, or a size in bytes, by the kind.
    Whole(u32, Kind),
    /// The limit after which the load ends.
    Limit(Limit),
    /// A rate of bits or of requests per second.
    Rate(Rate),
    /// A duration, in seconds.
    Seconds(f64),
    /// Name of a congestion control.
    Name(String),
    /// An NBD server.
    Server(NbdUri),
    /// Path of a file, a device or a directory.
    Path(String),
}

/// Reads a level according to the kind of its key.
pub(super) fn read(reader: &mut Reader, entry: &Entry<'_>) -> Option<OptionValue> {
    let key = entry.key;
    if is_switch(key) {
        return switch(reader, entry).map(OptionValue::Switch);
    }
    if key.kind != Kind::Word
        && let Some(word) = as_word(entry)
    {
        return Some(OptionValue::Word(word));
    }
    if key.name() == LIMIT {
        let limit = match key.kind {
            Kind::Size => Limit::Bytes(bytes(reader, entry)?),
            _ => Limit::Transactions(integer(reader, entry)?),
        };
        return Some(OptionValue::Limit(limit));
    }
    match key.kind {
        Kind::Whole => integer32(reader, entry).map(|whole| OptionValue::Whole(whole, key.kind)),
        Kind::Size => size(reader, entry).map(|bytes| OptionValue::Whole(bytes, key.kind)),
        Kind::Rate => rate(reader, entry).map(|bits| OptionValue::Rate(Rate::BitsPerSecond(bits))),
        Kind::PerSecond => {
            number(reader, entry).map(|each| OptionValue::Rate(Rate::RequestsPerSecond(each)))
        }
        Kind::Seconds => number(reader, entry).map(OptionValue::Seconds),
        Kind::Congestion => congestion(reader, entry).map(OptionValue::Name),
        Kind::Target if entry.node.text().is_some_and(|text| text.starts_with('/')) => {
            path(reader, entry).map(OptionValue::Path)
        }
        Kind::Target => nbd_uri(reader, entry).map(OptionValue::Server),
        Kind::Path => path(reader, entry).map(OptionValue::Path),
        _ => word(reader, entry).map(OptionValue::Word),
    }
}

fn is_switch(key: &Key) -> bool {
    key.words == ["on", "off"]
}

/// The label of the level in records.
pub(super) fn label(setting: &OptionValue) -> String {
    match setting {
        OptionValue::Word(word) => (*word).to_owned(),
        OptionValue::Switch(on) => if *on { "on" } else { "off" }.to_owned(),
        OptionValue::Whole(bytes, Kind::Size) => format_bytes(u64::from(*bytes)),
        OptionValue::Whole(number, _) => number.to_string(),
        OptionValue::Limit(Limit::Bytes(bytes)) => format_bytes(*bytes),
        OptionValue::Limit(Limit::Transactions(count)) => count.to_string(),
        OptionValue::Limit(Limit::Time(time)) => format_seconds(time.as_secs_f64()),
        OptionValue::Rate(Rate::BitsPerSecond(bits)) => format_rate(*bits),
        OptionValue::Rate(Rate::RequestsPerSecond(requests)) => requests.to_string(),
        OptionValue::Seconds(seconds) => format_seconds(*seconds),
        OptionValue::Name(name) => name.clone(),
        OptionValue::Server(uri) => uri.to_string(),
        OptionValue::Path(path) => path.clone(),
    }
}

/// Formats a duration: `0`, `1ms`, `200us`, `1.5s`.
fn format_seconds(seconds: f64) -> String {
    let ns = (seconds * 1e9).round();
    let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3)];
    let whole = units.iter().find(|(_, unit)| ns > 0.0 && ns % unit == 0.0);
    match whole {
        _ if ns <= 0.0 => "0".to_owned(),
        Some((name, unit)) => format!("{}{name}", ns / unit),
        None => format!("{seconds}s"),
    }
}

impl OptionValue {
    /// Sets the option of that name in `load`. The rate of all flows goes to `total`: to divide it,
    /// the number of flows must be known.
    pub(super) fn apply(&self, option: &str, load: &mut Load, total: &mut Option<Rate>) {
        let whole = match self {
            Self::Whole(number, _) => Some(*number),
            _ => None,
        };
        let on = matches!(self, Self::Switch(true));
        let rate = match self {
            Self::Rate(rate) => Some(*rate),
            _ => None,
        };
        let time = match self {
            Self::Seconds(seconds) => Duration::from_secs_f64(*seconds),
            _ => Duration::ZERO,
        };
        match option {
            // Flows per guest are multiplied later: the number of guests is no option.
            "streams"
            | "streams_per_guest"
            | "connections"
            | "connections_per_guest"
            | "machines"
            | "machines_per_guest" => {
                load.streams = whole.unwrap_or(load.streams);
            }
            "message" | "request" | "io_size" => load.request = whole.unwrap_or(load.request),
            "response" => load.response = whole.unwrap_or(load.response),
            "depth" => load.depth = whole.unwrap_or(load.depth),
            "socket_buffer" => load.socket_buffer = whole,
            "threads" => load.threads = whole,
            "dscp" => load.dscp = whole.and_then(|dscp| u8::try_from(dscp).ok()),
            "congestion" => {
                if let Self::Name(name) = self {
                    load.congestion = Some(name.clone());
                }
            }
            TARGET if !matches!(self, Self::Word(_)) => match self {
                Self::Server(uri) => load.server = Some(uri.clone()),
                Self::Path(path) => load.path = Some(path.clone()),
                _ => {}
            },
            "overwrite" => {
                if let Self::Path(path) = self {
                    load.overwrite = Some(path.clone());
                }
            }
            "destructive" => load.destructive = on,
            LIMIT => {
                load.limit = match self {
                    Self::Limit(limit) => Some(*limit),
                    _ => None,
                }
            }
            "pattern" | "reads" | TARGET | SIZE | "flush_every" | "network_share" => {
                if let Some(storage) = &mut load.storage {
                    self.apply_storage(option, storage);
                }
            }
            "memory"
            | "dirty_rate"
            | "channels"
            | "at_once"
            | "working_set"
            | "dirty_order"
            | "zero_pages"
            | "max_downtime"
            | "max_rounds"
            | "fallback"
            | "find_limit"
            | "watch"
            | "pause"
            | "back_and_forth"
            | "engine"
            | "switchover_bandwidth"
            | "post_copy" => {
                if let Some(migration) = &mut load.migration {
                    self.apply_migration(option, migration);
                }
            }
            "rate" => load.rate = rate,
            "total_rate" => *total = rate,
            "think_time" => load.think_time = time,
            "reply_timeout" => load.reply_timeout = time,
            "nodelay" => load.nodelay = on,
            "zero_copy" if on => load.sending = Sending::ZeroCopy,
            "discard_on_receive" if on => load.receiving = Receiving::Discard,
            "spin" if on => load.waiting = WaitMode::Spin,
            "segmentation_offload" => {
                load.segmentation = Segmentation {
                    send: matches!(self, Self::Word("send" | "both")),
                    receive: matches!(self, Self::Word("receive" | "both")),
                };
            }
            "direction" if *self == Self::Word(Direction::BToA.key()) => {
                load.direction = Direction::BToA;
            }
            _ => {}
        }
    }

    /// Sets an option that only storage loads have.
    fn apply_storage(&self, option: &str, storage: &mut Storage) {
        match (option, self) {
            ("pattern", Self::Word(word)) => {
                storage.pattern = Pattern::by_name(word).unwrap_or(storage.pattern);
            }
            (TARGET, Self::Word(word)) => {
                storage.target = Backing::by_name(word).unwrap_or(storage.target);
            }
            ("reads", Self::Whole(percent, _)) => {
                storage.reads = u8::try_from(*percent).unwrap_or(storage.reads);
            }
            (SIZE, Self::Whole(bytes, _)) => storage.size = u64::from(*bytes),
            ("flush_every", Self::Whole(writes, _)) => storage.flush_every = *writes,
            ("network_share", Self::Switch(on)) => storage.network_share = *on,
            _ => {}
        }
    }

    /// Sets an option that only migrations have.
    fn apply_migration(&self, option: &str, migration: &mut Migration) {
        let percent = |whole: &u32, before: u8| u8::try_from(*whole).unwrap_or(before);
        match (option, self) {
            ("engine", Self::Word(word)) => {
                migration.engine = MoveEngine::by_name(word).unwrap_or(migration.engine);
            }
            ("post_copy", Self::Switch(on)) => migration.post_copy = *on,
            ("switchover_bandwidth", Self::Rate(Rate::BitsPerSecond(bits))) => {
                migration.switchover_bandwidth = Some(*bits);
            }
            ("memory", Self::Whole(bytes, _)) => migration.memory = u64::from(*bytes),
            ("dirty_rate", Self::Word(_)) => migration.dirty_rate = 0,
            ("dirty_rate", Self::Rate(Rate::BitsPerSecond(bits))) => migration.dirty_rate = *bits,
            ("channels", Self::Whole(count, _)) => migration.channels = *count,
            ("at_once", Self::Whole(count, _)) => migration.at_once = Some(*count),
            ("working_set", Self::Whole(share, _)) => {
                migration.working_set = percent(share, migration.working_set);
            }
            ("dirty_order", Self::Word(word)) => {
                migration.dirty_order = DirtyOrder::by_name(word).unwrap_or(migration.dirty_order);
            }
            ("zero_pages", Self::Whole(share, _)) => {
                migration.zero_pages = percent(share, migration.zero_pages);
            }
            ("max_downtime", Self::Seconds(seconds)) => {
                migration.max_downtime = Duration::from_secs_f64(*seconds);
            }
            ("max_rounds", Self::Whole(count, _)) => migration.max_rounds = *count,
            ("find_limit", Self::Switch(on)) => migration.find_limit = *on,
            ("watch", Self::Switch(on)) => migration.watch = *on,
            ("pause", Self::Seconds(seconds)) => {
                migration.pause = Duration::from_secs_f64(*seconds);
            }
            ("back_and_forth", Self::Switch(on)) => migration.back_and_forth = *on,
            ("fallback", Self::Word(word)) => {
                migration.fallback = Fallback::by_name(word).unwrap_or(migration.fallback);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::load::Workload;

    use super::*;
    use crate::keys::options;

    /// The defaults of the table are those of the model, but for the congestion control, which the kernel's default
    /// would decide.
    #[test]
    fn a_load_without_options_is_the_models() {
        for workload in Workload::ALL {
            let mut load = Load::new(workload);
            let mut total = None;
            for key in options(workload) {
                let entry = Entry::default(key, &(0..0)).expect("a default");
                let mut reader = Reader::default();
                let setting = read(&mut reader, &entry).expect("a level");
                assert_eq!(reader.faults, []);
                setting.apply(key.name(), &mut load, &mut total);
            }
            assert_eq!(total, None);
            if !workload.is_udp() {
                assert_eq!(load.congestion.take().as_deref(), Some("cubic"));
            }
            assert_eq!(load, Load::new(workload));
        }
    }

    #[test]
    fn every_option_changes_something() {
        for workload in Workload::ALL {
            for key in options(workload) {
                let node = crate::yaml::parse(key.example, &mut Reader::default()).expect("YAML");
                let entry = Entry::at(key, key.path, &node);
                let setting = read(&mut Reader::default(), &entry).expect("a level");
                let (mut load, mut total) = (Load::new(workload), None);
                setting.apply(key.name(), &mut load, &mut total);
                let usual = label(&setting) == "128KiB" || label(&setting) == "1400B";
                let changed = load != Load::new(workload) || total.is_some();
                assert!(changed || usual, "{}", key.path);
            }
        }
    }

    #[test]
    fn times_are_labelled_in_their_largest_whole_unit() {
        let labels =
            [0.0, 0.001, 0.0002, 1.5, 2.0, 1.0 / 3.0].map(|s| label(&OptionValue::Seconds(s)));
        assert_eq!(labels[..5], ["0", "1ms", "200us", "1500ms", "2s"]);
        assert!(labels[5].ends_with('s'));
    }
}
