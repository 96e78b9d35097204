//! Skipped cells, which cannot be built on the run's machine: more rounds would not measure them either.

use wirecost_model::effect::Effect;
use wirecost_model::plan::Levels;

use crate::result::document::{CellResult, Document};

/// Whether one of the effect's two cells was skipped.
pub(crate) fn is_of_one(cells: &[CellResult], effect: &Effect) -> bool {
    // A factor that does not apply to a cell is no difference.
    let is_its = |levels: &Levels| {
        let own = levels.get(&effect.factor);
        let mut others = effect.where_.iter();
        (own == Some(&effect.from) || own == Some(&effect.to))
            && others.all(|(key, level)| levels.get(key).is_none_or(|own| own == level))
    };
    let mut skipped = cells.iter().filter(|cell| cell.skipped.is_some());
    effect.rounds == 0 && skipped.any(|cell| is_its(&cell.all_levels))
}

/// Samples of skipped cells. Counts of samples leave them out, since skipped cells are reported by themselves.
pub(crate) fn samples(doc: &Document) -> u32 {
    let skipped = doc.cells.iter().filter(|cell| cell.skipped.is_some());
    skipped.map(|cell| cell.samples).sum()
}
