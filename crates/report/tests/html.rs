//! The HTML report as another program reads it.

mod fixture;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fixture::{on_existing_hosts, run, write};
use scraper::{ElementRef, Html, Selector};
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, Run};
use wirecost_model::sample::{Invalid, Mark};
use wirecost_report::{RecordedRun, document, html};

fn page_with(run: &Run, plan: Option<&str>) -> String {
    let reading = RecordedRun {
        run: run.clone(),
        warnings: Vec::new(),
        plan_text: plan.map(Into::into),
    };
    let doc = document(run, Path::new("/runs/x"), Vec::new());
    html(&reading, &doc).expect("a page")
}

fn page(run: &Run) -> String {
    page_with(run, Some("name: jumbo-or-not\n"))
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    let selector = Selector::parse(selector).expect("a selector");
    page.select(&selector).collect()
}

fn text(element: &ElementRef) -> String {
    element.text().collect()
}

/// Figures in a selection's `cx`, by which samples are drawn.
fn places(page: &Html, selector: &str) -> Vec<String> {
    let circles = all(page, selector);
    let place = |circle: &ElementRef| circle.attr("cx").expect("a place").to_owned();
    circles.iter().map(place).collect()
}

/// One run with an invalid and a marked sample.
fn disturbed() -> Run {
    let mut run = run(4, Cores::Split);
    run.samples[3].invalid = Some(Invalid::Proof("1500 bytes were not acknowledged".into()));
    run.samples[9].invalid = Some(Invalid::Build("no vxlan in this kernel".into()));
    run.samples[9].loads.clear();
    run.samples[5].marks = vec![Mark::ForeignLoad {
        cores: 0.4,
        threshold: 0.1,
    }];
    run.samples[5].marks.push(Mark::CoresMoved {
        cpus: [0, 1],
        before_ns: 64.2,
        after_ns: 301.4,
        threshold: 1.5,
    });
    run
}

#[test]
fn the_method_says_what_was_set_on_the_hosts() {
    let method = |run: &Run| {
        let page = Html::parse_document(&page(run));
        all(&page, "#method").iter().map(text).collect::<String>()
    };
    let mut run = run(3, Cores::Split);
    let lab = method(&run);
    assert!(lab.contains("set on every device of the path"), "{lab}");
    assert!(lab.contains("on the host's own cores"), "{lab}");
    on_existing_hosts(&mut run);
    let tunnel = method(&run);
    let made = "set on every device that the run made, and on none of the hosts themselves,";
    assert!(tunnel.contains(made), "{tunnel}");
    for cell in &mut run.head.experiment.cells {
        cell.levels.remove("encapsulation");
    }
    let existing = method(&run);
    assert!(
        existing.contains("Nothing was set on the hosts"),
        "{existing}"
    );
    assert!(existing.contains("on all cores of each host"), "{existing}");
    assert!(!existing.contains("underlay"), "{existing}");
}

#[test]
fn the_page_has_its_parts_with_the_answer_first() {
    let text = page(&run(3, Cores::Split));
    let page = Html::parse_document(&text);
    let sections = all(&page, "main > section");
    let ids: Vec<_> = sections.iter().filter_map(|s| s.attr("id")).collect();
    assert_eq!(
        ids,
        [
            "cells",
            "verdicts",
            "effects",
            "samples-and-more",
            "published",
            "plan",
            "environment",
            "method",
            "reproduce"
        ]
    );
    // Before all of them: the answer, and every effect beside it.
    let first = all(&page, "main > .first > *");
    let ids: Vec<_> = first.iter().filter_map(|s| s.attr("id")).collect();
    assert_eq!(ids, ["answer", "effects-all"]);
    assert!(text.len() < 500_000, "{} bytes", text.len());
}

#[test]
fn the_default_plan_s_size_stays_below_500_kb() {
    let text = page(&run(10, Cores::Split));
    assert!(text.len() < 500_000, "{} bytes", text.len());
}

