//! Every sample as a row.

mod fixture;

use fixture::{cores_apart, run};
use wirecost_model::plan::Cores;
use wirecost_model::sample::{Invalid, Mark};
use wirecost_report::csv as text_of;

#[test]
fn a_row_per_sample_with_these_columns() {
    let mut run = run(2, Cores::Split);
    run.samples[1].invalid = Some(Invalid::Build(
        "a \"reason\", with a comma\nand a line".into(),
    ));
    run.samples[1].loads.clear();
    run.samples[2].marks = vec![
        Mark::ForeignLoad {
            cores: 0.4,
            threshold: 0.1,
        },
        Mark::BacklogDrops {
            host: "b".into(),
            packets: 12,
        },
    ];
    cores_apart(&mut run, |_| [64.0, 66.0]);
    run.samples[0].cores_apart.clear();
    run.samples.truncate(3);
    let text = text_of(&run).expect("CSV");
    assert_eq!(text.matches("\r\n").count(), 4);
    insta::assert_snapshot!(text.replace("\r\n", "\n"));
}

#[test]
fn a_mark_that_both_hosts_have_is_one_word_whatever_stands_between() {
    let mut run = run(1, Cores::Split);
    run.samples.truncate(1);
    let of = |host: &str| {
        let host = || host.to_owned();
        [
            Mark::Steal {
                host: host(),
                fraction: 0.4,
                threshold: 0.1,
            },
            Mark::BacklogDrops {
                host: host(),
                packets: 12,
            },
        ]
    };
    run.samples[0].marks = [of("a"), of("b")].concat();
    let text = text_of(&run).expect("CSV");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").clone();
    let marks = names.iter().position(|name| name == "marks");
    let row = reader.records().next().expect("a row").expect("a row");
    assert_eq!(&row[marks.expect("a column")], "steal backlog-drops");
}

#[test]
fn another_program_reads_back_what_was_written() {
    let run = run(3, Cores::Shared);
    let text = text_of(&run).expect("CSV");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").clone();
    let column = |name: &str| names.iter().position(|n| n == name).expect("a column");
    assert!(
        names
            .iter()
            .all(|name| name != "sender_cpu_percent_per_gbps")
    );
    let rows: Vec<_> = reader.records().map(|row| row.expect("a row")).collect();
    assert_eq!(rows.len(), run.samples.len());
    for (row, sample) in rows.iter().zip(&run.samples) {
        assert_eq!(row[column("cell")], sample.cell.to_string());
        assert_eq!(row[column("round")], sample.round.to_string());
        assert_eq!(&row[column("valid")], "true");
        let cell = &run.head.experiment.cells[sample.cell as usize];
        assert_eq!(row[column("guest_mtu")], cell.levels["guest_mtu"]);
        let gbps: f64 = row[column("throughput_gbps")].parse().expect("a figure");
        let bytes = sample.loads[0].stream.as_ref().expect("a stream").bytes as f64;
        assert!((gbps - bytes * 8.0 / 1e9).abs() < 1e-12);
        let cpu: f64 = row[column("cpu_percent_per_gbps")]
            .parse()
            .expect("a figure");
        assert!(cpu > 0.0);
    }
}
