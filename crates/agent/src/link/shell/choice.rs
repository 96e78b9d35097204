//! Chooses the program to run as the agent: one that is installed at the far end, or a copy.

/// What the far end reported about itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RemoteHost {
    pub(super) system: String,
    pub(super) machine: String,
    /// Whether it has gzip(1).
    pub(super) gunzips: bool,
    pub(super) programs: Vec<Installed>,
}

/// An installed program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Installed {
    /// Number of the program in the script.
    pub(super) number: u8,
    /// SHA-256 of the file in hexadecimal; `-` where the host has no sha256sum.
    pub(super) sha256: String,
    /// Output of `--version`.
    pub(super) version: String,
}

/// The program to run as the agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Installed(u8),
    Copy,
}

/// The same program where it is installed, else a copy that can run there, else an installed one of the same version.
/// `ours` is the hash of the program that can be copied.
pub(super) fn choose(found: &RemoteHost, ours: Option<&str>) -> Result<Choice, String> {
    let same = |installed: &&Installed| Some(installed.sha256.as_str()) == ours;
    if let Some(installed) = found.programs.iter().find(same) {
        return Ok(Choice::Installed(installed.number));
    }
    let version = concat!("wirecost ", env!("CARGO_PKG_VERSION"));
    let of_version = found
        .programs
        .iter()
        .find(|program| program.version == version);
    let runs_there = found.system == "Linux" && ours.is_some();
    match of_version {
        // Without sha256sum a copy cannot be verified either.
        Some(program) if !runs_there || program.sha256 == "-" => {
            Ok(Choice::Installed(program.number))
        }
        _ if runs_there => Ok(Choice::Copy),
        _ => {
            let (system, machine) = (&found.system, &found.machine);
            let there: Vec<&str> = found
                .programs
                .iter()
                .map(|program| program.version.as_str())
                .collect();
            let there = if there.is_empty() {
                "there is no wirecost".to_owned()
            } else {
                format!("there is {}", there.join(" and "))
            };
            let arch = std::env::consts::ARCH;
            Err(format!(
                "it is {system} {machine}, where this program (Linux {arch}) cannot run, and {there}: install \
                 {version} for {machine} on it, in the PATH of the user, or name one here: --agent-binary \
                 {machine}=PATH"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(machine: &str, programs: &[(&str, &str)]) -> RemoteHost {
        let program = |(number, (sha256, version)): (u8, &(&str, &str))| Installed {
            number,
            sha256: (*sha256).to_owned(),
            version: (*version).to_owned(),
        };
        RemoteHost {
            system: "Linux".to_owned(),
            machine: machine.to_owned(),
            gunzips: true,
            programs: (1..).zip(programs).map(program).collect(),
        }
    }

    const OURS: &str = concat!("wirecost ", env!("CARGO_PKG_VERSION"));

    #[test]
    fn the_same_program_is_used_and_anything_else_is_replaced_by_a_copy() {
        let choose = |found: &RemoteHost| choose(found, Some("aa"));
        let there = found("x86_64", &[("bb", OURS), ("aa", OURS)]);
        assert_eq!(choose(&there), Ok(Choice::Installed(2)));
        assert_eq!(choose(&found("x86_64", &[])), Ok(Choice::Copy));
        assert_eq!(choose(&found("x86_64", &[("bb", OURS)])), Ok(Choice::Copy));
        assert_eq!(
            choose(&found("x86_64", &[("-", OURS)])),
            Ok(Choice::Installed(1))
        );
    }

    #[test]
    fn another_architecture_needs_the_same_version_there() {
        let choose = |found: &RemoteHost| choose(found, None);
        let there = found("aarch64", &[("bb", "wirecost 0.0.1"), ("cc", OURS)]);
        assert_eq!(choose(&there), Ok(Choice::Installed(2)));
        let none = choose(&found("aarch64", &[])).expect_err("no program");
        assert!(none.contains("Linux aarch64") && none.contains("there is no wirecost"));
        assert!(
            none.contains(&format!("install {OURS} for aarch64")),
            "{none}"
        );
        let old = choose(&found("aarch64", &[("bb", "wirecost 0.0.1")])).expect_err("older");
        assert!(old.contains("there is wirecost 0.0.1"), "{old}");
    }
}