#[test]
fn every_chart_asks_a_question_and_has_its_numbers_as_a_table() {
    for cores in [Cores::Split, Cores::Shared] {
        let text = page(&run(3, cores));
        let page = Html::parse_document(&text);
        let charts = all(&page, "figure.chart");
        let effects = if cores == Cores::Split { 3 } else { 2 };
        assert_eq!(charts.len(), effects + 5);
        for chart in charts {
            let inside = Html::parse_fragment(&chart.html());
            assert!(text_of(&inside, "h3").ends_with('?'), "{}", chart.html());
            assert!(!text_of(&inside, "figcaption").is_empty());
            assert!(!all(&inside, "svg").is_empty());
            assert!(!all(&inside, "details table caption").is_empty());
            let rows = all(&inside, "details tbody tr");
            assert!(rows.len() >= 8, "{}", rows.len());
            let columns = all(&inside, "details thead th").len();
            for row in rows {
                let fields = row.child_elements().count();
                assert_eq!(fields, columns, "{}", row.html());
            }
        }
    }
}

fn text_of(page: &Html, selector: &str) -> String {
    all(page, selector).iter().map(text).collect()
}

#[test]
fn every_sample_is_a_mark_and_a_row_and_none_is_hidden() {
    let run = disturbed();
    let text = page(&run);
    let page = Html::parse_document(&text);
    // In the legend, one of each kind.
    for chart in ["#samples .row", "#drift"] {
        assert_eq!(all(&page, &format!("{chart} circle.sample")).len(), 30);
        assert_eq!(all(&page, &format!("{chart} circle.marked")).len(), 1);
        // The other invalid one never ran: it has no figure to draw.
        assert_eq!(all(&page, &format!("{chart} path.invalid")).len(), 1);
    }
    let rows = all(&page, "#samples details tbody tr");
    assert_eq!(rows.len(), 32);
    let remarks: String = rows.iter().map(text_of_row).collect();
    assert!(remarks.contains("not valid: 1500 bytes were not acknowledged"));
    assert!(remarks.contains("not valid: no vxlan in this kernel"));
    assert!(remarks.contains("foreign load of 0.40 cores"));
    assert!(remarks.contains(
        "cores moved: a cache line took 64 ns from core 0 to 1 and back before, 301 after"
    ));
    let warnings = text_of(&page, "#warnings");
    for words in [
        "2 of 32 samples not valid",
        "no vxlan in this kernel",
        "1 of 32 samples marked",
    ] {
        assert!(warnings.contains(words), "{words}: {warnings}");
    }
}

fn text_of_row(row: &ElementRef) -> String {
    text(row) + "\n"
}

#[test]
fn a_changed_sample_changes_its_mark_its_row_its_cell_and_its_effects() {
    let dir = write(&run(4, Cores::Split));
    let render = || {
        let reading = wirecost_report::read(dir.path()).expect("a run");
        let doc = document(&reading.run, dir.path(), Vec::new());
        html(&reading, &doc).expect("a page")
    };
    let before = render();
    fixture::edit(dir.path(), "samples.jsonl", |lines| {
        let mut samples: Vec<serde_json::Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        let bytes = &mut samples[7]["loads"][0]["stream"]["bytes"];
        *bytes = (bytes.as_u64().expect("bytes") / 2).into();
        samples
            .iter()
            .map(|sample| sample.to_string() + "\n")
            .collect()
    });
    let after = render();
    let (before, after) = (Html::parse_document(&before), Html::parse_document(&after));
    for selector in [
        "#samples .row[data-cell='7']",
        "#drift [data-cell='7'] svg",
        "#samples details tr[data-cell='7']",
        "#cells > .scroll tr[data-cell='7']",
        "#cpu .row[data-cell='7']",
        "#effects-throughput svg",
        "#effects-throughput details",
        "table.verdicts",
    ] {
        let html = |page| {
            all(page, selector)
                .iter()
                .map(ElementRef::html)
                .collect::<String>()
        };
        assert!(!html(&before).is_empty(), "{selector}");
        assert_ne!(html(&before), html(&after), "{selector}");
    }
    let same = "#drift [data-cell='2'] svg circle";
    let moved = "#drift [data-cell='7'] svg circle";
    assert_eq!(
        places(&before, moved),
        places(&after, moved),
        "the rounds stay"
    );
    assert_eq!(places(&before, same), places(&after, same));
    let other = "#cells > .scroll tr[data-cell='2']";
    assert_eq!(text_of(&before, other), text_of(&after, other));
}

