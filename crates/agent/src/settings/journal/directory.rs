//! The directory of the journals: the machine's own for root, below the home directory for other users.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Directory of root's journals.
const OF_ROOT: &str = "/var/lib/wirecost/journal";
/// Directories of a user's journals, below `XDG_STATE_HOME` and below the home directory.
const OF_USER: [&str; 2] = ["wirecost/journal", ".local/state/wirecost/journal"];

/// Directory of the journals of the calling process's user; it need not exist.
///
/// # Errors
/// The environment of a user other than root names no directory. The user database is not read: a static program must
/// not use NSS (.cargo/config.toml).
pub(super) fn find() -> io::Result<PathBuf> {
    if nix::unistd::geteuid().is_root() {
        return Ok(PathBuf::from(OF_ROOT));
    }
    of_user(["XDG_STATE_HOME", "HOME"].map(std::env::var_os))
}

/// The directory by the values of `XDG_STATE_HOME` and `HOME`. A relative path is none: the program that undoes may be
/// started in another directory.
fn of_user(variables: [Option<OsString>; 2]) -> io::Result<PathBuf> {
    let mut all = variables.into_iter().zip(OF_USER);
    let found = all.find_map(|(base, below)| {
        let base = base?;
        let base = Path::new(&base);
        base.is_absolute().then(|| base.join(below))
    });
    found.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "neither HOME nor XDG_STATE_HOME is set to an absolute path, below which a user's journals are: set HOME \
             to the home directory of the user on this host",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(state: Option<&str>, home: Option<&str>) -> io::Result<PathBuf> {
        of_user([state, home].map(|value| value.map(OsString::from)))
    }

    #[test]
    fn an_absolute_state_directory_comes_before_the_home_directory() {
        let home = Path::new("/home/u/.local/state/wirecost/journal");
        assert_eq!(of(None, Some("/home/u")).unwrap(), home);
        assert_eq!(of(Some("state"), Some("/home/u")).unwrap(), home);
        let state = of(Some("/state"), Some("/home/u")).unwrap();
        assert_eq!(state, Path::new("/state/wirecost/journal"));
    }

    #[test]
    fn without_an_absolute_path_there_is_no_directory_and_the_error_says_what_to_set() {
        for (state, home) in [(None, None), (Some("state"), Some("")), (None, Some("u"))] {
            let error = of(state, home).unwrap_err().to_string();
            assert!(error.contains("set HOME"), "{error}");
        }
    }
}
