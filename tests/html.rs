//! The HTML report in a browser: nothing complains, nothing is fetched, everything is drawn.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wirecost_model::plan::Cores;
use wirecost_model::record::Run;
use wirecost_model::sample::{Invalid, Mark};

use crate::browser::{Browser, chromium_is_there};
use crate::common::{run, wirecost};
use crate::fixture;

/// A run directory with everything that a report can show, and a report beside it.
struct Page {
    directory: tempfile::TempDir,
}

impl Page {
    fn of(run_of: &Run) -> Self {
        let directory = fixture::write(run_of);
        fs::write(directory.path().join("plan.yaml"), "name: jumbo-or-not\n").expect("a plan");
        let page = Self { directory };
        let mut command = wirecost(["report", "--html"]);
        command
            .arg(page.directory.path())
            .arg("--out")
            .arg(page.path());
        run(&mut command).expect_code(0);
        page
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("report.html")
    }
}

fn disturbed() -> Run {
    let mut run = fixture::run(6, Cores::Split);
    run.samples[3].invalid = Some(Invalid::Proof("1500 bytes were not acknowledged".into()));
    run.samples[5].marks = vec![Mark::ForeignLoad {
        cores: 0.4,
        threshold: 0.1,
    }];
    run
}

/// What of a page is there to see: pictures, marks and whether they lie within their picture, whether
/// the page is wider than its window, and how well texts stand out from what is behind them.
const LOOK: &str = r"(() => {
  const colour = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = colour(getComputedStyle(e).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const contrast = (element, text) => {
    const [a, b] = [luminance(colour(text)), luminance(behind(element))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const texts = [...document.querySelectorAll('p, li, figcaption, th, td, .badge, dt, dd, summary, h1, h2, h3')]
    .map((e) => [contrast(e, getComputedStyle(e).color), e]);
  const drawn = [...document.querySelectorAll('svg text:not(.inside)')].map((e) => [contrast(e, getComputedStyle(e).fill), e]);
  const faint = [...texts, ...drawn].filter(([c]) => c < 4.5).map(([c, e]) => `${c.toFixed(2)} ${e.outerHTML.slice(0, 120)}`);
  const charts = [...document.querySelectorAll('figure.chart')].map((chart) => {
    const pictures = [...chart.querySelectorAll('svg')].map((svg) => svg.getBoundingClientRect());
    const lost = [...chart.querySelectorAll('svg')].flatMap((svg) => {
      const frame = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('.sample, .ratio, polyline, rect, text')].filter((mark) => {
        const r = mark.getBoundingClientRect();
        const seen = r.width > 0 || r.height > 0;
        const inside = r.left >= frame.left - 2 && r.right <= frame.right + 2 && r.top >= frame.top - 2 && r.bottom <= frame.bottom + 2;
        return !seen || !inside;
      }).map((mark) => mark.outerHTML.slice(0, 200));
    });
    return {
      id: chart.id,
      pictures: pictures.length,
      smallest: Math.min(...pictures.flatMap((r) => [r.width, r.height])),
      marks: chart.querySelectorAll('svg .sample, svg .ratio, svg .window, svg rect.softirq').length,
      lost,
    };
  });
  return {
    charts, faint,
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    ground: luminance(colour(getComputedStyle(document.body).backgroundColor)),
  };
})()";

/// Everything that a page must fulfil in whatever window.
fn expect_complete(look: &Value) {
    let charts = look["charts"].as_array().expect("charts");
    let ids: Vec<_> = charts
        .iter()
        .filter_map(|chart| chart["id"].as_str())
        .collect();
    let effects = [
        "effects-all",
        "effects-throughput",
        "effects-sender-cpu",
        "effects-receiver-cpu",
    ];
    assert_eq!(ids[..4], effects);
    assert_eq!(ids[4..], ["samples", "cpu", "drift", "windows"]);
    for chart in charts {
        assert!(
            chart["smallest"].as_f64().expect("a size") > 60.0,
            "{chart}"
        );
        assert!(chart["marks"].as_u64().expect("marks") >= 12, "{chart}");
        assert_eq!(chart["lost"], json!([]), "{}", chart["id"]);
    }
    assert_eq!(look["faint"], json!([]));
    assert_eq!(look["wider"], 0, "the page is wider than its window");
}

