//! One side against simulated hosts that know nothing of us.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::sizes::likely_sizes;
use crate::tests::Random;

/// A token bucket over answers.
#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    most: f64,
    per_second: f64,
    at: Duration,
}

impl Bucket {
    fn new(most: f64, per_second: f64) -> Self {
        Self {
            tokens: most,
            most,
            per_second,
            at: Duration::ZERO,
        }
    }

    fn take(&mut self, now: Duration) -> bool {
        let earned = now.saturating_sub(self.at).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + earned).min(self.most);
        self.at = now;
        let takes = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(takes));
        takes
    }
}

#[derive(Clone, Copy)]
struct Host {
    there: u32,
    back: u32,
    /// Whether the host's large replies are fragmented on a narrow way back, as Linux sends them.
    fragments: bool,
    loss: f64,
    echo: Bucket,
    port: Bucket,
    local_mtu: u32,
    seed: u64,
}

impl Host {
    fn new(there: u32, back: u32) -> Self {
        Self {
            there,
            back,
            fragments: false,
            loss: 0.0,
            echo: Bucket::new(1e9, 1e9),
            // net.ipv4.icmp_ratelimit: 6 at once, then one a second.
            port: Bucket::new(6.0, 1.0),
            local_mtu: 65_535,
            seed: 1,
        }
    }

    fn ask(mut self) -> (OneSidedResult, Duration) {
        let mut machine = OneSided::new(
            576,
            9216,
            likely_sizes(),
            Config::default(),
            RateLimit::default(),
        );
        let mut random = Random(self.seed);
        let mut flight = BinaryHeap::new();
        let mut now = Duration::ZERO;
        for _ in 0..1_000_000 {
            while let Some(OneSidedProbe { kind, probe }) = machine.poll_transmit(now) {
                if probe.size > self.local_mtu {
                    machine.on_send_refused(probe.id, Some(self.local_mtu));
                    continue;
                }
                let there = probe.size <= self.there && !random.happens(self.loss);
                let back = !random.happens(self.loss);
                if !there || !back {
                    continue;
                }
                let at = now + Duration::from_micros(200);
                let pieces = match kind {
                    ProbeKind::Echo if !self.echo.take(now) => continue,
                    ProbeKind::Echo if probe.size <= self.back => None,
                    ProbeKind::Echo if self.fragments => Some(self.back),
                    ProbeKind::ClosedPort if self.port.take(now) => None,
                    _ => continue,
                };
                flight.push(Reverse((at, probe.id, pieces)));
            }
            if let Some(result) = machine.result() {
                return (result, now);
            }
            let timeout = machine.next_timeout().expect("a timeout");
            match flight.peek() {
                Some(&Reverse((at, id, pieces))) if at <= timeout => {
                    flight.pop();
                    now = now.max(at);
                    let arrival =
                        pieces.map_or(Arrival::Whole, |largest| Arrival::Fragmented { largest });
                    machine.on_answered(id, arrival, now);
                }
                _ => now = now.max(timeout),
            }
        }
        panic!("it does not end");
    }
}

#[test]
fn a_narrow_way_there_is_told_from_a_narrow_way_back() {
    let (there, took) = Host::new(1450, 9000).ask();
    assert_eq!(there.both_ways.mtu(), Some(1450));
    assert_eq!(there.forward, ForwardMtu::SameAsEcho);
    assert!(took < Duration::from_millis(500), "{took:?}");
    let (back, _) = Host::new(9000, 1450).ask();
    assert_eq!(back.both_ways.mtu(), Some(1450));
    assert_eq!(back.forward, ForwardMtu::AtLeast(1451));
}

#[test]
fn replies_in_fragments_show_that_the_request_arrived() {
    let host = Host {
        fragments: true,
        ..Host::new(9000, 1500)
    };
    let (result, _) = host.ask();
    assert_eq!(
        result.both_ways,
        Outcome::Carries {
            mtu: 1500,
            limit: Limit::Fragmented { largest: 1500 }
        }
    );
    assert_eq!(result.forward, ForwardMtu::AtLeast(1501));
}

#[test]
fn a_port_that_does_not_answer_leaves_the_way_open() {
    let host = Host {
        port: Bucket::new(0.0, 0.0),
        ..Host::new(1450, 9000)
    };
    assert_eq!(host.ask().0.forward, ForwardMtu::CannotTell);
}

#[test]
fn where_echoes_are_filtered_the_closed_port_tells_of_the_way_there() {
    let none = Bucket {
        most: 0.0,
        tokens: 0.0,
        per_second: 0.0,
        at: Duration::ZERO,
    };
    let mute = |there| Host {
        echo: none,
        ..Host::new(there, there)
    };
    let (told, _) = mute(9216).ask();
    assert!(told.is_dead());
    assert_eq!(told.forward, ForwardMtu::AtLeast(9216));
    assert_eq!(mute(1500).ask().0.forward, ForwardMtu::SameAsEcho);
    let small = Host {
        local_mtu: 1500,
        ..mute(9216)
    };
    assert_eq!(small.ask().0.forward, ForwardMtu::AtLeast(1500));
    let nobody = Host {
        port: none,
        ..mute(9216)
    };
    assert_eq!(nobody.ask().0.forward, ForwardMtu::CannotTell);
}

#[test]
fn what_this_host_does_not_send_is_not_asked_of_the_path() {
    let host = Host {
        local_mtu: 1500,
        ..Host::new(9000, 9000)
    };
    let (result, _) = host.ask();
    assert_eq!(result.both_ways.limit(), Some(Limit::Device { mtu: 1500 }));
    assert_eq!(result.forward, ForwardMtu::NotAsked);
}

#[test]
fn an_echo_that_is_limited_is_asked_more_slowly_and_the_answer_is_right() {
    for (most, per_second) in [(50.0, 1000.0), (20.0, 300.0), (10.0, 100.0)] {
        let host = Host {
            echo: Bucket::new(most, per_second),
            ..Host::new(1450, 9000)
        };
        let (result, took) = host.ask();
        assert_eq!(result.both_ways.mtu(), Some(1450), "{result:?}");
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

proptest! {
    #![proptest_config(crate::tests::rarely_wrong(400))]

    /// Wrong is what must not be; not to be able to tell is allowed.
    #[test]
    fn it_is_not_wrong_whatever_is_lost_or_limited(
        there in 576u32..9216,
        back in 576u32..9216,
        loss in 0.0..0.2,
        most in 5.0..200.0,
        per_second in 50.0..5000.0,
        fragments: bool,
        seed: u64,
    ) {
        let host = Host {
            loss,
            fragments,
            echo: Bucket::new(most, per_second),
            seed,
            ..Host::new(there, back)
        };
        let (result, took) = host.ask();
        prop_assert!(took <= Duration::from_secs(21));
        if let Outcome::Carries { mtu, .. } = result.both_ways {
            prop_assert_eq!(mtu, there.min(back));
            match result.forward {
                ForwardMtu::AtLeast(size) => prop_assert!(size <= there),
                ForwardMtu::SameAsEcho => prop_assert_eq!(mtu, there),
                ForwardMtu::NotAsked | ForwardMtu::CannotTell => {}
            }
        }
    }
}
