//! Randomness from the kernel (random(4)).

use std::fs::File;
use std::io::{self, Read};

use wirecost_agent::link::{Link, LinkError};
use wirecost_agent::protocol::Secret;

/// 128 random bits.
///
/// # Errors
/// Where /dev/urandom cannot be read.
pub(crate) fn bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// 128 random bits for a request to the host of `link`, which errors name.
///
/// # Errors
/// [`LinkError::Start`], where /dev/urandom cannot be read.
pub(crate) fn bytes_for(link: &Link) -> Result<[u8; 16], LinkError> {
    bytes().map_err(|error| LinkError::Start {
        host: link.host().to_owned(),
        source: io::Error::new(error.kind(), format!("reading /dev/urandom: {error}")),
    })
}

/// A secret for the probes of one check or lab and for their acknowledgements.
///
/// # Errors
/// As [`bytes_for`].
pub(crate) fn secret(link: &Link) -> Result<Secret, LinkError> {
    let (probe, other) = (bytes_for(link)?, bytes_for(link)?);
    let mut acknowledgement = [0; 8];
    acknowledgement.copy_from_slice(&other[..8]);
    Ok(Secret {
        probe,
        acknowledgement,
    })
}
