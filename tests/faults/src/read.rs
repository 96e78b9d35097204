//! Files to faults.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fault::Fault;
use crate::rules;

/// What is wrong with a file: it is named, and so is the key.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// It cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// Which file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no YAML, has a key that is not known, lacks one, or has one of another kind.
    #[error("{}: {message}", file.display())]
    Form {
        /// Which file.
        file: PathBuf,
        /// With line, column and key.
        message: String,
    },
    /// What it says does not fit together.
    #[error("{}: `{key}`: {message}", file.display())]
    Sense {
        /// Which file.
        file: PathBuf,
        /// As it is written from the file's top: `wires[1].ends`.
        key: String,
        /// What is wrong, and what to write.
        message: String,
    },
}

/// Where the catalogue is in the source tree.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("catalogue")
}

/// Every file of the catalogue, by name.
///
/// # Errors
/// The first file that is wrong.
pub fn catalogue() -> Result<Vec<Fault>, FaultError> {
    let directory = directory();
    let failed = |source| FaultError::Read {
        file: directory.clone(),
        source,
    };
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

/// Reads one file.
///
/// # Errors
/// Names the file, and the key that is wrong.
pub fn read(file: &Path) -> Result<Fault, FaultError> {
    let text = fs::read_to_string(file).map_err(|source| FaultError::Read {
        file: file.to_owned(),
        source,
    })?;
    parse(file, &text)
}

pub(crate) fn parse(file: &Path, text: &str) -> Result<Fault, FaultError> {
    let mut fault: Fault = serde_saphyr::from_str(text).map_err(|error| FaultError::Form {
        file: file.to_owned(),
        message: error.to_string(),
    })?;
    let name = file.file_stem().unwrap_or_default();
    fault.name = name.to_string_lossy().into_owned();
    rules::hold(&fault).map_err(|(key, message)| FaultError::Sense {
        file: file.to_owned(),
        key,
        message,
    })?;
    Ok(fault)
}

#[cfg(test)]
mod tests;
