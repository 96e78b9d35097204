//! Every row in turn: a lab, and on it rounds of all who are compared.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::lab::allowed_cpus;
use wirecost_agent::orphan::Owner;
use wirecost_bench::program;
use wirecost_bench::scratch::Scratch;
use wirecost_control::hosts::{AgentRole, Binaries, HostsContext};
use wirecost_control::{Lab, LabContext, Placement, place};
use wirecost_model::plan::Cores;
use wirecost_model::units::format_rate;

use crate::arguments::Arguments;
use crate::bound::Bound;
use crate::error::BenchError;
use crate::guest::Guest;
use crate::lab::{describe, one_congestion_control, prove, unhook};
use crate::looper::Loopers;
use crate::measure::Bench;
use crate::peer::{BARE, Ours, Peer};
use crate::random::random;
use crate::report::{CountedBy, Outcome, OutcomeKind, PeerReport, Presence, Report, RowResult};
use crate::row::{GUEST_MTU, Opponents, Row};
use crate::row_rounds::{Opponent, RowRounds, take, unless_fatal};
use crate::sample::Sample;
use crate::traffic_counter::TrafficCounter;

/// What a measured rate is rounded down to before it is halved, bits per second.
const RATE_STEP: u64 = 200_000_000;

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
            agents: HostsContext {
                program: program::find(arguments.program.as_deref())?,
                binaries: Binaries::default(),
                owner: Owner::this().map_err(BenchError::machine("reading /proc"))?,
                role: AgentRole::Commands,
                idle: Duration::ZERO,
                verbose: 0,
            },
            placement,
            release_us: wirecost_model::line::RELEASE_US,
            several_links: false,
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
        let found = |(peer, version): &(Box<dyn Peer>, Result<String, String>)| PeerReport {
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
            hooked: false,
            pairs: self.arguments.pairs,
            most: self.arguments.most(),
            seconds: self.arguments.seconds,
            warmup: self.arguments.warmup,
            seed: self.seed,
            cpu: self.arguments.cpu,
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
            bound: row.bounds(),
            cpu: row.cpu(self.arguments.cpu),
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
            if row.opponents == Opponents::Nobody {
                result.outcomes.push(Outcome {
                    opponent: "-",
                    what: unless_fatal(alone(&mut bench, &row))?
                        .map_or_else(OutcomeKind::Failed, |sample| judge_alone(&row, sample)),
                    broken: Vec::new(),
                });
                return Ok(());
            }
            let asleep = Ours { spin: false };
            let opponents = match row.opponents {
                Opponents::OurselvesAsleep => vec![Opponent::new("asleep", &asleep, Ok(()))],
                _ => self.opponents(&row).collect(),
            };
            let row_rounds = RowRounds {
                row: &row,
                pairs: self.arguments.pairs,
                most: self.arguments.most(),
                // An order of its own for each row.
                seed: u64::from(self.seed) << 16 | (index as u64) << 8,
            };
            let (outcomes, stopped) = row_rounds.run(&mut bench, opponents);
            result.outcomes = outcomes;
            stopped.map_or(Ok(()), Err)
        })();
        (result, done.err())
    }

    fn opponents<'s>(&'s self, row: &Row) -> impl Iterator<Item = Opponent<'s>> {
        let who = row.opponents;
        self.peers
            .iter()
            .filter(move |(peer, _)| match who {
                Opponents::Peers => true,
                Opponents::Iperf3 => peer.name().starts_with("iperf3"),
                Opponents::Iperf3AndBare => {
                    peer.name().starts_with("iperf3") || peer.name() == BARE
                }
                Opponents::OurselvesAsleep | Opponents::Nobody => false,
            })
            .map(|(peer, version)| {
                let here = version.as_ref().map(drop).map_err(Clone::clone);
                Opponent::new(peer.name(), &**peer, here)
            })
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
        lab.adapt(GUEST_MTU, &row.offload, self.interrupt)
            .map_err(BenchError::lab("setting MTU and offloads"))?;
        report.hooked = !unhook(&mut lab, self.interrupt)?;
        one_congestion_control(&mut lab, self.interrupt)?;
        describe(&mut lab, report, self.interrupt)?;
        prove(&mut lab, self.interrupt)?;
        Ok(lab)
    }

    fn bench<'l>(&'l self, row: &Row, lab: &'l mut Lab) -> Result<Bench<'l>, BenchError> {
        let guests = guests(lab, &self.context.placement);
        // Responses are received by the client.
        let counted = usize::from(!row.load.is_exchange());
        let placement = &self.context.placement;
        let [a, b] = &guests;
        Ok(Bench {
            traffic_counter: TrafficCounter::start(&guests[counted])?,
            loopers: match row.cpu(self.arguments.cpu) {
                CountedBy::Looper => Some([
                    Loopers::start(a, &placement.a)?,
                    Loopers::start(b, &placement.b)?,
                ]),
                CountedBy::Idle => None,
            },
            cores: [placement.a[0], placement.b[0]],
            lab,
            guests,
            warmup: self.arguments.warmup,
            seconds: self.arguments.seconds.max(row.least_seconds),
            scratch: self.scratch.path(),
            interrupt: self.interrupt,
        })
    }
}

/// One sample of ours.
fn alone(bench: &mut Bench<'_>, row: &Row) -> Result<Sample, BenchError> {
    take(bench, &Ours { spin: false }, row)
}

fn judge_alone(row: &Row, sample: Sample) -> OutcomeKind {
    let holds = match (row.bound, sample.peak_bytes) {
        (Bound::Memory(most), Some(peak)) => peak > 0 && peak < most,
        _ => false,
    };
    OutcomeKind::Alone { sample, holds }
}

fn guests(lab: &Lab, placement: &Placement) -> [Guest; 2] {
    let [tid_a, tid_b] = lab.guest_tids().each_ref().map(|tids| tids[0]);
    let [address_a, address_b] = lab.guest_addresses().map(|addresses| addresses[0]);
    [
        Guest::new(tid_a, &placement.a, address_a),
        Guest::new(tid_b, &placement.b, address_b),
    ]
}
