//! The place of a drop on simulated ways.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::tests::Random;

/// A way of routers, with the link that drops large packets.
struct Way {
    routers: u8,
    /// The drop is on the link behind this many routers.
    behind: u8,
    /// Routers that never report.
    mute: Vec<u8>,
    /// How many reports a router gives in all.
    reports: u32,
    loss: f64,
    /// Whether reports quote enough to tell the packet.
    quotes: bool,
    seed: u64,
}

fn address(ttl: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, ttl).into()
}

impl Way {
    fn new(routers: u8, behind: u8) -> Self {
        Self {
            routers,
            behind,
            mute: Vec::new(),
            reports: 6,
            loss: 0.0,
            quotes: true,
            seed: 1,
        }
    }

    fn locate(&self) -> (Result<Located, NotLocated>, Duration) {
        let mut locator = Locator::new(LocateConfig::new(64, 9000));
        let mut random = Random(self.seed);
        let mut reports = vec![self.reports; usize::from(self.routers) + 1];
        let mut now = Duration::ZERO;
        for _ in 0..10_000 {
            while let Some(probe) = locator.poll_transmit(now) {
                let large = probe.size > 64;
                let gets_to = if large { self.behind + 1 } else { u8::MAX };
                let lost = random.happens(self.loss) || random.happens(self.loss);
                now += Duration::from_micros(200);
                if lost
                    || gets_to <= probe.ttl.saturating_sub(1).min(self.routers)
                        && probe.ttl > gets_to
                {
                    continue;
                }
                if probe.ttl > self.routers {
                    if !large || self.behind > self.routers {
                        locator.on_arrived(probe.id);
                    }
                    continue;
                }
                if large && probe.ttl > self.behind {
                    continue;
                }
                let left = &mut reports[usize::from(probe.ttl)];
                if *left > 0 && !self.mute.contains(&probe.ttl) {
                    *left -= 1;
                    locator.on_expired(self.quotes.then_some(probe.id), address(probe.ttl));
                }
            }
            if let Some(result) = locator.result() {
                return (result.clone(), now);
            }
            now = now.max(locator.next_timeout().expect("a timeout"));
        }
        panic!("it does not end");
    }
}

fn between(after: Option<u8>, before: Option<u8>) -> (PathPoint, PathPoint) {
    let router = |ttl| PathPoint::Router {
        ttl,
        address: address(ttl),
    };
    (
        after.map_or(PathPoint::Sender, router),
        before.map_or(PathPoint::Destination, router),
    )
}

#[test]
fn without_routers_it_is_the_one_link() {
    let (located, took) = Way::new(0, 0).locate();
    let located = located.expect("located");
    assert_eq!((located.after, located.before), between(None, None));
    assert!(located.hops.is_empty() && took < Duration::from_millis(10));
}

#[test]
fn the_link_is_found_between_every_two_routers() {
    for routers in 1..=12 {
        for behind in 0..=routers {
            let (located, took) = Way::new(routers, behind).locate();
            let located = located.expect("located");
            let after = (behind > 0).then_some(behind);
            let before = (behind < routers).then_some(behind + 1);
            assert_eq!((located.after, located.before), between(after, before));
            assert!(took < Duration::from_millis(400), "{took:?}");
        }
    }
}

#[test]
fn reports_that_quote_too_little_are_told_apart_by_their_order() {
    let way = Way {
        quotes: false,
        ..Way::new(5, 3)
    };
    let located = way.locate().0.expect("located");
    assert_eq!((located.after, located.before), between(Some(3), Some(4)));
}

#[test]
fn a_router_that_reports_nothing_leaves_a_longer_stretch() {
    let way = Way {
        mute: vec![3, 4],
        ..Way::new(6, 3)
    };
    let located = way.locate().0.expect("located");
    assert_eq!((located.after, located.before), between(Some(2), Some(5)));
    assert_eq!(located.hops[2], None);
}

#[test]
fn a_router_that_stops_reporting_is_not_taken_for_a_drop() {
    let way = Way {
        reports: 1,
        ..Way::new(4, 3)
    };
    let located = way.locate().0.expect("located");
    assert_eq!((located.after, located.before), between(None, None));
}

#[test]
fn a_size_that_reaches_every_router_is_lost_on_the_last_link() {
    let way = Way::new(3, 4);
    assert_eq!(
        way.locate().0,
        Ok(Located {
            hops: (1..=3).map(|ttl| Some(address(ttl))).collect(),
            after: PathPoint::Router {
                ttl: 3,
                address: address(3)
            },
            before: PathPoint::Destination,
            probes: 6,
        })
    );
}

proptest! {
    #![proptest_config(crate::tests::rarely_wrong(2000))]

    /// What is certain must hold; what luck may spoil does not more often than once in a million looks at 20 % loss.
    #[test]
    fn at_20_percent_loss_the_drop_is_between_the_places_that_are_named(
        routers in 0u8..10, behind in 0u8..10, seed: u64,
    ) {
        let behind = behind.min(routers);
        let way = Way { loss: 0.2, reports: 100, seed, ..Way::new(routers, behind) };
        let located = way.locate().0.expect("located");
        if let PathPoint::Router { ttl, .. } = located.after {
            prop_assert!(ttl <= behind);
        }
        if let PathPoint::Router { ttl, .. } = located.before {
            prop_assert!(ttl > behind, "{located:?}");
        }
    }
}
