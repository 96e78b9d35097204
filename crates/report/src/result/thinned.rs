//! The samples that are drawn: all of a run of ordinary size, those of every n-th round of a larger one.

use wirecost_model::sample::Sample;

/// Most samples that are kept to be drawn: no chart has room for more points.
const MAX_DRAWN_SAMPLES: usize = 4000;

/// Samples of every `step`-th round, in the order in which they were taken.
#[derive(Debug)]
pub(crate) struct ThinnedSamples {
    most: usize,
    step: u32,
    kept: Vec<Sample>,
}

impl ThinnedSamples {
    /// An empty one for a run with `cells` cells, each of which keeps a few samples however many cells there are.
    pub(crate) fn of_cells(cells: usize) -> Self {
        Self {
            most: MAX_DRAWN_SAMPLES.max(cells * 4),
            step: 1,
            kept: Vec::new(),
        }
    }

    /// Keeps a sample, if it is of a round that is drawn.
    pub(crate) fn add(&mut self, sample: Sample) {
        if !sample.round.is_multiple_of(self.step) {
            return;
        }
        self.kept.push(sample);
        while self.kept.len() > self.most {
            self.step *= 2;
            let step = self.step;
            self.kept.retain(|sample| sample.round % step == 0);
        }
    }

    pub(crate) fn into_samples(self) -> Vec<Sample> {
        self.kept
    }
}

/// The samples of every n-th round, so that about `most` are left, or one round where there are more cells than that.
pub(crate) fn every_nth_round<'a>(samples: &'a [Sample], most: usize) -> Vec<&'a Sample> {
    let mut rounds: Vec<u32> = samples.iter().map(|sample| sample.round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let step = samples.len().div_ceil(most.max(1)).max(1);
    let drawn = |sample: &&'a Sample| {
        let at = rounds.binary_search(&sample.round).unwrap_or_default();
        at.is_multiple_of(step)
    };
    samples.iter().filter(drawn).collect()
}

#[cfg(test)]
mod tests {
    use wirecost_model::fixtures;

    use super::*;

    #[test]
    fn a_run_of_ordinary_size_is_kept_and_of_a_larger_one_every_few_rounds() {
        let of = |rounds: u32| {
            let mut thinned = ThinnedSamples::of_cells(2);
            for round in 0..rounds {
                for cell in 0..2 {
                    thinned.add(fixtures::sample(round, cell));
                }
            }
            thinned.into_samples()
        };
        assert_eq!(of(2000).len(), 4000);
        let many = of(50_000);
        assert!((2000..=4000).contains(&many.len()), "{}", many.len());
        assert!(many.iter().all(|sample| sample.round % 32 == 0));
        let fewer = every_nth_round(&many, 100);
        assert!((50..=100).contains(&fewer.len()), "{}", fewer.len());
        assert_eq!((fewer[0].cell, fewer[1].cell), (0, 1));
    }
}
