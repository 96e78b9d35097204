//! The tables of everything else.

use crate::experiment;
use crate::fixed;
use crate::noise::Noise;
use crate::page::{head, percent};
use crate::several::{percentile, rates};
use crate::validity::{self, PLANTED};

pub(crate) fn power(experiments: u32) {
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

pub(crate) fn methods(experiments: u32) {
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

pub(crate) fn family(experiments: u32) -> Vec<String> {
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

pub(crate) fn checks(experiments: u32) {
    head(
        "Checks of a cell: share of runs in which they find drift / two modes / outliers",
        &["values", "10 rounds", "20", "40", "60"],
    );
    for (name, values) in PLANTED {
        let cells = [10, 20, 40, 60].map(|rounds| {
            let t = validity::checks(*values, rounds, experiments);
            [t.beyond, t.same, t.leaning]
                .map(|count| percent(t.share(count)))
                .join(" / ")
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
}

pub(crate) fn figures(experiments: u32) {
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
