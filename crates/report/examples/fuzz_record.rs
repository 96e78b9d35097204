//! Records by the million, mutated from one that is right: `make fuzz`, or `cargo run --release -p wirecost-report
//! --example fuzz_record -- INPUTS SEED`.
//!
//! A record is read, with warnings, or refused; of some that are read the result is worked out and printed.

#[path = "../tests/fixture/mod.rs"]
mod fixture;
#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use std::fs;

use wirecost_model::plan::Cores;
use wirecost_model::record::file;

use fuzz::fuzz;

/// Of so many records that are read one is printed.
const PRINTED: usize = 64;

fn main() {
    let run = fixture::run(2, Cores::Split);
    let head = serde_json::to_vec(&run.head).expect("JSON");
    let end = serde_json::to_vec(&run.end).expect("JSON");
    let samples: Vec<String> = run
        .samples
        .iter()
        .map(|sample| serde_json::to_string(sample).expect("JSON"))
        .collect();
    let samples = (samples.join("\n") + "\n").into_bytes();
    let files = [
        (file::RUN, &head),
        (file::SAMPLES, &samples),
        (file::END, &end),
    ];
    let directory = tempfile::tempdir_in("/dev/shm").expect("room in memory");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(directory.path().join(name), bytes).expect("room in memory");
    };
    for (name, bytes) in files {
        write(name, bytes);
    }
    // The first byte says which file the rest is.
    let seeds: Vec<Vec<u8>> = (0u8..3)
        .zip(files)
        .map(|(number, (_, bytes))| [&[number], &bytes[..]].concat())
        .collect();
    fuzz(&seeds, |bytes, random| {
        let Some((number, bytes)) = bytes.split_first() else {
            return false;
        };
        let (name, right) = files[*number as usize % files.len()];
        write(name, bytes);
        let read = wirecost_report::read(directory.path());
        write(name, right);
        if let Ok(reading) = &read
            && random.below(PRINTED) == 0
        {
            let doc =
                wirecost_report::document(&reading.run, directory.path(), reading.warnings.clone());
            let _ = wirecost_report::markdown(&doc);
        }
        read.is_ok()
    });
}
