//! Writes a run directory with many samples, to see what a report of it takes:
//! `cargo run --release -p wirecost-report --example big_record -- DIRECTORY SAMPLES [RUN_DIR]`, then
//! `/usr/bin/time -v wirecost report DIRECTORY`. Each sample is one of a small fixture, or of the run in RUN_DIR.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use wirecost_model::metric::SampleWithFigures;
use wirecost_model::plan::Cores;
use wirecost_model::record::file;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("a directory"));
    let wanted: u32 = arguments
        .next()
        .expect("samples")
        .parse()
        .expect("a number");
    let mut run = match arguments.next() {
        Some(real) => wirecost_report::read(real.as_ref()).expect("a run").run,
        None => fixture::run(1, Cores::Split),
    };
    let mut templates = std::mem::take(&mut run.samples);
    templates.retain(|sample| sample.round == 0);
    let cells = templates.len() as u32;
    let rounds = wanted.div_ceil(cells);
    run.head.experiment.plan.repeat.rounds = rounds;
    fs::create_dir_all(&directory)?;
    let write = |name: &str, text: String| fs::write(directory.join(name), text);
    write(file::RUN, serde_json::to_string(&run.head)?)?;
    write(file::END, serde_json::to_string(&run.end)?)?;
    let mut samples = BufWriter::new(File::create(directory.join(file::SAMPLES))?);
    for round in 0..rounds {
        for template in &templates {
            let mut sample = template.clone();
            sample.round = round;
            // Something that differs from sample to sample and is the same every time.
            let noise = f64::from((round * 7919 + sample.cell * 104_729) % 1000) * 1e-4;
            if let Some(stream) = &mut sample.loads[0].stream {
                stream.bytes = (stream.bytes as f64 * (1.0 + noise)) as u64;
            }
            serde_json::to_writer(&mut samples, &SampleWithFigures::of(&sample, Cores::Split))?;
            samples.write_all(b"\n")?;
        }
    }
    samples.flush()
}
