//! The run directory: created before the first sample, gets one line per sample, and is completed at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use wirecost_model::metric::SampleWithFigures;
use wirecost_model::plan::Cores;
use wirecost_model::record::{RunEnd, RunHead, file};
use wirecost_model::sample::Sample;

/// The run directory could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory exists already.
    #[error("{0} exists already: a run never writes over another; name a new directory with --out")]
    Exists(PathBuf),
    /// A file or directory could not be written.
    #[error("writing {path}: {source}{}", advice(source))]
    Write {
        /// The file or directory that could not be written.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": make room, or name another place with --out"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": name a directory you may write to with --out"
        }
        _ => ": name another place with --out",
    }
}

/// Refuses an existing path, a dangling symbolic link included: a run never overwrites anything.
pub(crate) fn refuse_existing(out: Option<&Path>) -> Result<(), DirectoryError> {
    match out {
        Some(out) if fs::symlink_metadata(out).is_ok() => {
            Err(DirectoryError::Exists(out.to_owned()))
        }
        _ => Ok(()),
    }
}

/// A run directory that is being written.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    samples: File,
    /// Length of the complete samples in the file, bytes.
    length: u64,
    /// Whether the hosts' cores are split or shared, which decides the samples' figures.
    cores: Cores,
}

impl Directory {
    /// Creates the directory, which must not exist, and writes what is known before the first sample.
    pub(crate) fn create(path: &Path, head: &RunHead, plan: &str) -> Result<Self, DirectoryError> {
        let at = |source| DirectoryError::Write {
            path: path.to_owned(),
            source,
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(at)?;
        }
        fs::create_dir(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => DirectoryError::Exists(path.to_owned()),
            _ => at(source),
        })?;
        Self::fill(path, head, plan).inspect_err(|_| {
            // The directory is new, and useless without run.json.
            let _ = fs::remove_dir_all(path);
        })
    }

    fn fill(path: &Path, head: &RunHead, plan: &str) -> Result<Self, DirectoryError> {
        write_json(&path.join(file::RUN), head)?;
        let plan_path = path.join(file::PLAN);
        fs::write(&plan_path, plan).map_err(|source| DirectoryError::Write {
            path: plan_path,
            source,
        })?;
        let samples_path = path.join(file::SAMPLES);
        let samples = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&samples_path)
            .map_err(|source| DirectoryError::Write {
                path: samples_path,
                source,
            })?;
        Ok(Self {
            path: path.to_owned(),
            samples,
            length: 0,
            cores: head.experiment.plan.cores,
        })
    }

    /// Creates a directory `stem` under `parent`, with a number appended where that name is taken.
    pub(crate) fn create_in(
        parent: &Path,
        stem: &str,
        head: &RunHead,
        plan: &str,
    ) -> Result<Self, DirectoryError> {
        let mut last = parent.join(stem);
        for attempt in 1..=100 {
            let name = if attempt == 1 {
                stem.to_owned()
            } else {
                format!("{stem}-{attempt}")
            };
            last = parent.join(name);
            match Self::create(&last, head, plan) {
                Err(DirectoryError::Exists(_)) => {}
                result => return result,
            }
        }
        Err(DirectoryError::Exists(last))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one sample in a single write: afterwards, killing this process does not lose the sample. Where the file
    /// system writes only part of the line, the file is truncated to the complete samples.
    pub(crate) fn append(&mut self, sample: &Sample) -> Result<(), DirectoryError> {
        let at = |source| DirectoryError::Write {
            path: self.path.join(file::SAMPLES),
            source,
        };
        let line = SampleWithFigures::of(sample, self.cores);
        let mut line = serde_json::to_vec(&line).map_err(|error| at(error.into()))?;
        line.push(b'\n');
        self.samples.write_all(&line).map_err(|source| {
            let _ = self.samples.set_len(self.length);
            at(source)
        })?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Syncs the samples to disk and writes how the run ended.
    pub(crate) fn close(self, end: &RunEnd) -> Result<(), DirectoryError> {
        let path = self.path.join(file::SAMPLES);
        self.samples
            .sync_all()
            .map_err(|source| DirectoryError::Write { path, source })?;
        write_json(&self.path.join(file::END), end)
    }
}

/// Writes a JSON file under another name and renames it, so that a reader sees all of it or nothing.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), DirectoryError> {
    let at = |source| DirectoryError::Write {
        path: path.to_owned(),
        source,
    };
    let mut bytes = serde_json::to_vec_pretty(value).map_err(|error| at(error.into()))?;
    bytes.push(b'\n');
    let beside = path.with_extension("json.new");
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&beside);
        at(source)
    })
}
