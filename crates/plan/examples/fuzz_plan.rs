//! Plans by the million, mutated from the built-in ones: `make fuzz`, or `cargo run --release -p wirecost-plan
//! --example fuzz_plan -- INPUTS SEED`.
//!
//! A plan is an experiment, or errors that name a place within it.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use wirecost_plan::{BUILTIN, MAX_CELLS, load};

use fuzz::fuzz;

fn main() {
    let seeds: Vec<Vec<u8>> = BUILTIN
        .iter()
        .map(|(_, text)| text.as_bytes().to_vec())
        .collect();
    fuzz(&seeds, |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        let experiment = load("plan.yaml", &text);
        if let Ok(experiment) = &experiment {
            assert!(!experiment.cells.is_empty() && experiment.cells.len() <= MAX_CELLS);
        }
        experiment.is_ok()
    });
}
