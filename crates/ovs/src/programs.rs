//! Open vSwitch's programs on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, PACKAGE};

/// Directories of daemons, also for a user whose PATH does not contain them.
const DAEMONS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"];
/// Paths where packages and `make install` put the database's schema.
const SCHEMAS: [&str; 2] = [
    "/usr/share/openvswitch/vswitch.ovsschema",
    "/usr/local/share/openvswitch/vswitch.ovsschema",
];

/// Programs and schema that a switch is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    pub(crate) database_tool: PathBuf,
    pub(crate) database_server: PathBuf,
    pub(crate) switch: PathBuf,
    /// ovs-ofctl, used for Geneve options only.
    pub(crate) openflow: PathBuf,
    pub(crate) schema: PathBuf,
}

impl Programs {
    /// Looks for the programs in the PATH and where packages put them.
    ///
    /// # Errors
    /// [`Error::NotInstalled`] with the first program or file that is missing.
    pub fn find() -> Result<Self, Error> {
        let schema = SCHEMAS.iter().map(PathBuf::from).find(|path| path.exists());
        Ok(Self {
            switch: program("ovs-vswitchd", PACKAGE)?,
            database_server: program("ovsdb-server", PACKAGE)?,
            database_tool: program("ovsdb-tool", PACKAGE)?,
            openflow: program("ovs-ofctl", PACKAGE)?,
            schema: schema.ok_or_else(|| Error::NotInstalled {
                missing: SCHEMAS[0].to_owned(),
                package: PACKAGE,
            })?,
        })
    }

    /// The version of the switch as it reports it, such as `3.1.0`.
    ///
    /// # Errors
    /// Where it cannot be started or reports no version.
    pub fn version(&self) -> Result<String, Error> {
        version_of(&self.switch)
    }
}

/// Version that a program reports.
pub(crate) fn version_of(program: &Path) -> Result<String, Error> {
    let failed = |problem: String| Error::Program {
        program: program.to_owned(),
        problem,
        log: String::new(),
    };
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    version(&text).ok_or_else(|| failed("does not tell its version".to_owned()))
}

/// Looks for a program of a package in the PATH and where packages put it.
pub(crate) fn program(name: &str, package: &'static str) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .chain(DAEMONS.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|file| is_program(file));
    found.ok_or_else(|| Error::NotInstalled {
        missing: name.to_owned(),
        package,
    })
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata();
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Version in the first line of a text such as `ovs-vswitchd (Open vSwitch) 3.1.0`.
fn version(text: &str) -> Option<String> {
    let word = text.lines().next()?.split_whitespace().next_back()?;
    let number = word.starts_with(|c: char| c.is_ascii_digit());
    number.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_last_word_of_the_first_line() {
        let text = "ovs-vswitchd (Open vSwitch) 3.1.0\nDPDK 22.11\n";
        assert_eq!(version(text).as_deref(), Some("3.1.0"));
        assert_eq!(version("usage: ovs-vswitchd\n"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn what_is_missing_is_named_with_the_package() {
        let error = program("no-such-switch", PACKAGE)
            .expect_err("missing")
            .to_string();
        assert!(error.contains("there is no no-such-switch"), "{error}");
        assert!(
            error.contains("apt-get install openvswitch-switch"),
            "{error}"
        );
    }
}
