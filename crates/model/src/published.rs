//! Published results: figures next to a run's cells, and the comparisons of a study.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::end_window::End;
use crate::levels::Levels;
use crate::metric::{Direction, Metric, wire_frames_per_second};
use crate::sample::Sample;
use crate::usage::HostUsage;

/// The published results that a plan reproduces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Authors, publication and hardware.
    pub source: String,
    /// The study's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Offloads, cores, kernel and datapath of the study, which may explain a different result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// What the plan scales down, and with which key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled: Option<String>,
    /// Whether the study is about OVN: a run that chooses the datapath then takes
    /// [`OF_OVN`](crate::datapath::Datapath::OF_OVN).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ovn: bool,
    /// How the study makes one figure of several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// Published figures, each for the cells that have its levels.
    #[serde(default)]
    pub figures: Vec<PublishedFigure>,
    /// Comparisons of two cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<PublishedComparison>,
    /// Published results that this plan does not measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
    /// The study's charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<PublishedChart>,
}

/// One published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The levels of the cells that the figure is compared with.
    pub levels: Levels,
    /// Throughput, Gbit/s.
    pub gbps: f64,
    /// How the published configuration differs from the cell, where it does.
    #[serde(default)]
    pub note: Option<String>,
}

/// A comparison of two cells. One without published values separates factors that the study changed together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedComparison {
    /// What is compared, in words.
    pub what: String,
    /// The figure that is compared.
    pub metric: Outcome,
    /// The levels of the reference cell and of the compared cell; each matches exactly one cell.
    pub cells: [Levels; 2],
    /// The published result; `None` for a comparison that the study did not make.
    pub value: Option<PublishedValue>,
    /// Whether the value was inferred from what was published.
    pub inferred: bool,
    /// A remark on how the value was published, where it matters.
    pub note: Option<String>,
}

/// The published result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedValue {
    /// The figures of both cells, in the unit of the outcome, above 0.
    Values([f64; 2]),
    /// The second cell's figure over the first's, above 0.
    Ratio(f64),
    /// The second cell's figure less the first's, in the unit of the outcome.
    Difference(f64),
    /// Upper bound on the second cell's figure less the first's, in the unit of the outcome.
    AtMost(f64),
}

impl PublishedValue {
    /// The published ratio; `None` for values that are compared as a difference.
    pub fn ratio(self) -> Option<f64> {
        match self {
            Self::Values([from, to]) => Some(to / from),
            Self::Ratio(ratio) => Some(ratio),
            Self::Difference(_) | Self::AtMost(_) => None,
        }
    }
}

/// A published result that a plan does not measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmeasured {
    /// What was published.
    pub what: String,
    /// Why it is not measured.
    pub why: String,
}

/// A chart of the study: bars of one outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedChart {
    /// The chart's title.
    pub title: String,
    /// The outcome that the bars show.
    pub metric: Outcome,
    /// Key of the factor whose levels are groups of bars.
    pub by: String,
    /// Key of the factor whose levels are the bars of a group, or several keys with commas between; `None` for one bar
    /// per group.
    pub series: Option<String>,
    /// The levels that all cells of the chart have.
    pub levels: Levels,
}

