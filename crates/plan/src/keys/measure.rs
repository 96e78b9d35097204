//! Keys of the load, and of how often and how long to measure.

use wirecost_model::load::Workload;

use super::Presence::{Adaptive, Default};
use super::{BASE, Key, Kind, ON_OFF, above_to, from_to};

keys! {
    LOAD "load" Choice {
        words: &Workload::NAMES,
        presence: Default("tcp-stream"), factor: true, example: "{ tcp-rr: { streams: [1, 64] } }",
    }
        "The workload: a name, a name with options, or a mix of several at once. The loads of a list are measured \
         separately and never compared with each other.";
    MIX "load.mix" Mix { example: "{ bulk: [none, tcp-stream], ping: { tcp-rr: { request: 128 } } }" }
        "Several loads at once, each under a name of your choice with its own figures; CPU is not attributed to any \
         of them. A list of `none` and a load, as `bulk: [none, tcp-stream]`, is a factor with the \
         load's name: the others are measured without it and with it, and compared.";

    REPEAT "repeat" Map { example: "{ rounds: 8, seconds: 1.0 }" }
        "How often and how long.";
    ROUNDS "repeat.rounds" Whole { range: from_to(1.0, 1000.0), presence: Default("8"), example: "8" }
        "A fixed number of rounds: every cell is measured once in each; an interval needs two. Excludes the keys of \
         an adaptive run (`precision`, `budget`, `min_rounds`, `max_rounds`, `ask`).";
    PRECISION "repeat.precision" Share { range: above_to(0.0, 1.0), presence: Adaptive("2%"), example: "2%" }
        "Adaptive (sequential) run: it stops when every effect in `ask` has its verdict against `worth`, or an \
         interval whose half-width is at most this.";
    BUDGET "repeat.budget" Seconds { range: from_to(1.0, 604_800.0), presence: Adaptive("5min"), example: "5min" }
        "Adaptive run: the time that it may take, building included. A round that is not expected to fit is not \
         begun, and no round is cut short; `min_rounds` are measured in any case.";
    MIN_ROUNDS "repeat.min_rounds" Whole { range: from_to(4.0, 1000.0), presence: Adaptive("6"), example: "6" }
        "Adaptive run: the fewest rounds.";
    MAX_ROUNDS "repeat.max_rounds" Whole { range: from_to(4.0, 1000.0), presence: Adaptive("60"), example: "60" }
        "Adaptive run: the most rounds.";
    ASK "repeat.ask" Word { words: &["all", "throughput", "latency", "cpu"], presence: Adaptive("all"), example: "throughput" }
        "Adaptive run: the figures whose effects have to be known before it stops. The run does not wait for an \
         effect without a valid pair of samples.";
    SECONDS "repeat.seconds" Seconds { range: from_to(0.05, 3600.0), presence: Default("1.0"), example: "1.5" }
        "Measured window of one sample. A cell with a line that its load would fill has two windows in each sample, with the \
         line and without it: each has half of this, and half of `warmup`.";
    WARMUP "repeat.warmup" Seconds { range: from_to(0.0, 60.0), presence: Default("0.2"), example: "200ms" }
        "Load before the window that is not measured.";
    WORTH "repeat.worth" Share { range: above_to(0.0, 1.0), presence: Default("5%"), example: "5%" }
        "The smallest change worth having: the margin of the verdicts.";

    SELF_TEST "self_test" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether the first cell is measured twice in every round (A/A test). If the two differ, the result says so \
         first.";
}
