//! Finds the cells of a published comparison.

use crate::cell::{Cell, Experiment};
use crate::levels::Levels;
use crate::metric::Figure;
use crate::published::{Outcome, PublishedComparison};

impl Outcome {
    /// The name of a load of both cells that has this outcome; `None` without one.
    pub fn load<'a>(self, experiment: &Experiment, [from, to]: [&'a Cell; 2]) -> Option<&'a str> {
        let has = |load: &str| match self {
            Self::Of(metric) => experiment.shown_figures().contains(&Figure {
                load: load.to_owned(),
                metric,
            }),
            Self::HostsCpu | Self::ClientHostCpu | Self::ServerHostCpu | Self::WireFrames => true,
            Self::Within500us => from
                .load(load)
                .is_some_and(|named| named.load.workload.is_request_response()),
        };
        let mut names = from.loads.iter().map(|named| named.name.as_str());
        names.find(|name| to.load(name).is_some() && has(name))
    }
}

/// The cells that have all of these levels.
pub fn cells_with<'a>(
    experiment: &'a Experiment,
    levels: &'a Levels,
) -> impl Iterator<Item = &'a Cell> {
    experiment.cells.iter().filter(move |cell| {
        levels
            .iter()
            .all(|(key, level)| cell.levels.get(key) == Some(level))
    })
}

impl PublishedComparison {
    /// The comparison's two cells. A valid plan has both; `None` in a record that was edited.
    pub fn cells<'a>(&'a self, experiment: &'a Experiment) -> Option<[&'a Cell; 2]> {
        let one = |levels: &'a Levels| cells_with(experiment, levels).next();
        Some([one(&self.cells[0])?, one(&self.cells[1])?])
    }
}
