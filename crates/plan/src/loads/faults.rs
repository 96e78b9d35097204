//! Faults of a plan's loads, with their places in the plan.

use wirecost_model::ip::IpVersion;
use wirecost_model::load::{Limit, Load, Rate};

use super::setting::LIMIT;
use super::{Choice, NONE, Part};
use crate::node::Span;
use crate::read::Reader;
use crate::suggest::joined;

/// Length of the UDP header, bytes (RFC 768).
const UDP_HEADER: u32 = 8;

/// Where a load's options are written, by the option's name.
pub(super) type OptionSpans = Vec<(&'static str, Span, String)>;

/// Faults of loads, each kept once however many cells have it.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: Vec<Fault>,
}

#[derive(Debug, PartialEq)]
struct Fault {
    span: Span,
    path: String,
    /// Message, label and help of the fault.
    words: [String; 3],
}

impl Faults {
    /// Divides the rate of all flows among them, and checks the load against the rules for all loads.
    pub(super) fn judge(
        &mut self,
        part: &Part,
        load: &mut Load,
        total: Option<Rate>,
        places: &[(&str, Span, String)],
    ) {
        let mut rate_option = "rate";
        if let Some(total) = total {
            if load.rate.is_some() {
                self.add(
                    part,
                    "total_rate",
                    "`rate` and `total_rate` exclude each other",
                    places,
                );
            }
            load.rate = Some(total.shared_by(load.streams));
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

    /// Checks that a limit leaves something for every guest.
    pub(super) fn too_little(
        &mut self,
        part: &Part,
        load: &Load,
        guests: u32,
        places: &[(&str, Span, String)],
    ) {
        if let Some(Limit::Bytes(all) | Limit::Transactions(all)) = load.limit
            && all < u64::from(guests)
        {
            let message =
                format!("a limit of {all} is too small to be divided among {guests} guests");
            self.add(part, LIMIT, &message, places);
        }
    }

    /// Checks that datagrams fit the guests' MTU: those segmented by the kernel (`UDP_SEGMENT`) cannot be fragmented.
    pub(super) fn too_long(
        &mut self,
        load: &Load,
        (mtu, ip): (u32, IpVersion),
        (span, path): (Span, String),
    ) {
        let headers = ip.header_bytes() + UDP_HEADER;
        if !load.segmentation.send || load.request + headers <= mtu {
            return;
        }
        let message = format!(
            "a datagram of {} bytes with its {headers} of headers does not fit a guest MTU of {mtu}, and \
             `segmentation_offload` cannot fragment it",
            load.request
        );
        let help = format!(
            "write a `message` of at most {}, a larger `guest_mtu`, `segmentation_offload: receive`, or `exclude` the \
             combination",
            mtu.saturating_sub(headers)
        );
        let words = [message, "too long for this".to_owned(), help];
        self.put(Fault { span, path, words });
    }

    /// Checks that either all loads of a mix end by themselves, or none.
    pub(super) fn endless(&mut self, limits: &[(&Part, bool, OptionSpans)]) {
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

    /// A fault of a cell in which no load of a mix runs.
    pub(super) fn idle(&mut self, choice: &Choice) {
        let Some(first) = choice.parts.first() else {
            return;
        };
        let names: Vec<String> = choice
            .parts
            .iter()
            .map(|part| format!("`{}`", part.name))
            .collect();
        let levels: Vec<String> = choice
            .parts
            .iter()
            .map(|part| format!("{}: {NONE}", part.name))
            .collect();
        let message = format!("nothing runs where {} are `{NONE}`", joined(&names, "and"));
        let help = format!(
            "leave one of them without a list, or `exclude` the combination: `{{ {} }}`",
            levels.join(", ")
        );
        let words = [message, "no load is left".to_owned(), help];
        self.note(first, NONE, &[], words);
    }

    fn add(&mut self, part: &Part, option: &str, message: &str, places: &[(&str, Span, String)]) {
        let words = [
            message,
            "no load can have this",
            "change one of them, or `exclude` the combination",
        ];
        self.note(part, option, places, words.map(str::to_owned));
    }

    pub(super) fn note(
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
        self.put(Fault { span, path, words });
    }

    fn put(&mut self, fault: Fault) {
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
