//! Progress messages of a run.

use std::net::IpAddr;

use wirecost_model::metric::Metric;

use super::existing::Traffic;

/// A step of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The record is being kept here.
    Started {
        /// The run directory.
        directory: std::path::PathBuf,
        /// Samples the plan asks for; those expected, in an adaptive run.
        samples: u32,
        /// Expected seconds until the end.
        expected_s: f64,
    },
    /// Existing hosts were reached.
    Reached {
        /// Addresses that are measured: a's and b's.
        addresses: [IpAddr; 2],
        /// What will be sent between them.
        traffic: Traffic,
    },
    /// A lab was built.
    LabUp {
        /// Its encapsulation, underlay MTU and rate.
        network: String,
        /// Seconds it took.
        seconds: f64,
    },
    /// A sample is about to be taken.
    Taking {
        /// Round, from 0.
        round: u32,
        /// Index of the cell.
        cell: u32,
    },
    /// A sample was taken and lies in the record.
    Taken {
        /// How many there are now.
        done: u32,
        /// What got through of its first load, where it has a figure: of a stream bits per second, else transactions.
        speed: Option<(Metric, f64)>,
        /// Why it does not count, where it does not.
        invalid: Option<String>,
        /// Expected seconds until the end.
        left_s: f64,
    },
    /// A round was measured, of an adaptive run. It comes before the round's
    /// last [`Progress::Taken`], which knows of it.
    Looked {
        /// Effects that are known.
        known: u32,
        /// Effects that are waited for.
        asked: u32,
        /// Rounds that the run is expected to have at its end.
        rounds: u32,
    },
}