#[test]
fn latencies_and_datagrams_are_drawn_whole_too() {
    if !chromium_is_there() {
        return;
    }
    let pages = [
        (fixture::loads::with_and_without_requests(4), "latency-ping"),
        (fixture::loads::asking(4, Cores::Shared), "latency"),
        (fixture::loads::datagrams(4), "lost"),
    ];
    let mut browser = Browser::start();
    for (run_of, chart) in pages {
        let page = Page::of(&run_of);
        for width in [1280, 400] {
            browser.open(&page.path(), width, "dark");
            let look = browser.evaluate(LOOK);
            let charts = look["charts"].as_array().expect("charts");
            assert!(charts.iter().any(|one| one["id"] == chart), "{charts:?}");
            for chart in charts {
                assert_eq!(chart["lost"], json!([]), "{}", chart["id"]);
                assert!(chart["marks"].as_u64().expect("marks") >= 4, "{chart}");
            }
            assert_eq!(look["faint"], json!([]));
            assert_eq!(look["wider"], 0, "the page is wider than its window");
            assert_eq!(browser.events().console, [""; 0]);
        }
    }
}

#[test]
fn the_page_is_drawn_whole_in_light_and_dark_on_a_screen_and_a_phone() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&disturbed());
    let mut browser = Browser::start();
    for scheme in ["light", "dark"] {
        for width in [1280, 400] {
            browser.open(&page.path(), width, scheme);
            let look = browser.evaluate(LOOK);
            expect_complete(&look);
            let ground = look["ground"].as_f64().expect("a luminance");
            assert_eq!(ground > 0.5, scheme == "light", "{scheme}: {ground}");
            let events = browser.events();
            assert_eq!(events.console, [""; 0]);
            let url = format!("file://{}", page.path().display());
            assert_eq!(events.requests, [url]);
        }
    }
}

#[test]
fn the_page_is_complete_without_scripts() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&disturbed());
    let mut browser = Browser::start();
    browser.ask(
        "Emulation.setScriptExecutionDisabled",
        &json!({"value": true}),
    );
    browser.open(&page.path(), 1280, "light");
    expect_complete(&browser.evaluate(LOOK));
    // The script did not run: it would have taken the titles and made the heads of tables buttons.
    assert_ne!(
        browser.evaluate("document.querySelectorAll('svg title').length"),
        0
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll('th button').length"),
        0
    );
}

#[test]
fn a_pointer_on_a_mark_reads_it_out_and_lights_its_cell_everywhere() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&disturbed());
    let mut browser = Browser::start();
    browser.open(&page.path(), 1280, "light");
    browser.point_at("#drift .panel[data-cell='2'] circle.sample");
    let said = browser.evaluate("document.getElementById('readout').innerText");
    let said = said.as_str().expect("a text");
    assert!(
        said.starts_with("guest MTU 1500, VXLAN, without offloads\nround 1: 4."),
        "{said}"
    );
    assert_eq!(
        browser.evaluate("document.getElementById('readout').hidden"),
        false
    );
    let lit = browser
        .evaluate("[...document.querySelectorAll('.lit')].map((e) => [e.dataset.cell, e.tagName])");
    let lit = lit.as_array().expect("elements");
    assert!(lit.iter().all(|e| e[0] == "2"), "{lit:?}");
    for tag in ["g", "DIV", "TR"] {
        assert!(lit.iter().any(|e| e[1] == tag), "{tag}: {lit:?}");
    }
    assert_eq!(browser.events().console, [""; 0]);
}

