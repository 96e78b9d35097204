//! What goes into a pull request or a wiki.

mod fixture;

use std::path::Path;

use fixture::{cores_apart, run};
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, Run};
use wirecost_model::sample::{Invalid, Mark, Sample};
use wirecost_report::{document, markdown};

fn print(run: &Run) -> String {
    let warnings = vec!["the last line of samples.jsonl is incomplete".into()];
    markdown(&document(run, Path::new("/runs/x"), warnings))
}

#[test]
fn a_disturbed_run() {
    let mut run = run(4, Cores::Split);
    run.samples[3].invalid = Some(Invalid::Proof(
        "1500 bytes | were * not _ acknowledged".into(),
    ));
    run.samples[5].marks = vec![Mark::Steal {
        host: "a".into(),
        fraction: 0.1,
        threshold: 0.01,
    }];
    run.end.as_mut().expect("an end").outcome = Outcome::Interrupted;
    run.end.as_mut().expect("an end").reason = Some("SIGINT".into());
    insta::assert_snapshot!(print(&run));
}

#[test]
fn cores_that_were_moved_are_told_once() {
    let sentences = |run: &Run| -> Vec<String> {
        let text = print(run);
        let of_cores = text.lines().filter(|line| line.contains("Core distance:"));
        of_cores.map(str::to_owned).collect()
    };
    let mut quiet = run(4, Cores::Split);
    cores_apart(&mut quiet, |sample| [60.0 + f64::from(sample.round), 64.0]);
    assert_eq!(sentences(&quiet), [""; 0]);

    // Nothing goes with it.
    let mut moved = run(4, Cores::Split);
    let far = |sample: &Sample| (sample.round + sample.cell).is_multiple_of(2);
    cores_apart(
        &mut moved,
        |sample| if far(sample) { [301.0; 2] } else { [64.0; 2] },
    );
    insta::assert_snapshot!(sentences(&moved).join("\n"), @"- Core distance: a cache line took 64 to 301 ns from one core to the other and back, median 64; in a virtual machine the hypervisor moves virtual CPUs, and that can change every figure.");

    // What is carried does.
    for sample in moved.samples.iter_mut().filter(|sample| far(sample)) {
        let stream = sample.loads[0].stream.as_mut().expect("a stream");
        stream.bytes = (stream.bytes as f64 * 0.6) as u64;
    }
    insta::assert_snapshot!(sentences(&moved).join("\n"), @r"
    - Core distance: throughput correlates with it, x0.60 from 64 to 301 ns for a cache line to the other core and back (p below 0.001); in a virtual machine the hypervisor moves virtual CPUs.
    - Core distance: sender CPU per Gbit/s correlates with it, x1.67 from 64 to 301 ns for a cache line to the other core and back (p below 0.001); in a virtual machine the hypervisor moves virtual CPUs.
    - Core distance: receiver CPU per Gbit/s correlates with it, x1.67 from 64 to 301 ns for a cache line to the other core and back (p below 0.001); in a virtual machine the hypervisor moves virtual CPUs.
    ");
}

#[test]
fn names_are_only_text() {
    let mut run = run(2, Cores::Split);
    run.head.experiment.plan.name =
        "<script>alert(1)</script>\n# @someone [x](javascript:y) `a` | b \u{1b}".into();
    let text = print(&run);
    let first = text.lines().next().expect("a line");
    assert_eq!(
        first,
        "## &lt;script&gt;alert(1)&lt;/script&gt; \\# @<!-- -->someone \\[x\\](javascript:y) \\`a\\` \\| b ␛: 8 cells, 2 rounds of 1 s"
    );
}

#[test]
fn every_table_has_as_many_fields_in_every_row() {
    for cores in [Cores::Split, Cores::Shared] {
        let text = print(&run(3, cores));
        let bars = |line: &str| line.matches('|').count() - line.matches("\\|").count();
        let lines: Vec<&str> = text.lines().collect();
        let tables = lines.chunk_by(|a, b| a.starts_with('|') && b.starts_with('|'));
        let tables: Vec<_> = tables.filter(|lines| lines[0].starts_with('|')).collect();
        assert_eq!(tables.len(), 3);
        for table in tables {
            assert!(table.len() > 2);
            assert!(
                table.iter().all(|line| bars(line) == bars(table[0])),
                "{table:#?}"
            );
        }
    }
}
