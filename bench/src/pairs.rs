//! Every configuration in turn: a lab, and pairs in random order on it.

use std::fs::File;
use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use wirecost_agent::lab::allowed_cpus;
use wirecost_agent::protocol::{Reply, Request};
use wirecost_agent::stray::Owner;
use wirecost_model::plan::Cores;
use wirecost_model::sample::ProofTime;
use wirecost_run::{Lab, LabContext, place};

use crate::arguments::Arguments;
use crate::comparison::{Comparison, Pair};
use crate::configuration::{Configuration, GUEST_MTU};
use crate::error::BenchError;
use crate::iperf3;
use crate::measure::{Bench, Tool};

/// How long a host may take to describe itself.
const PROMPT: Duration = Duration::from_secs(10);

/// Everything that is printed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// First line of `iperf3 --version`.
    pub(crate) iperf3: String,
    pub(crate) kernel: String,
    pub(crate) cpu_model: String,
    pub(crate) cores: Cores,
    /// Cores of the sending host and its tools.
    pub(crate) cpus_a: Vec<u32>,
    /// Cores of the receiving host and its tools.
    pub(crate) cpus_b: Vec<u32>,
    pub(crate) guest_mtu: u32,
    /// Pairs asked for in each configuration.
    pub(crate) pairs: u32,
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    pub(crate) seed: u32,
    /// Those that were measured to the end.
    pub(crate) comparisons: Vec<Comparison>,
}

/// Measures everything; what ended it early comes beside what there is.
///
/// # Errors
/// Where nothing could be begun.
pub(crate) fn run(
    arguments: &Arguments,
    interrupt: &AtomicBool,
) -> Result<(Report, Option<BenchError>), BenchError> {
    let iperf3 = iperf3::version()?;
    let program = arguments.program()?;
    let allowed = allowed_cpus().map_err(BenchError::machine("reading the cores"))?;
    let owner = Owner::this().map_err(BenchError::machine("reading /proc"))?;
    let [a, b, c, d, ..] = random()?;
    let placement = place(Cores::Split, &allowed);
    let mut report = Report {
        iperf3,
        kernel: String::new(),
        cpu_model: String::new(),
        cores: placement.cores,
        cpus_a: placement.a.clone(),
        cpus_b: placement.b.clone(),
        guest_mtu: GUEST_MTU,
        pairs: arguments.pairs,
        seconds: arguments.seconds,
        warmup: arguments.warmup,
        seed: arguments.seed.unwrap_or(u32::from_ne_bytes([a, b, c, d])),
        comparisons: Vec::new(),
    };
    let context = LabContext {
        program,
        owner,
        placement,
        verbose: 0,
    };
    let all = Configuration::all(report.cores);
    for (index, configuration) in all.iter().enumerate() {
        eprintln!(
            "{} of {}: {configuration}: {} pairs",
            index + 1,
            all.len(),
            arguments.pairs
        );
        // An order of its own for each configuration.
        let seed = u64::from(report.seed) << 8 | index as u64;
        match compare(
            &context,
            configuration,
            arguments,
            seed,
            &mut report,
            interrupt,
        ) {
            Ok(comparison) => report.comparisons.push(comparison),
            Err(error) if index == 0 => return Err(error),
            Err(error) => return Ok((report, Some(error))),
        }
    }
    Ok((report, None))
}

fn compare(
    context: &LabContext,
    configuration: &Configuration,
    arguments: &Arguments,
    seed: u64,
    report: &mut Report,
    interrupt: &AtomicBool,
) -> Result<Comparison, BenchError> {
    let mut lab = Lab::up(context, &configuration.network, interrupt)
        .map_err(BenchError::lab("building it"))?;
    describe(&mut lab, report, interrupt)?;
    lab.adapt(GUEST_MTU, &configuration.offload, interrupt)
        .map_err(BenchError::lab("setting MTU and offloads"))?;
    prove(&mut lab, interrupt)?;
    let mut bench = Bench {
        lab: &mut lab,
        placement: &context.placement,
        warmup: arguments.warmup,
        seconds: arguments.seconds,
        interrupt,
    };
    let mut pairs = Vec::with_capacity(arguments.pairs as usize);
    for pair in 0..arguments.pairs {
        let [mut ours, mut iperf3] = [None, None];
        for tool in wirecost_stats::order(Tool::BOTH.len(), pair, seed) {
            let tool = Tool::BOTH[tool];
            let sample = bench.take(tool, random()?)?;
            *match tool {
                Tool::Ours => &mut ours,
                Tool::Iperf3 => &mut iperf3,
            } = Some(sample);
        }
        pairs.extend(ours.zip(iperf3).map(|(ours, iperf3)| Pair { ours, iperf3 }));
    }
    Ok(Comparison::new(configuration.to_string(), pairs)?)
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

/// A path that drops full frames would have both tools measure something else.
fn prove(lab: &mut Lab, interrupt: &AtomicBool) -> Result<(), BenchError> {
    let proofs = lab
        .prove(ProofTime::Before, GUEST_MTU, random()?, interrupt)
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
