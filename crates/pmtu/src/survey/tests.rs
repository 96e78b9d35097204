//! Surveys of simulated networks with several equal paths.

mod far;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::outcome::{Limit, Source};
use crate::pacing::RateLimit;
use crate::sizes::likely_sizes;
use crate::tests::Random;

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Equal paths from one host to another.
#[derive(Clone)]
struct Network {
    /// What each member carries.
    members: Vec<u32>,
    local_mtu: u32,
    loss: f64,
    delay: Duration,
    jitter: Duration,
    /// What a router says of packets that are too big.
    says: Option<u32>,
    /// Members whose large packets arrive in fragments of this size.
    fragments: Option<u32>,
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ack(u32, u64, Option<u32>),
    TooBig(u32),
}

impl Network {
    fn new(members: &[u32]) -> Self {
        Self {
            members: members.to_vec(),
            local_mtu: 9216,
            loss: 0.0,
            delay: Duration::from_micros(100),
            jitter: Duration::ZERO,
            says: None,
            fragments: None,
            seed: 7,
        }
    }

    /// The member that a flow's 5-tuple hashes to.
    fn member(&self, flow: u32) -> usize {
        let mut random = Random(self.seed ^ (u64::from(flow) << 20) ^ 0xabcd);
        (random.next() * self.members.len() as f64) as usize
    }

    fn carries(&self, flow: u32) -> u32 {
        self.members[self.member(flow)].min(self.local_mtu)
    }

    fn survey(&self, question: SurveyRequest) -> SurveyResult {
        let mut survey = Survey::new(question);
        let mut random = Random(self.seed);
        let mut flight = BinaryHeap::new();
        let mut now = Duration::ZERO;
        for _ in 0..2_000_000 {
            while let Some(FlowProbe { flow, probe }) = survey.poll_transmit(now) {
                if probe.size > self.local_mtu {
                    survey.on_send_refused(flow, probe.id, Some(self.local_mtu));
                    continue;
                }
                let at = now + self.delay * 2 + self.jitter.mul_f64(random.next());
                if random.happens(self.loss) || random.happens(self.loss) {
                    continue;
                }
                let fits = probe.size <= self.members[self.member(flow)];
                let event = match (fits, self.fragments) {
                    (true, _) => Event::Ack(flow, probe.id, None),
                    (false, Some(largest)) => Event::Ack(flow, probe.id, Some(largest)),
                    (false, None) if self.says.is_some() => Event::TooBig(flow),
                    _ => continue,
                };
                flight.push(Reverse((at, event)));
            }
            if let Some(result) = survey.result() {
                assert_eq!(survey.poll_transmit(now), None);
                assert_eq!(survey.next_timeout(), None);
                return result;
            }
            let timeout = survey.next_timeout().expect("a timeout while undecided");
            match flight.peek() {
                Some(&Reverse((at, event))) if at <= timeout => {
                    flight.pop();
                    now = now.max(at);
                    match event {
                        Event::Ack(flow, id, pieces) => {
                            let arrival = pieces
                                .map_or(Arrival::Whole, |largest| Arrival::Fragmented { largest });
                            survey.on_arrived(flow, id, arrival, now);
                        }
                        Event::TooBig(flow) => survey.on_too_big(
                            flow,
                            TooBig {
                                mtu: self.says.unwrap_or_default(),
                                source: Source::Router(ROUTER),
                            },
                        ),
                    }
                }
                _ => now = now.max(timeout),
            }
        }
        panic!("it does not end");
    }
}

fn flows(flows: u32) -> SurveyRequest {
    SurveyRequest {
        low: 576,
        high: 9216,
        expect: None,
        likely_sizes: likely_sizes(),
        flows,
        config: Config::default(),
        pace: RateLimit::default(),
        count: false,
    }
}

fn one_in_eight(bad: u32) -> Network {
    let mut members = [9000; 8];
    members[3] = bad;
    Network::new(&members)
}

