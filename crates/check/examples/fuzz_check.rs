//! What an agent tells of TCP, by the million, mutated from what is right: `make fuzz-check`, or
//! `cargo run --release -p wirecost-check --example fuzz_check -- INPUTS SEED`.
//!
//! Whatever an agent says, judging it may not panic. What breaks that is printed, and ends it with exit code 1.

#[path = "../../wire/examples/shared/fuzz.rs"]
mod fuzz;

use wirecost_check::{
    PathEnd, RequiredMtu, Segments, TcpMeasurements, TcpReport, judge_tcp, tcp_notes,
};

use fuzz::fuzz;

fn main() {
    let seeds = [None, Some(1492)].map(|fails| document(fails).into_bytes());
    fuzz(&seeds, |bytes, _| judged(bytes));
}

fn document(fails: Option<u32>) -> String {
    let end = |host: &str, last| PathEnd {
        host: host.to_owned(),
        address: [10, 0, 0, last].into(),
    };
    let shown = TcpMeasurements {
        failed: None,
        full: 1500,
        segments: Segments {
            passes: Some(1400),
            fails,
        },
        acknowledged: 1448,
        retransmits: 3,
        snd_mss: 1448,
        adv_mss: 1460,
        pmtu: (1500, 1400),
    };
    let ends = (end("a", 1), end("b", 2));
    let report = TcpReport::new(ends, 443, RequiredMtu::Device(1500), shown, 0.2);
    serde_json::to_string(&report).expect("a document")
}

fn judged(bytes: &[u8]) -> bool {
    let Ok(report) = serde_json::from_slice::<TcpReport>(bytes) else {
        return false;
    };
    let _ = (judge_tcp(&report), tcp_notes(&report));
    true
}
