//! Reads the lines of `samples.jsonl`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::panic::resume_unwind;
use std::path::Path;
use std::{str, thread};

use wirecost_model::cell::Experiment;
use wirecost_model::record::file;
use wirecost_model::sample::Sample;

use super::{ReadError, unreadable};

/// Bytes of the record that are read at a time.
const BUFFER: usize = 1 << 20;

/// Bytes of lines that a thread parses at a time.
const SHARE: usize = 1 << 20;

/// Most threads that parse: parsing takes most of the time of a result.
const THREADS: usize = 4;

/// Reads all samples, passes each to `add`, and returns their number. Neither the file nor its samples are ever in
/// memory as a whole.
pub(super) fn read(
    path: &Path,
    file: File,
    experiment: &Experiment,
    warnings: &mut Vec<String>,
    skip: Option<&str>,
    mut add: impl FnMut(Sample),
) -> Result<usize, ReadError> {
    let mut taken = HashSet::new();
    let known: HashSet<u32> = experiment.measured().map(|cell| cell.index).collect();
    let mut file = BufReader::with_capacity(BUFFER, file);
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS));
    let mut shares = vec![Lines::default(); threads];
    let mut number = 0;
    loop {
        for lines in &mut shares {
            let next = lines.next(&mut file);
            next.map_err(|source| unreadable(path, source))?;
        }
        if shares[0].ends.is_empty() {
            return Ok(taken.len());
        }
        for parsed in parse(&shares, skip) {
            number += 1;
            let bad = |reason: String| ReadError::Damaged {
                path: path.into(),
                line: number,
                reason,
            };
            let sample = match parsed {
                Ok(sample) => sample,
                // Only the last line can lack its line end: the write was cut short.
                Err(None) => {
                    warnings.push(format!(
                        "{}, line {number} is incomplete: the run was killed, or its disk was full, while it was written; left out",
                        file::SAMPLES
                    ));
                    return Ok(taken.len());
                }
                Err(Some(reason)) => return Err(bad(reason)),
            };
            if !known.contains(&sample.cell) {
                return Err(bad(format!(
                    "a sample of cell {}, which the experiment of {} cells does not have",
                    sample.cell,
                    experiment.cells.len()
                )));
            }
            if !taken.insert((sample.round, sample.cell)) {
                return Err(bad(format!(
                    "a second sample of cell {} in round {}",
                    sample.cell, sample.round
                )));
            }
            if let Some((name, seconds)) = negative_time(&sample) {
                return Err(bad(format!("{name} is {seconds} seconds")));
            }
            add(sample);
        }
    }
}

/// Some lines of the file, and the offset in `bytes` at which each ends.
#[derive(Debug, Clone, Default)]
struct Lines {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    /// Replaces these lines by the next ones of the file; by none at its end.
    fn next(&mut self, file: &mut impl BufRead) -> io::Result<()> {
        self.bytes.clear();
        self.ends.clear();
        while self.bytes.len() < SHARE && file.read_until(b'\n', &mut self.bytes)? > 0 {
            self.ends.push(self.bytes.len());
        }
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        let ends = self.ends.iter();
        begins
            .zip(ends)
            .map(|(begin, &end)| &self.bytes[begin..end])
    }
}

/// A sample, or the reason why the line cannot be parsed; without a reason, the line is incomplete.
type Parsed = Result<Sample, Option<String>>;

/// Parses each share of lines in a thread of its own; the results are in the order of the lines.
fn parse(shares: &[Lines], skip: Option<&str>) -> impl Iterator<Item = Parsed> + use<> {
    let parsed: Vec<Vec<Parsed>> = thread::scope(|scope| {
        let threads: Vec<_> = shares
            .iter()
            .filter(|lines| !lines.ends.is_empty())
            .map(|lines| {
                scope.spawn(move || {
                    let mut left = Vec::new();
                    let lines = lines.iter();
                    lines.map(|line| one(line, skip, &mut left)).collect()
                })
            })
            .collect();
        let each = threads.into_iter();
        each.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    parsed.into_iter().flatten()
}

/// Parses one line. `left` is a buffer for the line without the list `skip`.
fn one(line: &[u8], skip: Option<&str>, left: &mut Vec<u8>) -> Parsed {
    let skipped = skip.and_then(|list| without(line, list));
    let read = skipped.and_then(|[before, after]| {
        left.clear();
        left.extend_from_slice(before);
        left.extend_from_slice(after);
        from_json(left).ok()
    });
    // Where that fails, the whole line is parsed, for the column of the error.
    read.map_or_else(|| from_json(line), Ok)
        .map_err(|error| line.ends_with(b"\n").then(|| reason_alone(&error)))
}

/// Parses a line. Checking its UTF-8 as a whole first is faster than checking each string.
fn from_json(line: &[u8]) -> serde_json::Result<Sample> {
    match str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(line),
    }
}

/// The parts of a line before and after the items of a list, which is a third of the line and slow to parse; `None`
/// where the line has no such list. A string cannot be mistaken for the key, since quotes within strings are escaped.
fn without<'a>(line: &'a [u8], list: &str) -> Option<[&'a [u8]; 2]> {
    let key = format!("\"{list}\":[");
    let mut places = line.windows(key.len());
    let begin = places.position(|at| at == key.as_bytes())? + key.len();
    let end = begin + end_of_list(&line[begin..])?;
    Some([&line[..begin], &line[end..]])
}

/// The offset of the bracket that closes a list; `bytes` begins behind the one that opens it.
fn end_of_list(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 1);
    loop {
        match bytes.get(at)? {
            b'"' => at = end_of_text(bytes, at + 1)?,
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at),
            b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// The offset of the quote that closes a string; `at` is behind the one that opens it.
fn end_of_text(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A time of the sample that is negative, with its name, seconds.
fn negative_time(sample: &Sample) -> Option<(&'static str, f64)> {
    let windows = sample.loads.iter().flat_map(|load| {
        [
            ("seconds", load.seconds),
            ("client_seconds", load.client_seconds),
        ]
    });
    [("started_s", sample.started_s), ("took_s", sample.took_s)]
        .into_iter()
        .chain(windows)
        .find(|(_, seconds)| *seconds < 0.0)
}

/// The error's text without serde's `at line 1 column n`: the caller knows the line in the file.
fn reason_alone(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at line ").unwrap_or(text.len());
    format!("{} (column {})", &text[..end], error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_left_out_whatever_stands_in_it() {
        let of = |line: &str| {
            without(line.as_bytes(), "devices")
                .map(|left| String::from_utf8(left.concat()).expect("text"))
        };
        let line =
            r#"{"why":"\"devices\":[1]","devices":[{"name":"]\\\"]","of":[[],[1]]}],"loads":[2]}"#;
        let left = r#"{"why":"\"devices\":[1]","devices":[],"loads":[2]}"#;
        assert_eq!(of(line).as_deref(), Some(left));
        assert_eq!(of(r#"{"loads":[]}"#), None);
        assert_eq!(of(r#"{"devices":[{"name":"a"#), None);
    }
}
