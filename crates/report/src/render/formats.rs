//! Every output format, in the order of the help texts.

use crate::render::bencher::Bencher;
use crate::render::csv::Csv;
use crate::render::format::{Format, Formatted};
use crate::render::html::Html;
use crate::render::json::Json;
use crate::render::junit::Junit;
use crate::render::markdown::{Markdown, Study};
use crate::render::openmetrics::OpenMetrics;
use crate::render::terminal::{Rules, Text};
use crate::result::compare::Comparison;
use crate::result::run::RunResult;

impl Formatted for RunResult {
    const DEFAULT: &'static dyn Format<Self> = &Text;
    const OTHERS: &'static [&'static dyn Format<Self>] = &[
        &Html,
        &Markdown,
        &Study,
        &Csv,
        &Json,
        &OpenMetrics,
        &Bencher,
        &Rules,
    ];
}

impl Formatted for Comparison {
    const DEFAULT: &'static dyn Format<Self> = &Text;
    const OTHERS: &'static [&'static dyn Format<Self>] = &[&Json, &Markdown, &Junit];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn options<T: Formatted>() -> Vec<&'static str> {
        T::OTHERS.iter().map(|format| format.option()).collect()
    }

    #[test]
    fn no_two_formats_have_the_same_option() {
        for options in [options::<RunResult>(), options::<Comparison>()] {
            let different: BTreeSet<&str> = options.iter().copied().collect();
            assert_eq!(different.len(), options.len(), "{options:?}");
        }
    }
}
