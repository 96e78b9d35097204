//! The tables of the sequential rule.

use wirecost_stats::sequential::{StoppingCriterion, rounds_needed};

use crate::candidates::{self, CANDIDATES};
use crate::experiment::{self, CRITERION, Tally, run};
use crate::fixed;
use crate::noise::Noise;
use crate::page::{head, percent};
use crate::several::seven;

const NOISES: [Noise; 8] = [
    Noise::Normal(0.01),
    Noise::Normal(0.02),
    Noise::Normal(0.03),
    Noise::Normal(0.05),
    Noise::Normal(0.08),
    Noise::LogNormal(0.03),
    Noise::Drifting(0.03),
    Noise::Bimodal(0.02),
];

pub(crate) fn rules(experiments: u32) {
    head(
        "Rules (normal noise of 3 % a sample)",
        &[
            "rule",
            "coverage where it stops, no effect",
            "same, effect at the margin",
            "coverage at all looks, no effect",
            "wrong verdicts at the margin",
            "rounds, no effect",
            "rounds, 8 %",
        ],
    );
    let line = |name: &str, null: &Tally, margin: &Tally, eight: &Tally| {
        println!(
            "| {name} | {} | {} | {} | {} | {:.1} | {:.1} |",
            percent(null.share(null.covered)),
            percent(margin.share(margin.covered)),
            percent(null.share(null.lasted)),
            percent(margin.share(margin.beyond)),
            null.mean_rounds(),
            eight.mean_rounds()
        );
    };
    let noise = Noise::Normal(0.03);
    for (name, halves) in CANDIDATES {
        let at = |ratio| candidates::run(*halves, noise, ratio, &CRITERION, experiments);
        line(name, &at(1.0), &at(1.05), &at(1.08));
    }
    let at = |ratio| run(noise, ratio, &CRITERION, experiments, 2);
    line(
        "**and three rounds in a row: the rule** (all looks: its lasting interval)",
        &at(1.0),
        &at(1.05),
        &at(1.08),
    );
}

/// A/A: what must hold is checked here.
pub(crate) fn null(experiments: u32) -> Vec<String> {
    head(
        "No effect (A/A), the whole rule: precision 2 %, worth 5 %, 6 to 60 rounds",
        &[
            "noise of a sample",
            "pays or costs",
            "gains or loses",
            "no difference",
            "coverage",
            "lasting, all looks",
            "rounds",
        ],
    );
    let mut broken = Vec::new();
    for noise in NOISES {
        let t = run(noise, 1.0, &CRITERION, experiments, 1);
        println!(
            "| {} | {} | {} | {} | {} | {} | {:.1} |",
            noise.name(),
            percent(t.share(t.beyond)),
            percent(t.share(t.leaning)),
            percent(t.share(t.same)),
            percent(t.share(t.covered)),
            percent(t.share(t.lasted)),
            t.mean_rounds()
        );
        broken.extend(experiment::null_bounds(noise, &t));
    }
    broken
}

pub(crate) fn truths(experiments: u32) {
    head(
        "An effect, the whole rule: coverage (rounds)",
        &[
            "noise of a sample",
            "3 %",
            "5 %, at the margin",
            "8 %",
            "20 %",
        ],
    );
    for noise in NOISES {
        let cells = [1.03, 1.05, 1.08, 1.2].map(|ratio| {
            let t = run(noise, ratio, &CRITERION, experiments, 1);
            format!("{} ({:.1})", percent(t.share(t.covered)), t.mean_rounds())
        });
        println!("| {} | {} |", noise.name(), cells.join(" | "));
    }
    head(
        "An effect, the whole rule: verdicts pays / gains / no difference",
        &[
            "noise of a sample",
            "3 %",
            "5 %, at the margin",
            "8 %",
            "20 %",
        ],
    );
    for noise in NOISES {
        let cells = [1.03, 1.05, 1.08, 1.2].map(|ratio| {
            let t = run(noise, ratio, &CRITERION, experiments, 1);
            let [pays, gains, same] =
                [t.beyond, t.leaning, t.same].map(|count| percent(t.share(count)));
            format!("{pays} / {gains} / {same}")
        });
        println!("| {} | {} |", noise.name(), cells.join(" | "));
    }
}