#[test]
fn nothing_is_fetched_and_only_the_page_s_own_script_may_run() {
    let text = page(&run(3, Cores::Split));
    let page = Html::parse_document(&text);
    let policy = all(&page, "meta[http-equiv='Content-Security-Policy']");
    let policy = policy[0].attr("content").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(policy.matches("'sha256-").count(), 2, "{policy}");
    assert_eq!(all(&page, "script").len(), 1);
    for attribute in [
        "src",
        "srcset",
        "href",
        "action",
        "data",
        "xlink:href",
        "style",
        "onclick",
        "onload",
    ] {
        for element in all(&page, &format!("[{}]", attribute.replace(':', "\\:"))) {
            let value = element.attr(attribute).unwrap_or_default();
            assert!(
                attribute == "href" && value.starts_with('#'),
                "{}",
                element.html()
            );
            let target = format!("[id='{}']", &value[1..]);
            assert_eq!(all(&page, &target).len(), 1, "{value}");
        }
    }
    // The namespace of SVG is a name, not a place.
    let without = text.replace("http://www.w3.org/2000/svg", "");
    for scheme in ["http:", "https:", "url(", "@import"] {
        assert!(!without.contains(scheme), "{scheme}");
    }
}

#[test]
fn every_id_is_there_once_and_every_picture_is_labelled() {
    let text = page(&run(3, Cores::Split));
    let page = Html::parse_document(&text);
    let mut ids = BTreeSet::new();
    for element in all(&page, "[id]") {
        assert!(
            ids.insert(element.attr("id").unwrap_or_default()),
            "{}",
            element.html()
        );
    }
    let pictures = all(&page, "svg");
    assert_eq!(pictures.len(), 1 + 3 + 2 + 8 + 8);
    for picture in pictures {
        assert_eq!(picture.attr("role"), Some("img"));
        let label = picture.attr("aria-labelledby").expect("a label");
        assert!(ids.contains(label), "{label}");
    }
}

fn charts(page: &Html) -> Vec<String> {
    let charts = all(page, "#samples-and-more figure.chart");
    let id = |chart: &ElementRef| chart.attr("id").expect("an id").to_owned();
    charts.iter().map(id).collect()
}

#[test]
fn requests_have_charts_of_transactions_latencies_and_cpu_and_none_of_throughput() {
    for cores in [Cores::Split, Cores::Shared] {
        let text = page(&fixture::loads::asking(4, cores));
        let page = Html::parse_document(&text);
        assert_eq!(
            charts(&page),
            ["samples", "latency", "cpu", "drift", "windows"]
        );
        let samples = text_of(&page, "#samples svg");
        assert!(samples.contains("thousand transactions per second that were answered"));
        assert!(text_of(&page, "#cpu h3").starts_with("What does a transaction cost in CPU"));
        let hosts = if cores == Cores::Split { 2 } else { 1 };
        assert_eq!(all(&page, "#cpu details tbody tr").len(), 8 * hosts);
        assert!(!text_of(&page, "#samples-and-more").contains("Gbit/s that the receiving"));
        // Windows show what was answered in each quarter of a second.
        assert!(text_of(&page, "#windows svg").contains("k transactions/s"));
        assert!(!text.contains("NaN"));
    }
}

