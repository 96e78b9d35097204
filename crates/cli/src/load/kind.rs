//! The workloads of `wirecost load`.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use wirecost_model::load::Workload;

/// A workload of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One workload.
    One(Workload),
    /// `tcp-stream` and `tcp-rr` at the same time.
    Mix,
}

impl Kind {
    const ALL: [Self; Workload::ALL.len() + 1] = {
        let mut kinds = [Self::Mix; Workload::ALL.len() + 1];
        let mut index = 0;
        while index < Workload::ALL.len() {
            kinds[index] = Self::One(Workload::ALL[index]);
            index += 1;
        }
        kinds
    };

    /// The workload that the options apply to.
    pub(super) const fn first(self) -> Workload {
        match self {
            Self::One(workload) => workload,
            Self::Mix => Workload::TcpStream,
        }
    }
}

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::One(workload) => PossibleValue::new(workload.name()).help(workload.about()),
            Self::Mix => PossibleValue::new("mix").help("tcp-stream and tcp-rr at the same time"),
        })
    }
}
