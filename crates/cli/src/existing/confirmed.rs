//! Pairs of hosts whose load the user has confirmed before, kept in a state file of the user.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use wirecost_model::plan::HostPair;

use crate::screen;

/// The pairs, each as a line of JSON: the addresses of both hosts in alphabetical order.
#[derive(Debug, Default)]
pub(super) struct Confirmed {
    /// The file; `None`: there is no state directory, and nothing is remembered.
    file: Option<PathBuf>,
    lines: BTreeSet<String>,
}

impl Confirmed {
    /// Reads `wirecost/confirmed-hosts` in `$XDG_STATE_HOME` or `~/.local/state`; no pairs where it cannot be read.
    pub(super) fn read() -> Self {
        let absolute = |name| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| Some(absolute("HOME")?.join(".local").join("state")));
        Self::of(state.map(|state| state.join("wirecost").join("confirmed-hosts")))
    }

    fn of(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let lines = text.unwrap_or_default();
        Self {
            lines: lines.lines().map(str::to_owned).collect(),
            file,
        }
    }

    pub(super) fn has(&self, pair: &HostPair) -> bool {
        self.lines.contains(&line(pair))
    }

    /// Adds pairs. Where the file cannot be written, prints a message; the next run asks again.
    pub(super) fn add(&mut self, pairs: &[&HostPair]) {
        let Some(file) = &self.file else { return };
        let new: Vec<String> = pairs
            .iter()
            .map(|pair| line(pair))
            .filter(|line| !self.lines.contains(line))
            .collect();
        if let Err(error) = keep(file, &new) {
            let file = file.display();
            screen::print_stderr(&format!(
                "wirecost: {file}: {error}: the next run asks again"
            ));
        }
        self.lines.extend(new);
    }
}

fn keep(file: &std::path::Path, lines: &[String]) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(file)?;
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    file.write_all(text.as_bytes())
}

fn line(pair: &HostPair) -> String {
    let mut hosts = [pair.a.to_string(), pair.b.to_string()];
    hosts.sort_unstable();
    serde_json::to_string(&hosts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_known_once_it_was_confirmed_in_either_order() {
        let directory =
            std::env::temp_dir().join(format!("wctest-confirmed-{}", std::process::id()));
        let file = directory.join("wirecost").join("confirmed-hosts");
        let pair = |a: &str, b: &str| HostPair {
            a: a.parse().expect("a host"),
            b: b.parse().expect("a host"),
        };
        let (one, back) = (pair("ssh:db1", "exec:a b"), pair("exec:a b", "ssh:db1"));
        let mut confirmed = Confirmed::of(Some(file.clone()));
        assert!(!confirmed.has(&one));
        confirmed.add(&[&one]);
        let later = Confirmed::of(Some(file));
        assert!(later.has(&one) && later.has(&back));
        assert!(!later.has(&pair("ssh:db1=10.0.0.1", "exec:a b")));
        fs::remove_dir_all(&directory).expect("removed");
    }
}
