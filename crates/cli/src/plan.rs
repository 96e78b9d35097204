//! Reads a plan: from a file, a built-in one, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use wirecost_model::cell::Experiment;

use crate::failure::{Cause, Failure};

/// Name of standard input in errors.
const STDIN: &str = "<standard input>";
/// Largest plan, bytes; plans with the most cells that are allowed are far smaller.
const MAX_BYTES: u64 = 1 << 20;

/// A valid plan.
pub(crate) struct Loaded {
    /// The experiment that the plan describes.
    pub(crate) experiment: Experiment,
    /// The text of the plan as read.
    pub(crate) text: String,
    /// Where the plan comes from: a path, a built-in plan's name, or `<standard input>`.
    pub(crate) source: String,
}

/// Reads a plan: a file, a built-in plan where no file has that name, or standard input for `-`.
pub(crate) fn load(plan: &Path) -> Result<Loaded, Failure> {
    let (text, source) = find(plan).map_err(|message| Failure::new(Cause::Plan, message))?;
    Ok(Loaded {
        experiment: experiment(&source, &text)?,
        text,
        source,
    })
}

/// The experiment that a plan's text describes; `source` is the plan's name in errors.
pub(crate) fn experiment(source: &str, text: &str) -> Result<Experiment, Failure> {
    wirecost_plan::load(source, text).map_err(|errors| {
        let told = errors.errors().iter();
        let (messages, fixes): (Vec<String>, Vec<&str>) = told
            .map(|error| {
                let (line, column) = (error.line, error.column);
                (
                    format!("{source}:{line}:{column}: {}", error.message),
                    &*error.help,
                )
            })
            .unzip();
        let fixes = fixes.join("\n");
        Failure::all(Cause::Plan, messages)
            .fix(fixes)
            .page(format!("{:?}", miette::Report::new(errors)))
    })
}

/// The text of a plan, and its name in errors.
fn find(plan: &Path) -> Result<(String, String), String> {
    let name = plan.to_string_lossy().into_owned();
    if name == "-" {
        return Ok((text(io::stdin().lock(), STDIN)?, STDIN.to_owned()));
    }
    let built_in = || wirecost_plan::builtin(&name).map(|text| (text.to_owned(), name.clone()));
    // A run directory named after its plan must not hide the plan.
    if plan.is_dir() {
        let message = format!("{name} is a directory, not a plan: name a plan file in it");
        return built_in().ok_or(message);
    }
    match File::open(plan) {
        Ok(file) => Ok((text(file, &name)?, name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let advice = advice(&name, "name a plan file, or");
            built_in().ok_or_else(|| format!("no plan {name}: {error}; {advice}"))
        }
        Err(error) => Err(format!("reading the plan {name}: {error}")),
    }
}

/// Advice where a plan does not exist: the built-in plan with the nearest name, and all built-in plans.
pub(crate) fn advice(name: &str, otherwise: &str) -> String {
    let known: Vec<&str> = wirecost_plan::BUILTIN
        .iter()
        .map(|(name, _)| *name)
        .collect();
    let meant = match wirecost_plan::nearest_builtin(name) {
        Some(near) => format!("did you mean {near}? "),
        None => String::new(),
    };
    let known = known.join(", ");
    format!("{meant}{otherwise} a built-in plan: {known}")
}

/// Reads a plan's text; an error where it is not UTF-8 or exceeds [`MAX_BYTES`].
fn text(from: impl Read, name: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("reading the plan {name}: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!(
            "{name} is larger than 1 MiB, the most that a plan may have: name a plan file, or print a built-in plan \
             with `wirecost plans NAME`"
        ));
    }
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        let advice = if utf16 {
            "it looks like UTF-16: save it as UTF-8"
        } else {
            "a plan is a YAML file: save it as UTF-8"
        };
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!("{name}:{line}:{column}: not UTF-8 text: byte {byte:#04x} at offset {at}; {advice}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_no_text_is_named() {
        let latin = text(&b"# \xc3\xa4\nname: gr\xf6\xdfer\n"[..], "a.yaml").expect_err("Latin-1");
        assert_eq!(
            latin,
            "a.yaml:2:9: not UTF-8 text: byte 0xf6 at offset 13; a plan is a YAML file: save it as UTF-8"
        );
        let wide = text(&b"\xff\xfen\0"[..], "b.yaml").expect_err("UTF-16");
        assert!(wide.contains("byte 0xff at offset 0; it looks like UTF-16"));
    }

    #[test]
    fn what_never_ends_is_refused_after_a_mebibyte() {
        let endless = text(io::repeat(b' '), "/dev/zero").expect_err("endless");
        assert!(endless.contains("larger than 1 MiB"), "{endless}");
        let largest = vec![b' '; 1 << 20];
        assert!(text(&largest[..], "large.yaml").is_ok());
    }
}
