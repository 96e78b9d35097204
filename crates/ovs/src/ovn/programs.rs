//! OVN's programs on this machine.

use std::path::{Path, PathBuf};

use crate::error::{Error, OVN_PACKAGES};
use crate::programs::{program, version_of};

/// Directories where packages and `make install` put the databases' schemas.
const SCHEMAS: [&str; 2] = ["/usr/share/ovn", "/usr/local/share/ovn"];

/// Programs and schemas of OVN, used with those of Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OvnPrograms {
    pub(crate) northd: PathBuf,
    pub(crate) controller: PathBuf,
    pub(crate) northbound: PathBuf,
    pub(crate) southbound: PathBuf,
}

impl OvnPrograms {
    /// Looks for the programs in the PATH and where packages put them.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] with the first program or file that is missing.
    pub fn find() -> Result<Self, Error> {
        Ok(Self {
            northd: program("ovn-northd", OVN_PACKAGES)?,
            controller: program("ovn-controller", OVN_PACKAGES)?,
            northbound: schema("ovn-nb.ovsschema")?,
            southbound: schema("ovn-sb.ovsschema")?,
        })
    }

    /// The version of ovn-controller as it reports it, such as `23.03.1`.
    ///
    /// # Errors
    /// Where it cannot be started or reports no version.
    pub fn version(&self) -> Result<String, Error> {
        version_of(&self.controller)
    }
}

fn schema(name: &str) -> Result<PathBuf, Error> {
    let mut places = SCHEMAS
        .iter()
        .map(|directory| Path::new(directory).join(name));
    let found = places.find(|path| path.exists());
    found.ok_or_else(|| Error::NotInstalled {
        missing: Path::new(SCHEMAS[0]).join(name).display().to_string(),
        package: OVN_PACKAGES,
    })
}