/// A window of that size, in which the page is already open.
fn resize(browser: &mut Browser, width: u32, height: u32) {
    let metrics =
        json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
    browser.ask("Emulation.setDeviceMetricsOverride", &metrics);
}

#[test]
fn the_first_screen_holds_the_answer_the_trust_and_every_effect() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&fixture::run(10, Cores::Split));
    let mut browser = Browser::start();
    browser.open(&page.path(), 1280, "light");
    resize(&mut browser, 1280, 720);
    let within = "(() => ['#answer', '#answer .trust', '#effects-all svg', '#effects-all svg .effect:last-of-type'].map((s) => {
      const r = document.querySelector(s).getBoundingClientRect(); return [s, r.top, r.bottom, r.right]; }))()";
    let places = browser.evaluate(within);
    for place in places.as_array().expect("places") {
        let of = |at: usize| place[at].as_f64().expect("a place");
        assert!(
            of(1) >= 0.0 && of(2) <= 720.0 && of(3) <= 1280.0,
            "{places}"
        );
    }
    let drawn = browser.evaluate("document.querySelectorAll('#effects-all svg .effect').length");
    assert_eq!(drawn, 36, "every effect");
    let band = browser.evaluate("document.querySelectorAll('#effects-all svg .band').length");
    assert_eq!(band, 1);
    // The absolute figures are next.
    let next = browser.evaluate("document.querySelector('main section:not(#answer)').id");
    assert_eq!(next, "cells");
}

#[test]
fn on_a_phone_nothing_is_cut_and_what_goes_on_to_the_side_says_so() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&fixture::run(10, Cores::Split));
    let mut browser = Browser::start();
    browser.open(&page.path(), 390, "light");
    resize(&mut browser, 390, 844);
    let silent = browser.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1 && \
         getComputedStyle(box.previousElementSibling).display === 'none').map((box) => box.outerHTML.slice(0, 120))",
    );
    assert_eq!(silent, json!([]));
    let talking = browser.evaluate(
        "[...document.querySelectorAll('.swipe')].filter((hint) => getComputedStyle(hint).display !== 'none' && \
         hint.nextElementSibling.scrollWidth <= hint.nextElementSibling.clientWidth).length",
    );
    assert_eq!(talking, 0, "a hint where nothing goes on");
    let cut = browser.evaluate(
        "[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, svg, #readout, pre, details:not([open])') && \
         e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map((e) => e.outerHTML.slice(0, 120))",
    );
    assert_eq!(cut, json!([]));
    let first =
        browser.evaluate("document.querySelector('#answer li').getBoundingClientRect().bottom");
    assert!(first.as_f64().expect("a place") < 844.0, "{first}");
}

#[test]
fn the_filter_leaves_what_is_asked_for() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&fixture::run(10, Cores::Split));
    let mut browser = Browser::start();
    browser.open(&page.path(), 1280, "light");
    let choose = |browser: &mut Browser, by: &str, value: &str| {
        browser.evaluate(&format!(
            "(() => {{ const s = document.querySelector('#filter [data-by={by}]'); s.value = '{value}'; \
             s.dispatchEvent(new Event('change', {{bubbles: true}})); return s.value; }})()"
        ))
    };
    let rows = "[...document.querySelectorAll('.verdicts tbody tr:not(.contrast)')].filter((r) => r.getClientRects().length).length";
    let bright = "document.querySelectorAll('#effects-all .effect:not(.dim)').length";
    assert_eq!(browser.evaluate(rows), 12);
    assert_eq!(choose(&mut browser, "factor", "offload"), "offload");
    assert_eq!(
        (browser.evaluate(rows), browser.evaluate(bright)),
        (json!(4), json!(12))
    );
    assert_eq!(
        choose(&mut browser, "figure", "tcp-stream/throughput"),
        "tcp-stream/throughput"
    );
    assert_eq!(
        (browser.evaluate(rows), browser.evaluate(bright)),
        (json!(4), json!(4))
    );
    let heads = "[...document.querySelectorAll('.verdicts thead [data-figure]')].filter((h) => !h.hidden).length";
    assert_eq!(browser.evaluate(heads), 1);
    choose(&mut browser, "verdict", "pays");
    let left = browser.evaluate(rows).as_u64().expect("rows");
    assert!((1..4).contains(&left), "{left}");
    for by in ["factor", "figure", "verdict"] {
        assert_eq!(choose(&mut browser, by, ""), "");
    }
    assert_eq!(
        (browser.evaluate(rows), browser.evaluate(bright)),
        (json!(12), json!(36))
    );
    assert_eq!(browser.events().console, [""; 0]);
}

