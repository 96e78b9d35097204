//! Secrets and seeds.

use std::fs::File;
use std::io::Read;

use crate::error::BenchError;

/// Random bytes of the kernel.
pub(crate) fn random() -> Result<[u8; 16], BenchError> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(BenchError::machine("reading /dev/urandom"))?;
    Ok(bytes)
}
