//! The keys of a plan, declared once: what each takes, its range, its default, what it means.
//! The decoder reads by this table, and a schema or a reference page can be made from it.

/// Keys, each with its path, its kind, what else is declared of it, and what it means.
macro_rules! keys {
    ($($name:ident $path:literal $kind:ident { $($field:ident: $value:expr),* $(,)? } $doc:literal;)*) => {
        $(pub(crate) static $name: Key = Key {
            path: $path,
            kind: Kind::$kind,
            doc: $doc,
            $($field: $value,)*
            ..BASE
        };)*
        /// These, in the order of the documentation.
        pub(super) static KEYS: &[&Key] = &[$(&$name),*];
    };
}

mod encapsulation;
mod guest;
mod key;
mod measure;
mod options;
mod published;
mod run;
mod underlay;
mod vary;

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::sync::LazyLock;

use wirecost_model::ip::IpVersion;
use wirecost_model::load::Workload;

use options::workload_key;

pub(crate) use encapsulation::*;
pub(crate) use guest::*;
pub use key::{Key, Kind, Presence};
pub(crate) use measure::*;
pub(crate) use options::{TELLING, options};
pub(crate) use published::*;
pub(crate) use run::*;
pub(crate) use underlay::*;
pub(crate) use vary::*;

/// Longest name of a plan, which becomes part of a directory's, in characters.
pub(crate) const NAME_MAX: usize = 64;
/// Longest name of a factor and label of a level that a plan makes, in characters.
pub(crate) const LABEL_MAX: usize = 60;
/// The last part of the path of what stands below names of one's own.
pub(crate) const ANY_NAME: &str = "*";
/// Longest name of a load of a mix, and of a host, in characters.
pub(crate) const LOAD_NAME_MAX: usize = 32;
/// Longest name of a congestion control: `TCP_CA_NAME_MAX` less the final 0 (include/net/tcp.h).
pub(crate) const CONGESTION_MAX: usize = 15;

/// Every key of a plan, outer before inner, in the order of the documentation.
pub fn keys() -> &'static [&'static Key] {
    static ALL: LazyLock<Vec<&Key>> = LazyLock::new(|| {
        let parts = [
            run::KEYS,
            underlay::KEYS,
            encapsulation::KEYS,
            guest::KEYS,
            measure::KEYS,
            vary::KEYS,
            published::KEYS,
        ];
        let mut all = Vec::new();
        for key in parts.concat() {
            all.push(key);
            if key.path == LOAD.path {
                for workload in Workload::ALL {
                    all.push(workload_key(workload));
                    all.extend(options(workload));
                }
            }
        }
        all
    });
    &ALL
}

const fn from_to(low: f64, high: f64) -> (Bound<f64>, Bound<f64>) {
    (Included(low), Included(high))
}

const fn above_to(low: f64, high: f64) -> (Bound<f64>, Bound<f64>) {
    (Excluded(low), Included(high))
}

const BASE: Key = Key {
    path: "",
    kind: Kind::Word,
    words: &[],
    range: (Unbounded, Unbounded),
    presence: Presence::Optional,
    factor: false,
    example: "",
    doc: "",
};

/// The smallest MTU is IPv4's; that IPv6 wants more takes two keys to see.
const MTU: (Bound<f64>, Bound<f64>) = from_to(IpVersion::Ipv4.min_mtu() as f64, 65535.0);
const IP: &[&str] = &[IpVersion::Ipv4.key(), IpVersion::Ipv6.key()];
const ON_OFF: &[&str] = &["on", "off"];

#[cfg(test)]
mod tests;
