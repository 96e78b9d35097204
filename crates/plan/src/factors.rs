//! The factors that every experiment has: how their levels are read and labelled.

mod offload;

use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::logical::{Acl, Topology};
use wirecost_model::offload::Offload;
use wirecost_model::plan::{Encapsulation, GuestMtu, PairNames, SteeringPlan};
use wirecost_model::steering::{Rps, Steering};
use wirecost_model::units::format_rate;

use crate::axis::Axis;
use crate::encapsulation::{Encapsulated, encapsulation};
use crate::keys::{self, Key};
use crate::node::Value;
use crate::pairs;
use crate::read::{Entry, Fields, Levels, Reader};
use crate::values::{as_word, integer32, rate, switch, word};

/// The levels of every factor, without those that could not be read.
#[derive(Debug)]
pub(crate) struct Factors {
    /// Empty where the plan names no pairs: the pair is then hosts a and b.
    pub(crate) pairs: Levels<PairNames>,
    pub(crate) underlay_mtu: Levels<u32>,
    pub(crate) rate: Levels<Option<u64>>,
    pub(crate) links: Levels<u32>,
    pub(crate) underlay_ip: Levels<IpVersion>,
    pub(crate) encapsulation: Levels<Encapsulated>,
    pub(crate) udp_checksum: Levels<bool>,
    /// `None` is the choice of the run.
    pub(crate) datapath: Levels<DatapathChoice>,
    pub(crate) topology: Levels<Topology>,
    pub(crate) acl: Levels<Acl>,
    pub(crate) guest_mtu: Levels<GuestMtu>,
    pub(crate) guest_ip: Levels<IpVersion>,
    pub(crate) guests: Levels<u32>,
    pub(crate) offload: Levels<Offload>,
    pub(crate) queues: Levels<u32>,
    pub(crate) rps: Levels<Rps>,
}

/// Bits per second; `None` is no limit.
type Limit = Option<u64>;

/// Number of factors in [`Factors`].
pub(crate) const COUNT: usize = 16;

/// A datapath; `None` is the choice of the run.
type DatapathChoice = Option<Datapath>;

impl Factors {
    pub(crate) fn encapsulations(&self) -> Vec<Encapsulation> {
        let levels = self.encapsulation.levels.iter();
        levels
            .map(|level| level.value.encapsulation.clone())
            .collect()
    }

    /// The datapaths that the plan names; empty where the run chooses.
    pub(crate) fn datapaths(&self) -> Vec<Datapath> {
        self.datapath.values().into_iter().flatten().collect()
    }

    pub(crate) fn steering(&self) -> SteeringPlan {
        SteeringPlan {
            queues: self.queues.values(),
            rps: self.rps.values(),
        }
    }

    /// The steering of a cell by its level numbers.
    pub(crate) fn steering_of(&self, queues: usize, rps: usize) -> Steering {
        let rps = self.rps.get(rps).map(|level| level.value.clone());
        Steering {
            queues: self.queues.get(queues).map_or(1, |level| level.value),
            rps: rps.unwrap_or_default(),
        }
    }

