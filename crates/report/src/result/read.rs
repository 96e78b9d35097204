//! Reads a run directory and checks it.

mod samples;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use wirecost_model::record::{Outcome, Run, RunEnd, RunHead, StopReason, VERSION, file};
use wirecost_model::sample::Sample;

use crate::result::memory;

/// The list of a sample that no result needs: the devices as they were read back.
pub(crate) const DEVICES: Option<&str> = Some("devices");

/// A run as it was read, with the oddities of its record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRun {
    /// The run.
    pub run: Run,
    /// Oddities of the record, in words, such as what a killed run leaves incomplete. The run can still be used.
    pub warnings: Vec<String>,
    /// The plan as the user wrote it; `None` where the directory has no copy.
    pub plan_text: Option<String>,
}

/// Why a run directory cannot be used. The text says what to do.
#[derive(Debug, Error)]
pub enum ReadError {
    /// No such directory.
    #[error("there is no directory {}: give the run directory that `wirecost run` named at its end", .0.display())]
    NoDirectory(PathBuf),
    /// The directory is not a run directory.
    #[error("{} is not a run directory, because it has no {}: give the directory that `wirecost run` named at its end", dir.display(), file::RUN)]
    NotARun {
        /// The directory.
        dir: PathBuf,
    },
    /// The run came to its end, but its samples are missing.
    #[error("{} is missing although the run came to its end: the directory was not copied whole", .0.display())]
    NoSamples(PathBuf),
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The record has more samples than there is memory for.
    #[error("{} has {:.2} GB, and a result of it needs up to {:.2} GB of memory, of which {:.2} GB are free: end other programs, raise the limit (ulimit -v, memory.max of the control group), or copy the run directory to a machine with more", path.display(), gigabytes(*bytes), gigabytes(*needed), gigabytes(*available))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Size of the file, bytes.
        bytes: u64,
        /// Upper bound of the memory that its result needs, bytes.
        needed: u64,
        /// Memory that is available, bytes.
        available: u64,
    },
    /// The file is not a document of `wirecost load --json` that this program can read.
    #[error("{} is no document of a load by hand ({reason}): give what `wirecost load --json` of this version or an earlier one printed", path.display())]
    NotALoad {
        /// The file.
        path: PathBuf,
        /// What is wrong with the document.
        reason: String,
    },
    /// The record was written by a newer program.
    #[error("{} has record version {found}, and this program reads up to version {known}: use the program that made the run (it says {program}) or a newer one", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The record's version.
        found: u32,
        /// This program's [`VERSION`].
        known: u32,
        /// The version of the program that wrote the record; may be empty.
        program: String,
    },
    /// The record's version is 0; versions begin with 1.
    #[error("{} has record version {found}, which no program has written: the record was changed or damaged after it was written", path.display())]
    NoVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
    },
    /// The file holds something that a run does not write.
    #[error("{}, line {line}: {reason}: the record was changed or damaged after it was written", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
}

/// Reads a run directory.
///
/// What a kill can leave is tolerated, with a warning: an incomplete last line of `samples.jsonl`,
/// no `samples.jsonl` yet, an incomplete `end.json`. No `end.json` at all is `end: None`.
///
/// # Errors
/// No such directory or file; a record version of 0 or above [`VERSION`]; anything that a run does not
/// write: another unreadable line, a sample of a cell that the experiment does not have, two
/// samples of one cell in one round, a negative time.
pub fn read(dir: &Path) -> Result<RecordedRun, ReadError> {
    let (mut reading, samples) = read_into(dir, None, |_| Vec::new(), Vec::push)?;
    reading.run.samples = samples;
    Ok(reading)
}

fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// Refuses a record whose result will not fit into memory.
///
/// # Errors
/// [`ReadError::TooLarge`].
pub(crate) fn check_memory(dir: &Path) -> Result<(), ReadError> {
    let path = dir.join(file::SAMPLES);
    // Reading says what is missing.
    let Ok(bytes) = fs::metadata(&path).map(|there| there.len()) else {
        return Ok(());
    };
    let needed = memory::needed(bytes);
    match wirecost_sys::memory::available() {
        Some(available) if available < needed => Err(ReadError::TooLarge {
            path,
            bytes,
            needed,
            available,
        }),
        _ => Ok(()),
    }
}

