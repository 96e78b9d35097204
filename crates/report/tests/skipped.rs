//! Cells that cannot be built here are skipped, with the reason, and nothing is said of their effects.

mod fixture;

use std::path::Path;

use fixture::run;
use scraper::{Html, Selector};
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_model::sample::{Invalid, Sample};
use wirecost_report::{
    Detail, Document, RecordedRun, Terminal, document, html, markdown, terminal,
};

const WHY: &str = "this kernel has no vxlan driver";

/// Of three rounds, those cells could not be built.
fn without(which: impl Fn(&Sample) -> bool) -> Run {
    let mut run = run(3, Cores::Split);
    for sample in run.samples.iter_mut().filter(|sample| which(sample)) {
        sample.invalid = Some(Invalid::Build(WHY.into()));
        sample.loads.clear();
    }
    run
}

/// Without all that have VXLAN.
fn without_vxlan() -> Run {
    without(|sample| matches!(sample.cell, 2 | 3 | 6 | 7))
}

fn doc(run: &Run) -> Document {
    document(run, Path::new("/runs/x"), Vec::new())
}

fn print(doc: &Document) -> String {
    let (width, colour) = (4000, false);
    terminal(
        doc,
        Terminal {
            width,
            colour,
            detail: Detail::Full,
            ..Terminal::default()
        },
    )
}

fn page(run: &Run) -> Html {
    let reading = RecordedRun {
        run: run.clone(),
        warnings: Vec::new(),
        plan_text: None,
    };
    Html::parse_document(&html(&reading, &doc(run)).expect("a page"))
}

fn text_of(page: &Html, selector: &str) -> String {
    let selector = Selector::parse(selector).expect("a selector");
    page.select(&selector)
        .flat_map(|element| element.text())
        .collect()
}

/// The sentence of every form.
const SENTENCE: &str = "Skipped, cannot be built here: VXLAN: this kernel has no vxlan driver.";

/// What two measured cells leave open is counted, and nothing else.
const UNCLEAR: &str = "Of 12 comparisons 2 are not known yet.";

#[test]
fn json_has_the_reason_and_no_effect_of_a_skipped_cell() {
    let run = without_vxlan();
    let doc = doc(&run);
    let json = serde_json::to_value(&doc).expect("JSON");
    for (at, cell) in doc.cells.iter().enumerate() {
        let vxlan = cell.levels["encapsulation"] == "vxlan";
        assert_eq!(cell.skipped.as_deref(), vxlan.then_some(WHY));
        assert_eq!(json["cells"][at]["skipped"].as_str(), vxlan.then_some(WHY));
        assert_eq!(cell.samples, 3);
    }
    // Two changes without VXLAN, each at two levels of the other, by three metrics.
    assert_eq!(doc.effects.len(), 12);
    for effect in &doc.effects {
        assert_eq!(effect.rounds, 3);
        assert_ne!(effect.factor, "encapsulation");
        assert_eq!(effect.where_["encapsulation"], "none");
    }
    // What others published is told all the same, as not measured.
    let ratios = &doc.published.as_ref().expect("published").ratios;
    assert!(ratios.iter().any(|ratio| ratio.here.is_none()));
}

#[test]
fn the_terminal_says_skipped_and_why_and_asks_for_no_more_rounds() {
    let text = print(&doc(&without_vxlan()));
    assert_eq!(text.matches(SENTENCE).count(), 1, "{text}");
    assert!(text.contains(UNCLEAR), "{text}");
    let rows = |word: &str| text.lines().filter(|line| line.ends_with(word)).count();
    assert_eq!(rows(" skipped"), 4, "{text}");
    for untrue in ["0/3", "no valid pair", "\nVXLAN: "] {
        assert!(!text.contains(untrue), "{untrue}: {text}");
    }
}

#[test]
fn markdown_and_html_say_the_same() {
    let run = without_vxlan();
    let text = markdown(&doc(&run));
    assert_eq!(text.matches(SENTENCE).count(), 1, "{text}");
    assert!(text.contains(UNCLEAR), "{text}");
    assert_eq!(text.matches("| skipped |").count(), 4, "{text}");
    for untrue in ["0 of 3", "(0 of", "**cannot tell yet** ("] {
        assert!(!text.contains(untrue), "{untrue}: {text}");
    }
    let page = page(&run);
    let answer = text_of(&page, "#answer");
    assert_eq!(answer.matches(SENTENCE).count(), 1, "{answer}");
    assert!(answer.contains(UNCLEAR), "{answer}");
    let cells = text_of(&page, "#cells > .scroll td");
    assert!(!cells.contains("0 of 3"), "{cells}");
    assert_eq!(cells.matches("skipped").count(), 4, "{cells}");
    for parts in ["table.verdicts", "#effects"] {
        let text = text_of(&page, parts);
        assert!(text.contains("8900 instead of 1500"), "{text}");
        assert!(!text.contains("vxlan"), "{text}");
        assert!(!text.contains("no valid pair"), "{text}");
    }
}

#[test]
fn a_cell_that_was_built_once_or_failed_otherwise_is_not_skipped() {
    let once = doc(&without(|sample| sample.cell == 0 && sample.round > 0));
    assert_eq!((&once.cells[0].skipped, once.cells[0].valid), (&None, 1));
    assert_eq!(once.effects.len(), 36);
    let mut run = without(|sample| sample.cell == 0);
    run.samples[0].invalid = Some(Invalid::Load("the server ended".into()));
    let otherwise = doc(&run);
    assert_eq!(otherwise.cells[0].skipped, None);
    assert_eq!(otherwise.effects.len(), 36);
    assert!(print(&otherwise).contains("(no valid pair)"));
}

#[test]
fn each_reason_names_its_cells() {
    let mut run = without(|sample| matches!(sample.cell, 0 | 3 | 5));
    for sample in run.samples.iter_mut().filter(|sample| sample.cell == 5) {
        sample.invalid = Some(Invalid::Build("no memory.".into()));
    }
    let text = print(&doc(&run));
    let first = "cannot be built here: guest MTU 1500, no encapsulation, without offloads; \
                 guest MTU 1500, VXLAN, with offloads: this kernel has no vxlan driver.\n";
    assert!(text.contains(first), "{text}");
    let second = "here: guest MTU 8900, no encapsulation, with offloads: no memory.\n";
    assert!(text.contains(second), "{text}");
}

#[test]
fn a_record_of_more_rounds_than_its_plan_has_no_negative_count() {
    let mut run = without(|sample| sample.cell > 0);
    run.head.experiment.plan.repeat.rounds = 1;
    let text = print(&doc(&run));
    assert!(!text.contains("samples in the plan"), "{text}");
}

#[test]
fn where_nothing_is_left_to_compare_that_is_said() {
    let text = print(&doc(&without(|sample| sample.cell > 0)));
    assert!(
        text.contains("Of the cells that were not skipped no two differ"),
        "{text}"
    );
    assert!(text.contains("Skipped, cannot be built here:"), "{text}");
    let text = print(&doc(&without(|_| true)));
    assert!(
        text.contains("No sample is valid: there is no result."),
        "{text}"
    );
    assert!(
        text.contains("cannot be built here: every cell: this kernel"),
        "{text}"
    );
}