#[test]
fn the_chart_of_cpu_has_the_figures_of_the_cells_where_rounds_are_few_steps_of_the_counter() {
    let mut run = fixture::loads::asking(12, Cores::Split);
    // Every second round counted nothing; all together have 24 steps in cell 1, 6 in cell 2.
    for sample in &mut run.samples {
        let busy_s = match (sample.cell, sample.round % 2) {
            (1, 0) => 0.04,
            (2, 0) => 0.01,
            (1 | 2, _) => 0.0,
            _ => continue,
        };
        sample.sender.as_mut().expect("a").cores[0].busy_s = busy_s;
    }
    let doc = document(&run, Path::new("/runs/x"), Vec::new());
    let client = |cell: usize| doc.cells[cell].loads[0].client_cpu_us_per_transaction;
    let median = client(1).expect("a figure").median;
    assert!((1.0..1.2).contains(&median), "{median}");
    assert!(client(2).is_none());
    let page = Html::parse_document(&page(&run));
    let row = text_of(&page, "#cpu .row[data-cell='1']");
    assert!(row.contains(&format!("{median:.2}")), "{median}: {row}");
    let row = text_of(&page, "#cpu .row[data-cell='2']");
    assert!(!row.contains("client"), "{row}");
}

#[test]
fn every_round_s_percentiles_are_beside_those_of_all_transactions() {
    let mut run = fixture::loads::asking(4, Cores::Split);
    // Too few transactions for a p99 and p99.9 of its own: then the other rounds of the cell do not stand for it.
    let few = run.samples[0].loads[0].requests.as_mut().expect("requests");
    few.latency = fixture::loads::latency(40_000, 200);
    run.samples[1].invalid = Some(Invalid::Proof("1500 bytes were not acknowledged".into()));
    let text = page(&run);
    let page = Html::parse_document(&text);
    let rows = all(&page, "#latency .row");
    assert_eq!(rows.len(), 8);
    // Four percentiles of every cell, each of all rounds together.
    assert_eq!(all(&page, "#latency .row line.median").len(), 8 * 4);
    assert_eq!(
        all(&page, "#latency .row circle.sample").len(),
        4 * (8 * 4 - 1) - 2 * 4
    );
    assert_eq!(all(&page, "#latency .row path.invalid").len(), 4);
    // Of cell 2, whose rounds begin at 50 us: what lies beyond the hundredth is ten times as long.
    let row = text_of(&page, "#latency .row[data-cell='2']");
    for figure in ["50.1 us", "55.1 us", "501 us"] {
        assert!(row.contains(figure), "{figure}: {row}");
    }
    let figures = text_of(&page, "#latency details tr[data-cell='2']");
    assert!(figures.contains("50.0 to 50.3"), "{figures}");
}

#[test]
fn each_load_of_a_mix_has_charts_over_the_cells_that_run_it_and_no_cpu_of_what_others_share() {
    let text = page(&fixture::loads::with_and_without_requests(3));
    let page = Html::parse_document(&text);
    assert_eq!(
        charts(&page),
        [
            "samples-ping",
            "latency-ping",
            "cpu-ping",
            "drift-ping",
            "windows-ping",
            "samples-bulk",
            "drift-bulk",
            "windows-bulk"
        ]
    );
    assert_eq!(all(&page, "#samples-ping .row").len(), 8);
    assert_eq!(all(&page, "#samples-bulk .row").len(), 4);
    assert_eq!(all(&page, "#cpu-ping .row").len(), 4, "alone in four cells");
    assert_eq!(
        text_of(&page, "#drift-bulk h3"),
        "bulk: did anything drift while it was measured?"
    );
    let nav = all(&page, "nav a");
    let loads: Vec<_> = nav
        .iter()
        .filter(|link| {
            let to = link.attr("href").unwrap_or_default();
            to.starts_with("#samples")
        })
        .map(|link| link.text().collect::<String>())
        .collect();
    assert_eq!(loads, ["ping", "bulk"]);
}

