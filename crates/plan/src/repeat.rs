//! Reads `repeat`: a fixed number of rounds, or an adaptive run.

use wirecost_model::plan::{AwaitedEffects, Repeat, StoppingRule};

use crate::keys::{self, Key};
use crate::read::{Entry, Fields, Reader, value};
use crate::values::{integer32, number, word};

/// The keys of an adaptive run: any of them makes a run adaptive.
static UNTIL: [&Key; 5] = [
    &keys::PRECISION,
    &keys::BUDGET,
    &keys::MIN_ROUNDS,
    &keys::MAX_ROUNDS,
    &keys::ASK,
];

pub(crate) fn read(reader: &mut Reader, fields: &Fields<'_>) -> Option<Repeat> {
    let rounds = value(reader, fields, &keys::ROUNDS, integer32);
    let seconds = value(reader, fields, &keys::SECONDS, number);
    let warmup = value(reader, fields, &keys::WARMUP, number);
    let worth = value(reader, fields, &keys::WORTH, number);
    let written = |reader: &mut Reader, key| {
        let entry = fields.get(reader, key)?;
        entry.written.then_some(entry)
    };
    let (rounds, until) = match UNTIL.iter().find_map(|key| written(reader, key)) {
        None => (rounds, None),
        Some(first) => {
            if let Some(fixed) = written(reader, &keys::ROUNDS) {
                exclusive(reader, &fixed, &first);
            }
            let (most, until) = until(reader, fields)?;
            (Some(most), Some(until))
        }
    };
    Some(Repeat {
        rounds: rounds?,
        seconds: seconds?,
        warmup: warmup?,
        worth: worth?,
        until,
    })
}

/// The maximum number of rounds, and when an adaptive run may end earlier.
fn until(reader: &mut Reader, fields: &Fields<'_>) -> Option<(u32, StoppingRule)> {
    let precision = value(reader, fields, &keys::PRECISION, number);
    let budget_s = value(reader, fields, &keys::BUDGET, number);
    let min_rounds = value(reader, fields, &keys::MIN_ROUNDS, integer32);
    let max_rounds = value(reader, fields, &keys::MAX_ROUNDS, integer32);
    let ask = value(reader, fields, &keys::ASK, word).map(|word| match word {
        "throughput" => AwaitedEffects::Throughput,
        "latency" => AwaitedEffects::Latency,
        "cpu" => AwaitedEffects::Cpu,
        _ => AwaitedEffects::All,
    });
    let (least, most) = (min_rounds?, max_rounds?);
    if least > most {
        above(reader, fields, least, most);
    }
    let until = StoppingRule {
        precision: precision?,
        min_rounds: least,
        budget_s: budget_s?,
        ask: ask?,
    };
    Some((most, until))
}

fn exclusive(reader: &mut Reader, fixed: &Entry<'_>, until: &Entry<'_>) {
    let message = format!("`{}` cannot be used with `{}`", fixed.path, until.path);
    let help = format!(
        "`rounds` is a fixed number of rounds, `{}` belongs to an adaptive run: leave one of them out \
         (`max_rounds` is the most rounds of such a run)",
        until.key.name()
    );
    let (span, label) = (
        fixed.node.span.clone(),
        "a fixed and an adaptive number of rounds",
    );
    reader.fault(span, &fixed.path, message, label, help);
}

/// A fault where `min_rounds` is above `max_rounds`; it points at a value that the plan writes, not at a default.
fn above(reader: &mut Reader, fields: &Fields<'_>, least: u32, most: u32) {
    let ends = [&keys::MIN_ROUNDS, &keys::MAX_ROUNDS].map(|key| fields.get(reader, key));
    let [Some(least_entry), Some(most_entry)] = ends else {
        return;
    };
    let by_default = |entry: &Entry<'_>| if entry.written { "" } else { " by default" };
    let message = format!(
        "`repeat.min_rounds`, {least}{}, is above `repeat.max_rounds`, {most}{}",
        by_default(&least_entry),
        by_default(&most_entry)
    );
    let (at, label, help) = if least_entry.written {
        let help = format!("write {most} or less, or a larger `max_rounds`");
        (least_entry, format!("above {most}"), help)
    } else {
        let help = format!("write {least} or more, or a smaller `min_rounds`");
        (most_entry, format!("below {least}"), help)
    };
    reader.fault(at.node.span.clone(), &at.path, message, label, help);
}
