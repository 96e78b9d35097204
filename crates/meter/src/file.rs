//! A file under /proc that is read repeatedly.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{MeterError, ParseError};

/// An open file and its buffer. A read at offset 0 makes the kernel generate the text again (fs/seq_file.c), so the
/// path is looked up once and the buffer allocated once.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, MeterError> {
        let path = path.into();
        match File::open(&path) {
            Ok(file) => Ok(Self {
                path,
                file,
                buffer: vec![0; 8192],
            }),
            Err(cause) => Err(MeterError::Read { path, cause }),
        }
    }

    /// As [`Self::open`], but a file that does not exist is `None`.
    pub(crate) fn open_if_there(path: impl Into<PathBuf>) -> Result<Option<Self>, MeterError> {
        match Self::open(path) {
            Err(MeterError::Read { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Reads the file from its beginning and parses the text.
    pub(crate) fn read<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<T, MeterError> {
        let length = self.fill().map_err(|cause| MeterError::Read {
            path: self.path.clone(),
            cause,
        })?;
        // A device's name need not be UTF-8; everything else is ASCII.
        let text: Cow<'_, str> = String::from_utf8_lossy(&self.buffer[..length]);
        parse(&text).map_err(|cause| MeterError::Format {
            path: self.path.clone(),
            cause,
        })
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(length),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads a whole file once.
pub(crate) fn read_once(path: impl AsRef<Path>) -> Result<String, MeterError> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|cause| MeterError::Read {
        path: path.to_owned(),
        cause,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_each_time() {
        let mut file = ProcFile::open("/proc/uptime").expect("uptime");
        let mut read = || file.read(|text| Ok(text.to_owned())).expect("text");
        let first = read();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert_ne!(first, read());
    }

    #[test]
    fn a_file_larger_than_the_buffer_is_read_whole() {
        let mut file = ProcFile::open("/proc/kallsyms").expect("kallsyms");
        let length = file.read(|text| Ok(text.len())).expect("text");
        assert!(length > 8192, "{length}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = ProcFile::open("/proc/net/nothing").expect_err("missing");
        assert!(
            error
                .to_string()
                .starts_with("cannot read /proc/net/nothing: "),
            "{error}"
        );
        assert!(matches!(
            ProcFile::open_if_there("/proc/net/nothing"),
            Ok(None)
        ));
    }
}
