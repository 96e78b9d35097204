//! Parses `NAME[:OPTION[,OPTION]]` joined by `+` into a stack, or says what is wrong and what to write instead.

use std::str::FromStr;

use super::catalogue::{CatalogueEntry, Number, OTHER_NAMES, OptionSyntax, OptionWord, every};
use super::error::StackError;
use super::stack::{Item, Options, Refusal, Stack};

/// Upper bound on the encapsulations in a stack: more than any network has, few enough to compute at once.
const MAX_LAYERS: usize = 16;

impl FromStr for Stack {
    type Err = StackError;

    /// Parses a stack as it is written, innermost first; case does not matter.
    fn from_str(text: &str) -> Result<Self, StackError> {
        let expression = text.trim().to_ascii_lowercase();
        let items = || {
            if expression.split('+').count() > MAX_LAYERS {
                return Err((
                    format!("more than {MAX_LAYERS} encapsulations in each other"),
                    "write fewer".into(),
                ));
            }
            expression.split('+').map(item).collect()
        };
        items()
            .and_then(Self::assemble)
            .map_err(|(problem, help)| StackError {
                expression: shortened(&expression),
                problem,
                help,
            })
    }
}

fn item(text: &str) -> Result<Item, Refusal> {
    let text = text.trim();
    let (name, option) = match text.split_once(':') {
        Some((name, option)) => (name, Some(option)),
        None => (text, None),
    };
    let of = every()
        .iter()
        .find(|encapsulation| encapsulation.name == name)
        .ok_or_else(|| unknown(name))?;
    Ok(Item {
        of,
        options: options(of, option)?,
    })
}

fn unknown(name: &str) -> Refusal {
    let known = || every().iter().map(|encapsulation| encapsulation.name);
    let all: Vec<&str> = known().collect();
    let all = format!("known are {}", all.join(", "));
    if name.is_empty() {
        return ("a name is missing".into(), all);
    }
    let other = OTHER_NAMES
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, ours)| *ours);
    let help = match other.or_else(|| nearest(name, known())) {
        Some(near) => format!("did you mean `{near}`? {all}"),
        None if name.contains(['/', ',', ' ', '>']) => format!(
            "encapsulations are joined by `+`, from the guest outwards, such as `geneve:ovn+esp`; {all}"
        ),
        None => all,
    };
    (format!("there is no `{}`", shortened(name)), help)
}

/// Shortens a text for an error message.
fn shortened(text: &str) -> String {
    const MAX_CHARACTERS: usize = 80;
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn options(of: &CatalogueEntry, option: Option<&str>) -> Result<Options, Refusal> {
    match (of.syntax, option) {
        (OptionSyntax::Nothing, Some(option)) => Err((
            format!("`{}` has no option `{}`", of.name, shortened(option)),
            format!("write `{}` alone", of.name),
        )),
        (OptionSyntax::Nothing | OptionSyntax::AnyOf(_), None) => Ok(Options::default()),
        (OptionSyntax::AnyOf(known), Some(option)) => {
            let given: Vec<&str> = option.split(',').map(str::trim).collect();
            for (at, word) in given.iter().enumerate() {
                if !known.iter().any(|known| known.word == *word) {
                    return Err(no_such_word(of, word, known));
                }
                if given[..at].contains(word) {
                    return Err((
                        format!("`{}` has `{word}` twice", of.name),
                        "write it once".into(),
                    ));
                }
            }
            // In the catalogue's order, so that a stack has one form.
            let words = known.iter().map(|known| known.word);
            Ok(Options {
                words: words.filter(|word| given.contains(word)).collect(),
                number: 0,
            })
        }
        (OptionSyntax::OneOf(known), option) => {
            let option = option.map_or(known[0].word, str::trim);
            let word = known.iter().find(|known| known.word == option);
            let word = word.ok_or_else(|| no_such_word(of, option, known))?.word;
            Ok(Options {
                words: vec![word],
                number: 0,
            })
        }
        (OptionSyntax::Number(number), option) => Ok(Options {
            words: Vec::new(),
            number: match option {
                None => number.default,
                Some(option) => read_number(of, &number, option.trim())?,
            },
        }),
    }
}

fn no_such_word(of: &CatalogueEntry, option: &str, known: &[OptionWord]) -> Refusal {
    let words = known.iter().map(|known| known.word);
    let near = nearest(option, words.clone())
        .map(|near| format!("did you mean `{}:{near}`? ", of.name))
        .unwrap_or_default();
    let all: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    (
        format!("`{}` has no option `{}`", of.name, shortened(option)),
        format!("{near}it takes {}", all.join(", ")),
    )
}

fn read_number(of: &CatalogueEntry, number: &Number, option: &str) -> Result<u32, Refusal> {
    let Number {
        what,
        min,
        max,
        multiple_of,
        named,
        ..
    } = *number;
    if let Some((_, value)) = named.iter().find(|(word, _)| *word == option) {
        return Ok(*value);
    }
    let refuse = |problem: String| {
        let multiple = match multiple_of {
            1 => String::new(),
            of => format!(", a multiple of {of}"),
        };
        let words = named
            .iter()
            .map(|(word, value)| format!(", or `{}:{word}` ({value})", of.name));
        let words: Vec<String> = words.collect();
        let help = format!(
            "write a whole number of {what} from {min} to {max}{multiple}, such as `{}:{}`{}",
            of.name,
            multiple_of.max(2),
            words.concat()
        );
        Err((problem, help))
    };
    // Rust parses `+4` and ` 4` as numbers; they are not accepted here.
    let digits = !option.is_empty() && option.bytes().all(|byte| byte.is_ascii_digit());
    match option.parse::<u32>() {
        Ok(value) if digits && (min..=max).contains(&value) && value % multiple_of == 0 => {
            Ok(value)
        }
        Ok(_) if digits => refuse(format!("`{}` cannot have {option} {what}", of.name)),
        _ => refuse(format!(
            "`{}` has no option `{}`",
            of.name,
            shortened(option)
        )),
    }
}

/// The known word of which `word` is most likely a misspelling: up to a third of its letters may differ.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer, and the distance takes quadratic time.
    if word.len() > 32 {
        return None;
    }
    let allowed = word.chars().count().div_ceil(3);
    known
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
