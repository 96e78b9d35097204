//! Every row in turn: a lab, and on it pairs in random order with each opponent.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use wirecost_agent::lab::allowed_cpus;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_agent::stray::Owner;
use wirecost_bench::program;
use wirecost_bench::scratch::Scratch;
use wirecost_model::plan::Cores;
use wirecost_model::sample::ProofTime;
use wirecost_model::units::format_rate;
use wirecost_run::{Lab, LabContext, Placement, place};

use crate::arguments::Arguments;
use crate::comparison::{Comparison, Pair};
use crate::error::BenchError;
use crate::measure::{Bench, Sample};
use crate::peer::{Ours, Peer};
use crate::place::Place;
use crate::row::{Bound, GUEST_MTU, Opponents, Row};
use crate::witness::Witness;

/// How long a host may take to describe itself.
const PROMPT: Duration = Duration::from_secs(10);
/// Congestion control wherever both can be told.
pub(crate) const CONGESTION: &str = "cubic";
/// What a measured rate is rounded down to before it is halved, bits per second.
const RATE_STEP: u64 = 200_000_000;

/// Everything that is printed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Every peer, with its version or why it is absent.
    pub(crate) peers: Vec<Found>,
    pub(crate) kernel: String,
    pub(crate) cpu_model: String,
    pub(crate) cores: Cores,
    /// Cores of the sending host and what runs there.
    pub(crate) cpus_a: Vec<u32>,
    /// Cores of the receiving host and what runs there.
    pub(crate) cpus_b: Vec<u32>,
    pub(crate) guest_mtu: u32,
    /// Pairs asked for with each opponent.
    pub(crate) pairs: u32,
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    pub(crate) seed: u32,
    pub(crate) rows: Vec<RowResult>,
}

/// A peer.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Found {
    pub(crate) name: &'static str,
    #[serde(flatten)]
    pub(crate) presence: Presence,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Presence {
    Version(String),
    Absent(String),
}

/// One row's outcomes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) bound: String,
    pub(crate) outcomes: Vec<Outcome>,
}

/// Ours against one opponent.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub(crate) opponent: &'static str,
    #[serde(flatten)]
    pub(crate) what: What,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    Compared(Box<Comparison>),
    /// Nobody to compare with: it worked, and how.
    Alone {
        sample: Sample,
        /// Whether what has to hold does.
        holds: bool,
    },
    /// The peer is not on this machine.
    Absent(String),
    /// The peer has no such load.
    Cannot(String),
    /// It was begun and broke.
    Failed(String),
}

impl What {
    /// Whether nothing was missed.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Compared(comparison) => comparison.judgement.holds(),
            Self::Alone { holds, .. } => *holds,
            Self::Absent(_) | Self::Cannot(_) => true,
            Self::Failed(_) => false,
        }
    }
}

/// What all rows share.
struct Rounds<'a> {
    arguments: &'a Arguments,
    context: LabContext,
    peers: Vec<(Box<dyn Peer>, Result<String, String>)>,
    scratch: Scratch,
    seed: u32,
    interrupt: &'a AtomicBool,
}

/// Measures everything; what ended it early comes beside what there is.
///
/// # Errors
/// Where nothing could be begun.
pub(crate) fn run(
    arguments: &Arguments,
    interrupt: &AtomicBool,
) -> Result<(Report, Option<BenchError>), BenchError> {
    let allowed = allowed_cpus().map_err(BenchError::machine("reading the cores"))?;
    let placement = place(Cores::Split, &allowed);
    let rows = arguments.rows(placement.cores)?;
    let [a, b, c, d, ..] = random()?;
    let rounds = Rounds {
        arguments,
        context: LabContext {
            program: program::find(arguments.program.as_deref())?,
            owner: Owner::this().map_err(BenchError::machine("reading /proc"))?,
            placement,
            verbose: 0,
        },
        peers: arguments.peers()?,
        scratch: Scratch::create().map_err(BenchError::machine("making a directory"))?,
        seed: arguments.seed.unwrap_or(u32::from_ne_bytes([a, b, c, d])),
        interrupt,
    };
    let mut report = rounds.report();
    for (index, row) in rows.into_iter().enumerate() {
        eprintln!("{}", row.name);
        let (result, stopped) = rounds.row(index, row, &mut report);
        if !result.outcomes.is_empty() {
            report.rows.push(result);
        }
        match stopped {
            Some(error) if report.rows.is_empty() => return Err(error),
            Some(error) => return Ok((report, Some(error))),
            None => {}
        }
    }
    Ok((report, None))
}

