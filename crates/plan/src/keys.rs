//! The keys of a plan, declared once: kind, range, default and meaning of each. The decoder reads
//! by this table; the schema and the reference page are made from it.

/// Declares keys, each with its path, its kind, further fields of [`Key`], and its meaning.
macro_rules! keys {
    ($($name:ident $path:literal $kind:ident { $($field:ident: $value:expr),* $(,)? } $doc:literal;)*) => {
        $(pub(crate) static $name: Key = Key {
            path: $path,
            kind: Kind::$kind,
            doc: $doc,
            $($field: $value,)*
            ..BASE
        };)*
        /// The keys of this module, in the order of the documentation.
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
pub(crate) use options::{ALWAYS_FACTORS, options};
pub(crate) use published::*;
pub(crate) use run::*;
pub(crate) use underlay::*;
pub(crate) use vary::*;

/// Maximum length of a plan's name, which becomes part of a directory's name, in characters.
pub(crate) const NAME_MAX: usize = 64;
/// Maximum length of the name of a factor, and of the label of a level, that a plan makes, in characters.
pub(crate) const LABEL_MAX: usize = 60;
/// Last part of the path of a key that stands for any name of the user's own.
pub(crate) const ANY_NAME: &str = "*";
/// Maximum length of the name of a load in a mix, and of a host, in characters.
pub(crate) const LOAD_NAME_MAX: usize = 32;
/// Maximum length of the name of a congestion control: `TCP_CA_NAME_MAX` without the final 0 (include/net/tcp.h).
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

/// Range of MTUs in bytes. The minimum is IPv4's; that of IPv6 is checked where both keys are known.
const MTU: (Bound<f64>, Bound<f64>) = from_to(IpVersion::Ipv4.min_mtu() as f64, 65535.0);
const IP: &[&str] = &[IpVersion::Ipv4.key(), IpVersion::Ipv6.key()];
const ON_OFF: &[&str] = &["on", "off"];

#[cfg(test)]
mod tests;
