//! First bytes of a load's connections and datagrams by the million, mutated from ones that are right: `make fuzz`, or
//! `cargo run --release -p wirecost-traffic --example fuzz_hello -- INPUTS SEED`.
//!
//! No flow may be opened without the load's secret.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use wirecost_traffic::{Options, Workload, opening, opens_a_flow};

use fuzz::fuzz;

const SECRET: [u8; 16] = *b"sixteen-bytes-16";

fn main() {
    let options =
        Workload::ALL.map(|workload| Options::new(workload, SECRET).with(|load| load.streams = 3));
    let seeds: Vec<Vec<u8>> = options.iter().map(|options| opening(options, 1)).collect();
    fuzz(&seeds, |bytes, _| {
        let opened = options.iter().any(|options| opens_a_flow(bytes, options));
        let has_secret = bytes.windows(SECRET.len()).any(|part| part == SECRET);
        assert!(has_secret || !opened, "opened without the secret");
        opened
    });
}
