//! Reruns every simulation that docs/statistics.md rests on, from fixed seeds, and prints its tables.
//!
//!     cargo run --release -p wirecost-stats --example soak [-- EXPERIMENTS | dip]
//!
//! EXPERIMENTS (4000) is the number per line; with 4000 and more, a bound that does not hold is named
//! and the exit code is 1. `dip` prints the table of the dip's quantiles instead.

mod candidates;
mod experiment;
mod fixed;
mod noise;
mod several;
mod validity;

use std::process::ExitCode;

use candidates::CANDIDATES;
use experiment::{AIM, Tally, run};
use noise::Noise;
use several::{percentile, rates, seven};
use wirecost_stats::sequential::{Aim, rounds_needed};

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

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some("dip") {
        validity::dip_table();
        return ExitCode::SUCCESS;
    }
    let experiments = match argument.as_deref().unwrap_or("4000").parse() {
        Ok(experiments) if experiments > 0 => experiments,
        _ => {
            eprintln!("soak: the number of experiments must be a whole number above 0, or `dip`");
            return ExitCode::from(2);
        }
    };
    println!("{experiments} experiments a line.");
    candidates_table(experiments);
    let mut broken = null_table(experiments);
    truths_table(experiments);
    several_table(experiments);
    lopsided_table(experiments);
    aims_table(experiments);
    power_table(experiments);
    forecast_table(experiments);
    methods_table(experiments);
    broken.extend(family_table(experiments));
    validity_table(experiments);
    figures_table(experiments);
    if experiments >= 4000 && !broken.is_empty() {
        for bound in broken {
            eprintln!("soak: {bound}");
        }
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// A heading, and the head of a table whose first column is text.
fn head(title: &str, columns: &[&str]) {
    println!(
        "\n### {title}\n\n| {} |\n|---|{}",
        columns.join(" | "),
        "---:|".repeat(columns.len() - 1)
    );
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

fn candidates_table(experiments: u32) {
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
        let at = |ratio| candidates::run(*halves, noise, ratio, &AIM, experiments);
        line(name, &at(1.0), &at(1.05), &at(1.08));
    }
    let at = |ratio| run(noise, ratio, &AIM, experiments, 2);
    line(
        "**and three rounds in a row: the rule** (all looks: its lasting interval)",
        &at(1.0),
        &at(1.05),
        &at(1.08),
    );
}

/// A/A: what must hold is checked here.
fn null_table(experiments: u32) -> Vec<String> {
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
        let t = run(noise, 1.0, &AIM, experiments, 1);
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

fn truths_table(experiments: u32) {
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
            let t = run(noise, ratio, &AIM, experiments, 1);
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
            let t = run(noise, ratio, &AIM, experiments, 1);
            let [pays, gains, same] =
                [t.beyond, t.leaning, t.same].map(|count| percent(t.share(count)));
            format!("{pays} / {gains} / {same}")
        });
        println!("| {} | {} |", noise.name(), cells.join(" | "));
    }
}

