//! What the loads of a run between existing hosts send at most (`max_rate`).

use std::fmt;
use std::time::Duration;

use wirecost_model::cell::Experiment;
use wirecost_model::load::{Load, NamedLoad, Rate};
use wirecost_model::plan::{MaxRate, NamedPair};
use wirecost_model::units::format_rate;

use super::forecast::forecast;

/// Limit on loads between machines where neither the plan nor the devices' speeds give one, bit/s.
const CAUTIOUS: u64 = 1_000_000_000;
/// A time in which no answer comes from another machine.
const ROUND_TRIP: Duration = Duration::from_micros(10);
/// Lowest rate of requests that a load may have.
const LOWEST_RATE: f64 = 1e-3;
/// Rate for which an amount is stated where there is no limit, bit/s.
const FAST: u64 = 10_000_000_000;

/// The limit on all loads together in one direction, bit/s; `None`: no limit. `speeds`: [`ExistingPair::speeds`].
///
/// [`ExistingPair::speeds`]: crate::lab::ExistingPair::speeds
pub(super) fn limit(wanted: MaxRate, one_machine: bool, speeds: &[Option<u64>]) -> Option<u64> {
    match wanted {
        MaxRate::None => None,
        MaxRate::BitsPerSecond(rate) => Some(rate),
        MaxRate::Auto if one_machine => None,
        MaxRate::Auto => {
            let slowest = speeds.iter().flatten().min();
            let half = slowest.map_or(CAUTIOUS, |speed| speed / 2);
            Some(if speeds.contains(&None) {
                half.min(CAUTIOUS)
            } else {
                half
            })
        }
    }
}

/// Limits loads that run at the same time to `limit` bit/s together in each direction. Loads that send less than an
/// equal share stay as they are, and the others share what these leave.
pub(super) fn share(loads: &mut [NamedLoad], limit: u64) {
    let fair = limit / (loads.len() as u64).max(1);
    let least = |load: &Load| most(load).filter(|most| *most <= fair);
    let (mut left, mut sharing) = (limit, 0);
    for named in loads.iter() {
        match least(&named.load) {
            Some(most) => left -= most,
            None => sharing += 1,
        }
    }
    for named in loads {
        if least(&named.load).is_none() {
            slow_down(&mut named.load, left / sharing);
        }
    }
}

/// Bits of a request or of its response, whichever is larger.
fn request_bits(load: &Load) -> f64 {
    f64::from(load.request.max(load.response)) * 8.0
}

/// What a load sends at most in one direction between two machines, bit/s; `None`: as much as the path carries.
fn most(load: &Load) -> Option<u64> {
    let flows = f64::from(load.streams);
    let bits = match load.rate {
        Some(Rate::BitsPerSecond(bits)) => bits as f64,
        Some(Rate::RequestsPerSecond(requests)) => requests * request_bits(load),
        None if load.workload.is_request_response() => {
            let each = (ROUND_TRIP + load.think_time).as_secs_f64();
            request_bits(load) * f64::from(load.depth) / each
        }
        None => return None,
    };
    Some((bits * flows).ceil() as u64)
}

/// Limits a load to `most` bit/s in each direction.
fn slow_down(load: &mut Load, most: u64) {
    let flow = most / u64::from(load.streams.max(1));
    if !load.workload.is_request_response() {
        let rate = match load.rate {
            Some(Rate::BitsPerSecond(asked)) => asked.min(flow),
            _ => flow,
        };
        load.rate = Some(Rate::BitsPerSecond(rate));
        return;
    }
    let requests = flow as f64 / request_bits(load);
    match &mut load.rate {
        Some(Rate::RequestsPerSecond(asked)) => *asked = (*asked).min(requests.max(LOWEST_RATE)),
        _ => load.most_per_second = Some(requests),
    }
}

/// The limit on what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendLimit {
    /// No limit.
    None,
    /// This many bit/s.
    Rate(u64),
    /// What `max_rate: auto` is between hosts that were not reached yet.
    Auto,
}

/// What a run sends over the existing hosts' network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    /// Limit in each direction.
    pub limit: SendLimit,
    /// Seconds of load, warm-ups included.
    pub seconds: f64,
    /// Whether loads end by themselves, which may take longer.
    pub ends_by_itself: bool,
}

/// Whether any load of the run ends by itself.
pub(super) fn ends_by_itself(experiment: &Experiment) -> bool {
    let mut loads = experiment.measured().flat_map(|cell| &cell.loads);
    loads.any(|named| named.load.ends_by_itself())
}

