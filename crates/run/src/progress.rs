//! What a run tells while it goes on.

/// A step of a run, for whoever shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The record is being kept here.
    Started {
        /// The run directory.
        directory: std::path::PathBuf,
        /// Samples the plan asks for.
        samples: u32,
        /// Expected seconds until the end.
        expected_s: f64,
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
        /// Throughput in Gbit/s, where it has one.
        gbps: Option<f64>,
        /// Why it does not count, where it does not.
        invalid: Option<String>,
        /// Expected seconds until the end.
        left_s: f64,
    },
}
