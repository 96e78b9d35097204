//! Published studies between real hosts. Each has a plan of its own, unscaled; the published
//! figures are those of the study, without what cannot be measured there.

use super::STUDIES;

/// A study between real hosts.
struct OnHosts {
    study: &'static str,
    /// The plan without its `published` section.
    plan: &'static str,
    /// Replacements of levels in the published section: as the study writes them, and as the plan does.
    levels: &'static [(&'static str, &'static str)],
    /// Words of comparisons and charts that cannot be measured there, and why.
    lacking: &'static [(&'static str, &'static str)],
    /// Remaining differences from the published setup.
    scaled: &'static str,
}

const ON_HOSTS: &[OnHosts] = &[
    OnHosts {
        study: "vswitchzero-jumbo-vxlan",
        plan: include_str!("../../../../plans/studies/hosts/vswitchzero-jumbo-vxlan.yaml"),
        levels: &[(
            "      by: encapsulation\n      series: guest_mtu\n",
            "      by: guest_mtu\n",
        )],
        lacking: &[(
            "vlan",
            "guests' frames with a VLAN tag on the hosts' network would need switches that know it; only tunnels are built \
             there",
        )],
        scaled: "nothing: runs of 10 s (shorter with --quick) over the hosts' own network",
    },
    OnHosts {
        study: "ovn-geneve-vs-vxlan",
        plan: include_str!("../../../../plans/studies/hosts/ovn-geneve-vs-vxlan.yaml"),
        levels: &[("{ geneve: { options: ovn } }", "geneve")],
        lacking: &[],
        scaled: "tunnels are the kernel's own devices, whose Geneve has no option: 8 bytes less than OVN's; runs of 5 s \
                 (shorter with --quick)",
    },
    OnHosts {
        study: "multi-nic-vmotion",
        plan: include_str!("../../../../plans/studies/hosts/multi-nic-vmotion.yaml"),
        levels: &[
            ("{ underlay.mtu: 1500, guest_mtu: 1500 }", "{ mtu: 1500 }"),
            ("{ underlay.mtu: 9000, guest_mtu: 9000 }", "{ mtu: 9000 }"),
            (
                "      series: underlay.mtu, guest_mtu\n",
                "      series: mtu\n",
            ),
        ],
        lacking: &[(
            "{ underlay.mtu: 9000, guest_mtu: 1500 }",
            "an endpoint of an existing network has its device's MTU",
        )],
        scaled: "machines of 2 GiB instead of 24 GB (`memory`, which takes no more); one device a host instead of four \
                 of 10 Gbit/s; machines start together, and there is no wait between iterations",
    },
    OnHosts {
        study: "ip-storage-jumbo",
        plan: include_str!("../../../../plans/studies/hosts/ip-storage-jumbo.yaml"),
        levels: &[
            ("{ underlay.mtu: 1500, guest_mtu: 1500 }", "{ mtu: 1500 }"),
            ("{ underlay.mtu: 9000, guest_mtu: 9000 }", "{ mtu: 9000 }"),
            (", offload: tunnel }", " }"),
            ("      where: { offload: tunnel }\n", ""),
        ],
        lacking: &[(
            "offload: none",
            "the hosts keep the offloads that they have",
        )],
        scaled: "the target keeps its blocks in memory and speaks NBD, so no disk is measured",
    },
];

/// The text of a study's plan between real hosts; `None` where there is no such study.
///
/// # Errors
/// Why the study cannot be run between real hosts.
pub fn on_hosts(name: &str) -> Option<Result<String, String>> {
    let (_, study) = STUDIES.iter().find(|(known, _)| *known == name)?;
    let Some(hosts) = ON_HOSTS.iter().find(|hosts| hosts.study == name) else {
        return Some(Err(format!(
            "the study {name} compares guests behind a tunnel with guests without one, whose frames would be on the hosts' own \
             network: between real hosts only tunnels are built"
        )));
    };
    let published = study.split_once("\npublished:\n")?.1;
    Some(Ok(format!(
        "{}\npublished:\n{}",
        hosts.plan,
        rewritten(published, hosts)
    )))
}

/// The published section, rewritten for the levels that the plan has.
fn rewritten(published: &str, hosts: &OnHosts) -> String {
    let mut text = published.to_owned();
    for (theirs, ours) in hosts.levels {
        text = text.replace(theirs, ours);
    }
    let mut kept = String::new();
    let mut unmeasured = String::new();
    for Part { section, lines } in parts(&text) {
        let is_item = lines.starts_with("    - ");
        let lacking = hosts.lacking.iter().find(|(word, _)| lines.contains(word));
        match (section, lacking) {
            ("scaled", _) => kept.extend(["  scaled: ", &quoted(hosts.scaled), "\n"]),
            ("unmeasured", _) if !is_item => {}
            // What a lab lacks, real hosts may have.
            ("unmeasured", _) if lines.contains("the lab") => {}
            ("unmeasured", _) => unmeasured += lines,
            ("comparisons", Some((_, why))) if is_item => {
                let what = lines.lines().next().unwrap_or_default();
                unmeasured.extend([what, "\n      why: ", &quoted(why), "\n"]);
            }
            ("charts", Some(_)) if is_item => {}
            _ => kept += lines,
        }
    }
    if unmeasured.is_empty() {
        return kept;
    }
    let at = kept.find("  charts:\n").unwrap_or(kept.len());
    kept.insert_str(at, &format!("  unmeasured:\n{unmeasured}"));
    kept
}