impl Traffic {
    /// What is known from the plan alone, all pairs of hosts together.
    pub fn planned(experiment: &Experiment) -> Self {
        let plan = &experiment.plan;
        let is_here = |NamedPair { hosts, .. }: &NamedPair| {
            hosts.a.place.is_here() && hosts.b.place.is_here()
        };
        let all_here = plan
            .host_pairs()
            .is_some_and(|pairs| pairs.iter().all(is_here));
        let forecast = forecast(experiment, 0);
        Self {
            limit: match plan.max_rate {
                MaxRate::None => SendLimit::None,
                MaxRate::Auto if all_here => SendLimit::None,
                MaxRate::Auto => SendLimit::Auto,
                MaxRate::BitsPerSecond(rate) => SendLimit::Rate(rate),
            },
            seconds: forecast.windows_s + forecast.warmups_s,
            ends_by_itself: ends_by_itself(experiment),
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds;
        let amount = |rate: u64| {
            let bytes = rate as f64 / 8.0 * seconds;
            if bytes >= 1e9 {
                format!("{:.1} GB", bytes / 1e9)
            } else {
                format!("{:.1} MB", bytes / 1e6)
            }
        };
        match self.limit {
            SendLimit::Rate(limit) => write!(
                f,
                "the loads send at most {} in each direction for about {seconds:.0} s, {} (`max_rate` changes that)",
                format_rate(limit),
                amount(limit)
            ),
            SendLimit::Auto => write!(
                f,
                "the loads send at most half of the link's speed in each direction, 1gbit where that is not known, for \
                 about {seconds:.0} s: {} at 1gbit; hosts of one machine have no limit (`max_rate` changes that)",
                amount(CAUTIOUS)
            ),
            SendLimit::None => write!(
                f,
                "the loads send as fast as they can for about {seconds:.0} s: {} at 10gbit (`max_rate` limits them)",
                amount(FAST)
            ),
        }?;
        if self.ends_by_itself {
            f.write_str("; a load that ends by itself may take longer, and then sends more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use wirecost_model::load::Workload;

    use super::*;

    const MBIT: u64 = 1_000_000;

    #[test]
    fn the_limit_is_the_plans_or_half_of_the_link_or_cautious() {
        let (fast, slow) = (Some(10_000 * MBIT), Some(100 * MBIT));
        let limits = [
            limit(MaxRate::Auto, false, &[fast, fast]),
            limit(MaxRate::Auto, false, &[fast, slow]),
            limit(MaxRate::Auto, false, &[slow]),
            limit(MaxRate::Auto, false, &[slow, None]),
            limit(MaxRate::Auto, false, &[None, fast]),
            limit(MaxRate::Auto, false, &[]),
            limit(MaxRate::Auto, true, &[fast, fast]),
            limit(MaxRate::None, false, &[fast, fast]),
            limit(MaxRate::BitsPerSecond(7 * MBIT), true, &[fast]),
        ];
        let expected = [
            Some(5_000 * MBIT),
            Some(50 * MBIT),
            Some(50 * MBIT),
            Some(50 * MBIT),
            Some(1_000 * MBIT),
            Some(1_000 * MBIT),
            None,
            None,
            Some(7 * MBIT),
        ];
        assert_eq!(limits, expected);
    }

    fn shared(loads: &[Load], limit: u64) -> Vec<Load> {
        let mut loads: Vec<NamedLoad> = loads.iter().cloned().map(NamedLoad::alone).collect();
        share(&mut loads, limit);
        loads.into_iter().map(|named| named.load).collect()
    }

    fn load(workload: Workload, change: impl FnOnce(&mut Load)) -> Load {
        let mut load = Load::new(workload);
        change(&mut load);
        load
    }

    #[test]
    fn flows_machines_and_requests_share_the_limit_and_what_is_slower_stays_as_it_is() {
        let bits = |bits| Some(Rate::BitsPerSecond(bits));
        for workload in [
            Workload::TcpStream,
            Workload::UdpStream,
            Workload::Migration,
        ] {
            let four = load(workload, |load| load.streams = 4);
            assert_eq!(shared(&[four], 1_000 * MBIT)[0].rate, bits(250 * MBIT));
        }
        let slow = load(Workload::TcpStream, |load| load.rate = bits(5 * MBIT));
        assert_eq!(
            shared(from_ref(&slow), 1_000 * MBIT).as_slice(),
            from_ref(&slow)
        );
        assert_eq!(shared(&[slow], MBIT)[0].rate, bits(MBIT));

        // 16 requests of 1 MB each way, 125 in a second.
        let storage = load(Workload::Storage, |load| load.request = 1_000_000);
        let rr = load(Workload::TcpRr, |load| load.response = 1_000_000);
        for large in [storage, rr] {
            let slower = &shared(from_ref(&large), 1_000 * MBIT)[0];
            assert_eq!(slower.most_per_second, Some(125.0));
            assert_eq!((slower.rate, slower.depth), (None, large.depth));
            let paced = load(large.workload, |load| {
                *load = large.clone();
                load.rate = Some(Rate::RequestsPerSecond(500.0));
                load.streams = 5;
            });
            let slower = &shared(&[paced], 1_000 * MBIT)[0];
            assert_eq!(slower.rate, Some(Rate::RequestsPerSecond(25.0)));
            assert_eq!(slower.most_per_second, None);
        }
        // One byte in a round trip of 10 us.
        let small = Load::new(Workload::TcpRr);
        assert_eq!(shared(from_ref(&small), 10 * MBIT), [small]);
    }

    #[test]
    fn loads_of_a_mix_share_what_the_slow_ones_leave() {
        let stream = Load::new(Workload::TcpStream);
        let ping = load(Workload::UdpRr, |load| {
            load.request = 125;
            load.response = 125;
            load.rate = Some(Rate::RequestsPerSecond(10_000.0));
        });
        let found = shared(&[stream.clone(), ping.clone(), stream], 110 * MBIT);
        let fifty = Some(Rate::BitsPerSecond(50 * MBIT));
        let rates: Vec<Option<Rate>> = found.iter().map(|load| load.rate).collect();
        assert_eq!(rates, [fifty, ping.rate, fifty]);
    }

    #[test]
    fn the_amount_is_stated_with_and_without_a_limit() {
        let words = |limit| {
            Traffic {
                limit,
                seconds: 8.0,
                ends_by_itself: false,
            }
            .to_string()
        };
        assert_eq!(
            words(SendLimit::Rate(1_500 * MBIT)),
            "the loads send at most 1.5gbit in each direction for about 8 s, 1.5 GB (`max_rate` changes that)"
        );
        assert!(words(SendLimit::Rate(MBIT)).contains("about 8 s, 1.0 MB"));
        assert!(words(SendLimit::Auto).contains("about 8 s: 1.0 GB at 1gbit"));
        assert!(words(SendLimit::None).contains("about 8 s: 10.0 GB at 10gbit"));
    }
}