impl PublishedChart {
    /// The label of the bar of a cell with these levels; a level `on` or `off` comes with the factor's key.
    pub fn label(&self, levels: &Levels) -> String {
        let keys = self.series.iter().flat_map(|keys| keys.split(','));
        let words = keys.map(str::trim).filter_map(|key| {
            let level = levels.get(key)?;
            Some(match level.as_str() {
                "on" | "off" => format!("{key} {level}"),
                _ => level.clone(),
            })
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// How a study makes one figure of several runs of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The mean of all runs.
    Mean,
    /// Runs in sets of three: the first set whose standard deviation is within 5 % of its mean.
    ThreeWithin5Percent,
    /// The mean without the highest and the lowest run.
    Trimmed,
    /// The worst run.
    WorstOf,
}

impl Rule {
    /// Every rule with the plan's word, in the order of the documentation.
    pub const ALL: [(&'static str, Self); 4] = [
        ("mean", Self::Mean),
        ("three-within-5%", Self::ThreeWithin5Percent),
        ("trimmed", Self::Trimmed),
        ("worst-of", Self::WorstOf),
    ];

    /// The rule in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Mean => "the mean of the runs",
            Self::ThreeWithin5Percent => "three runs within 5 % standard deviation",
            Self::Trimmed => "the mean without the highest and the lowest run",
            Self::WorstOf => "the worst run",
        }
    }
}

/// A figure that studies compare: a [`Metric`], or one on which a run gives no verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Outcome {
    /// A metric, on which a run gives verdicts.
    Of(Metric),
    /// Busy time of the hosts' cores, percent of all their cores, mean of both hosts.
    HostsCpu,
    /// Busy time of the cores of the client's host, percent of all its cores.
    ClientHostCpu,
    /// Busy time of the cores of the server's host, percent of all its cores.
    ServerHostCpu,
    /// Share of the transactions that took at most 500 us, percent.
    Within500us,
    /// Frames on the wire per second, both directions.
    WireFrames,
}

/// The bound of [`Outcome::Within500us`].
const BOUND: Duration = Duration::from_micros(500);

impl Outcome {
    /// Every outcome with the plan's word, in the order of the documentation.
    pub const ALL: [(&'static str, Self); 21] = [
        ("throughput", Self::Of(Metric::Throughput)),
        ("sender-cpu", Self::Of(Metric::SenderCpu)),
        ("receiver-cpu", Self::Of(Metric::ReceiverCpu)),
        ("cpu", Self::Of(Metric::Cpu)),
        ("transactions", Self::Of(Metric::Transactions)),
        ("latency-median", Self::Of(Metric::LatencyMedian)),
        ("latency-p99", Self::Of(Metric::LatencyP99)),
        ("latency-p999", Self::Of(Metric::LatencyP999)),
        ("client-cpu", Self::Of(Metric::ClientCpu)),
        ("server-cpu", Self::Of(Metric::ServerCpu)),
        ("transaction-cpu", Self::Of(Metric::TransactionCpu)),
        ("datagrams", Self::Of(Metric::Datagrams)),
        ("delivered", Self::Of(Metric::Delivered)),
        ("move-time", Self::Of(Metric::MoveTime)),
        ("downtime", Self::Of(Metric::Downtime)),
        ("dirty-limit", Self::Of(Metric::DirtyLimit)),
        ("hosts-cpu", Self::HostsCpu),
        ("client-host-cpu", Self::ClientHostCpu),
        ("server-host-cpu", Self::ServerHostCpu),
        ("within-500us", Self::Within500us),
        ("wire-frames", Self::WireFrames),
    ];

    /// The plan's words, in the order of [`Self::ALL`].
    pub const WORDS: [&'static str; Self::ALL.len()] = {
        let mut words = [""; Self::ALL.len()];
        let mut at = 0;
        while at < words.len() {
            words[at] = Self::ALL[at].0;
            at += 1;
        }
        words
    };

    /// The plan's word.
    pub fn word(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, outcome)| *outcome == self)
            .map_or("", |(word, _)| word)
    }