/// Lines of a mapping that belong together: those of a key, or of an item in its list.
struct Part<'a> {
    section: &'a str,
    lines: &'a str,
}

/// Splits a section that is indented as the studies are: keys by two, items by four.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let (mut begin, mut section) = (0, "");
    for line in text.split_inclusive('\n') {
        let at = line.as_ptr() as usize - text.as_ptr() as usize;
        let indent = line.len() - line.trim_start().len();
        let begins = indent == 2 || line.starts_with("    - ") || line.starts_with("    # ");
        if begins && at > begin {
            let lines = &text[begin..at];
            parts.push(Part { section, lines });
            begin = at;
        }
        if indent == 2 {
            section = line.trim().split(':').next().unwrap_or_default();
        }
    }
    let lines = &text[begin..];
    parts.push(Part { section, lines });
    parts
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use wirecost_model::plan::Levels;
    use wirecost_model::published::{PublishedComparison, PublishedValue};

    use super::*;

    #[test]
    fn every_replacement_is_of_something_that_the_study_says() {
        for hosts in ON_HOSTS {
            let study = STUDIES.iter().find(|(name, _)| *name == hosts.study);
            let (_, text) = study.expect("a study");
            for (theirs, _) in hosts.levels {
                assert!(text.contains(theirs), "{}: {theirs}", hosts.study);
            }
        }
    }

    /// Whether a cell of these levels has no other level than `wanted` of a factor of theirs.
    fn may_have(cell: &Levels, wanted: &Levels) -> bool {
        let mut wanted = wanted.iter();
        wanted.all(|(key, level)| cell.get(key).is_none_or(|own| own == level))
    }

    #[test]
    fn every_bar_of_a_chart_has_a_label_of_its_own() {
        let in_lab = STUDIES
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()));
        let between = STUDIES.iter().filter_map(|(name, _)| {
            let text = on_hosts(name)?.ok()?;
            Some((*name, text))
        });
        for (name, text) in in_lab.chain(between) {
            let experiment = crate::load(name, &text).expect("a right plan");
            let published = experiment.plan.published.as_ref().expect("published");
            for chart in &published.charts {
                let series = chart.series.iter().flat_map(|keys| keys.split(','));
                for key in series.map(str::trim).chain([&*chart.by]) {
                    let mut factors = experiment.factors.iter();
                    let factor = factors.find(|factor| factor.key == key);
                    let has_levels = factor.is_some_and(|factor| !factor.levels.is_empty());
                    assert!(has_levels, "{name}: {}: {key}", chart.title);
                }
                // Bars of comparisons; those of figures are of cells.
                let is_in = |one: &&PublishedComparison| {
                    let mut cells = one.cells.iter();
                    one.metric == chart.metric && cells.all(|cell| may_have(cell, &chart.levels))
                };
                let compared: Vec<_> = published.comparisons.iter().filter(is_in).collect();
                let of_figures = |one: &&PublishedComparison| {
                    matches!(one.value, Some(PublishedValue::Values(_)))
                };
                if compared.iter().any(of_figures) {
                    continue;
                }
                let mut bars = Vec::new();
                for PublishedComparison { cells, .. } in compared {
                    let bar = (cells[1].get(&chart.by), chart.label(&cells[1]), cells);
                    let same = bars
                        .iter()
                        .find(|(group, label, _)| (group, label) == (&bar.0, &bar.1));
                    let same = same.map(|(.., other)| *other);
                    assert!(same.is_none_or(|other| other == cells), "{name}: {bar:?}");
                    bars.push(bar);
                }
            }
        }
    }

    #[test]
    fn a_study_between_hosts_has_every_published_figure_or_says_why_not() {
        for (name, text) in STUDIES {
            let on_hosts = on_hosts(name).expect("a study");
            let Ok(on_hosts) = on_hosts else {
                assert_eq!(*name, "vsphere51-vxlan");
                continue;
            };
            let plan = |text| {
                crate::load(name, text)
                    .unwrap_or_else(|errors| panic!("{name}: {errors:?}"))
                    .plan
            };
            let (lab, hosts) = (plan(*text), plan(on_hosts.as_str()));
            assert!(!matches!(hosts.hosts, wirecost_model::plan::Hosts::Lab));
            let (lab, hosts) = (
                lab.published.expect("published"),
                hosts.published.expect("published"),
            );
            let mut left = hosts.comparisons.iter();
            for comparison in &lab.comparisons {
                let lacking = hosts
                    .unmeasured
                    .iter()
                    .any(|one| one.what == comparison.what);
                if lacking {
                    continue;
                }
                let same = left.next().expect(&comparison.what);
                assert_eq!(
                    (&same.what, &same.value, &same.metric),
                    (&comparison.what, &comparison.value, &comparison.metric)
                );
            }
            assert!(left.next().is_none());
            assert!(!hosts.comparisons.is_empty(), "{name}");
        }
    }
}