impl Rounds<'_> {
    fn report(&self) -> Report {
        let found = |(peer, version): &(Box<dyn Peer>, Result<String, String>)| Found {
            name: peer.name(),
            presence: match version {
                Ok(version) => Presence::Version(version.clone()),
                Err(why) => Presence::Absent(why.clone()),
            },
        };
        let placement = &self.context.placement;
        Report {
            peers: self.peers.iter().map(found).collect(),
            kernel: String::new(),
            cpu_model: String::new(),
            cores: placement.cores,
            cpus_a: placement.a.clone(),
            cpus_b: placement.b.clone(),
            guest_mtu: GUEST_MTU,
            pairs: self.arguments.pairs,
            seconds: self.arguments.seconds,
            warmup: self.arguments.warmup,
            seed: self.seed,
            rows: Vec::new(),
        }
    }

    /// One row against all of its opponents; what ended it early comes beside what there is.
    fn row(
        &self,
        index: usize,
        mut row: Row,
        report: &mut Report,
    ) -> (RowResult, Option<BenchError>) {
        let mut result = RowResult {
            name: row.name.clone(),
            unit: row.load.unit().name(),
            bound: row.bound.to_string(),
            outcomes: Vec::new(),
        };
        let done = (|| {
            if let Bound::Agree(_) = row.bound {
                row.network.rate = Some(self.half_of_the_stack(&row, report)?);
                let rate = row.network.rate.map(format_rate).unwrap_or_default();
                result.name = format!("{}, {rate}", row.name);
            }
            let mut lab = self.lab(&row, report)?;
            let mut bench = self.bench(&row, &mut lab)?;
            // An order of its own for each comparison.
            let mut seed = u64::from(self.seed) << 16 | (index as u64) << 8;
            for (peer, version) in self.opponents(&row) {
                seed += 1;
                let what = match version {
                    Err(why) => What::Absent(why.clone()),
                    Ok(_) => no_end(self.compare(&mut bench, &row, peer, seed))?,
                };
                result.outcomes.push(Outcome {
                    opponent: peer.name(),
                    what,
                });
            }
            if row.opponents == Opponents::OurselvesAsleep {
                result.outcomes.push(Outcome {
                    opponent: "asleep",
                    what: no_end(self.compare(&mut bench, &row, &Ours { spin: false }, seed))?,
                });
            }
            if row.opponents == Opponents::Nobody {
                result.outcomes.push(Outcome {
                    opponent: "-",
                    what: no_end(alone(&mut bench, &row).map(|sample| judge_alone(&row, sample)))?,
                });
            }
            Ok(())
        })();
        (result, done.err())
    }

    fn opponents<'s>(
        &'s self,
        row: &Row,
    ) -> impl Iterator<Item = (&'s dyn Peer, &'s Result<String, String>)> {
        let who = row.opponents;
        self.peers
            .iter()
            .filter(move |(peer, _)| match who {
                Opponents::Peers => true,
                Opponents::Iperf3 => peer.name().starts_with("iperf3"),
                Opponents::OurselvesAsleep | Opponents::Nobody => false,
            })
            .map(|(peer, version)| (&**peer, version))
    }

    fn compare(
        &self,
        bench: &mut Bench<'_>,
        row: &Row,
        peer: &dyn Peer,
        seed: u64,
    ) -> Result<What, BenchError> {
        let ours = Ours {
            spin: row.opponents == Opponents::OurselvesAsleep,
        };
        let congestion = peer.sets_congestion().then_some(CONGESTION);
        if let Err(why) = peer.plan(row.load, &bench.setting(congestion, [0; 16])) {
            return Ok(What::Cannot(why));
        }
        let pairs = self.arguments.pairs;
        eprintln!("    {}: {pairs} pairs", peer.name());
        let mut taken = Vec::with_capacity(pairs as usize);
        for pair in 0..pairs {
            let mut both = [None, None];
            for index in wirecost_stats::order(2, pair, seed) {
                let who: &dyn Peer = if index == 0 { &ours } else { peer };
                both[index] = Some(take(bench, who, row, congestion)?);
            }
            if let [Some(ours), Some(other)] = both {
                taken.push(Pair { ours, other });
            }
        }
        let judged = row.judges_cpu.then_some(bench.seconds);
        let comparison = Comparison::new(row.bound, judged, taken)?;
        Ok(What::Compared(Box::new(comparison)))
    }

    /// Bits per second: half of what one unlimited sample of ours reaches.
    fn half_of_the_stack(&self, row: &Row, report: &mut Report) -> Result<u64, BenchError> {
        let mut unlimited = row.clone();
        unlimited.network.rate = None;
        let mut lab = self.lab(&unlimited, report)?;
        let mut bench = self.bench(&unlimited, &mut lab)?;
        let reached = (alone(&mut bench, &unlimited)?.figure * 1e9) as u64;
        Ok((reached / 2 / RATE_STEP * RATE_STEP).max(RATE_STEP))
    }

    /// The row's network, proven.
    fn lab(&self, row: &Row, report: &mut Report) -> Result<Lab, BenchError> {
        let mut lab = Lab::up(&self.context, &row.network, self.interrupt)
            .map_err(BenchError::lab("building it"))?;
        describe(&mut lab, report, self.interrupt)?;
        lab.adapt(GUEST_MTU, &row.offload, self.interrupt)
            .map_err(BenchError::lab("setting MTU and offloads"))?;
        prove(&mut lab, self.interrupt)?;
        Ok(lab)
    }

    fn bench<'l>(&'l self, row: &Row, lab: &'l mut Lab) -> Result<Bench<'l>, BenchError> {
        let places = places(lab, &self.context.placement);
        // Responses are received by the client.
        let counted = usize::from(!row.load.is_exchange());
        Ok(Bench {
            witness: Witness::start(&places[counted])?,
            lab,
            places,
            warmup: self.arguments.warmup,
            seconds: row.seconds.unwrap_or(self.arguments.seconds),
            scratch: self.scratch.path(),
            interrupt: self.interrupt,
        })
    }
}

