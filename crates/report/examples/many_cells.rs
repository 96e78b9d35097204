//! How long the result of many cells takes to work out, from records made up here: seconds by number of
//! cells. `cargo run --release -p wirecost-report --example many_cells [FACTORS...]`, each factor doubles
//! the cells.

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::path::Path;
use std::time::Instant;

use wirecost_model::plan::Cores;
use wirecost_model::record::Run;

const ROUNDS: u32 = 8;
const FACTORS: [&str; 12] = [
    "guest_mtu: [1400, 1500]",
    "encapsulation: [none, vxlan]",
    "offload: [none, tunnel]",
    "guest_ip: [ipv4, ipv6]",
    "vary: { one: [{}, { sysctl: { net.ipv4.tcp_sack: 0 } }]",
    "two: [{}, { sysctl: { net.ipv4.tcp_dsack: 0 } }]",
    "three: [{}, { sysctl: { net.ipv4.tcp_fack: 0 } }]",
    "four: [{}, { sysctl: { net.ipv4.tcp_ecn: 0 } }]",
    "five: [{}, { sysctl: { net.ipv4.tcp_frto: 0 } }]",
    "six: [{}, { sysctl: { net.ipv4.tcp_recovery: 0 } }]",
    "seven: [{}, { sysctl: { net.ipv4.tcp_autocorking: 0 } }]",
    "eight: [{}, { sysctl: { net.ipv4.tcp_timestamps: 0 } }]",
];

fn run(factors: usize) -> Run {
    let mut plan = vec!["name: many", "underlay: { mtu: 9000 }"];
    plan.extend(&FACTORS[..factors]);
    let end = if factors > 4 { " }" } else { "" };
    let text = format!("{{ {}{end} }}", plan.join(", "));
    let experiment = wirecost_plan::load("many", &text).expect("a plan");
    let mut run = fixture::run(1, Cores::Split);
    let templates = std::mem::take(&mut run.samples);
    for round in 0..ROUNDS {
        for cell in &experiment.cells {
            let mut sample = templates[cell.index as usize % templates.len()].clone();
            (sample.round, sample.cell, sample.position) = (round, cell.index, cell.index);
            // Something that differs from sample to sample and is the same every time.
            let noise = f64::from((round * 7919 + cell.index * 104_729) % 1000) * 1e-5;
            if let Some(stream) = sample
                .loads
                .first_mut()
                .and_then(|load| load.stream.as_mut())
            {
                stream.bytes = (stream.bytes as f64 * (1.0 + noise)) as u64;
            }
            if let Some(sender) = &mut sample.sender {
                sender.foreign_cores = Some(noise);
            }
            run.samples.push(sample);
        }
    }
    run.head.experiment = experiment;
    run.head.experiment.plan.repeat.rounds = ROUNDS;
    run
}

fn main() {
    let asked: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|n| n.parse().ok())
        .collect();
    let asked = if asked.is_empty() {
        vec![6, 8, 10, 12]
    } else {
        asked
    };
    for factors in asked {
        let run = run(factors.clamp(1, FACTORS.len()));
        let began = Instant::now();
        let document = wirecost_report::document(&run, Path::new("many"), Vec::new());
        println!(
            "{} cells, {} samples, {} effects: {:.2} s",
            document.cells.len(),
            document.samples,
            document.effects.len(),
            began.elapsed().as_secs_f64()
        );
    }
}