fn aims_table(experiments: u32) {
    head(
        "Other aims, normal noise, no effect: coverage (rounds)",
        &["aim", "1 %", "2 %", "3 %", "5 %"],
    );
    for (name, aim) in [
        (
            "precision 1 %, worth 3 %",
            Aim {
                precision: 0.01,
                worth: 0.03,
                ..AIM
            },
        ),
        (
            "precision 5 %, worth 5 %",
            Aim {
                precision: 0.05,
                ..AIM
            },
        ),
        ("precision 2 %, worth 10 %", Aim { worth: 0.1, ..AIM }),
        (
            "at least 4 rounds",
            Aim {
                min_rounds: 4,
                ..AIM
            },
        ),
        (
            "at least 10 rounds",
            Aim {
                min_rounds: 10,
                ..AIM
            },
        ),
        (
            "at most 20 rounds",
            Aim {
                max_rounds: 20,
                ..AIM
            },
        ),
        (
            "at most 200 rounds",
            Aim {
                max_rounds: 200,
                ..AIM
            },
        ),
    ] {
        let cells = [0.01, 0.02, 0.03, 0.05].map(|sd| {
            let t = run(Noise::Normal(sd), 1.0, &aim, experiments, 1);
            format!("{} ({:.1})", percent(t.share(t.covered)), t.mean_rounds())
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn power_table(experiments: u32) {
    head(
        "Power at a fixed number of rounds, normal noise: the interval excludes no effect / lies beyond worth 5 %",
        &[
            "effect, noise of a sample",
            "6 rounds",
            "8",
            "10",
            "20",
            "40",
        ],
    );
    for effect in [0.02, 0.05, 0.08, 0.1, 0.2] {
        for sd in [0.01, 0.02, 0.03, 0.05] {
            let cells = [6, 8, 10, 20, 40].map(|rounds| {
                let t = fixed::power(Noise::Normal(sd), 1.0 + effect, rounds, experiments);
                format!(
                    "{:.0} / {:.0}",
                    100.0 * t.share(t.covered),
                    100.0 * t.share(t.beyond)
                )
            });
            println!(
                "| {:.0} %, {:.0} % | {} |",
                effect * 100.0,
                sd * 100.0,
                cells.join(" | ")
            );
        }
    }
}

fn forecast_table(experiments: u32) {
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
            let long = Aim {
                max_rounds: 400,
                ..AIM
            };
            let rounds = rounds_needed(spread, ratio, &long, 0.8).unwrap_or(long.max_rounds);
            let share =
                experiment::settled_by(Noise::Normal(sd), ratio, &long, rounds, experiments);
            format!("{rounds} ({:.0})", share * 100.0)
        });
        println!("| {:.0} % | {} |", sd * 100.0, cells.join(" | "));
    }
}

fn methods_table(experiments: u32) {
    head(
        "Coverage of the methods at a fixed number of rounds, no effect: t / signed rank / bootstrap",
        &["noise of a sample", "10 rounds", "20", "40"],
    );
    for noise in [
        Noise::Normal(0.03),
        Noise::LogNormal(0.03),
        Noise::Drifting(0.03),
        Noise::Bimodal(0.02),
    ] {
        let cells = [10, 20, 40].map(|rounds| {
            let t = fixed::methods(noise, rounds, experiments);
            [t.covered, t.lasted, t.same]
                .map(|count| percent(t.share(count)))
                .join(" / ")
        });
        println!("| {} | {} |", noise.name(), cells.join(" | "));
    }
}

fn family_table(experiments: u32) -> Vec<String> {
    head(
        "Families of effects that are none, 10 rounds: runs with a false gain or loss, raw / corrected",
        &["noise of a sample", "4 effects", "12", "36"],
    );
    let mut broken = Vec::new();
    for noise in [
        Noise::Normal(0.03),
        Noise::LogNormal(0.03),
        Noise::Drifting(0.03),
        Noise::Bimodal(0.02),
    ] {
        let cells = [4, 12, 36].map(|effects| {
            let t = fixed::family(noise, effects, 10, experiments);
            if t.share(t.same) > experiment::allowed(experiments) {
                broken.push(format!(
                    "{}: {effects} effects are wrong too often",
                    noise.name()
                ));
            }
            format!(
                "{} / {}",
                percent(t.share(t.beyond)),
                percent(t.share(t.same))
            )
        });
        println!("| {} | {} |", noise.name(), cells.join(" | "));
    }
    broken
}

fn validity_table(experiments: u32) {
    head(
        "Checks of a cell: share of runs in which they find drift / two modes / outliers",
        &["values", "10 rounds", "20", "40", "60"],
    );
    for (name, values) in validity::PLANTED {
        let cells = [10, 20, 40, 60].map(|rounds| {
            let t = validity::checks(*values, rounds, experiments);
            [t.beyond, t.same, t.leaning]
                .map(|count| percent(t.share(count)))
                .join(" / ")
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

fn several_table(experiments: u32) {
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
        let t = seven(noise, &AIM, experiments);
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

fn lopsided_table(experiments: u32) {
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
    let rule = run(noise, 1.0, &AIM, experiments, 1);
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

fn figures_table(experiments: u32) {
    let fewer = (experiments / 4).max(1);
    head(
        &format!("Coverage of percentiles and rates ({fewer} experiments a line)"),
        &["figure", "6 rounds", "10", "20"],
    );
    for (name, p, z) in [
        ("p50", 0.5, 0.0),
        ("p90", 0.9, 1.281_552),
        ("p99", 0.99, 2.326_348),
    ] {
        let cells = [6, 10, 20].map(|rounds| {
            let t = percentile(p, z, rounds, fewer);
            percent(t.share(t.covered))
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
    for (name, mean, burst) in [
        ("10 single events a round", 10.0, 1),
        ("10 in bursts of 5", 10.0, 5),
        ("1 single event", 1.0, 1),
    ] {
        let cells = [6, 10, 20].map(|rounds| {
            let t = rates(mean, burst, rounds, fewer);
            percent(t.share(t.covered))
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}
