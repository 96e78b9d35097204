use super::*;
use proptest::prelude::*;

const CRITERION: StoppingCriterion = StoppingCriterion {
    precision: 0.02,
    worth: 0.05,
    min_rounds: 6,
    max_rounds: 60,
};

/// Log ratios around `mean` that alternate by `spread`.
fn around(mean: f64, spread: f64, n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| mean + if i % 2 == 0 { spread } else { -spread })
        .collect()
}

#[test]
fn an_aim_that_cannot_be_met_is_refused() {
    assert_eq!(CRITERION.check(), Ok(CRITERION));
    for (criterion, error) in [
        (
            StoppingCriterion {
                precision: 0.0,
                ..CRITERION
            },
            StoppingCriterionError::Precision(0.0),
        ),
        (
            StoppingCriterion {
                worth: -0.1,
                ..CRITERION
            },
            StoppingCriterionError::Worth(-0.1),
        ),
        (
            StoppingCriterion {
                min_rounds: 3,
                ..CRITERION
            },
            StoppingCriterionError::TooFew(3),
        ),
        (
            StoppingCriterion {
                max_rounds: 5,
                ..CRITERION
            },
            StoppingCriterionError::Order { min: 6, max: 5 },
        ),
    ] {
        assert_eq!(criterion.check(), Err(error));
    }
    assert!(
        StoppingCriterion {
            precision: f64::NAN,
            ..CRITERION
        }
        .check()
        .is_err()
    );
}

#[test]
fn nothing_is_settled_before_the_least_rounds() {
    let quiet = around(0.2, 0.001, 6);
    assert_eq!(
        look(&quiet[..5], &CRITERION, 60).answer,
        Some(Answer::Above)
    );
    assert!(!look(&quiet[..5], &CRITERION, 60).settled);
    assert!(look(&quiet, &CRITERION, 60).settled);
}

#[test]
fn an_answer_has_to_hold_three_times() {
    // Two wild rounds, then calm: the width is met only late, and not at once believed.
    let mut logs = vec![0.12, -0.12];
    logs.extend(around(0.0, 0.002, 58));
    let first = (2..60).find(|&n| look(&logs[..n], &CRITERION, 60).answer.is_some());
    let settled = (2..60).find(|&n| look(&logs[..n], &CRITERION, 60).settled);
    assert_eq!(settled, first.map(|n| n + 2));
}

#[test]
fn each_answer_is_found() {
    for (mean, answer) in [
        (0.2, Answer::Above),
        (-0.2, Answer::Below),
        (0.0, Answer::Within),
    ] {
        assert_eq!(
            look(&around(mean, 0.01, 8), &CRITERION, 60).answer,
            Some(answer)
        );
    }
    // Right at the margin only the width can end it.
    let at_margin = around(0.05f64.ln_1p(), 0.01, 12);
    assert_eq!(
        look(&at_margin, &CRITERION, 60).answer,
        Some(Answer::Narrow)
    );
}

#[test]
fn too_few_pairs_have_neither_interval_nor_answer() {
    for logs in [&[][..], &[0.1]] {
        let look = look(logs, &CRITERION, 60);
        assert_eq!(
            (look.lasting, look.answer, look.settled),
            (None, None, false)
        );
    }
}

#[test]
fn a_run_without_effects_is_never_known() {
    assert!(!standing([], &CRITERION, 60).known);
    let (quiet, loud) = (around(0.0, 0.001, 8), around(0.0, 0.2, 8));
    assert!(standing([&quiet[..]], &CRITERION, 60).known);
    let both = standing([&quiet[..], &loud[..]], &CRITERION, 60);
    assert_eq!((both.settled, both.known), (1, false));
}

#[test]
fn the_end_is_the_budget_at_the_pace_so_far() {
    assert_eq!(CRITERION.ends_at(None, 10.0, 1), 60);
    assert_eq!(CRITERION.ends_at(Some(300.0), 0.0, 0), 60);
    assert_eq!(CRITERION.ends_at(Some(300.0), 50.0, 5), 30);
    assert_eq!(CRITERION.ends_at(Some(300.0), 10.0, 5), 60);
    assert_eq!(CRITERION.ends_at(Some(300.0), 400.0, 5), 5);
}

#[test]
fn more_spread_and_nearer_to_the_margin_take_more_rounds() {
    let needed = |spread, ratio| rounds_needed(spread, ratio, &CRITERION, 0.8).expect("finite");
    assert!(needed(0.02, 1.0) < needed(0.04, 1.0));
    assert!(needed(0.04, 1.2) < needed(0.04, 1.08));
    assert!(needed(0.04, 1.0) < needed(0.04, 1.04));
    assert_eq!(needed(0.001, 1.0), 6);
    assert_eq!(rounds_needed(50.0, 1.0, &CRITERION, 0.8), None);
}

#[test]
fn a_forecast_needs_two_pairs_and_its_caution_never_needs_less() {
    assert_eq!(forecast(&[0.1], &CRITERION, 0.8), None);
    let seen = forecast(&around(0.01, 0.04, 6), &CRITERION, 0.8).expect("pairs");
    assert!(seen.cautious > seen.rounds && seen.rounds >= Some(6));
}

proptest! {
    #[test]
    fn the_lasting_interval_holds_the_reported_one(
        logs in proptest::collection::vec(-0.3f64..0.3, 2..40), end in 10u32..80,
    ) {
        let look = look(&logs, &CRITERION, end);
        let (lasting, reported) = (look.lasting.expect("pairs"), look.interval().expect("pairs"));
        prop_assert!(lasting.low <= reported.low && reported.high <= lasting.high);
    }

    #[test]
    fn swapping_the_levels_mirrors_the_look(logs in proptest::collection::vec(-0.3f64..0.3, 2..40)) {
        let swapped: Vec<f64> = logs.iter().map(|log| -log).collect();
        let (a, b) = (look(&logs, &CRITERION, 60), look(&swapped, &CRITERION, 60));
        prop_assert_eq!(a.settled, b.settled);
        prop_assert_eq!(a.answer, b.answer.map(|answer| match answer {
            Answer::Above => Answer::Below,
            Answer::Below => Answer::Above,
            other => other,
        }));
    }

    #[test]
    fn information_never_shrinks_when_the_end_comes_nearer(
        logs in proptest::collection::vec(-0.3f64..0.3, 2..40), end in 40u32..80,
    ) {
        prop_assert!(look(&logs, &CRITERION, end).information <= look(&logs, &CRITERION, end - 20).information);
    }
}
