//! `wirecost plans` and `wirecost schema`: lists and prints built-in plans and JSON Schemas.

use clap::{Args, ValueEnum};
use serde::Serialize;
use wirecost_control::experiment::forecast;
use wirecost_plan::{BUILTIN, STUDIES};

use crate::failure::{Cause, CommandResult, Failure};
use crate::{failure, plan, screen};

#[derive(Debug, Args)]
#[command(
    after_help = "`wirecost plans NAME > my-plan.yaml` saves a plan to edit and pass to `wirecost run`."
)]
pub(crate) struct Plans {
    /// Print this plan as it is shipped, instead of the list
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print the list, or the plan with its cells and time, as one JSON document
    #[arg(long)]
    json: bool,
}

/// A built-in plan with its number of cells and rounds and its expected time.
#[derive(Debug, Serialize)]
struct BuiltinPlan {
    name: &'static str,
    /// The description up to its first full stop or colon.
    summary: String,
    description: Option<String>,
    cells: usize,
    rounds: u32,
    expected_s: f64,
    /// The text of the plan, where one plan was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct List<'a> {
    plans: &'a [BuiltinPlan],
}

pub(crate) fn plans(arguments: &Plans) -> CommandResult {
    let Some(wanted) = arguments.name.as_deref() else {
        return list(BUILTIN, arguments.json);
    };
    let mut all = BUILTIN.iter().chain(STUDIES);
    let Some((name, text)) = all.find(|(name, _)| *name == wanted) else {
        let message = plan::advice(wanted, "name");
        let message = format!("no built-in plan {wanted}; {message}");
        return Err(Failure::new(Cause::Usage, message));
    };
    if !arguments.json {
        return screen::print(text.strip_suffix('\n').unwrap_or(text));
    }
    screen::print_json(&BuiltinPlan {
        text: Some(text),
        ..builtin_plan(name, text)?
    })
}

/// Lists plans, given by name and text.
pub(crate) fn list(all: &'static [(&str, &str)], json: bool) -> CommandResult {
    let plans: Result<Vec<_>, _> = all
        .iter()
        .map(|(name, text)| builtin_plan(name, text))
        .collect();
    let plans = &plans?;
    if json {
        return screen::print_json(&List { plans });
    }
    let width = screen::terminal().width;
    let lines = plans.iter().map(|plan| {
        format!(
            "{}  {} cells x {} rounds, about {}\n{}",
            plan.name,
            plan.cells,
            plan.rounds,
            screen::duration(plan.expected_s),
            screen::wrap(&format!("    {}", plan.summary), "    ", width)
        )
    });
    screen::print(&lines.collect::<Vec<_>>().join("\n"))
}

fn builtin_plan(name: &'static str, text: &str) -> Result<BuiltinPlan, Failure> {
    let experiment = plan::experiment(name, text)?;
    let description = experiment.plan.description.clone();
    Ok(BuiltinPlan {
        name,
        summary: summary(description.as_deref().unwrap_or_default()),
        description,
        cells: experiment.cells.len(),
        rounds: experiment.plan.repeat.rounds,
        // The seed matters only for the number of labs, where labs have to make room for others.
        expected_s: forecast(&experiment, experiment.plan.seed.unwrap_or(0)).total_s,
        text: None,
    })
}

/// The description up to its first full stop or colon.
fn summary(description: &str) -> String {
    let end = [". ", ": "]
        .iter()
        .filter_map(|mark| description.find(mark));
    let end = end.min().unwrap_or(description.len());
    description[..end].trim_end_matches('.').to_owned()
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The document that the schema describes
    #[arg(default_value = "plan")]
    of: Described,
}

/// What there is a schema of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Described {
    /// Plans, as `wirecost run` takes them
    Plan,
    /// What `wirecost check --json` prints
    Check,
    /// What `wirecost load --json` prints
    Load,
    /// What every command prints with --json where there is no result
    Error,
}

/// Prints a JSON Schema.
pub(crate) fn schema(arguments: &Schema) -> CommandResult {
    match arguments.of {
        Described::Plan => screen::print_json(&wirecost_plan::schema()),
        Described::Check => screen::print_as_is(wirecost_check::SCHEMA),
        Described::Load => screen::print_as_is(wirecost_control::load::SCHEMA),
        Described::Error => screen::print_as_is(failure::SCHEMA),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_first_thing_that_is_said() {
        assert_eq!(summary("What it costs: all of it. More."), "What it costs");
        assert_eq!(summary("At 2.5 Gbit/s. More: this."), "At 2.5 Gbit/s");
        assert_eq!(summary("One sentence."), "One sentence");
        assert_eq!(summary(""), "");
    }

    #[test]
    fn every_plan_that_is_shipped_says_in_a_sentence_what_it_is_for() {
        for (name, text) in BUILTIN.iter().chain(STUDIES) {
            let summary = builtin_plan(name, text).expect("a right plan").summary;
            assert!((10..=160).contains(&summary.len()), "{name}: {summary}");
        }
    }
}
