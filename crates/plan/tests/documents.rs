//! Every plan that README.md and docs/ show is one that the parser takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use wirecost_plan::load;

/// README.md and the pages of docs/, by name.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).expect("docs");
    let mut paths: Vec<_> = docs
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    paths.push(root.join("README.md"));
    let pages = paths.iter().map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), fs::read_to_string(path).expect("a page"))
    });
    pages.collect()
}

/// The plans of a page, fenced as YAML or written by a shell's here-document, each with the number of its first line.
/// Where a block has a key twice, its second line begins another plan.
fn plans(page: &str) -> Vec<(usize, String)> {
    let mut plans: Vec<(usize, String)> = Vec::new();
    let mut keys = BTreeSet::new();
    // The line that ends the block, and what its lines are indented by.
    let mut block: Option<(&str, &str)> = None;
    for (at, line) in page.lines().enumerate() {
        let Some((end, indent)) = block else {
            block = match line {
                "```yaml" => Some(("```", "")),
                line if line.ends_with(".yaml <<END") => Some(("    END", "    ")),
                _ => None,
            };
            keys.clear();
            continue;
        };
        if line == end {
            block = None;
            continue;
        }
        let line = line.strip_prefix(indent).unwrap_or(line);
        let key = line.split_once(':').map(|(key, _)| key);
        let key = key.filter(|key| !key.starts_with([' ', '#', '-']));
        let begins = keys.is_empty() || key.is_some_and(|key| keys.contains(key));
        if begins {
            keys.clear();
            plans.push((at + 1, String::new()));
        }
        keys.extend(key);
        if let Some((_, plan)) = plans.last_mut() {
            plan.push_str(line);
            plan.push('\n');
        }
    }
    plans
}

#[test]
fn every_plan_of_the_documents_is_a_plan() {
    let mut seen = 0;
    for (name, page) in pages() {
        for (number, shown) in plans(&page) {
            // A manifest of Kubernetes is YAML as well.
            if shown.starts_with("apiVersion:") {
                continue;
            }
            let is_named = shown.lines().any(|line| line.starts_with("name:"));
            let plan = if is_named {
                shown
            } else {
                format!("name: shown\n{shown}")
            };
            if let Err(errors) = load("plan.yaml", &plan) {
                panic!("{name}:{number}: {:#?}", errors.errors());
            }
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen} plans");
}

#[test]
fn a_block_is_read_as_one_plan_or_as_a_plan_a_line() {
    let page = "```yaml\nname: x\nload:\n  tcp-rr\n```\n\n```yaml\nload: tcp-rr  # one\nload: storage\n```\n    cat > x.yaml <<END\n    name: y\n    END\n";
    let expected = [
        (2, "name: x\nload:\n  tcp-rr\n"),
        (8, "load: tcp-rr  # one\n"),
        (9, "load: storage\n"),
        (12, "name: y\n"),
    ];
    assert_eq!(
        plans(page),
        expected.map(|(at, plan)| (at, plan.to_owned()))
    );
}
