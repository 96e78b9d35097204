//! Cells that cannot be built where the run was made: more rounds would not measure them either.

use wirecost_model::effect::Effect;
use wirecost_model::plan::Levels;

use crate::result::document::{CellResult, Document};

/// Whether one of the effect's two cells was skipped.
pub(crate) fn is_of_one(cells: &[CellResult], effect: &Effect) -> bool {
    // What means nothing to a cell is no difference.
    let is_its = |levels: &Levels| {
        let own = levels.get(&effect.factor);
        let mut others = effect.where_.iter();
        (own == Some(&effect.from) || own == Some(&effect.to))
            && others.all(|(key, level)| levels.get(key).is_none_or(|own| own == level))
    };
    let mut skipped = cells.iter().filter(|cell| cell.skipped.is_some());
    effect.rounds == 0 && skipped.any(|cell| is_its(&cell.all_levels))
}

/// Samples of skipped cells, which no count of samples has: their cells are told of by themselves.
pub(crate) fn samples(doc: &Document) -> u32 {
    let skipped = doc.cells.iter().filter(|cell| cell.skipped.is_some());
    skipped.map(|cell| cell.samples).sum()
}
