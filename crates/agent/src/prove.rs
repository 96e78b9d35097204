//! Proofs between guests, or between existing hosts: crate `probe`, from inside each guest's namespace.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use wirecost_model::ip::IpVersion;
use wirecost_pmtu::{Config, FAR_PATIENCE, Limit, Outcome, RateLimit, SurveyRequest, likely_sizes};
use wirecost_probe::message::Secret;
use wirecost_probe::{Endpoints, ProbeError, Responder, survey};
use wirecost_sys::namespace::Netns;

use crate::error::{AgentError, Context, Result};
use crate::protocol::{PROOF_PER_GUEST, ProofResult};

/// Time limit for the proofs of all guests together, and what each of them adds to it: well within the controller's
/// timeout, which grows alike.
const LIMIT: Duration = Duration::from_secs(8);

/// The namespace of a guest; `None`: that of the agent.
pub(crate) type GuestNetns<'a> = Option<&'a Netns>;

fn inside<T>(place: GuestNetns<'_>, work: impl FnOnce() -> T) -> std::io::Result<T> {
    match place {
        Some(guest) => guest.within(work),
        None => Ok(work()),
    }
}

/// Starts one responder that answers at the address of every guest.
pub(crate) fn respond<'a>(
    guests: impl Iterator<Item = (GuestNetns<'a>, IpAddr)>,
    secret: Secret,
) -> Result<Responder> {
    let sockets: Result<Vec<_>> = guests
        .map(|(guest, address)| {
            let bound = inside(guest, || Responder::bind(SocketAddr::new(address, 0)));
            let bound = bound.context("entering the guest's namespace")?;
            bound.map_err(AgentError::from)
        })
        .collect();
    Responder::over(sockets?, secret).map_err(AgentError::from)
}

/// Proves, from inside each guest, that a datagram of exactly `size` bytes arrives unfragmented at the target with the
/// guest's number. Where a smaller size is acceptable (`exact` is false), the size that a router or the device reports
/// is proven instead. The first guest that fails is searched for the size that passes, and ends the proof.
pub(crate) fn prove_all<'a>(
    guests: impl Iterator<Item = (GuestNetns<'a>, IpAddr)>,
    targets: &[SocketAddr],
    (size, exact): (u32, bool),
    secret: &Secret,
) -> Result<ProofResult> {
    let began = Instant::now();
    let limit = LIMIT + PROOF_PER_GUEST * targets.len() as u32;
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
        let left = limit.saturating_sub(began.elapsed());
        let one = inside(guest, || prove(endpoints, (size, exact), secret, left))
            .context("entering the guest's namespace")?
            .context("proving the path from inside the guest")?;
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

/// Proves the path of one guest, within `limit`.
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
            patience: FAR_PATIENCE,
            ..Config::default()
        },
        // The path is used by this run only, so no rate limit is needed.
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
    // A smaller size was acknowledged, and senders of larger packets get an error that names it.
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

/// Why a size is not proven; for a PMTU black hole also how to see its effect on TCP.
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

/// The lowest size of a search: the smallest MTU that IP allows towards `target`, bytes.
pub(crate) const fn smallest(target: IpAddr) -> u32 {
    match target {
        IpAddr::V4(_) => IpVersion::Ipv4.min_mtu(),
        IpAddr::V6(_) => IpVersion::Ipv6.min_mtu(),
    }
}