pub(crate) fn several(experiments: u32) {
    head(
        "Seven effects that are none, of one reference; the run ends when all are settled",
        &[
            "noise of a sample",
            "coverage of an effect",
            "runs with a false difference",
            "after correction",
            "rounds",
        ],
    );
    for noise in [
        Noise::Normal(0.01),
        Noise::Normal(0.03),
        Noise::LogNormal(0.03),
        Noise::Bimodal(0.02),
    ] {
        let t = seven(noise, &CRITERION, experiments);
        println!(
            "| {} | {} | {} | {} | {:.1} |",
            noise.name(),
            percent(t.share(t.covered) / 7.0),
            percent(t.share(t.beyond)),
            percent(t.share(t.same)),
            t.mean_rounds()
        );
    }
}

pub(crate) fn lopsided(experiments: u32) {
    head(
        "Bad runs in one of the two cells only, no effect on the mean: coverage",
        &[
            "method",
            "6 to 60 rounds, the rule",
            "10 rounds",
            "20",
            "40",
        ],
    );
    let noise = Noise::Lopsided(0.02);
    let rule = run(noise, 1.0, &CRITERION, experiments, 1);
    let fixed = [10, 20, 40].map(|rounds| fixed::methods(noise, rounds, experiments));
    let cells = fixed.map(|t| percent(t.share(t.covered)));
    println!(
        "| t | {} | {} |",
        percent(rule.share(rule.covered)),
        cells.join(" | ")
    );
    let cells = fixed.map(|t| percent(t.share(t.lasted)));
    println!("| signed rank | | {} |", cells.join(" | "));
    let cells = fixed.map(|t| percent(t.share(t.same)));
    println!("| bootstrap | | {} |", cells.join(" | "));
}

pub(crate) fn aims(experiments: u32) {
    head(
        "Other aims, normal noise, no effect: coverage (rounds)",
        &["aim", "1 %", "2 %", "3 %", "5 %"],
    );
    for (name, criterion) in [
        (
            "precision 1 %, worth 3 %",
            StoppingCriterion {
                precision: 0.01,
                worth: 0.03,
                ..CRITERION
            },
        ),
        (
            "precision 5 %, worth 5 %",
            StoppingCriterion {
                precision: 0.05,
                ..CRITERION
            },
        ),
        (
            "precision 2 %, worth 10 %",
            StoppingCriterion {
                worth: 0.1,
                ..CRITERION
            },
        ),
        (
            "at least 4 rounds",
            StoppingCriterion {
                min_rounds: 4,
                ..CRITERION
            },
        ),
        (
            "at least 10 rounds",
            StoppingCriterion {
                min_rounds: 10,
                ..CRITERION
            },
        ),
        (
            "at most 20 rounds",
            StoppingCriterion {
                max_rounds: 20,
                ..CRITERION
            },
        ),
        (
            "at most 200 rounds",
            StoppingCriterion {
                max_rounds: 200,
                ..CRITERION
            },
        ),
    ] {
        let cells = [0.01, 0.02, 0.03, 0.05].map(|sd| {
            let t = run(Noise::Normal(sd), 1.0, &criterion, experiments, 1);
            format!("{} ({:.1})", percent(t.share(t.covered)), t.mean_rounds())
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

pub(crate) fn forecast(experiments: u32) {
    head(
        "Rounds forecast with 80 % chance, and the share of runs settled by then (normal noise)",
        &[
            "noise of a sample",
            "no effect",
            "5 %, at the margin",
            "8 %",
            "20 %",
        ],
    );
    for sd in [0.01, 0.02, 0.03, 0.05] {
        let cells = [1.0, 1.05, 1.08, 1.2].map(|ratio| {
            let spread = sd * std::f64::consts::SQRT_2;
            let long = StoppingCriterion {
                max_rounds: 400,
                ..CRITERION
            };
            let rounds = rounds_needed(spread, ratio, &long, 0.8).unwrap_or(long.max_rounds);
            let share =
                experiment::settled_by(Noise::Normal(sd), ratio, &long, rounds, experiments);
            format!("{rounds} ({:.0})", share * 100.0)
        });
        println!("| {:.0} % | {} |", sd * 100.0, cells.join(" | "));
    }
}
