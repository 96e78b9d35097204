use wirecost_model::cell::Experiment;

use super::*;

fn experiment(text: &str) -> Experiment {
    wirecost_plan::load("plan.yaml", text).expect("a plan")
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn the_parts_of_a_forecast_add_up_to_it() {
    let plan = experiment(
        "name: x\nunderlay: { mtu: 9000 }\nencapsulation: [none, vxlan]\nguest_mtu: [1500, max]\n\
         repeat: { rounds: 3, seconds: 0.5, warmup: 0.1 }\n",
    );
    let forecast = forecast(&plan, 1);
    assert_eq!((forecast.samples, forecast.labs), (12, 2));
    assert!(close(forecast.windows_s, 6.0) && close(forecast.warmups_s, 1.2));
    assert!(close(forecast.around_s, 12.0 * 0.018), "{forecast:?}");
    let sum = forecast.windows_s + forecast.warmups_s + forecast.around_s + forecast.labs_s;
    assert!(close(forecast.total_s, sum));
}

#[test]
fn more_connections_take_longer_to_make() {
    let with = |streams| {
        let load = format!("name: x\nload: {{ tcp-stream: {{ streams: {streams} }} }}\n");
        forecast(&experiment(&load), 1).around_s
    };
    assert!(with(8) > with(1));
}

#[test]
fn two_windows_share_the_plans_seconds_and_connect_twice() {
    let over = |rate: &str| {
        let text = format!("name: x\nunderlay: {{ rate: {rate} }}\n");
        forecast(&experiment(&text), 1)
    };
    let (one, two) = (over("none"), over("10gbit"));
    assert!(close(one.windows_s, two.windows_s) && close(one.warmups_s, two.warmups_s));
    let samples = f64::from(two.samples);
    assert!(
        close(two.around_s - one.around_s, samples * 0.006),
        "{two:?}"
    );
}

#[test]
fn a_pause_before_a_migration_is_in_the_time_of_its_sample_and_of_the_run() {
    let over = |pause: &str| {
        let text = format!("name: x\nload: {{ migration: {{ pause: {pause} }} }}\n");
        let plan = experiment(&text);
        let left = RemainingTime::new(&plan, plan.plan.repeat.rounds).left_s(0.0);
        (forecast(&plan, 1), left)
    };
    let ((none, _), (some, left)) = (over("0s"), over("60s"));
    let pauses = f64::from(some.samples) * 60.0;
    assert!(close(some.total_s - none.total_s, pauses), "{some:?}");
    assert!(close(left, some.total_s - some.labs_s), "{some:?}");
}

#[test]
fn moves_that_take_longer_than_a_window_are_in_the_forecast() {
    let of = |machines: u32, memory: &str, line: &str| {
        forecast(
            &experiment(&format!(
                "name: x\nload: {{ migration: {{ machines: {machines}, memory: {memory} }} }}\n\
                 repeat: {{ seconds: 5, rounds: 4 }}\n{line}"
            )),
            1,
        )
    };
    let (small, large) = (of(1, "1GiB", ""), of(4, "2GiB", ""));
    let connections = f64::from(large.samples) * 3.0 * AROUND_CONNECTION_S;
    let moves = f64::from(large.samples) * (8.0 * (MEMORY_S_PER_GIB + MOVE_S_PER_GIB) - 5.0);
    assert!(
        close(large.around_s - small.around_s, moves + connections),
        "{small:?} {large:?}"
    );
    // 68.7 s on the line of 1 Gbit/s.
    let slow = of(4, "2GiB", "underlay: { rate: 1gbit }\n");
    let line = slow.around_s / f64::from(slow.samples) - large.around_s / f64::from(large.samples);
    assert!((64.0..70.0).contains(&line), "{line} {slow:?}");
}

#[test]
fn the_longest_sample_has_its_window_its_pause_and_the_end_of_its_loads() {
    let of = |text: &str| longest_sample(&experiment(text));
    let window = |seconds: u32| of(&format!("name: x\nrepeat: {{ seconds: {seconds} }}\n"));
    assert_eq!(window(2_000), window(1_000) + Duration::from_secs(1_000));
    let paused = |pause: u32| {
        of(&format!(
            "name: x\nload: {{ migration: {{ pause: {pause}s }} }}\n"
        ))
    };
    assert_eq!(paused(60), paused(0) + Duration::from_mins(1));
    assert!(paused(0) > TO_THE_END);
}

#[test]
fn the_time_left_before_the_first_sample_is_the_forecast_without_the_labs() {
    let plan = experiment("name: x\nload: { tcp-stream: { streams: [1, 8] } }\n");
    let forecast = forecast(&plan, 1);
    let left = RemainingTime::new(&plan, plan.plan.repeat.rounds).left_s(0.0);
    assert!(close(left, forecast.total_s - forecast.labs_s));
}

#[test]
fn a_run_at_half_the_pace_takes_twice_the_time_and_ends_with_none_left() {
    let plan = experiment("name: x\nrepeat: { rounds: 4, seconds: 0.8, warmup: 0.2 }\n");
    let mut pace = RemainingTime::new(&plan, plan.plan.repeat.rounds);
    let cell = &plan.cells[0];
    let one = sample_s(&plan, cell);
    pace.taken(cell);
    assert!(close(pace.left_s(2.0 * one), 3.0 * 2.0 * one));
    for _ in 0..3 {
        pace.taken(cell);
    }
    assert!(close(pace.left_s(8.0 * one), 0.0));
}

#[test]
fn labs_that_do_not_fit_at_the_same_time_are_built_again() {
    let mtus = |count: usize| {
        let mtus: Vec<String> = (0..count).map(|by| (1500 + by).to_string()).collect();
        experiment(&format!(
            "name: x\nunderlay: {{ mtu: [{}] }}\nrepeat: {{ rounds: 5 }}\n",
            mtus.join(", ")
        ))
    };
    assert_eq!(forecast(&mtus(MAX_LABS), 1).labs, 8);
    let built = forecast(&mtus(MAX_LABS + 4), 1).labs;
    // Each of 12 at least once, at most once in each of 5 rounds.
    assert!(built > 12 && built <= 60, "{built}");
}

const UNTIL: &str =
    "name: x\nguest_mtu: [1400, 1500]\nrepeat: { precision: 2%, seconds: 0.8, warmup: 0.2 }\n";

#[test]
fn an_adaptive_run_is_forecast_by_the_assumed_spread_within_its_rounds_and_budget() {
    let plan = experiment(UNTIL);
    let free = forecast(&plan, 1);
    let needed = rounds_until_known(&plan.plan.repeat, ASSUMED_SD).expect("a number");
    assert_eq!((free.rounds, free.samples), (needed, 2 * needed));
    assert!((10..60).contains(&needed), "{needed}");

    let few = forecast(&experiment(&UNTIL.replace("2%", "2%, max_rounds: 9")), 1);
    assert_eq!(few.rounds, 9);
    // A round takes about two seconds.
    let short = forecast(&experiment(&UNTIL.replace("2%", "2%, budget: 17s")), 1);
    assert_eq!(short.rounds, 8);
    let shorter = forecast(&experiment(&UNTIL.replace("2%", "2%, budget: 5s")), 1);
    assert_eq!(shorter.rounds, 6, "the least are measured all the same");
}

#[test]
fn wilder_samples_need_more_rounds_and_a_fixed_number_is_no_question() {
    let repeat = experiment(UNTIL).plan.repeat;
    let rounds = [0.01, 0.02, 0.03, 0.05].map(|sd| rounds_until_known(&repeat, sd));
    assert!(rounds.is_sorted() && rounds[0] < rounds[3], "{rounds:?}");
    assert_eq!(
        rounds_until_known(&experiment("name: x\n").plan.repeat, 0.03),
        None
    );
}

#[test]
fn what_a_look_expects_is_the_time_left() {
    let plan = experiment(UNTIL);
    let mut pace = RemainingTime::new(&plan, 20);
    for cell in &plan.cells {
        pace.taken(cell);
    }
    let round = round_s(&plan);
    assert!(close(pace.left_s(round), 19.0 * round));
    pace.expect(4);
    assert!(close(pace.left_s(round), 4.0 * round));
}
