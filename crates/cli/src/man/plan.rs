//! The manual page wirecost-plan(5), from the table of keys that the plan parser uses.

use roff::roman;
use wirecost_plan::{BUILTIN, Key, Presence, STUDIES, keys};

use super::Page;
use super::text::Text;

const NAME: &str = "wirecost-plan";

const DESCRIPTION: &[&str] = &[
    "A plan is one YAML file: what to vary, what to load, how often, how long. It is given to \
     `wirecost run`.",
    "A key marked as a factor takes one value or a list. Every list is varied; the cells are the \
     cross product of all lists, less what `exclude` drops. Each cell is measured once in each \
     round, in random order.",
    "Every mistake is reported with line, column and what to write instead, all of them at once; then nothing is \
     built and the exit code is 2.",
    "Sizes are bytes, or have a unit (`128KiB`, `1MiB`); rates have one (`10gbit`, `800mbit`); \
     durations are seconds, or have a unit (`200ms`, `2min`); shares are written `5%` or `0.05`.",
];

pub(super) fn page() -> Page {
    let mut text = Text::page(NAME, 5);
    text.heading("NAME")
        .line([roman(format!(
            "{NAME} - what wirecost builds, loads and measures"
        ))])
        .heading("DESCRIPTION");
    for words in DESCRIPTION {
        text.paragraph(words);
    }
    text.heading("KEYS");
    for key in keys() {
        text.item(key.path, &meaning(key));
    }
    text.heading("BUILT-IN PLANS");
    for (name, plan) in BUILTIN {
        let plan = wirecost_plan::load(name, plan).map(|experiment| experiment.plan.description);
        let words = plan.ok().flatten();
        text.item(name, words.as_deref().unwrap_or("It has no description."));
    }
    text.heading("PUBLISHED STUDIES");
    for (name, plan) in STUDIES {
        let plan = wirecost_plan::load(name, plan).map(|experiment| experiment.plan.description);
        let words = plan.ok().flatten();
        text.item(name, words.as_deref().unwrap_or("It has no description."));
    }
    if let Some((name, plan)) = BUILTIN.first() {
        text.heading("EXAMPLE")
            .paragraph(&format!("The built-in plan `{name}` as it is shipped:"))
            .verbatim(plan);
    }
    text.heading("SEE ALSO")
        .line([roman("`wirecost`(1), `wirecost-run`(1)")]);
    Page {
        name: NAME.to_owned(),
        section: 5,
        text: text.end(),
    }
}

/// The entry of a key: what it is, its values, and its default.
fn meaning(key: &Key) -> String {
    let without = match key.presence {
        Presence::Required => " Required.".to_owned(),
        Presence::Optional => String::new(),
        Presence::Default(value) => format!(" Default: `{value}`."),
        Presence::Adaptive(value) => format!(" Default in an adaptive run: `{value}`."),
    };
    let factor = if key.factor { " A factor." } else { "" };
    format!(
        "{} Takes {}.{without}{factor} Example: `{}: {}`",
        key.doc,
        key.expects(),
        key.name(),
        key.example,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_entry() {
        let page = page().text;
        for key in keys() {
            let path = key.path.replace('-', "\\-");
            assert!(page.contains(&format!(".TP\n\\fB{path}\\fR\n")), "{path}");
        }
    }

    #[test]
    fn every_built_in_plan_is_described() {
        let page = page().text;
        for (name, _) in BUILTIN.iter().chain(STUDIES) {
            let name = name.replace('-', "\\-");
            assert!(page.contains(&format!(".TP\n\\fB{name}\\fR\n")), "{name}");
        }
        assert!(!page.contains("It has no description"));
    }

    #[test]
    fn an_entry_says_what_a_key_takes_and_its_default() {
        let key = keys().iter().find(|key| key.path == "underlay.mtu");
        assert_eq!(
            meaning(key.expect("key")),
            "MTU of the underlay's devices in bytes; at least 1280 where tunnels run over IPv6 (RFC 8200). \
             Takes a whole number from 576 to 65535. Default: `1500`. A factor. Example: `mtu: 9000`"
        );
    }
}
