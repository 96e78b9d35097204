//! Blocks of rounds: CPU time summed over rounds until the steps of the kernel's counter resolve it.

use wirecost_model::metric::CpuParts;

/// Steps of the CPU counter that a cell must have been busy for: an error of one step is then 5 %.
pub const ENOUGH_STEPS: f64 = 20.0;

/// Sums consecutive rounds into blocks in which each of `N` cells was busy for [`ENOUGH_STEPS`] at
/// least. Where one round is enough, a block is one round; the rounds left over at the end join the
/// last block. A round in which the counter did not advance counts as zero: without such rounds
/// only those would remain in which a step happened to end.
///
/// Empty where all rounds together hold too few steps.
pub fn blocks<const N: usize>(rounds: &[[CpuParts; N]]) -> Vec<[CpuParts; N]> {
    let mut blocks: Vec<[CpuParts; N]> = Vec::new();
    let mut open: Option<[CpuParts; N]> = None;
    let add = |one: [CpuParts; N], other: &[CpuParts; N]| {
        std::array::from_fn(|cell| one[cell] + other[cell])
    };
    for round in rounds {
        let sum = open.map_or(*round, |open| add(open, round));
        if sum.iter().all(|parts| parts.steps() >= ENOUGH_STEPS) {
            blocks.push(sum);
            open = None;
        } else {
            open = Some(sum);
        }
    }
    if let (Some(rest), Some(last)) = (open, blocks.last_mut()) {
        *last = add(*last, &rest);
    }
    blocks
}

/// CPU figures of one cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CpuFigures {
    /// One figure per block, in the metric's unit.
    Measured(Vec<f64>),
    /// Upper bound in the metric's unit: all rounds together hold fewer than [`ENOUGH_STEPS`] steps.
    Below(f64),
}

/// CPU figures of one cell, from its valid samples in the order of rounds. `None` without a sample.
pub fn cpu_figures(samples: &[CpuParts]) -> Option<CpuFigures> {
    let all = samples.iter().copied().reduce(|sum, one| sum + one)?;
    let rounds: Vec<[CpuParts; 1]> = samples.iter().map(|one| [*one]).collect();
    let measured: Vec<f64> = blocks(&rounds)
        .iter()
        .map(|[block]| block.figure())
        .collect();
    Some(if measured.is_empty() {
        let most = CpuParts {
            busy_s: ENOUGH_STEPS * all.step_s,
            ..all
        };
        CpuFigures::Below(most.figure())
    } else {
        CpuFigures::Measured(measured)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(busy_s: f64) -> CpuParts {
        CpuParts {
            busy_s,
            units: 40.0,
            step_s: 0.01,
            scale: 1e6,
        }
    }

    #[test]
    fn where_a_round_is_enough_each_stands_for_itself() {
        let rounds = [[parts(0.2), parts(0.3)], [parts(0.21), parts(0.31)]];
        assert_eq!(blocks(&rounds), rounds);
    }

    #[test]
    fn rounds_are_added_up_until_both_cells_have_twenty_steps() {
        let rounds = [0.1, 0.1, 0.19, 0.0, 0.01, 0.05].map(|busy| [parts(busy), parts(0.5)]);
        let blocks = blocks(&rounds);
        // 0.1 + 0.1, then 0.19 + 0 + 0.01, and the rest with it.
        assert_eq!(blocks.len(), 2);
        assert!((blocks[0][0].busy_s - 0.2).abs() < 1e-9);
        assert!((blocks[1][0].busy_s - 0.25).abs() < 1e-9);
        assert!((blocks[1][1].units - 160.0).abs() < 1e-9);
    }

    /// Requests at 100/s in windows of 0.41 s: a window was 0.3 or 10.3 ms busy, and those that showed nothing were
    /// dropped.
    #[test]
    fn zeros_are_never_dropped() {
        let busy: Vec<CpuParts> = (0..60)
            .map(|at| parts(if at % 3 == 0 { 0.01 } else { 0.0 }))
            .collect();
        // 20 steps in 2400 transactions: 83 us each.
        let Some(CpuFigures::Measured(figures)) = cpu_figures(&busy) else {
            panic!("20 steps are enough");
        };
        assert_eq!(figures.len(), 1);
        assert!((figures[0] - 83.3).abs() < 0.1, "{figures:?}");
    }

    #[test]
    fn too_little_is_below_what_could_have_been_told() {
        let figures = cpu_figures(&[parts(0.05), parts(0.0)]).expect("samples");
        // 0.2 s of 80 transactions.
        assert_eq!(figures, CpuFigures::Below(2500.0));
        assert_eq!(cpu_figures(&[]), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_every_block_has_enough(
            busy in proptest::collection::vec((0.0f64..0.5, 0.0f64..0.5), 0..30),
        ) {
            let rounds: Vec<[CpuParts; 2]> = busy.iter().map(|(a, b)| [parts(*a), parts(*b)]).collect();
            let blocks = blocks(&rounds);
            for block in &blocks {
                prop_assert!(block.iter().all(|parts| parts.steps() >= ENOUGH_STEPS));
            }
            if !blocks.is_empty() {
                let sum = |of: &[[CpuParts; 2]]| of.iter().map(|round| round[0].busy_s).sum::<f64>();
                prop_assert!((sum(&rounds) - sum(&blocks)).abs() < 1e-9);
            }
        }
    }
}
