//! The `--json` contract.

mod fixture;

use std::path::Path;

use fixture::run;
use serde_json::Value;
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_report::document;

/// The same run as if guests and underlay had spoken IPv6.
fn ipv6(mut run: Run) -> Value {
    for cell in &mut run.head.experiment.cells {
        cell.network.guest_ip = IpVersion::Ipv6;
        cell.network.underlay_ip = IpVersion::Ipv6;
    }
    let doc = document(&run, Path::new("/runs/x"), Vec::new());
    serde_json::to_value(doc).expect("JSON")
}

fn json(rounds: u32, cores: Cores) -> Value {
    let doc = document(&run(rounds, cores), Path::new("/runs/x"), Vec::new());
    serde_json::to_value(doc).expect("JSON")
}

/// Leaves six digits: the last ones are the mathematical library's.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.5e}", number.as_f64().expect("a float"));
            *value = text.parse::<f64>().expect("a float").into();
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}

#[test]
fn the_document_has_these_names() {
    let mut doc = json(3, Cores::Split);
    // One of each is enough to see the names.
    for list in ["cells", "effects", "factorials"] {
        doc[list].as_array_mut().expect("a list").truncate(1);
    }
    for list in ["main", "interactions"] {
        let of = &mut doc["factorials"][0][list];
        of.as_array_mut().expect("a list").truncate(1);
    }
    let rules = &mut doc["other_rules"]["cells"];
    rules.as_array_mut().expect("a list").truncate(1);
    let ratios = doc["published"]["ratios"].as_array_mut().expect("a list");
    ratios.truncate(1);
    round(&mut doc);
    insta::assert_json_snapshot!(doc);
}

#[test]
fn shared_cores_have_the_machine_s_cpu_and_no_other() {
    let cell = &json(3, Cores::Shared)["cells"][0];
    assert!(cell["sender_cpu_percent_per_gbps"].is_null());
    assert!(cell["receiver_cpu_percent_per_gbps"].is_null());
    assert!(cell["cpu_percent_per_gbps"]["median"].is_number());
}

#[test]
fn the_line_s_limit_is_that_of_the_cell_s_frames() {
    let limit = |doc: &Value, cell: usize| {
        doc["cells"][cell]["line_limit_gbps"]
            .as_f64()
            .expect("a limit")
    };
    // 10 Gbit/s, (1500 - 52) / (1500 + 38) and (8900 - 52) / (8900 + 50 + 38).
    let doc = json(1, Cores::Split);
    assert!((limit(&doc, 0) - 9.4148).abs() < 1e-4);
    assert!((limit(&doc, 6) - 9.8442).abs() < 1e-4);
    // (1500 - 72) / (1500 + 38) and (8900 - 72) / (8900 + 70 + 38).
    let doc = ipv6(run(1, Cores::Split));
    assert!((limit(&doc, 0) - 9.2848).abs() < 1e-4);
    assert!((limit(&doc, 6) - 9.8002).abs() < 1e-4);
}
