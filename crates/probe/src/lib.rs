//! The state machines of crate `pmtu` over real sockets, the responder that acknowledges their
//! probes, and a short TCP stream as an additional test.
//!
//! Sockets are made in the calling thread's network namespace and stay there. Each flow is a socket
//! with its own source port. This host cannot fragment probes (`IP_PMTUDISC_PROBE`). ICMP messages
//! are read from the error queue (`IP_RECVERR`), never from a raw socket, so nothing here needs
//! privilege except the echo of [`one_sided`], where `net.ipv4.ping_group_range` excludes the
//! caller, and what says that it needs `CAP_NET_RAW`.
//!
//! Not here: conclusions from the answers (`pmtu`), the state of a host's devices (`audit`).

mod capture;
mod device;
mod error;
mod flow;
mod hops;
mod locate;
pub mod message;
mod one_sided;
mod responder;
mod segments;
mod stream;
mod survey;
mod tap;
mod tcp_proof;
mod trace;
pub mod transfer;

pub use capture::{CapturedMessages, IcmpMessage, icmp};
pub use device::device_mtu;
pub use error::ProbeError;
pub use flow::Refusal;
pub use locate::{LOCATING, locate, locate_on};
pub use one_sided::one_sided;
pub use responder::Responder;
pub use segments::{Segments, segments};
pub use stream::{StreamOutcome, StreamPath, StreamServer, stream};
pub use survey::{Endpoints, SurveyOutcome, burst, survey, survey_mapped, survey_unless};
pub use tap::{ArrivalCapture, Arrivals, TappedDatagram, parse_datagram};
pub use tcp_proof::{TcpProof, tcp_proof};
pub use trace::{TRACING, trace, trace_on};