    /// The factors in the order of the cross product: the last varies fastest.
    pub(crate) fn axes(&self) -> [Axis; COUNT] {
        [
            Axis::of(&keys::PAIRS, &self.pairs, |r, e| {
                pairs::names(r, e).map(|pair| pair.to_string())
            }),
            Axis::of(&keys::UNDERLAY_MTU, &self.underlay_mtu, |r, e| {
                integer32(r, e).map(|mtu| mtu.to_string())
            }),
            Axis::of(&keys::UNDERLAY_RATE, &self.rate, |r, e| {
                rate_or_none(r, e).map(rate_label)
            }),
            Axis::of(&keys::UNDERLAY_LINKS, &self.links, |r, e| {
                integer32(r, e).map(|links| links.to_string())
            }),
            Axis::of(&keys::UNDERLAY_IP, &self.underlay_ip, |r, e| {
                ip(r, e).map(|ip| ip.key().to_owned())
            }),
            Axis::of(&keys::ENCAPSULATION, &self.encapsulation, |r, e| {
                encapsulation(r, e).map(|level| level.to_string())
            }),
            Axis::of(&keys::UDP_CHECKSUM, &self.udp_checksum, |r, e| {
                switch(r, e).map(|on| on_off(on).to_owned())
            }),
            Axis::of(&keys::DATAPATH, &self.datapath, |r, e| {
                datapath(r, e).map(datapath_label)
            }),
            Axis::of(&keys::TOPOLOGY, &self.topology, |r, e| {
                topology(r, e).map(|topology| topology.key().to_owned())
            }),
            Axis::of(&keys::ACL, &self.acl, |r, e| {
                acl(r, e).map(|acl| acl.key().to_owned())
            }),
            Axis::of(&keys::GUEST_MTU, &self.guest_mtu, |r, e| {
                guest_mtu(r, e).map(|mtu| mtu.to_string())
            }),
            Axis::of(&keys::GUEST_IP, &self.guest_ip, |r, e| {
                ip(r, e).map(|ip| ip.key().to_owned())
            }),
            Axis::of(&keys::GUESTS, &self.guests, |r, e| {
                integer32(r, e).map(|guests| guests.to_string())
            }),
            Axis::of(&keys::OFFLOAD, &self.offload, |r, e| {
                offload::read(r, e).map(|level| level.to_string())
            }),
            Axis::of(&keys::STEERING_QUEUES, &self.queues, |r, e| {
                integer32(r, e).map(|queues| queues.to_string())
            }),
            Axis::of(&keys::STEERING_RPS, &self.rps, |r, e| {
                rps(r, e).map(|rps| rps.to_string())
            }),
        ]
    }
}

/// Reads the factors from the plan's top level, its `underlay` and its `steering`.
pub(crate) fn read(
    reader: &mut Reader,
    root: &Fields<'_>,
    underlay: &Fields<'_>,
    steering: &Fields<'_>,
) -> Factors {
    Factors {
        pairs: pairs::read(reader, root),
        underlay_mtu: levels(reader, underlay, &keys::UNDERLAY_MTU, integer32, |mtu| {
            mtu.to_string()
        }),
        rate: levels(
            reader,
            underlay,
            &keys::UNDERLAY_RATE,
            rate_or_none,
            |rate| rate_label(*rate),
        ),
        links: levels(
            reader,
            underlay,
            &keys::UNDERLAY_LINKS,
            integer32,
            std::string::ToString::to_string,
        ),
        underlay_ip: levels(reader, underlay, &keys::UNDERLAY_IP, ip, |ip| {
            ip.key().to_owned()
        }),
        encapsulation: levels(
            reader,
            root,
            &keys::ENCAPSULATION,
            encapsulation,
            Encapsulated::to_string,
        ),
        udp_checksum: levels(reader, root, &keys::UDP_CHECKSUM, switch, |on| {
            on_off(*on).to_owned()
        }),
        datapath: datapath_levels(reader, root),
        topology: levels(reader, root, &keys::TOPOLOGY, topology, |topology| {
            topology.key().to_owned()
        }),
        acl: levels(reader, root, &keys::ACL, acl, |acl| acl.key().to_owned()),
        guest_mtu: levels(
            reader,
            root,
            &keys::GUEST_MTU,
            guest_mtu,
            GuestMtu::to_string,
        ),
        guest_ip: levels(reader, root, &keys::GUEST_IP, ip, |ip| ip.key().to_owned()),
        guests: levels(reader, root, &keys::GUESTS, integer32, |guests| {
            guests.to_string()
        }),
        offload: offload::levels(reader, root),
        queues: levels(
            reader,
            steering,
            &keys::STEERING_QUEUES,
            integer32,
            u32::to_string,
        ),
        rps: levels(reader, steering, &keys::STEERING_RPS, rps, Rps::to_string),
    }
}