/// Right within some tenths of a second and a few round trips, at the default pace.
#[test]
fn a_black_hole_is_measured_within_some_tenths_of_a_second() {
    for (local_mtu, mtu) in [(9000, 8950), (9000, 1450), (1500, 1450), (9000, 8192)] {
        let network = Network {
            local_mtu,
            ..Network::new(&[mtu])
        };
        let result = network.survey(flows(1));
        assert_eq!(result.groups()[0].mtu, mtu);
        assert_eq!(result.groups()[0].limit, Limit::BlackHole);
        let limit = Duration::from_millis(400) + network.delay * 2 * 6;
        assert!(result.took < limit, "{local_mtu}->{mtu}: {:?}", result.took);
    }
}

#[test]
fn a_path_without_a_fault_is_measured_in_two_round_trips() {
    for local_mtu in [1500, 9000, 9216] {
        let network = Network {
            local_mtu,
            ..Network::new(&[local_mtu])
        };
        let question = SurveyRequest {
            expect: Some(local_mtu),
            ..flows(1)
        };
        let result = network.survey(question);
        assert_eq!(
            result.outcomes[0].outcome,
            Outcome::Proven { size: local_mtu }
        );
        // Beside them what the first pace has between two datagrams.
        let limit = network.delay * 4 + Duration::from_millis(1);
        assert!(result.took <= limit, "{:?}", result.took);
        assert!(result.failing().is_empty());
    }
}

#[test]
fn sixty_four_flows_take_a_second_and_some_and_name_the_bad_member() {
    for bad in [1500, 8950] {
        let network = one_in_eight(bad);
        let result = network.survey(flows(64));
        for answer in &result.outcomes {
            assert_eq!(answer.outcome.mtu(), Some(network.carries(answer.flow)));
        }
        assert!(
            result.took < Duration::from_millis(1500),
            "{:?}",
            result.took
        );
        let failing: Vec<u32> = (0..64)
            .filter(|&flow| network.carries(flow) == bad)
            .collect();
        assert_eq!(result.failing(), failing);
        assert_eq!((result.required(), result.mtu()), (Some(9000), Some(bad)));
        assert_eq!(result.paths_met(0.99), 9);
    }
}

#[test]
fn the_searched_flow_may_be_the_bad_one() {
    let network = (0..1000)
        .map(|seed| Network {
            seed,
            ..one_in_eight(1500)
        })
        .find(|network| network.carries(0) == 1500)
        .expect("a seed");
    let result = network.survey(flows(64));
    for answer in &result.outcomes {
        assert_eq!(answer.outcome.mtu(), Some(network.carries(answer.flow)));
    }
    assert_eq!(result.groups().len(), 2);
}

#[test]
fn what_is_expected_is_asked_of_every_flow_and_nothing_else() {
    let network = Network::new(&[9000; 4]);
    let question = SurveyRequest {
        expect: Some(8900),
        ..flows(64)
    };
    let result = network.survey(question);
    assert!(result.failing().is_empty());
    assert!(
        result.took < Duration::from_millis(200),
        "{:?}",
        result.took
    );
    assert!(result.probes < 64 * 9, "{}", result.probes);
}

#[test]
fn where_the_expected_fails_on_some_flows_their_size_is_searched() {
    let network = one_in_eight(1450);
    let question = SurveyRequest {
        expect: Some(9000),
        ..flows(64)
    };
    let result = network.survey(question);
    let groups = result.groups();
    assert_eq!(
        groups.iter().map(|group| group.mtu).collect::<Vec<_>>(),
        [1450, 9000]
    );
    assert_eq!(result.failing(), groups[0].flows);
}

#[test]
fn a_signal_names_its_sender_true_or_not() {
    for says in [1477, 600] {
        let network = Network {
            says: Some(says),
            ..Network::new(&[1477])
        };
        let group = network.survey(flows(1)).groups()[0].clone();
        assert_eq!(group.mtu, 1477);
        assert_eq!(
            group.limit,
            Limit::Signalled {
                by: ROUTER,
                mtu: says
            }
        );
    }
}

