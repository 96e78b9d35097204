//! A plan's loads: what a level of the factor `load` runs, its options as levels of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::Workload;
use crate::units::format_bytes;

/// One entry of a plan's `load`: a workload, or several at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadLevel {
    /// As the factor `load` labels it: the workload's name, or of a mix the names of its parts: `bulk+ping`.
    pub label: String,
    /// What runs at once.
    pub parts: Vec<LoadPart>,
}

/// A load of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPart {
    /// [`super::NamedLoad::name`].
    pub name: String,
    /// What is run.
    pub workload: Workload,
    /// Of a load of a mix that the others are measured with and without: `none` and the workload's name, as levels of
    /// the factor that is called as the load is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
    /// The labels of every option that the plan says, and of those that stand for a workload, by the plan's key.
    pub options: BTreeMap<String, Vec<String>>,
}

/// The load of a plan of a record of version 1 or 2.
#[derive(Deserialize)]
struct TcpStreamPlan {
    streams: Vec<u32>,
    message: Vec<u32>,
    congestion: Vec<String>,
    socket_buffer: Vec<Option<u32>>,
}

/// Reads the loads of a plan.
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