fn levels<T>(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &'static Key,
    read: fn(&mut Reader, &Entry<'_>) -> Option<T>,
    label: fn(&T) -> String,
) -> Levels<T> {
    match fields.get(reader, key) {
        Some(entry) => entry.levels(reader, read, label),
        None => Levels {
            levels: Vec::new(),
            all_read: false,
        },
    }
}

fn datapath_levels(reader: &mut Reader, root: &Fields<'_>) -> Levels<DatapathChoice> {
    let read = levels(reader, root, &keys::DATAPATH, datapath, |chosen| {
        datapath_label(*chosen)
    });
    let auto = read.levels.iter().find(|level| level.value.is_none());
    if let Some(auto) = auto.filter(|_| read.levels.len() > 1) {
        let message = "`auto` cannot be used with other datapaths";
        let help = "it is whichever of them can build every cell: write it alone, or name those to compare";
        reader.fault(
            auto.span.clone(),
            &auto.path,
            message,
            "not a datapath of its own",
            help,
        );
    }
    read
}

fn datapath(reader: &mut Reader, entry: &Entry<'_>) -> Option<DatapathChoice> {
    if let Value::Map(_) = &entry.node.value {
        let message = "`datapath` takes no options: a lab's hosts are network namespaces, each with an Open vSwitch of \
                       its own";
        let help = "write `ovs`; over a bridge of this machine's own Open vSwitch `wirecost tunnel up --bridge NAME` \
                    makes a tunnel, and `wirecost load` measures between hosts as they are";
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "a mapping", help);
        return None;
    }
    let word = word(reader, entry)?;
    Some(Datapath::ALL.into_iter().find(|known| known.key() == word))
}

fn datapath_label(datapath: DatapathChoice) -> String {
    datapath.map_or("auto", Datapath::key).to_owned()
}

fn topology(reader: &mut Reader, entry: &Entry<'_>) -> Option<Topology> {
    let word = word(reader, entry)?;
    Topology::ALL.into_iter().find(|known| known.key() == word)
}

fn acl(reader: &mut Reader, entry: &Entry<'_>) -> Option<Acl> {
    let word = word(reader, entry)?;
    Acl::ALL.into_iter().find(|known| known.key() == word)
}

const fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn rate_label(rate: Option<u64>) -> String {
    rate.map_or_else(|| "none".to_owned(), format_rate)
}

fn rate_or_none(reader: &mut Reader, entry: &Entry<'_>) -> Option<Limit> {
    match as_word(entry) {
        Some(_) => Some(None),
        None => rate(reader, entry).map(Some),
    }
}

fn guest_mtu(reader: &mut Reader, entry: &Entry<'_>) -> Option<GuestMtu> {
    match as_word(entry) {
        Some(_) => Some(GuestMtu::Max),
        None => integer32(reader, entry).map(GuestMtu::Bytes),
    }
}

fn rps(reader: &mut Reader, entry: &Entry<'_>) -> Option<Rps> {
    match as_word(entry) {
        Some("off") => return Some(Rps::Off),
        Some("all") => return Some(Rps::All),
        Some(_) => return Some(Rps::Own),
        None => {}
    }
    let mask = entry.node.text().and_then(Rps::parse_mask);
    if mask.is_none() {
        reader.wrong(entry, "not a mask");
    }
    mask
}

fn ip(reader: &mut Reader, entry: &Entry<'_>) -> Option<IpVersion> {
    word(reader, entry).map(|word| match word {
        "ipv6" => IpVersion::Ipv6,
        _ => IpVersion::Ipv4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_reads_as_its_own_key_does() {
        let mut reader = Reader::default();
        let absent = Fields::absent();
        let factors = read(&mut reader, &absent, &absent, &absent);
        assert_eq!(reader.faults, []);
        let labels: Vec<String> = factors.axes().into_iter().flat_map(|a| a.labels).collect();
        let expected = [
            "1500", "none", "1", "ipv4", "none", "off", "auto", "switched", "none", "max", "ipv4",
            "1", "tunnel", "1", "own",
        ];
        assert_eq!(labels, expected);
        let axes = factors.axes();
        let names: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
        let table: Vec<&str> = keys::keys()
            .iter()
            .filter(|key| !key.path.starts_with(keys::LOAD.path))
            .filter_map(|key| key.factor_name())
            .collect();
        assert_eq!(names, table);
    }
}
