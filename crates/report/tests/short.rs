//! What a run comes to, in a few sentences.

mod fixture;

use std::path::Path;

use fixture::run;
use wirecost_model::effect::Verdict;
use wirecost_model::plan::Cores;
use wirecost_report::{Document, Terminal, document, terminal};

fn doc() -> Document {
    document(&run(4, Cores::Split), Path::new("/runs/one"), Vec::new())
}

/// The paragraphs below "In short", each in one line, up to the first that is no change's.
fn short(doc: &Document) -> Vec<String> {
    let options = Terminal {
        width: 4000,
        colour: false,
    };
    let printed = terminal(doc, options);
    let paragraphs = printed
        .lines()
        .skip_while(|line| *line != "In short")
        .skip(1);
    paragraphs
        .take_while(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_factor_is_crowded_out_by_one_of_many_levels() {
    let mut doc = doc();
    let vxlan: Vec<_> = doc
        .effects
        .iter()
        .filter(|effect| effect.to == "vxlan")
        .cloned()
        .collect();
    assert!(!vxlan.is_empty());
    // Each larger than the one before, and than what the other factors do.
    for (name, ratio) in [
        ("one", 20.0),
        ("two", 30.0),
        ("three", 40.0),
        ("four", 50.0),
    ] {
        doc.effects.extend(vxlan.iter().cloned().map(|mut effect| {
            effect.effect.to = name.to_owned();
            effect.effect.ratio = Some(ratio);
            effect
        }));
        let levels = &mut doc.factors;
        let factor = levels.iter_mut().find(|f| f.key == "encapsulation");
        factor.expect("the factor").levels.push(name.to_owned());
    }
    let said = short(&doc);
    let of = |start: &str| said.iter().any(|line| line.starts_with(start));
    assert!(of("Guest MTU 8900 instead of 1500:"), "{said:#?}");
    assert!(of("Offload tunnel instead of none:"), "{said:#?}");
    for (level, there) in [
        ("vxlan", false),
        ("one", false),
        ("two", true),
        ("three", true),
        ("four", true),
    ] {
        let start = format!("Encapsulation {level} instead of none:");
        assert_eq!(of(&start), there, "{level}: {said:#?}");
    }
    assert!(of(
        "2 other changes with smaller effects: see the verdicts."
    ));
}

#[test]
fn what_cannot_be_told_at_all_is_said_once() {
    let mut doc = doc();
    for effect in &mut doc.effects {
        effect.corrected = None;
        let throughput = effect.metric.words() == "throughput";
        effect.effect.verdict = if throughput {
            Verdict::Pays
        } else {
            Verdict::CannotTellYet
        };
    }
    let said = short(&doc);
    assert!(
        said[0].ends_with("; in CPU per Gbit/s it cannot be told yet."),
        "{said:#?}"
    );
    for effect in &mut doc.effects {
        effect.effect.verdict = Verdict::CannotTellYet;
    }
    assert_eq!(
        short(&doc)[0],
        "Guest MTU 8900 instead of 1500: in throughput and CPU per Gbit/s it cannot be told yet."
    );
}
