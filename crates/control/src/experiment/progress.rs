//! Progress messages of a run.

use std::net::IpAddr;

use wirecost_model::metric::Metric;

use super::max_rate::Traffic;

/// A step of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The run directory was created.
    Started {
        /// The run directory.
        directory: std::path::PathBuf,
        /// Samples of the run; expected ones in an adaptive run.
        samples: u32,
        /// Expected seconds until the end.
        expected_s: f64,
    },
    /// Existing hosts were reached.
    Reached {
        /// Data-plane addresses, host a's and host b's.
        addresses: [IpAddr; 2],
        /// What will be sent between them.
        traffic: Traffic,
    },
    /// A lab was built.
    LabUp {
        /// The lab's network: encapsulation, underlay MTU and rate.
        network: String,
        /// Duration of building, seconds.
        seconds: f64,
    },
    /// A sample is about to be taken.
    Taking {
        /// Round, from 0.
        round: u32,
        /// Index of the cell.
        cell: u32,
    },
    /// The sample is measured again, as its last attempt was not valid.
    Again {
        /// Why that attempt was not valid.
        reason: String,
    },
    /// A sample was taken and written to the record.
    Taken {
        /// Number of samples taken so far.
        done: u32,
        /// Figure of the first load: throughput of a stream in bit/s, else transactions per second; `None` without a
        /// figure.
        speed: Option<(Metric, f64)>,
        /// Why the sample is invalid; `None`: it is valid.
        invalid: Option<String>,
        /// Expected seconds until the end.
        left_s: f64,
    },
    /// The interim analysis after a round of an adaptive run. It comes before the round's last [`Progress::Taken`],
    /// whose `left_s` takes it into account.
    InterimAnalysis {
        /// Effects that are known.
        known: u32,
        /// Effects that the run waits for.
        asked: u32,
        /// Rounds that the run is expected to have at its end.
        rounds: u32,
    },
}