/// Reads a run directory without keeping its samples: each is passed to `add`, together with what `begin` made of the
/// run's head. The list `skip` of each sample is not read, and is empty.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_into<T>(
    dir: &Path,
    skip: Option<&str>,
    begin: impl FnOnce(&RunHead) -> T,
    mut add: impl FnMut(&mut T, Sample),
) -> Result<(RecordedRun, T), ReadError> {
    if !dir.is_dir() {
        return Err(ReadError::NoDirectory(dir.into()));
    }
    let mut warnings = Vec::new();
    let head = head(dir)?;
    let end = end(dir, &mut warnings)?;
    let path = dir.join(file::SAMPLES);
    let mut all = begin(&head);
    let mut rounds = 0;
    let samples = match regular(&path)? {
        Some(file) => samples::read(
            &path,
            file,
            &head.experiment,
            &mut warnings,
            skip,
            |sample| {
                rounds = sample.round.saturating_add(1).max(rounds);
                add(&mut all, sample);
            },
        )?,
        None if end.is_some() => return Err(ReadError::NoSamples(path)),
        None => {
            warnings.push(format!(
                "there is no {}: the run was ended before its first sample",
                file::SAMPLES
            ));
            0
        }
    };
    warnings.extend(missing(&head, end.as_ref(), samples, rounds));
    let plan_text = bytes(&dir.join(file::PLAN))?;
    let reading = RecordedRun {
        run: Run {
            head,
            samples: Vec::new(),
            end,
        },
        warnings,
        plan_text: plan_text.map(|text| String::from_utf8_lossy(&text).into_owned()),
    };
    Ok((reading, all))
}

/// A warning where a run that is complete by its `end.json` lacks samples. The last sample is of round `rounds`,
/// counted from 1.
fn missing(head: &RunHead, end: Option<&RunEnd>, samples: usize, rounds: u32) -> Option<String> {
    let end = end.filter(|end| end.outcome == Outcome::Complete)?;
    let experiment = &head.experiment;
    let repeat = &experiment.plan.repeat;
    let begun = match end.until {
        None => repeat.rounds,
        // The rule ends a run behind a whole round. Where all is known before the last one, only the samples tell
        // which.
        Some(until) if until.why == StopReason::Known => {
            rounds.max(repeat.until.map_or(1, |until| until.min_rounds))
        }
        Some(until) => until.ends_at,
    };
    let planned = u64::from(begun) * u64::from(experiment.samples_a_round());
    ((samples as u64) < planned).then(|| {
        format!(
            "{} holds {samples} of {planned} samples although the run came to its end: the record was \
             changed, or not copied whole",
            file::SAMPLES
        )
    })
}

/// Opens a regular file; `None` where there is no such file.
fn regular(path: &Path) -> Result<Option<File>, ReadError> {
    // Reading a pipe would block for as long as it has a writer.
    let regular = || {
        if fs::metadata(path)?.is_file() {
            File::open(path)
        } else {
            Err(io::Error::other("it is no regular file"))
        }
    };
    match regular() {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unreadable(path, source)),
    }
}

fn unreadable(path: &Path, source: io::Error) -> ReadError {
    ReadError::Io {
        path: path.into(),
        source,
    }
}

/// A file's bytes, `None` where there is no such file.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let Some(mut file) = regular(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes);
    read.map_err(|source| unreadable(path, source))?;
    Ok(Some(bytes))
}

fn damaged(path: &Path, error: &serde_json::Error) -> ReadError {
    ReadError::Damaged {
        path: path.into(),
        line: error.line(),
        reason: error.to_string(),
    }
}

fn head(dir: &Path) -> Result<RunHead, ReadError> {
    /// The fields that every version of the record has.
    #[derive(Deserialize)]
    struct AnyVersion {
        record_version: u32,
        #[serde(default)]
        program_version: String,
    }

    let path = dir.join(file::RUN);
    let text = bytes(&path)?.ok_or_else(|| ReadError::NotARun { dir: dir.into() })?;
    let any: AnyVersion = serde_json::from_slice(&text).map_err(|e| damaged(&path, &e))?;
    if any.record_version > VERSION {
        return Err(ReadError::NewerVersion {
            path,
            found: any.record_version,
            known: VERSION,
            program: any.program_version,
        });
    }
    if any.record_version == 0 {
        return Err(ReadError::NoVersion {
            path,
            found: any.record_version,
        });
    }
    serde_json::from_slice(&text).map_err(|e| damaged(&path, &e))
}

fn end(dir: &Path, warnings: &mut Vec<String>) -> Result<Option<RunEnd>, ReadError> {
    let path = dir.join(file::END);
    let Some(text) = bytes(&path)? else {
        return Ok(None);
    };
    match serde_json::from_slice(&text) {
        Ok(end) => Ok(Some(end)),
        Err(error) if error.is_eof() => {
            warnings.push(format!(
                "{} is incomplete: the run was killed, or its disk was full, while it was written",
                file::END
            ));
            Ok(None)
        }
        Err(error) => Err(damaged(&path, &error)),
    }
}
