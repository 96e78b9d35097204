//! A plan's loads: what each level of the factor `load` runs, with the levels of its options.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::Workload;
use crate::units::format_bytes;

/// One entry of a plan's `load`: a workload, or several at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadLevel {
    /// The level's label: the workload's name, or for a mix the names of its parts: `bulk+ping`.
    pub label: String,
    /// The loads that run at the same time.
    pub parts: Vec<LoadPart>,
}

/// One load of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPart {
    /// The load's name ([`super::NamedLoad::name`]).
    pub name: String,
    /// The load's workload.
    pub workload: Workload,
    /// For a load of a mix with which and without which the others are measured: `none` and the workload's name, levels
    /// of the factor named after the load. Empty for other loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
    /// The level labels of every option that the plan gives or that stands for a workload, by the plan's key.
    pub options: BTreeMap<String, Vec<String>>,
}

/// The load in a plan of record version 1 or 2.
#[derive(Deserialize)]
struct TcpStreamPlan {
    streams: Vec<u32>,
    message: Vec<u32>,
    congestion: Vec<String>,
    socket_buffer: Vec<Option<u32>>,
}

/// Reads the loads of a plan from a record of any version.
pub(crate) fn of_any_version<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<LoadLevel>, D::Error> {
    crate::older::list::<D, LoadLevel, TcpStreamPlan>(from)
}

impl From<TcpStreamPlan> for LoadLevel {
    fn from(old: TcpStreamPlan) -> Self {
        let bytes = |bytes: u32| format_bytes(u64::from(bytes));
        let label = |buffer: Option<u32>| buffer.map_or_else(|| "auto".to_owned(), bytes);
        let streams = old.streams.iter().map(ToString::to_string);
        let options = [
            ("streams", streams.collect()),
            ("message", old.message.into_iter().map(bytes).collect()),
            ("congestion", old.congestion),
            (
                "socket_buffer",
                old.socket_buffer.into_iter().map(label).collect(),
            ),
        ];
        let name = Workload::TcpStream.name().to_owned();
        Self {
            label: name.clone(),
            parts: vec![LoadPart {
                name,
                workload: Workload::TcpStream,
                levels: Vec::new(),
                options: options.map(|(key, labels)| (key.to_owned(), labels)).into(),
            }],
        }
    }
}
