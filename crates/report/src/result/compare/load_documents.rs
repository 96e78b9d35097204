//! Compares two documents of `wirecost load --json`: each is read as a run of one cell with a sample per round.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wirecost_model::cell::{Cell, Experiment, Factor, LOAD, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::load::{Load, NamedLoad};
use wirecost_model::logical::Logical;
use wirecost_model::offload::{Offload, Profile};
use wirecost_model::plan::{
    Cores, Encapsulation, Hosts, Levels, MaxRate, Plan, Repeat, SteeringPlan, Underlay,
};
use wirecost_model::record::{Environment, Outcome, Run, RunEnd, RunHead, VERSION};
use wirecost_model::sample::Sample;
use wirecost_model::steering::Steering;
use wirecost_model::transit::Transit;

use super::differences::{Area, Difference, Differences, fields, keys, sides};
use super::{Comparison, Strictness, compare_cells};
use crate::result::evaluate::document;
use crate::result::read::{ReadError, RecordedRun};
use crate::result::run::RunResult;

/// The newest version of the document that this program reads (field `format`).
const KNOWN: u32 = 1;
/// The smallest change worth having, a fraction; no plan says one here.
const WORTH: f64 = 0.05;
/// Rounds that the note on a single round recommends.
const ROUNDS: u32 = 5;

/// A document of `wirecost load --json`, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadDocument {
    result: RunResult,
    described: Described,
}

/// Properties in which two such loads may differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Described {
    hosts: BTreeMap<String, String>,
    one_machine: bool,
    warmup_s: f64,
    asked_s: Option<f64>,
    loads: BTreeMap<String, Load>,
}

/// The fields that are read of the document; its other fields are not needed here.
#[derive(Debug, Deserialize)]
struct Document {
    program_version: String,
    started: String,
    outcome: Outcome,
    reason: Option<String>,
    hosts: Vec<Host>,
    one_machine: bool,
    warmup_s: f64,
    asked_s: Option<f64>,
    rounds: u32,
    loads: Vec<NamedLoad>,
    samples: Vec<Sample>,
}

#[derive(Debug, Deserialize)]
struct Host {
    #[serde(rename = "host")]
    name: String,
    place: String,
    address: String,
}

impl LoadDocument {
    /// Reads a document of `wirecost load --json`.
    ///
    /// # Errors
    /// The file cannot be read, is no such document, or was written by a newer program.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct AnyVersion {
            format: u32,
        }

        let text = fs::read(path).map_err(|source| ReadError::Io {
            path: path.into(),
            source,
        })?;
        let not_it = |error: &serde_json::Error| ReadError::NotALoad {
            path: path.into(),
            reason: error.to_string(),
        };
        let any: AnyVersion = serde_json::from_slice(&text).map_err(|error| not_it(&error))?;
        if any.format > KNOWN {
            return Err(ReadError::NotALoad {
                path: path.into(),
                reason: format!(
                    "its format is {} and this program reads up to {KNOWN}",
                    any.format
                ),
            });
        }
        let read: Document = serde_json::from_slice(&text).map_err(|error| not_it(&error))?;
        Ok(Self::of(read, path))
    }

    fn of(read: Document, path: &Path) -> Self {
        let host = |host: &Host| {
            (
                host.name.clone(),
                format!("{} at {}", host.place, host.address),
            )
        };
        let described = Described {
            hosts: read.hosts.iter().map(host).collect(),
            one_machine: read.one_machine,
            warmup_s: read.warmup_s,
            asked_s: read.asked_s,
            loads: read
                .loads
                .iter()
                .map(|named| (named.name.clone(), named.load.clone()))
                .collect(),
        };
        let run = Run {
            head: RunHead {
                record_version: VERSION,
                program_version: read.program_version,
                started: read.started,
                seed: 0,
                experiment: experiment(&described, read.rounds, read.loads),
                environment: environment(),
            },
            end: Some(RunEnd {
                outcome: read.outcome,
                reason: read.reason,
                seconds: read.samples.iter().map(|sample| sample.took_s).sum(),
                measured_s: 0.0,
                until: None,
            }),
            samples: read.samples,
        };
        let document = document(&run, path, Vec::new());
        Self {
            result: RunResult {
                reading: RecordedRun {
                    run,
                    warnings: Vec::new(),
                    plan_text: None,
                },
                document,
            },
            described,
        }
    }
}

