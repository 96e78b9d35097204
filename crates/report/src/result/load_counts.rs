//! Counts of requests and of datagrams: each is a column `LOAD.NAME` of `--csv`, and in `--json` the sum over the valid
//! samples of a cell.

use serde::Serialize;
use wirecost_model::sample::{DatagramResult, RequestResult};

/// Declares each count once: what it is, and its name in the record, in `--csv` and in `--json`.
macro_rules! counts {
    ($(#[$about:meta])+ $sums:ident, $columns:ident of $result:ident {
        $($(#[$meaning:meta])+ $name:ident: $type:ty,)+
    }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        pub struct $sums {
            $($(#[$meaning])+ pub $name: $type,)+
        }

        impl $sums {
            pub(crate) fn add(&mut self, of: &$result) {
                $(self.$name += of.$name;)+
            }
        }

        /// The counts of one sample by name.
        pub(crate) const $columns: &[(&str, fn(&$result) -> f64)] =
            &[$((stringify!($name), |of| of.$name as f64),)+];
    };
}

counts! {
    /// Counts of requests over all valid samples.
    RequestsResult, REQUEST_COUNTS of RequestResult {
        /// Requests that timed out.
        timeouts: u64,
        /// Responses that came after their request had timed out.
        late: u64,
        /// Responses that came more than once, over UDP.
        duplicated: u64,
    }
}

counts! {
    /// Counts of datagrams over all valid samples.
    DatagramsResult, DATAGRAM_COUNTS of DatagramResult {
        /// Datagrams handed to the kernel.
        sent: u64,
        /// Datagrams read, each counted once.
        received: u64,
        /// Datagrams sent within the windows that never came. May be negative for loads that were broken off, and in
        /// records of versions before 5.
        lost: i64,
        /// Datagrams received after one with a higher number.
        reordered: u64,
        /// Datagrams read more than once.
        duplicated: u64,
    }
}
