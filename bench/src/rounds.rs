//! Every row in turn: a lab, and on it rounds of all who are compared.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::lab::allowed_cpus;
use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_agent::stray::Owner;
use wirecost_bench::program;
use wirecost_bench::scratch::Scratch;
use wirecost_model::plan::Cores;
use wirecost_model::sample::ProofTime;
use wirecost_model::units::format_rate;
use wirecost_model::vary::{Place as Where, Setting};
use wirecost_run::{Lab, LabContext, Placement, place};

use crate::arguments::Arguments;
use crate::contest::{Arm, CONGESTION, Contest, take, unless_it_ends_all};
use crate::error::BenchError;
use crate::measure::{Bench, Sample};
use crate::peer::{Ours, Peer};
use crate::place::Place;
use crate::report::{Found, Outcome, Presence, Report, RowResult, What};
use crate::row::{Bound, GUEST_MTU, Opponents, Row};
use crate::witness::Witness;

/// How long a host may take to describe itself.
const PROMPT: Duration = Duration::from_secs(10);
/// What has bridges pass frames through the firewall's hooks (net/bridge/br_netfilter_hooks.c).
const HOOKS: [&str; 3] = [
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.bridge.bridge-nf-call-arptables",
];
/// What new network namespaces have too.
const DEFAULT_CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// What a measured rate is rounded down to before it is halved, bits per second.
const RATE_STEP: u64 = 200_000_000;

/// What all rows share.
struct Rounds<'a> {
    arguments: &'a Arguments,
    context: LabContext,
    peers: Vec<(Box<dyn Peer>, Result<String, String>)>,
    scratch: Scratch,
    seed: u32,
    default_congestion: String,
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
        default_congestion: std::fs::read_to_string(DEFAULT_CONGESTION)
            .map_err(BenchError::machine("reading the congestion control"))?
            .trim()
            .to_owned(),
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
            hooked: false,
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
            if row.opponents == Opponents::Nobody {
                result.outcomes.push(Outcome {
                    opponent: "-",
                    what: unless_it_ends_all(alone(&mut bench, &row))?
                        .map_or_else(What::Failed, |sample| judge_alone(&row, sample)),
                    broken: Vec::new(),
                });
                return Ok(());
            }
            let asleep = Ours { spin: false };
            let arms = match row.opponents {
                Opponents::OurselvesAsleep => vec![Arm::new("asleep", &asleep, Ok(()))],
                _ => self.opponents(&row).collect(),
            };
            let contest = Contest {
                row: &row,
                pairs: self.arguments.pairs,
                // An order of its own for each row.
                seed: u64::from(self.seed) << 16 | (index as u64) << 8,
                default_congestion: &self.default_congestion,
            };
            let (outcomes, stopped) = contest.run(&mut bench, arms);
            result.outcomes = outcomes;
            stopped.map_or(Ok(()), Err)
        })();
        (result, done.err())
    }

    fn opponents<'s>(&'s self, row: &Row) -> impl Iterator<Item = Arm<'s>> {
        let who = row.opponents;
        self.peers
            .iter()
            .filter(move |(peer, _)| match who {
                Opponents::Peers => true,
                Opponents::Iperf3 => peer.name().starts_with("iperf3"),
                Opponents::OurselvesAsleep | Opponents::Nobody => false,
            })
            .map(|(peer, version)| {
                let here = version.as_ref().map(drop).map_err(Clone::clone);
                Arm::new(peer.name(), &**peer, here)
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
        describe(&mut lab, report, self.interrupt)?;
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

/// Has bridges pass frames without the firewall's hooks, where this machine would have them walk there: the network is to
/// cost as little as it can, so that the generators' own cost shows. `false` where a plain user's lab has to keep them.
fn unhook(lab: &mut Lab, interrupt: &AtomicBool) -> Result<bool, BenchError> {
    if !Path::new("/proc/sys/net/bridge").exists() {
        return Ok(true);
    }
    let setting = Setting {
        factor: "bridge".to_owned(),
        label: "unhooked".to_owned(),
        sysctl: HOOKS.map(|key| (key.to_owned(), "0".to_owned())).into(),
        ethtool: BTreeMap::new(),
        command: None,
        on: Where::Hosts,
    };
    match lab.put_in_force(&[setting], interrupt) {
        Ok(_) => Ok(true),
        Err(LinkError::Refused { .. }) => Ok(false),
        Err(error) => Err(BenchError::lab("setting its bridges")(error)),
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

pub(crate) fn random() -> Result<[u8; 16], BenchError> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(BenchError::machine("reading /dev/urandom"))?;
    Ok(bytes)
}