/// A failure of one comparison does not end the others, unless it is the lab's.
fn no_end(what: Result<What, BenchError>) -> Result<What, BenchError> {
    match what {
        Err(error @ (BenchError::Lab { .. } | BenchError::Interrupted)) => Err(error),
        Err(error) => Ok(What::Failed(error.to_string())),
        Ok(what) => Ok(what),
    }
}

fn take(
    bench: &mut Bench<'_>,
    who: &dyn Peer,
    row: &Row,
    congestion: Option<&str>,
) -> Result<Sample, BenchError> {
    let plan = who.plan(row.load, &bench.setting(congestion, random()?));
    let plan = plan.map_err(|said| BenchError::Tool {
        name: who.name().to_owned(),
        said,
    })?;
    bench.take(who, row.load, &plan)
}

/// One sample of ours.
fn alone(bench: &mut Bench<'_>, row: &Row) -> Result<Sample, BenchError> {
    take(bench, &Ours { spin: false }, row, Some(CONGESTION))
}

fn judge_alone(row: &Row, sample: Sample) -> What {
    let holds = match (row.bound, sample.peak_bytes) {
        (Bound::Memory(most), Some(peak)) => peak > 0 && peak < most,
        _ => false,
    };
    What::Alone { sample, holds }
}

fn places(lab: &Lab, placement: &Placement) -> [Place; 2] {
    let [tid_a, tid_b] = lab.guest_tids().each_ref().map(|tids| tids[0]);
    let [address_a, address_b] = lab.guest_addresses().map(|addresses| addresses[0]);
    [
        Place::new(tid_a, &placement.a, address_a),
        Place::new(tid_b, &placement.b, address_b),
    ]
}

fn describe(lab: &mut Lab, report: &mut Report, interrupt: &AtomicBool) -> Result<(), BenchError> {
    let [a, _] = lab.links();
    let during = BenchError::lab("describing it");
    match a
        .call(&Request::Describe, PROMPT, interrupt)
        .map_err(&during)?
    {
        Reply::Description(environment) => {
            report.kernel = environment.kernel;
            report.cpu_model = environment.cpu_model;
            Ok(())
        }
        _ => Err(during(a.confused("Describe"))),
    }
}

/// A path that drops full frames would have both measure something else.
fn prove(lab: &mut Lab, interrupt: &AtomicBool) -> Result<(), BenchError> {
    let proofs = lab
        .prove(ProofTime::Before, GUEST_MTU, interrupt)
        .map_err(BenchError::lab("proving the path"))?;
    match proofs.into_iter().find(|proof| !proof.proven) {
        None => Ok(()),
        Some(proof) => Err(BenchError::Path {
            size: proof.size,
            reason: proof.reason.unwrap_or_else(|| "no reason given".to_owned()),
        }),
    }
}

fn random() -> Result<[u8; 16], BenchError> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(BenchError::machine("reading /dev/urandom"))?;
    Ok(bytes)
}
