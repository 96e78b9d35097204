//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use wirecost_bench::window;
use wirecost_model::plan::Cores;

use crate::bare;
use crate::error::BenchError;
use crate::load;
use crate::peer::{self, Peer};
use crate::report::CountedBy;
use crate::row::Row;

/// Measures the built-in loads beside other generators, in interleaved pairs on the same lab.
#[derive(Debug, Parser)]
#[command(name = "wirecost-bench", version)]
#[command(after_help = "Exit codes: 0 every bound held, 1 a bound was missed, \
    2 the command line is wrong, 3 it could not run, or not to its end.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) part: Option<Part>,
    /// Pairs with each peer in each row; intervals need 2
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) pairs: u32,
    /// Go on to so many pairs where an interval is on both sides of its bound; intervals are wider for it
    /// [default: six times --pairs]
    #[arg(long, value_name = "PAIRS", value_parser = clap::value_parser!(u32).range(2..=3000))]
    most: Option<u32>,
    /// Only the row of this name, or those with this in their name; may be given several times
    #[arg(long = "row", value_name = "PART")]
    rows: Vec<String>,
    /// Only this peer; may be given several times
    #[arg(long = "peer", value_name = "NAME")]
    peers: Vec<String>,
    /// Print the rows and what has to hold, and which peers are here
    #[arg(long)]
    pub(crate) list: bool,
    /// Measured window of each sample, seconds
    #[arg(long, default_value_t = 1.0, value_parser = window::seconds)]
    pub(crate) seconds: f64,
    /// Load before the window, seconds, from its first data on
    #[arg(long, default_value_t = 0.4, value_parser = window::seconds)]
    pub(crate) warmup: f64,
    /// How CPU is counted beside other generators
    #[arg(long, value_enum, value_name = "BY", default_value_t = CountedBy::Looper)]
    pub(crate) cpu: CountedBy,
    /// A newer iperf3 [default: another on PATH with a higher version]
    #[arg(long, value_name = "PATH")]
    iperf3: Option<PathBuf>,
    /// Seed of the order within the pairs [default: a random one, printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u32>,
    /// The wirecost program whose agents build the lab; the load that is measured is this program's own [default: the
    /// one beside this program]
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Print the result, every sample included, as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the result as Markdown tables
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// What this program starts of itself, in the guests.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// One end of the built-in load.
    #[command(hide = true)]
    Load(load::Arguments),
    /// One end of what is no generator.
    #[command(hide = true)]
    Bare(bare::Arguments),
    /// What counts in the receiving guest.
    #[command(name = "witness", hide = true)]
    TrafficCounter,
    /// What counts what a load leaves of a core.
    #[command(hide = true)]
    Looper,
}

/// A peer with its version, or why it is absent.
pub(crate) type FoundPeer = (Box<dyn Peer>, Result<String, String>);

impl Arguments {
    /// Pairs at most.
    pub(crate) fn most(&self) -> u32 {
        self.most.unwrap_or(self.pairs * 6)
    }

    /// The rows wanted, all by default.
    ///
    /// # Errors
    /// A part that no row's name has.
    pub(crate) fn rows(&self, cores: Cores) -> Result<Vec<Row>, BenchError> {
        let mut rows = Row::all(cores);
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        let has = |row: &Row, part: &String| {
            if names.contains(part) {
                row.name == *part
            } else {
                row.name.contains(part.as_str())
            }
        };
        if let Some(part) = self
            .rows
            .iter()
            .find(|part| !rows.iter().any(|row| has(row, part)))
        {
            return Err(BenchError::NoRow(part.clone()));
        }
        rows.retain(|row| self.rows.is_empty() || self.rows.iter().any(|part| has(row, part)));
        Ok(rows)
    }

    /// The peers wanted, looked for.
    ///
    /// # Errors
    /// A name that no peer has.
    pub(crate) fn peers(&self) -> Result<Vec<FoundPeer>, BenchError> {
        let mut all = peer::all(self.iperf3.clone());
        let names: Vec<&str> = all.iter().map(|peer| peer.name()).collect();
        if let Some(name) = self
            .peers
            .iter()
            .find(|name| !names.contains(&name.as_str()))
        {
            return Err(BenchError::NoPeer {
                name: name.clone(),
                known: names.join(", "),
            });
        }
        all.retain(|peer| {
            self.peers.is_empty() || self.peers.iter().any(|name| name == peer.name())
        });
        Ok(all
            .into_iter()
            .map(|peer| {
                let version = peer.version();
                (peer, version)
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(words: &[&str]) -> Arguments {
        Arguments::try_parse_from(["bench"].iter().chain(words)).expect("fine")
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_single_pair_and_an_endless_window_are_refused() {
        for words in [["--pairs", "1"], ["--seconds", "inf"], ["--seconds", "0"]] {
            assert!(Arguments::try_parse_from(["bench"].iter().chain(&words)).is_err());
        }
    }

    #[test]
    fn rows_are_chosen_by_parts_of_their_names() {
        let rows = parsed(&["--row", "udp-rr", "--row", "1024"]).rows(Cores::Split);
        let names: Vec<String> = rows
            .expect("some")
            .into_iter()
            .map(|row| row.name)
            .collect();
        assert_eq!(names.len(), 5, "{names:?}");
        // Whole, though another row's name begins with it.
        let name = "tcp-stream 1, none, offload tunnel";
        let whole = parsed(&["--row", name]).rows(Cores::Split).expect("one");
        assert!(matches!(&whole[..], [row] if row.name == name), "{whole:?}");
        let error = parsed(&["--row", "sctp"])
            .rows(Cores::Split)
            .expect_err("none");
        insta::assert_snapshot!(error, @"no row has `sctp` in its name: --list shows them");
    }

    #[test]
    fn peers_are_chosen_by_name_and_an_unknown_one_is_told_the_known() {
        let peers = parsed(&["--peer", "neper"]).peers().expect("known");
        assert_eq!(peers.len(), 1);
        let Err(error) = parsed(&["--peer", "ttcp"]).peers() else {
            panic!("unknown");
        };
        insta::assert_snapshot!(error, @"there is no peer `ttcp`: iperf3, iperf3-new, nuttcp, sockperf, netperf, neper, uperf, fio, bare");
    }
}