    /// The outcome of that word of a plan.
    pub fn of_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(known, _)| *known == word)
            .map(|(_, outcome)| *outcome)
    }

    /// The outcome's name in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Of(metric) => metric.words(),
            Self::HostsCpu => "average CPU of both hosts",
            Self::ClientHostCpu => "CPU of the client's host",
            Self::ServerHostCpu => "CPU of the server's host",
            Self::WireFrames => "frames per second",
            Self::Within500us => "share of responses within 500 us",
        }
    }

    /// The unit for people, and the factor from the outcome's own unit to it.
    pub const fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Of(metric) => metric.unit(),
            Self::HostsCpu | Self::ClientHostCpu | Self::ServerHostCpu | Self::Within500us => {
                ("%", 1.0)
            }
            Self::WireFrames => ("frames/s", 1.0),
        }
    }

    /// Which direction of change is better.
    pub const fn better(self) -> Direction {
        match self {
            Self::Of(metric) => metric.better(),
            Self::HostsCpu | Self::ClientHostCpu | Self::ServerHostCpu | Self::WireFrames => {
                Direction::Lower
            }
            Self::Within500us => Direction::Higher,
        }
    }

    /// The outcome in one sample, in the metric's own unit, percent or frames/s; `None` where the sample has none.
    pub fn value(self, sample: &Sample, load: &str) -> Option<f64> {
        match self {
            Self::Of(metric) => metric.value(sample, load),
            Self::HostsCpu => {
                let hosts = [sample.sender.as_ref()?, sample.receiver.as_ref()?];
                Some(hosts.into_iter().map(busy_percent).sum::<f64>() / 2.0)
            }
            Self::ClientHostCpu => end_percent(sample, load, End::Client),
            Self::ServerHostCpu => end_percent(sample, load, End::Server),
            Self::WireFrames => wire_frames_per_second(sample),
            Self::Within500us => {
                let requests = sample.load(load)?.requests.as_ref()?;
                Some(requests.latency.share_within(BOUND)? * 100.0)
            }
        }
    }
}

/// Percent of the cores of the host at an end of a load that were busy, 0 to 100.
fn end_percent(sample: &Sample, load: &str, end: End) -> Option<f64> {
    let host = sample.load(load)?.direction.host_of(end);
    Some(busy_percent(sample.host(host)?))
}

/// Percent of a host's cores that were busy, 0 to 100.
fn busy_percent(host: &HostUsage) -> f64 {
    let busy_s: f64 = host.cores.iter().map(|core| core.busy_s).sum();
    busy_s / (host.window_s * host.cores.len().max(1) as f64) * 100.0
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl From<Outcome> for String {
    fn from(outcome: Outcome) -> Self {
        outcome.word().to_owned()
    }
}

impl TryFrom<String> for Outcome {
    type Error = String;

    fn try_from(word: String) -> Result<Self, Self::Error> {
        Self::of_word(&word).ok_or_else(|| format!("no such figure: {word}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_called_by_the_levels_of_its_series() {
        let mut chart = PublishedChart {
            title: "requests".into(),
            metric: Outcome::Of(Metric::Transactions),
            by: "streams".into(),
            series: Some("encapsulation, udp_checksum".into()),
            levels: Levels::new(),
        };
        let levels = [
            ("encapsulation", "vxlan"),
            ("udp_checksum", "off"),
            ("streams", "8"),
        ];
        let levels = levels.map(|(key, level)| (key.to_owned(), level.to_owned()));
        let levels = Levels::from(levels);
        assert_eq!(chart.label(&levels), "vxlan, udp_checksum off");
        chart.series = None;
        assert_eq!(chart.label(&levels), "");
    }

    #[test]
    fn every_outcome_has_a_word_of_its_own_and_is_read_back() {
        for (word, outcome) in Outcome::ALL {
            assert_eq!(outcome.word(), word);
            let text = serde_json::to_string(&outcome).expect("JSON");
            assert_eq!(text, format!("\"{word}\""));
            assert_eq!(
                serde_json::from_str::<Outcome>(&text).expect("read"),
                outcome
            );
        }
        assert!(serde_json::from_str::<Outcome>("\"speed\"").is_err());
    }

    #[test]
    fn a_published_ratio_is_the_second_over_the_first() {
        assert_eq!(PublishedValue::Values([2.0, 5.0]).ratio(), Some(2.5));
        assert_eq!(PublishedValue::AtMost(10.0).ratio(), None);
    }
}