#[test]
fn a_click_on_a_head_sorts_its_table_by_size() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&disturbed());
    let mut browser = Browser::start();
    browser.open(&page.path(), 1280, "light");
    let column = "[...document.querySelectorAll('#cells > .scroll tbody tr')].map((row) => Number(row.cells[3].textContent))";
    let read = |browser: &mut Browser| -> Vec<f64> {
        serde_json::from_value(browser.evaluate(column)).expect("figures")
    };
    let before = read(&mut browser);
    let mut sorted = before.clone();
    sorted.sort_by(f64::total_cmp);
    assert_ne!(before, sorted);
    browser.click("#cells > .scroll th:nth-child(4) button");
    assert_eq!(read(&mut browser), sorted);
    browser.click("#cells > .scroll th:nth-child(4) button");
    sorted.reverse();
    assert_eq!(read(&mut browser), sorted);
}

#[test]
fn the_page_prints() {
    if !chromium_is_there() {
        return;
    }
    let page = Page::of(&disturbed());
    let mut browser = Browser::start();
    browser.open(&page.path(), 1280, "dark");
    browser.ask(
        "Emulation.setEmulatedMedia",
        &json!({"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
    );
    let look = browser.evaluate(LOOK);
    assert!(
        look["ground"].as_f64().expect("a luminance") > 0.99,
        "paper is white"
    );
    assert_eq!(look["faint"], json!([]));
    let pdf = browser.ask(
        "Page.printToPDF",
        &json!({"printBackground": true, "paperWidth": 8.27, "paperHeight": 11.69}),
    );
    let pdf = pdf["data"].as_str().expect("base64");
    // `%PDF-`
    assert!(
        pdf.starts_with("JVBERi0") && pdf.len() > 100_000,
        "{}",
        pdf.len()
    );
}

#[test]
fn what_the_other_tests_look_for_is_found_on_a_bad_page() {
    if !chromium_is_there() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bad.html");
    let bad = |name: &str, body: &str| {
        fs::write(&path, format!("<!DOCTYPE html><meta name=viewport content='width=device-width'><title>{name}</title>{body}")).expect("written");
        let mut browser = Browser::start();
        browser.open(Path::new(&path), 400, "light");
        (browser.evaluate(LOOK), browser.events())
    };
    let (_, events) = bad(
        "complains",
        "<script>console.error('no')</script><script>throw 1</script>",
    );
    assert_eq!(events.console.len(), 2, "{events:?}");
    let (_, events) = bad("fetches", "<img src='other.png'>");
    assert_eq!(events.requests.len(), 2, "{events:?}");
    let (look, _) = bad(
        "is not drawn",
        "<p style='width: 900px; color: #bbb'>wide and faint</p><figure class='chart' id='x'>\
         <svg width='100' height='100'><circle class='sample' cx='500' cy='5' r='3'/><circle class='sample' r='0'/></svg></figure>",
    );
    assert!(look["wider"].as_f64().expect("a width") > 400.0, "{look}");
    assert_eq!(look["faint"].as_array().map(Vec::len), Some(1), "{look}");
    assert_eq!(
        look["charts"][0]["lost"].as_array().map(Vec::len),
        Some(2),
        "{look}"
    );
}
