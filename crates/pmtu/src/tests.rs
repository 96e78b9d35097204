//! The machine against simulated paths.

mod path;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub(crate) use path::Random;
use path::{Path, Run};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::{CannotTellReason, Config, Limit, Outcome, Prober, likely_sizes};

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

fn verify(size: u32, path: &Path) -> Run {
    path.run(Prober::verify(size, Config::default()))
}

fn search(path: &Path) -> Run {
    path.run(Prober::search(68, 9216, likely_sizes(), Config::default()))
}

fn diagnose(size: u32, path: &Path) -> Run {
    path.run(Prober::verify(size, Config::default()).or_search(576, likely_sizes()))
}

/// The size that a search found, if it did.
fn carried(run: &Run) -> Option<u32> {
    match run.outcome {
        Outcome::Carries { mtu, .. } => Some(mtu),
        _ => None,
    }
}

#[test]
fn a_size_that_passes_is_proven_by_the_first_answer() {
    let run = verify(1500, &Path::new(1500));
    assert_eq!(run.outcome, Outcome::Proven { size: 1500 });
    assert_eq!(run.rounds, 1);
    assert!(run.took < Config::default().wait, "{:?}", run.took);
}

#[test]
fn a_proof_sends_copies_of_one_size_between_controls() {
    let run = verify(1500, &Path::new(1500));
    let sizes: Vec<u32> = run.sent.iter().map(|probe| probe.size).collect();
    assert_eq!(sizes, [64, 1500, 64, 64, 1500, 64, 64, 1500, 64]);
    assert!(
        run.sent
            .iter()
            .all(|probe| probe.control == (probe.size == 64))
    );
}

#[test]
fn one_byte_too_many_is_too_big_after_two_rounds() {
    let run = verify(1501, &Path::new(1500));
    let expected = Outcome::TooBig {
        size: 1501,
        carries: None,
        limit: Limit::BlackHole,
    };
    assert_eq!(run.outcome, expected);
    assert_eq!((run.rounds, run.sent.len()), (2, 18));
}

#[test]
fn a_failed_proof_tells_what_the_path_carries() {
    let run = diagnose(8900, &Path::new(1450));
    assert_eq!(
        run.outcome.to_string(),
        "8900 bytes do not pass: the path carries 1450 and drops larger packets without ICMP"
    );
    assert!(run.rounds <= 5, "{} rounds", run.rounds);
}

#[test]
fn a_likely_size_is_found_in_three_rounds() {
    for mtu in likely_sizes() {
        let run = search(&Path::new(mtu));
        assert_eq!(carried(&run), Some(mtu));
        assert!(run.rounds <= 3, "{mtu}: {} rounds", run.rounds);
    }
}

#[test]
fn every_path_mtu_is_found_exactly_in_at_most_five_rounds() {
    for mtu in 68..=9215 {
        let run = search(&Path::new(mtu));
        let expected = Outcome::Carries {
            mtu,
            limit: Limit::BlackHole,
        };
        assert_eq!(run.outcome, expected);
        assert!(run.rounds <= 5, "{mtu}: {} rounds", run.rounds);
    }
    let expected = Outcome::Carries {
        mtu: 9216,
        limit: Limit::NotSought,
    };
    assert_eq!(search(&Path::new(9216)).outcome, expected);
}

#[test]
fn n_and_one_byte_more_are_the_last_sizes_sent() {
    let run = search(&Path::new(1477));
    let last: BTreeSet<u32> = run.sent[run.sent.len() - 12..]
        .iter()
        .filter(|probe| !probe.control)
        .map(|probe| probe.size)
        .collect();
    assert_eq!(last, BTreeSet::from([1477, 1478]));
}

#[test]
fn a_routers_message_leads_straight_to_the_size_and_is_kept() {
    let path = Path {
        too_big_from: Some(ROUTER),
        ..Path::new(1477)
    };
    let run = search(&path);
    let expected = Outcome::Carries {
        mtu: 1477,
        limit: Limit::Signalled {
            by: ROUTER,
            mtu: 1477,
        },
    };
    assert_eq!(run.outcome, expected);
    assert!(run.rounds <= 3, "{} rounds", run.rounds);
}

#[test]
fn a_lie_is_not_believed() {
    let path = Path {
        too_big_from: Some(ROUTER),
        claimed_mtu: Some(600),
        ..Path::new(1477)
    };
    assert_eq!(carried(&search(&path)), Some(1477));
    let path = Path {
        claimed_mtu: Some(0),
        ..path
    };
    assert_eq!(carried(&search(&path)), Some(1477));
}

#[test]
fn a_refusal_by_this_host_is_told_from_the_path() {
    let path = Path {
        local_mtu: 1500,
        ..Path::new(9000)
    };
    let run = verify(8900, &path);
    assert_eq!(
        run.outcome.to_string(),
        "8900 bytes do not pass (this host sends no more than 1500)"
    );
    assert_eq!(run.took, Duration::ZERO);
    assert_eq!(
        diagnose(8900, &path).outcome.to_string(),
        "8900 bytes do not pass: the path carries 1500 (this host sends no more than 1500)"
    );
}

#[test]
fn a_dead_path_cannot_tell() {
    let run = verify(
        1500,
        &Path {
            loss: 1.0,
            ..Path::new(1500)
        },
    );
    let silent = Outcome::CannotTell {
        reason: CannotTellReason::NoAnswer,
        at_least: None,
    };
    assert_eq!(run.outcome, silent);
    assert_eq!(run.rounds, 6);
    // After the first round nothing but knocks.
    assert!(run.sent[9..].iter().all(|probe| probe.control));
    assert!(run.took <= Duration::from_millis(850), "{:?}", run.took);
    assert_eq!(
        search(&Path {
            loss: 1.0,
            ..Path::new(1500)
        })
        .outcome,
        silent
    );
}

