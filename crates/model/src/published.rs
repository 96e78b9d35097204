//! What others published: figures beside a run's cells, and the comparisons that a study made.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::end_window::End;
use crate::levels::Levels;
use crate::metric::{Direction, Metric, wire_frames_per_second};
use crate::sample::Sample;
use crate::usage::HostUsage;

/// What others published.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Who, what, on which hardware.
    pub source: String,
    /// The study's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Offloads, cores, kernel and datapath that the study had: what may explain a different result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// What the plan scales down, and by which key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled: Option<String>,
    /// Whether it is about OVN: a run that chooses the datapath takes [`OF_OVN`](crate::datapath::Datapath::OF_OVN).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ovn: bool,
    /// How the study made one figure of several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
    /// Figures, each for the cells that match its levels.
    #[serde(default)]
    pub figures: Vec<PublishedFigure>,
    /// Comparisons of two cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<PublishedComparison>,
    /// What was published and is not measured by this plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<Unmeasured>,
    /// The study's own charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<PublishedChart>,
}

/// One published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The cells that it is compared with.
    pub levels: Levels,
    /// Throughput in Gbit/s.
    pub gbps: f64,
    /// How the published configuration differs from the cell, where it does.
    #[serde(default)]
    pub note: Option<String>,
}

/// A comparison of two cells. One of which nothing was published separates factors that the study changed together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedComparison {
    /// What is compared, in words.
    pub what: String,
    /// Which figure.
    pub metric: Outcome,
    /// The levels of the cell compared with, and of the one compared: each of exactly one cell.
    pub cells: [Levels; 2],
    /// What was published of it; `None` of a comparison that the study did not make.
    pub value: Option<PublishedValue>,
    /// Whether it was inferred from what was published.
    pub inferred: bool,
    /// How it was published, where that has to be known.
    pub note: Option<String>,
}

/// What was published of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedValue {
    /// The figures of both cells, in the unit of the outcome, above 0.
    Values([f64; 2]),
    /// The second over the first, above 0.
    Ratio(f64),
    /// The second less the first, in the unit of the outcome.
    Difference(f64),
    /// The second less the first is at most this.
    AtMost(f64),
}

impl PublishedValue {
    /// The published ratio, where it is compared by one.
    pub fn ratio(self) -> Option<f64> {
        match self {
            Self::Values([from, to]) => Some(to / from),
            Self::Ratio(ratio) => Some(ratio),
            Self::Difference(_) | Self::AtMost(_) => None,
        }
    }
}

/// Something published that a plan does not measure.
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
    /// What it shows.
    pub title: String,
    /// The outcome.
    pub metric: Outcome,
    /// The factor whose levels are groups of bars.
    pub by: String,
    /// The factor whose levels are the bars of a group, or several with commas between; `None`: one bar each.
    pub series: Option<String>,
    /// The levels of the cells in it.
    pub levels: Levels,
}

impl PublishedChart {
    /// What the bar of a cell with these levels is called; of a factor that is on or off with the factor's name.
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
    /// The mean of all.
    Mean,
    /// Sets of three runs, the first whose standard deviation is within 5 % of its mean.
    ThreeWithin5Percent,
    /// The mean without the highest and the lowest.
    Trimmed,
    /// The worst of all.
    WorstOf,
}

impl Rule {
    /// Every rule by the plan's word, in the order of the documentation.
    pub const ALL: [(&'static str, Self); 4] = [
        ("mean", Self::Mean),
        ("three-within-5%", Self::ThreeWithin5Percent),
        ("trimmed", Self::Trimmed),
        ("worst-of", Self::WorstOf),
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Mean => "the mean of the runs",
            Self::ThreeWithin5Percent => "three runs within 5 % standard deviation",
            Self::Trimmed => "the mean without the highest and the lowest run",
            Self::WorstOf => "the worst run",
        }
    }
}

/// A figure that studies compare: a [`Metric`], or one that gets no verdict of its own in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Outcome {
    /// What verdicts are about.
    Of(Metric),
    /// Busy time of the hosts' cores, the average of both hosts, percent of all their cores.
    HostsCpu,
    /// Busy time of the client's cores, percent of all of them.
    ClientHostCpu,
    /// Busy time of the server's cores, percent of all of them.
    ServerHostCpu,
    /// Responses within 500 us, percent.
    Within500us,
    /// Frames on the wire per second, both directions.
    WireFrames,
}

/// The bound of [`Outcome::Within500us`].
const BOUND: Duration = Duration::from_micros(500);

impl Outcome {
    /// Every outcome by the plan's word, in the order of the documentation.
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

    /// The plan's words, in that order.
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

    /// The outcome of a plan's word.
    pub fn of_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(known, _)| *known == word)
            .map(|(_, outcome)| *outcome)
    }

    /// In words.
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

    /// The unit in which people read it, and what the value is multiplied with for it.
    pub const fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Of(metric) => metric.unit(),
            Self::HostsCpu | Self::ClientHostCpu | Self::ServerHostCpu | Self::Within500us => {
                ("%", 1.0)
            }
            Self::WireFrames => ("frames/s", 1.0),
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Direction {
        match self {
            Self::Of(metric) => metric.better(),
            Self::HostsCpu | Self::ClientHostCpu | Self::ServerHostCpu | Self::WireFrames => {
                Direction::Lower
            }
            Self::Within500us => Direction::Higher,
        }
    }

    /// Of one sample, in the metric's own unit or in percent; `None` where it has none.
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
