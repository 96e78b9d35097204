//! The simulations of `examples/soak` in small: the bounds of its A/A table, with the room that
//! chance needs with fewer experiments.

#[path = "../examples/soak/experiment.rs"]
mod experiment;
#[path = "../examples/soak/noise.rs"]
mod noise;

use experiment::{CRITERION, null_bounds, run};
use noise::Noise;

const EXPERIMENTS: u32 = 1000;

#[track_caller]
fn assert_sound(noise: Noise) {
    let tally = run(noise, 1.0, &CRITERION, EXPERIMENTS, 1);
    assert_eq!(null_bounds(noise, &tally), [""; 0], "{tally:?}");
}

#[test]
fn nothing_is_found_in_normal_noise() {
    for sd in [0.01, 0.03] {
        assert_sound(Noise::Normal(sd));
    }
}

#[test]
fn nothing_is_found_in_log_normal_noise() {
    assert_sound(Noise::LogNormal(0.03));
}

#[test]
fn nothing_is_found_in_a_drifting_machine() {
    assert_sound(Noise::Drifting(0.03));
}

#[test]
fn nothing_is_found_in_good_and_bad_runs_with_outliers() {
    assert_sound(Noise::Bimodal(0.02));
}

#[test]
fn a_tenth_more_is_found_in_every_run_and_nearly_always_said_to_pay() {
    let tally = run(Noise::Normal(0.02), 1.1, &CRITERION, EXPERIMENTS, 1);
    assert_eq!(tally.same, 0);
    assert_eq!(tally.beyond + tally.leaning, EXPERIMENTS);
    assert!(tally.share(tally.beyond) > 0.97, "{tally:?}");
    assert!(tally.mean_rounds() < 20.0, "{tally:?}");
}

/// An interval that is simply looked at every round says so three times as often.
#[test]
fn an_effect_at_the_margin_is_hardly_ever_said_to_pay() {
    let tally = run(Noise::Normal(0.03), 1.05, &CRITERION, EXPERIMENTS, 1);
    let allowed = 0.025 + 2.5 * (0.025 * 0.975 / f64::from(EXPERIMENTS)).sqrt();
    assert!(tally.share(tally.beyond) <= allowed, "{tally:?}");
}

/// There the intervals cover less (docs/statistics.md), and still nothing is said to pay.
#[test]
fn bad_runs_of_one_cell_alone_are_not_said_to_pay_or_cost() {
    let tally = run(Noise::Lopsided(0.02), 1.0, &CRITERION, EXPERIMENTS, 1);
    assert!(
        tally.share(tally.beyond) <= experiment::allowed(EXPERIMENTS),
        "{tally:?}"
    );
}

/// The bounds can fail: a rule that covers as the plain 95 % interval does where one peeks breaks them.
#[test]
fn the_bounds_tell_a_rule_that_covers_too_little() {
    let mut tally = run(Noise::Normal(0.03), 1.0, &CRITERION, EXPERIMENTS, 1);
    tally.covered -= EXPERIMENTS / 20;
    assert!(!null_bounds(Noise::Normal(0.03), &tally).is_empty());
}

#[test]
fn a_run_is_settled_by_its_forecast_about_as_often_as_it_says() {
    use wirecost_stats::sequential::rounds_needed;
    for (sd, ratio) in [(0.02, 1.0), (0.03, 1.2)] {
        let rounds =
            rounds_needed(sd * std::f64::consts::SQRT_2, ratio, &CRITERION, 0.8).expect("few");
        let share =
            experiment::settled_by(Noise::Normal(sd), ratio, &CRITERION, rounds, EXPERIMENTS);
        assert!((0.7..0.97).contains(&share), "{share} by round {rounds}");
    }
}