#[test]
fn a_host_that_sends_nothing_cannot_tell() {
    let run = verify(
        1500,
        &Path {
            local_mtu: 40,
            ..Path::new(1500)
        },
    );
    let reason = CannotTellReason::Refused;
    assert_eq!(
        run.outcome,
        Outcome::CannotTell {
            reason,
            at_least: None
        }
    );
}

#[test]
fn a_path_too_lossy_to_tell_in_time_says_so() {
    let config = Config {
        max_rounds: 2,
        ..Config::default()
    };
    let run = Path {
        loss: 0.4,
        ..Path::new(1400)
    }
    .run(Prober::verify(1500, config));
    assert_eq!(
        run.outcome.to_string(),
        "undecided after 2 rounds: of 12 probes that can pass, 6 were lost (64 bytes pass)"
    );
}

#[test]
fn answers_slower_than_the_wait_stretch_it() {
    let slow = Path {
        delay: Duration::from_millis(60),
        ..Path::new(1450)
    };
    assert_eq!(verify(1450, &slow).outcome, Outcome::Proven { size: 1450 });
    assert_eq!(carried(&search(&slow)), Some(1450));
}

#[test]
fn the_first_answer_may_take_as_long_as_by_satellite() {
    let far = Path {
        delay: Duration::from_millis(330),
        ..Path::new(1450)
    };
    assert_eq!(verify(1450, &far).outcome, Outcome::Proven { size: 1450 });
    assert_eq!(carried(&search(&far)), Some(1450));
}

/// The other end's processor, or a neighbour that has to be found again.
#[test]
fn a_far_end_that_stands_still_for_half_a_second_is_not_dead() {
    for begins in [0, 1, 2, 5, 20, 40] {
        let still = Duration::from_millis(begins);
        let path = Path {
            delay: Duration::from_millis(1),
            still: still..still + Duration::from_millis(500),
            ..Path::new(1477)
        };
        assert_eq!(carried(&search(&path)), Some(1477), "from {still:?}");
    }
}

#[test]
fn below_the_range_the_search_goes_on() {
    let prober = Prober::search(1280, 9000, likely_sizes(), Config::default());
    assert_eq!(carried(&Path::new(700).run(prober)), Some(700));
}

/// A wrong verdict about a size that passes is what must not happen: of 20 000 proofs over a path that loses 20 % each
/// way, 2 would be 1 in 10 000; the exact figure is 1 in 50 000 (see `evidence`).
#[test]
fn at_20_percent_loss_each_way_a_proof_is_not_wrong() {
    let mut wrong = 0;
    for seed in 0..20_000 {
        let run = verify(
            9000,
            &Path {
                loss: 0.2,
                seed,
                ..Path::new(9000)
            },
        );
        wrong += u32::from(!run.outcome.is_proven());
    }
    assert!(wrong < 2, "{wrong} of 20000");
}

/// Of 200 000 such searches, with 5 to 40 % lost each way, at most 8 were wrong (2 at 20 %).
#[test]
fn at_20_percent_loss_each_way_a_search_is_exact() {
    let (mut wrong, mut undecided) = (0, 0);
    for seed in 0..2000 {
        let mtu = 68 + (seed * 4001 % 9148) as u32;
        let path = Path {
            loss: 0.2,
            seed,
            ..Path::new(mtu)
        };
        match carried(&search(&path)) {
            Some(found) => wrong += u32::from(found != mtu),
            None => undecided += 1,
        }
    }
    assert_eq!((wrong, undecided), (0, 0));
}

/// For what holds but for the error rate that `evidence` states: cases drawn anew would fail now and then.
pub(crate) fn rarely_wrong(cases: u32) -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(cases)
    }
}

proptest! {
    #![proptest_config(rarely_wrong(200))]

    #[test]
    fn reordering_duplicates_and_hints_change_nothing(
        mtu in 68u32..9216,
        seed: u64,
        loss in 0.0..0.15,
        duplicate in 0.0..0.5,
        jitter in 0u64..20,
        told: bool,
    ) {
        let path = Path {
            loss,
            duplicate,
            jitter: Duration::from_millis(jitter),
            too_big_from: told.then_some(ROUTER),
            seed,
            ..Path::new(mtu)
        };
        prop_assert_eq!(carried(&search(&path)), Some(mtu));
        prop_assert_eq!(verify(mtu, &path).outcome, Outcome::Proven { size: mtu });
    }

    #[test]
    fn it_always_ends_whatever_it_is_told(
        events in prop::collection::vec((0u8..4, 0u64..400, 0u32..10_000), 0..300),
    ) {
        let mut prober = Prober::verify(9000, Config::default()).or_search(576, likely_sizes());
        let mut now = Duration::ZERO;
        let mut events = events.into_iter();
        for _ in 0..100_000 {
            let sent = prober.poll_transmit(now).is_some();
            match events.next() {
                Some((0, id, _)) => prober.on_acked(id, now),
                Some((1, id, mtu)) => prober.on_send_refused(id, Some(mtu)),
                Some((2, id, _)) => prober.on_send_refused(id, None),
                Some((_, _, mtu)) => prober.on_too_big(crate::TooBig { mtu, source: crate::Source::Router(ROUTER) }),
                None => {}
            }
            if prober.outcome().is_some() {
                break;
            }
            if !sent {
                now = prober.next_timeout().unwrap_or(now);
            }
        }
        prop_assert!(prober.outcome().is_some());
        prop_assert_eq!(prober.poll_transmit(now), None);
        prop_assert_eq!(prober.next_timeout(), None);
    }
}