#[test]
fn datagrams_have_charts_of_what_arrived_and_what_was_lost() {
    let text = page(&fixture::loads::datagrams(3));
    let page = Html::parse_document(&text);
    assert_eq!(
        charts(&page),
        ["samples", "datagrams", "lost", "cpu", "drift", "windows"]
    );
    assert!(text_of(&page, "#lost .row[data-cell='7']").contains("10.00"));
    assert!(text_of(&page, "#lost .row[data-cell='6']").contains("0.00"));
    assert!(text_of(&page, "#datagrams .row[data-cell='7']").contains("90.0"));
    // The line's limit is of TCP payload.
    assert!(all(&page, "#samples line.limit").is_empty());
}

#[test]
fn hostile_names_are_only_text() {
    const HOSTILE: &str = "</style><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&lt;\u{1b}[31m\u{202e}{{ 7 * 7 }}";
    let mut run = disturbed();
    let experiment = &mut run.head.experiment;
    experiment.plan.name = HOSTILE.into();
    experiment.plan.description = Some(HOSTILE.into());
    experiment
        .plan
        .published
        .as_mut()
        .expect("published")
        .source = HOSTILE.into();
    for factor in &mut experiment.factors {
        for level in &mut factor.levels {
            if level == "vxlan" {
                *level = HOSTILE.into();
            }
        }
    }
    for cell in &mut experiment.cells {
        for level in cell.levels.values_mut() {
            if level == "vxlan" {
                *level = HOSTILE.into();
            }
        }
    }
    run.head.program_version = HOSTILE.into();
    run.head.environment.kernel = HOSTILE.into();
    let sysctls = &mut run.head.environment.sysctls;
    sysctls.insert(HOSTILE.into(), HOSTILE.into());
    run.samples[3].invalid = Some(Invalid::Load(HOSTILE.into()));
    run.end.as_mut().expect("an end").outcome = Outcome::Failed;
    run.end.as_mut().expect("an end").reason = Some(HOSTILE.into());
    let text = page_with(&run, Some(HOSTILE));
    let page = Html::parse_document(&text);
    assert_eq!(all(&page, "script").len(), 1);
    assert_eq!(all(&page, "style").len(), 1);
    assert!(all(&page, "img").is_empty());
    assert!(all(&page, "[onerror]").is_empty());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
    assert!(text.contains("{{ 7 * 7 }}") && text.contains("␛[31m"));
    let title = as_shown(HOSTILE);
    assert_eq!(text_of(&page, "h1"), title);
    assert!(text_of(&page, "#plan pre").starts_with(&title));
    assert!(text_of(&page, "#samples svg title").contains(&title));
}

/// A text as the page shows it.
fn as_shown(text: &str) -> String {
    text.replace('\u{1b}', "␛").replace('\u{202e}', "\u{fffd}")
}

#[test]
fn a_missing_plan_is_said_and_the_effective_one_stands_in() {
    let run = run(2, Cores::Split);
    let dir = write(&run);
    let reading = wirecost_report::read(dir.path()).expect("a run");
    assert_eq!(reading.plan_text, None);
    let without = page_with(&run, None);
    let page = Html::parse_document(&without);
    assert!(text_of(&page, "#plan").contains("has no plan.yaml"));
    assert!(text_of(&page, "#plan details[open] pre").contains("\"guest_mtu\""));
    assert!(text_of(&page, "#reproduce").contains("write the plan from the effective one"));
    fs::write(dir.path().join("plan.yaml"), "name: x\r\n").expect("written");
    let reading = wirecost_report::read(dir.path()).expect("a run");
    assert_eq!(reading.plan_text.as_deref(), Some("name: x\r\n"));
}

#[test]
fn how_to_reproduce_names_the_seed_where_the_command_line_takes_it() {
    let mut run = run(2, Cores::Split);
    let text = |run: &Run| text_of(&Html::parse_document(&page(run)), "#reproduce");
    assert!(text(&run).contains("wirecost run plan.yaml --seed 42"));
    run.head.seed = 1 << 40;
    assert!(text(&run).contains("set `seed: 1099511627776` in the plan"));
}

