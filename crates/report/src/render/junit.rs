//! A comparison as JUnit XML, which CI systems show: a test case per figure.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use std::io::Write;
use thiserror::Error;
use wirecost_model::effect::Verdict;

use super::comparison as sentences;
use crate::render::format::{Format, FormatError, Terminal, put};
use crate::render::visible::visible;
use crate::result::compare::{Comparison, Conclusion, FailOn, Figure};

/// The JUnit XML format.
#[derive(Debug)]
pub(crate) struct Junit;

impl Format<Comparison> for Junit {
    fn option(&self) -> &'static str {
        "junit"
    }

    fn help(&self) -> &'static str {
        "JUnit XML for a CI system: a test case per figure"
    }

    fn write(
        &self,
        comparison: &Comparison,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &comparison_junit(comparison).map_err(FormatError::of)?)
    }
}

/// The document could not be written.
#[derive(Debug, Error)]
#[error("the JUnit document could not be made: {0}")]
pub struct JunitError(#[from] quick_junit::SerializeError);

/// Prints a comparison as one test suite with a test case for each figure of each cell, and one for each
/// cell that is not compared. A figure or cell that fails is a failure. One that cannot be told or is not
/// compared is skipped, unless it fails. Where nothing is comparable at all, there is an error. Differences
/// between the runs are properties of the suite.
///
/// The schema is that of Jenkins (xunit-plugin, `jenkins-junit.xsd`), which GitLab and others read.
pub fn comparison_junit(comparison: &Comparison) -> Result<String, JunitError> {
    let class = plain(&format!("wirecost.{}", comparison.after.name));
    let mut suite = TestSuite::new(plain(&sentences::title(comparison)));
    let mut properties = vec![
        ("before".to_owned(), sentences::side(&comparison.before)),
        ("after".to_owned(), sentences::side(&comparison.after)),
    ];
    properties.extend(comparison.differences.iter().map(|difference| {
        let (before, after) = (difference.before.as_ref(), difference.after.as_ref());
        let values = format!(
            "{} -> {}",
            sentences::value(before),
            sentences::value(after)
        );
        (
            format!("differs: {}", sentences::difference(difference)),
            values,
        )
    }));
    properties.extend(
        sentences::trust_warning(comparison)
            .map(|trust_warning| ("trust".to_owned(), trust_warning)),
    );
    for (name, value) in properties {
        suite.add_property(Property::new(plain(&name), plain(&value)));
    }
    let case = |name: String, status: TestCaseStatus| {
        let mut case = TestCase::new(plain(&name), status);
        case.set_classname(class.as_str());
        case
    };
    let several = sentences::several_loads(comparison);
    for cell in &comparison.cells {
        let levels = sentences::cell(comparison, &cell.all_levels);
        for figure in &cell.figures {
            let name = format!("{levels}: {}", sentences::name(several, figure));
            let text = plain(&sentences::figure(figure));
            let mut case = case(name, status(figure, comparison, &text));
            case.set_system_out(text);
            suite.add_test_case(case);
        }
    }
    for cell in &comparison.not_comparable {
        let levels = sentences::cell(comparison, &cell.all_levels);
        suite.add_test_case(case(levels, left_out(cell.fails, &cell.reason)));
    }
    for (only, which, fails) in [
        (
            &comparison.only_before,
            "before only",
            comparison.fail_on >= FailOn::CannotTell,
        ),
        (&comparison.only_after, "after only", false),
    ] {
        for levels in only {
            let levels = sentences::cell(comparison, levels);
            suite.add_test_case(case(levels, left_out(fails, which)));
        }
    }
    if comparison.conclusion == Conclusion::NothingComparable {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let (label, why) = sentences::conclusion(comparison);
        status.set_message(format!("{label} {why}"));
        suite.add_test_case(case("comparable".into(), status));
    }
    let mut log: Vec<String> = sentences::trust_warning(comparison).into_iter().collect();
    log.extend(comparison.notes.iter().cloned());
    log.extend(sentences::counts(comparison));
    log.extend(sentences::shifts(comparison));
    log.push(sentences::DRIFT.into());
    let log: Vec<String> = log.iter().map(|line| plain(line)).collect();
    suite.set_system_out(log.join("\n"));
    let mut report = Report::new("wirecost compare");
    report.add_test_suite(suite);
    Ok(report.to_string()?)
}

fn status(figure: &Figure, comparison: &Comparison, text: &str) -> TestCaseStatus {
    let judged = &figure.judged;
    let verdict = if comparison.by_corrected {
        judged.corrected.verdict
    } else {
        judged.verdict
    };
    if figure.fails {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type(kind(verdict)).set_message(text);
        status
    } else if matches!(verdict, Verdict::CannotTellYet | Verdict::NotComparable) {
        let mut status = TestCaseStatus::skipped();
        if verdict == Verdict::NotComparable {
            status.set_type(kind(verdict));
        }
        status.set_message(text);
        status
    } else {
        TestCaseStatus::success()
    }
}

/// The verdict's name in the JSON document.
const fn kind(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pays => "pays",
        Verdict::Costs => "costs",
        Verdict::MakesNoDifference => "makes_no_difference",
        Verdict::Gains => "gains",
        Verdict::Loses => "loses",
        Verdict::CannotTellYet => "cannot_tell_yet",
        Verdict::NotComparable => "not_comparable",
    }
}

fn left_out(fails: bool, reason: &str) -> TestCaseStatus {
    let mut status = if fails {
        TestCaseStatus::non_success(NonSuccessKind::Failure)
    } else {
        TestCaseStatus::skipped()
    };
    status.set_type("not_compared").set_message(plain(reason));
    status
}

/// The text in one line, control characters made visible, without characters that XML 1.0 forbids (section 2.2).
fn plain(text: &str) -> String {
    let text = visible(text).replace(['\n', '\t'], " ");
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
