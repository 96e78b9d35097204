//! A path hop by hop: plain data, between agents and in the document.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_pmtu::{HopMessage, Source, TracedHop};

use crate::seen::Refused;

/// One direction, hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// The sending host.
    pub from: String,
    /// The receiving one.
    pub to: String,
    /// By distance.
    pub hops: Vec<HopReport>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopReport {
    /// Its distance, from 1.
    pub ttl: u8,
    /// Its address, as it reports; `None`: it does not answer.
    pub address: Option<IpAddr>,
    /// The shortest round trip, seconds.
    pub rtt_s: Option<f64>,
    /// The largest packet that reached it, of those that were tried, bytes.
    pub mtu: Option<u32>,
    /// What was said by ICMP while it was asked, in words.
    pub message: Option<String>,
    /// Whether it is the destination.
    pub destination: bool,
}

impl From<&TracedHop> for HopReport {
    fn from(hop: &TracedHop) -> Self {
        Self {
            ttl: hop.ttl,
            address: hop.address,
            rtt_s: hop.rtt.map(|rtt| rtt.as_secs_f64()),
            mtu: hop.reached_by,
            message: hop.message.map(words),
            destination: hop.destination,
        }
    }
}

fn words(message: HopMessage) -> String {
    match message {
        HopMessage::TooBig(too_big) => match too_big.source {
            Source::Router(by) => format!("{by} says too big: {}", too_big.mtu),
            Source::Local => format!("this host sends {} at most", too_big.mtu),
        },
        HopMessage::Unreachable { by, code } => {
            format!("{by} says {}", Refused { by, code }.words())
        }
    }
}