/// Compares a load with an earlier one, whatever their hosts and options, which are reported as differences.
pub fn compare_load_documents(
    before: &LoadDocument,
    after: &LoadDocument,
    strictness: Strictness,
) -> Comparison {
    let mut comparison = compare_cells(
        (&before.result).into(),
        (&after.result).into(),
        strictness,
        true,
    );
    comparison.differences = differences(before, after);
    for (side, which) in [(before, "before"), (after, "after")] {
        if side.result.reading.run.samples.len() == 1 {
            comparison.notes.push(format!(
                "{which}: one round, which gives no interval: measure with `--rounds {ROUNDS}`"
            ));
        }
    }
    comparison
}

fn differences(before: &LoadDocument, after: &LoadDocument) -> Vec<Difference> {
    let both = [before, after];
    let program = both.map(|side| side.result.reading.run.head.program_version.clone());
    let described = both.map(|side| fields(&side.described, &[]));
    let mut all = Differences::default();
    all.add(Area::Program, "program_version", program.map(Some));
    for key in keys(&described) {
        let area = if key.starts_with("loads.") {
            Area::Plan
        } else {
            Area::Environment
        };
        all.add(area, key, sides(&described, key));
    }
    all.0
}

/// An experiment of one cell. The network between the hosts is not known, so every such load has the same placeholder.
fn experiment(described: &Described, rounds: u32, loads: Vec<NamedLoad>) -> Experiment {
    let cores = if described.one_machine {
        Cores::Shared
    } else {
        Cores::Split
    };
    let names: Vec<&str> = loads.iter().map(|named| named.name.as_str()).collect();
    let label = names.join(" + ");
    let offload = Offload::profile(Profile::None);
    let cell = Cell {
        index: 0,
        levels: Levels::from([(LOAD.to_owned(), label.clone())]),
        network: Network {
            underlay_mtu: 0,
            rate: None,
            links: 1,
            underlay_ip: IpVersion::Ipv4,
            encapsulation: Encapsulation::None,
            datapath: Datapath::Kernel,
            logical: Logical::default(),
            guest_ip: IpVersion::Ipv4,
            guests: 1,
            transit: Transit::wire(),
            cores,
            steering: Steering::default(),
        },
        guest_mtu: 0,
        offload,
        loads,
        settings: Vec::new(),
    };
    Experiment {
        plan: Plan {
            name: "load".into(),
            description: None,
            hosts: Hosts::Lab,
            more_hosts: BTreeMap::new(),
            pairs: Vec::new(),
            allow_host_changes: false,
            max_rate: MaxRate::Auto,
            cores,
            underlay: Underlay {
                mtu: Vec::new(),
                rate: Vec::new(),
                links: Vec::new(),
                ip: Vec::new(),
                transit: Transit::wire(),
                oversize: false,
                release_us: None,
            },
            guest_mtu: Vec::new(),
            guest_ip: Vec::new(),
            guests: Vec::new(),
            encapsulation: Vec::new(),
            udp_checksum: Vec::new(),
            datapath: vec![Datapath::Kernel],
            topology: vec![],
            acl: vec![],
            offload: Vec::new(),
            steering: SteeringPlan::default(),
            loads: Vec::new(),
            repeat: Repeat {
                rounds,
                seconds: described.asked_s.unwrap_or_default(),
                warmup: described.warmup_s,
                worth: WORTH,
                until: None,
            },
            self_test: false,
            vary: Vec::new(),
            exclude: Vec::new(),
            published: None,
            seed: None,
        },
        factors: vec![Factor {
            key: LOAD.into(),
            levels: vec![label],
        }],
        cells: vec![cell],
        twin: None,
        chosen: None,
    }
}

/// An empty environment: the document says nothing about the machines.
fn environment() -> Environment {
    Environment {
        kernel: String::new(),
        cpu_model: String::new(),
        cpus: Vec::new(),
        memory_bytes: 0,
        clock_source: String::new(),
        virtual_machine: false,
        privilege: String::new(),
        sysctls: BTreeMap::new(),
        hosts: BTreeMap::new(),
        wakeup_cost: None,
        line: None,
    }
}