#[test]
fn runs_without_figures_still_have_a_page() {
    let mut nothing = run(3, Cores::Split);
    nothing.samples.clear();
    nothing.end = None;
    let text = page(&nothing);
    assert!(text.contains("No sample is valid: there is no result."));
    assert!(text.contains("the run was killed, could not write its end, or is still running"));
    let mut invalid = run(3, Cores::Split);
    for sample in &mut invalid.samples {
        sample.invalid = Some(Invalid::Agent("gone".into()));
        sample.loads.clear();
        sample.sender = None;
        sample.receiver = None;
    }
    assert!(page(&invalid).contains("24 of 24 samples not valid"));
    let mut one = run(1, Cores::Shared);
    one.head.experiment.cells.truncate(1);
    one.samples.truncate(1);
    for factor in &mut one.head.experiment.factors {
        factor.levels.truncate(1);
    }
    let text = page(&one);
    let page = Html::parse_document(&text);
    assert!(all(&page, "#verdicts, #effects").is_empty());
    assert!(text_of(&page, "#samples svg").contains("guest MTU 1500"));
    for text in [text, self::page(&invalid), self::page(&nothing)] {
        assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
    }
}

#[test]
fn a_very_large_run_draws_a_part_and_says_so() {
    let mut large = run(12, Cores::Split);
    let experiment = &mut large.head.experiment;
    let cells = experiment.cells.clone();
    let streams: Vec<String> = (1..=40).map(|streams| streams.to_string()).collect();
    let factor = experiment
        .factors
        .iter_mut()
        .find(|factor| factor.key == "streams");
    factor.expect("streams").levels.clone_from(&streams);
    experiment.cells.clear();
    let samples = std::mem::take(&mut large.samples);
    for (at, streams) in streams.iter().enumerate() {
        let shift = at as u32 * cells.len() as u32;
        for cell in &cells {
            let mut cell = cell.clone();
            cell.index += shift;
            cell.levels.insert("streams".into(), streams.clone());
            experiment.cells.push(cell);
        }
        large
            .samples
            .extend(samples.iter().cloned().map(|mut sample| {
                sample.cell += shift;
                sample
            }));
    }
    let text = page(&large);
    let page = Html::parse_document(&text);
    assert!(text.len() <= 1_000_000, "{} bytes", text.len());
    let said = text_of(&page, "figcaption strong");
    for words in [
        " of 320 cells; every sample: `wirecost report RUN_DIR --csv`.",
        " of 320 cells; the table has more.",
        "Drawn are the 40 largest of 2376 effects.",
        " samples of these cells, those of every so many-th round; figures, intervals and verdicts are of all of them.",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(all(&page, "#samples .row").len() >= 6);
    assert_eq!(all(&page, "#cells > .scroll tbody tr").len(), 320);
    let cut = text_of(&page, "#samples .left-out");
    assert!(
        cut.contains(" rows; all of them: `wirecost report RUN_DIR --csv`."),
        "{cut}"
    );
}

#[test]
fn the_method_says_how_finely_cpu_time_was_read() {
    const FINE: &str = "/proc/timer_list in microseconds";
    const COARSE: &str = "/proc/stat in steps of 10 ms";
    let mut run = run(2, Cores::Split);
    let told = |run: &Run| {
        let method = text_of(&Html::parse_document(&page(run)), "#method");
        [method.contains(FINE), method.contains(COARSE)]
    };
    assert_eq!(told(&run), [false, true]);
    for sample in &mut run.samples {
        sample.sender.as_mut().expect("a").idle_step_s = 1e-6;
    }
    assert_eq!(told(&run), [true, true]);
    for sample in &mut run.samples {
        sample.receiver.as_mut().expect("b").idle_step_s = 1e-6;
    }
    assert_eq!(told(&run), [true, false]);
}