#[test]
fn fragments_are_no_proof_and_are_named() {
    let network = Network {
        fragments: Some(1500),
        ..Network::new(&[1500])
    };
    let result = network.survey(flows(4));
    let group = &result.groups()[0];
    assert_eq!(
        (group.mtu, group.limit),
        (1500, Limit::Fragmented { largest: 1500 })
    );
    assert_eq!(group.flows, [0, 1, 2, 3]);
}

#[test]
fn a_dead_path_ends_after_a_second_however_many_flows_are_asked() {
    let network = Network {
        loss: 1.0,
        ..Network::new(&[1500])
    };
    for count in [3, 64] {
        let result = network.survey(flows(count));
        assert_eq!(result.undecided().len(), count as usize);
        assert_eq!(result.mtu(), None);
        let took = result.took;
        assert!(
            took < Duration::from_millis(1200),
            "{count} flows: {took:?}"
        );
    }
}

#[test]
fn where_the_first_flow_alone_is_dead_the_others_are_measured() {
    let network = (0..1000)
        .map(|seed| Network {
            seed,
            ..one_in_eight(0)
        })
        .find(|network| network.carries(0) == 0)
        .expect("a seed");
    let result = network.survey(flows(16));
    for answer in &result.outcomes {
        let carries = Some(network.carries(answer.flow)).filter(|&mtu| mtu > 0);
        assert_eq!(answer.outcome.mtu(), carries, "flow {}", answer.flow);
    }
    assert!(
        result.took < Duration::from_millis(1800),
        "{:?}",
        result.took
    );
}

#[test]
fn what_is_allowed_in_all_ends_it() {
    let question = SurveyRequest {
        pace: RateLimit {
            max_datagrams: 150,
            ..RateLimit::default()
        },
        ..flows(8)
    };
    let result = Network::new(&[1477]).survey(question);
    assert_eq!(result.probes, 150);
    assert_eq!(result.undecided().len(), 8);
}

/// 5 % loss without a fault, and 20 % with one: 64 flows of 60 networks are 3,840 verdicts. The bound itself is exact
/// (`evidence`: what is allowed is divided among the flows).
#[test]
fn random_loss_is_no_fault_and_hides_none() {
    for seed in 0..30 {
        let healthy = Network {
            loss: 0.05,
            seed,
            ..Network::new(&[9000, 9000])
        };
        let result = healthy.survey(flows(64));
        assert!(
            result.failing().is_empty(),
            "seed {seed}: {:?}",
            result.groups()
        );
        // What passes is answered, or its answer is on the way.
        let clean = Network {
            loss: 0.0,
            jitter: Duration::from_millis(3),
            ..healthy
        };
        assert_eq!(clean.survey(flows(64)).missing, 0, "seed {seed}");
        let faulty = Network {
            loss: 0.2,
            seed,
            ..one_in_eight(1500)
        };
        let result = faulty.survey(flows(64));
        assert!(result.undecided().is_empty(), "seed {seed}: {result:?}");
        for answer in &result.outcomes {
            assert_eq!(
                answer.outcome.mtu(),
                Some(faulty.carries(answer.flow)),
                "seed {seed}"
            );
        }
    }
}

proptest! {
    #![proptest_config(crate::tests::rarely_wrong(150))]

    #[test]
    fn every_flow_is_told_what_it_carries(
        members in prop::collection::vec(576u32..9217, 1..9),
        count in 1u32..33,
        loss in 0.0..0.2,
        delay in 0u64..20,
        jitter in 0u64..5,
        says in prop::option::of(0u32..10_000),
        truth: bool,
        seed: u64,
    ) {
        let network = Network {
            loss,
            delay: Duration::from_millis(delay),
            jitter: Duration::from_millis(jitter),
            says: says.map(|lie| if truth { members[0] } else { lie }),
            seed,
            ..Network::new(&members)
        };
        let result = network.survey(flows(count));
        prop_assert_eq!(result.outcomes.len(), count as usize);
        for answer in &result.outcomes {
            if !matches!(answer.outcome, Outcome::CannotTell { .. }) {
                prop_assert_eq!(answer.outcome.mtu(), Some(network.carries(answer.flow)));
            }
        }
        prop_assert!(result.took <= RateLimit::default().max_time + Duration::from_secs(1));
    }
}
