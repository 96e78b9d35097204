//! Keys of published figures.

use wirecost_model::published::{Outcome, Rule};

use super::Presence::{Default, Required};
use super::{BASE, Key, Kind, ON_OFF, above_to, from_to};

const RULES: [&str; Rule::ALL.len()] = {
    let mut words = [""; Rule::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = Rule::ALL[at].0;
        at += 1;
    }
    words
};

keys! {
    PUBLISHED "published" Map { example: "{ source: who, figures: [{ where: { guest_mtu: 1500 }, gbps: 7.4 }] }" }
        "What others published of these cells, shown beside what is measured.";
    SOURCE "published.source" Text { presence: Required, example: "who measured what on which hardware" }
        "Who published it, and what was measured on which hardware.";
    PUBLISHED_TITLE "published.title" Text { example: "Jumbo frames and VXLAN performance" }
        "The study's title.";
    PUBLISHED_ENVIRONMENT "published.environment" Text { example: "ESXi on 12 cores without VXLAN offload" }
        "Offloads, cores, kernel and datapath that the study had: shown where a comparison differs.";
    PUBLISHED_SCALED "published.scaled" Text { example: "machines of 32 MiB instead of 24 GB" }
        "What the plan scales down, and by which key.";
    PUBLISHED_OVN "published.ovn" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether the study is about OVN. Where the plan names no `datapath`, a run then takes the first of `ovn-kernel`, \
         `ovn` and `ebpf`, which imitates OVN's header, that builds every cell, and says which and why.";
    PUBLISHED_RULE "published.rule" Word { words: &RULES, example: "trimmed" }
        "How the study made one figure of several runs: the mean of all, sets of three runs whose standard deviation is \
         within 5 % of their mean, the mean without the highest and the lowest, or the worst. What that makes of this \
         run's samples stands beside our ratio; verdicts do not follow from it.";
    FIGURES "published.figures" Maps { example: "[{ where: { guest_mtu: 1500 }, gbps: 7.4 }]" }
        "Published throughputs, each for the cells that match its levels.";
    WHERE "published.figures.where" Levels { presence: Required, example: "{ guest_mtu: 1500 }" }
        "The cells that a figure is compared with.";
    GBPS "published.figures.gbps" Gbps { range: above_to(0.0, 1e5), presence: Required, example: "7.4" }
        "Throughput in Gbit/s.";
    NOTE "published.figures.note" Text { example: "measured with a VLAN" }
        "How the published configuration differs from the cell.";
    COMPARISONS "published.comparisons" Maps {
        example: "[{ what: larger frames, metric: throughput, from: { guest_mtu: 1500 }, to: { guest_mtu: max }, ratio: 2 }]",
    }
        "Published comparisons of two cells. The result says of each whether it agrees: the same side of `repeat.worth` in \
         the same direction.";
    COMPARED_WHAT "published.comparisons.what" Text { presence: Required, example: "larger frames" }
        "What is compared, in words.";
    COMPARED_METRIC "published.comparisons.metric" Word {
        words: &Outcome::WORDS, presence: Required, example: "throughput",
    }
        "Which figure. `hosts-cpu` is the busy time of the hosts' cores, the average of both hosts in percent of all their \
         cores, `client-host-cpu` and `server-host-cpu` that of one of them; `within-500us` the percentage of responses within \
         500 us; `wire-frames` frames per second on the wire.";
    COMPARED_WHERE "published.comparisons.where" Levels { example: "{ guest_mtu: 1500 }" }
        "Levels that both cells have.";
    COMPARED_FROM "published.comparisons.from" Levels { presence: Required, example: "{ guest_mtu: 1500 }" }
        "Levels of the cell compared with; with `where` those of exactly one cell.";
    COMPARED_TO "published.comparisons.to" Levels { presence: Required, example: "{ guest_mtu: max }" }
        "Levels of the cell that is compared.";
    COMPARED_VALUES "published.comparisons.values" Pair { range: above_to(0.0, 1e12), example: "[4.6, 9.33]" }
        "The published figures of both cells, in the figure's unit.";
    COMPARED_RATIO "published.comparisons.ratio" Number { range: above_to(0.0, 1e9), example: "2" }
        "The published ratio of the second cell's figure to the first's.";
    COMPARED_DIFFERENCE "published.comparisons.difference" Number { range: from_to(-1e12, 1e12), example: "60" }
        "The published difference, the second less the first, in the figure's unit. Only its direction is compared.";
    COMPARED_AT_MOST "published.comparisons.at_most" Number { range: from_to(-1e12, 1e12), example: "10" }
        "The most that the second was published to lie above the first, in the figure's unit.";
    COMPARED_INFERRED "published.comparisons.inferred" Word { words: ON_OFF, presence: Default("off"), example: "on" }
        "Whether these figures were inferred from what was published.";
    COMPARED_NOTE "published.comparisons.note" Text { example: "the second run was at line rate" }
        "A remark that the result shows with it.";
    UNMEASURED "published.unmeasured" Maps { example: "[{ what: a second testbed, why: it has disks }]" }
        "What was published and is not measured here: listed as not comparable.";
    UNMEASURED_WHAT "published.unmeasured.what" Text { presence: Required, example: "a second testbed" }
        "What was published.";
    UNMEASURED_WHY "published.unmeasured.why" Text { presence: Required, example: "it has disks" }
        "Why it is not measured.";
    CHARTS "published.charts" Maps { example: "[{ title: by MTU, metric: throughput, by: guest_mtu }]" }
        "The study's own charts, as bars on the page: the published figures (`values`) beside those measured.";
    CHART_TITLE "published.charts.title" Text { presence: Required, example: "by MTU" }
        "What it shows.";
    CHART_METRIC "published.charts.metric" Word {
        words: &Outcome::WORDS, presence: Required, example: "throughput",
    }
        "Which figure.";
    CHART_BY "published.charts.by" Text { presence: Required, example: "guest_mtu" }
        "The factor whose levels are the groups of bars.";
    CHART_SERIES "published.charts.series" Text { example: "encapsulation" }
        "The factor whose levels are the bars of a group, or several with commas between: each combination is a bar.";
    CHART_WHERE "published.charts.where" Levels { example: "{ guest_mtu: 1500 }" }
        "The cells in it.";
}
