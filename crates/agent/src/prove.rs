//! Proofs between the guests of a lab: crate `probe`, from inside each of them.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use wirecost_model::ip::IpVersion;
use wirecost_pmtu::{Config, FAR_AWAY, Limit, Outcome, RateLimit, SurveyRequest, likely_sizes};
use wirecost_probe::message::Secret;
use wirecost_probe::{Endpoints, ProbeError, Responder, survey};
use wirecost_sys::namespace::Netns;

use crate::error::{AgentError, Result, Step};
use crate::protocol::ProofResult;

/// Limit for the proof of all guests, well within the controller's time-out.
const LIMIT: Duration = Duration::from_secs(8);

/// A guest's namespace, or that of the agent.
pub(crate) type Place<'a> = Option<&'a Netns>;

fn inside<T>(place: Place<'_>, work: impl FnOnce() -> T) -> std::io::Result<T> {
    match place {
        Some(guest) => guest.within(work),
        None => Ok(work()),
    }
}

/// Starts one responder for all guests, on an address of each.
pub(crate) fn respond<'a>(
    guests: impl Iterator<Item = (Place<'a>, IpAddr)>,
    secret: Secret,
) -> Result<Responder> {
    let sockets: Result<Vec<_>> = guests
        .map(|(guest, address)| {
            let bound = inside(guest, || Responder::bind(SocketAddr::new(address, 0)));
            let bound = bound.step("entering the guest's namespace")?;
            bound.map_err(AgentError::from)
        })
        .collect();
    Responder::over(sockets?, secret).map_err(AgentError::from)
}

/// Proves from inside each guest that datagrams of exactly `size` bytes arrive whole at the target that
/// has its number; where less is as good (`exact` is false), of the size that routers or the device report to pass. The first
/// that does not get through is searched for what does, and ends the proof.
pub(crate) fn prove_all<'a>(
    guests: impl Iterator<Item = (Place<'a>, IpAddr)>,
    targets: &[SocketAddr],
    (size, exact): (u32, bool),
    secret: &Secret,
) -> Result<ProofResult> {
    let began = Instant::now();
    let mut all = ProofResult {
        proven: true,
        size,
        reason: None,
        probes: 0,
        seconds: 0.0,
    };
    for (number, ((guest, address), target)) in guests.zip(targets).enumerate() {
        let endpoints = Endpoints {
            from: address,
            first_port: 0,
            to: *target,
        };
        let left = LIMIT.saturating_sub(began.elapsed());
        let one = inside(guest, || prove(endpoints, (size, exact), secret, left))
            .step("entering the guest's namespace")?
            .step("proving the path from inside the guest")?;
        all.probes += one.probes;
        all.size = all.size.min(one.size);
        if !one.proven {
            all.proven = false;
            all.reason = match targets.len() {
                1 => one.reason,
                _ => one.reason.map(|reason| format!("guest {number}: {reason}")),
            };
            break;
        }
    }
    all.seconds = began.elapsed().as_secs_f64();
    Ok(all)
}

/// The same of one guest, within `limit`.
fn prove(
    endpoints: Endpoints,
    (size, exact): (u32, bool),
    secret: &Secret,
    limit: Duration,
) -> Result<ProofResult, ProbeError> {
    let question = SurveyRequest {
        low: smallest(endpoints.to.ip()).min(size),
        high: size,
        expect: Some(size),
        likely_sizes: likely_sizes(),
        flows: 1,
        config: Config {
            patience: FAR_AWAY,
            ..Config::default()
        },
        // The lab is ours alone: nobody is disturbed by how fast it goes.
        pace: RateLimit {
            first_bytes_per_second: 10e9,
            datagrams_per_second: 1e6,
            bytes_per_second: 10e9,
            max_time: limit,
            ..RateLimit::default()
        },
        count: false,
    };
    let surveyed = survey(endpoints, question, secret)?;
    let outcome = surveyed.result.outcomes.first().map(|flow| &flow.outcome);
    // A smaller one was acknowledged, and whoever sends more is told so.
    let reported = outcome.and_then(|outcome| match outcome {
        Outcome::TooBig {
            carries: Some(carries),
            limit: Limit::Device { .. } | Limit::Signalled { .. },
            ..
        } if !exact => Some(*carries),
        _ => None,
    });
    let proven = reported.is_some() || outcome.is_some_and(Outcome::is_proven);
    Ok(ProofResult {
        proven,
        size: reported.unwrap_or(size),
        reason: outcome.filter(|_| !proven).map(reason),
        probes: surveyed.result.probes,
        seconds: surveyed.took.as_secs_f64(),
    })
}

/// Why a size is not proven, and how to see what a black hole does to TCP.
fn reason(outcome: &Outcome) -> String {
    match outcome {
        Outcome::TooBig {
            limit: Limit::BlackHole,
            ..
        } => format!(
            "{outcome}; `wirecost check netns:A netns:B --simulate` measures what TCP does over such a path between \
             namespaces"
        ),
        outcome => outcome.to_string(),
    }
}

/// Where a search begins: the smallest MTU that IP can have there.
pub(crate) const fn smallest(target: IpAddr) -> u32 {
    match target {
        IpAddr::V4(_) => IpVersion::Ipv4.min_mtu(),
        IpAddr::V6(_) => IpVersion::Ipv6.min_mtu(),
    }
}
