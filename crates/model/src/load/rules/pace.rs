//! Rules of a load's rate, of the times that it waits, and of what ends it.

use std::time::Duration;

use super::super::{Limit, Rate};
use super::{Fault, Load, unless};

/// Largest reply time-out: histograms end at 137 s.
pub const MAX_REPLY_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest time between a response and the next request.
pub const MAX_THINK_TIME: Duration = Duration::from_mins(1);

pub(super) fn rate(load: &Load) -> Option<Fault> {
    let rr = load.workload.is_request_response();
    let wrong = |words: &str| unless(false, "rate", || words.to_owned());
    match load.rate? {
        Rate::BitsPerSecond(_) if rr => {
            wrong("request/response loads have a rate in requests per second")
        }
        Rate::RequestsPerSecond(_) if !rr => wrong("streams have a rate in bits per second"),
        Rate::BitsPerSecond(bits) => unless(bits >= 8, "rate", || {
            format!("{bits} bit/s for each flow: at least 8, a byte a second")
        }),
        Rate::RequestsPerSecond(requests) => {
            let possible = requests.is_finite() && (1e-3..=1e8).contains(&requests);
            if !possible {
                return unless(false, "rate", || {
                    format!("{requests} requests per second: 0.001 to 100,000,000")
                });
            }
            unless(load.think_time.is_zero(), "rate", || {
                "a rate of requests and a think time exclude each other".to_owned()
            })
        }
    }
}

pub(super) fn most(load: &Load) -> Option<Fault> {
    let fits = |most: f64| (1e-9..=1e12).contains(&most);
    unless(load.most_per_second.is_none_or(fits), "max_rate", || {
        format!(
            "at most {} requests per second of a flow: 0.000000001 to 1,000,000,000,000",
            load.most_per_second.unwrap_or_default()
        )
    })
}

pub(super) fn limit(load: &Load) -> Option<Fault> {
    let wrong = |words: &str| unless(false, "limit", || words.to_owned());
    match load.limit? {
        _ if load.workload.is_migration() => {
            wrong("a migration is over when its machines have moved")
        }
        Limit::Time(time) if time.is_zero() => wrong("a duration of no time"),
        Limit::Bytes(0) | Limit::Transactions(0) => wrong("a limit of nothing"),
        Limit::Bytes(_) if load.workload.is_request_response() => {
            wrong("request/response loads are limited by transactions, not by bytes")
        }
        Limit::Transactions(_) if load.workload.is_tcp_stream() => {
            wrong("TCP streams are limited by bytes: they have no transactions")
        }
        Limit::Time(_) | Limit::Bytes(_) | Limit::Transactions(_) => None,
    }
}

pub(super) fn reply_timeout(load: &Load) -> Option<Fault> {
    let time = load.reply_timeout;
    let fits = !time.is_zero() && time <= MAX_REPLY_TIMEOUT;
    unless(fits, "reply_timeout", || {
        format!(
            "reply_timeout is {} s: above 0, at most {} s",
            time.as_secs_f64(),
            MAX_REPLY_TIMEOUT.as_secs()
        )
    })
}

pub(super) fn think_time(load: &Load) -> Option<Fault> {
    if load.think_time > MAX_THINK_TIME {
        let (asked, most) = (load.think_time.as_secs_f64(), MAX_THINK_TIME.as_secs());
        return unless(false, "think_time", || {
            format!("think_time is {asked} s: at most {most} s")
        });
    }
    let fits = load.think_time.is_zero() || load.workload.is_request_response();
    unless(fits, "think_time", || {
        "think_time is for request/response loads".to_owned()
    })
}
