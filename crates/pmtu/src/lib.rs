//! Path MTU: the proof that a path carries packets of exactly one size, and the search for the size it does carry.
//!
//! State machines without sockets or clock: they say which probe to send and when to come back, and
//! are told the results. A probe is an IP packet of exactly [`Probe::size`] bytes that cannot be
//! segmented or fragmented, and the other end acknowledges it with a small reply; nothing else (a
//! ping, `IP_MTU`, an ICMP message) counts as proof.
//!
//! ```
//! use std::time::Duration;
//! use wirecost_pmtu::{Config, Outcome, Prober};
//!
//! let path_mtu = 1500;
//! let mut prober = Prober::verify(8900, Config::default()).or_search(576, wirecost_pmtu::likely_sizes());
//! let mut now = Duration::ZERO;
//! let outcome = loop {
//!     while let Some(probe) = prober.poll_transmit(now) {
//!         // A real path takes a while; this one acknowledges at once.
//!         if probe.size <= path_mtu {
//!             prober.on_acked(probe.id, now);
//!         }
//!     }
//!     if let Some(outcome) = prober.outcome() {
//!         break outcome;
//!     }
//!     now = prober.next_timeout().unwrap_or(now);
//! };
//! assert_eq!(
//!     outcome.to_string(),
//!     "8900 bytes do not pass: the path carries 1500 and drops larger packets without ICMP"
//! );
//! ```
//!
//! # Certainty
//! A packet that is acknowledged passes, without doubt. A lost one may have been too big or
//! unlucky, and small control probes (and sizes that are known to pass), sent between the big ones,
//! tell the difference: a size is called too big only when every copy was lost **and** the
//! probability of losing exactly these probes by chance, rather than others of the same rounds, is
//! at most 1 in 10,000. How many copies that takes follows from the path: 6 where nothing else is lost, 15 where
//! one in three round trips fails. A search is stricter, and sends 7 to 9 at once. A size that
//! passes is called too big with a probability below 10⁻⁴ at any rate of random loss (2 × 10⁻⁵ with
//! 20 % lost each way; a test computes it exactly); where the path is too lossy to decide in time,
//! the outcome says so.
//!
//! It assumes that packets smaller than one that passes pass too, and that loss does not otherwise grow with size. A
//! queue too short for a round's probes would look like a small MTU: a survey paces them.
//!
//! # The state machines
//! - [`Prober`]: one flow. A proof, a search, or a comparison with the MTU of another flow.
//! - [`Survey`]: every equal path in one direction. One flow is searched, the others are probed for the same MTU and
//!   one byte more, and those that differ are searched too. The other direction is another survey, at the same time.
//!   [`flows_to_cover_all`] says how many flows it takes.
//! - [`Locator`]: the two routers between which a size is lost.
//! - [`Tracer`]: the routers of a path, and the largest size that reaches each.
//! - [`OneSided`]: what can be known without an agent at the far end.

mod config;
mod evidence;
mod flight;
mod flows;
mod locate;
mod one_sided;
mod outcome;
mod pacing;
mod prober;
mod rounds;
mod rtt;
mod sizes;
mod survey;
#[cfg(test)]
mod tests;
mod trace;

pub use config::{Arrival, Config, FAR_PATIENCE, Probe};
pub use flows::{FailingShare, flows_to_cover_all, flows_to_cover_one, paths_met};
pub use locate::{HopProbe, LocateConfig, Located, Locator, NotLocated, PathPoint};
pub use one_sided::{ForwardMtu, OneSided, OneSidedProbe, OneSidedResult, ProbeKind};
pub use outcome::{CannotTellReason, Limit, Outcome, Source, TooBig};
pub use pacing::{LONGEST_EXTENSION, ROUND_TRIPS, RateLimit};
pub use prober::Prober;
pub use sizes::likely_sizes;
pub use survey::{FlowOutcome, FlowProbe, Group, Survey, SurveyRequest, SurveyResult};
pub use trace::{HopMessage, TraceConfig, TracedHop, Tracer};
