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

/// No program of this version is installed at the far end, and none that could be copied runs there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is {system} {machine}, where this program (Linux {}) cannot run, and {}: install {ours} for {machine} on it, in \
     the PATH of the user, or name one here: --agent-binary {machine}=PATH",
    std::env::consts::ARCH,
    named(installed),
    ours = OURS
)]
pub(super) struct NoProgram {
    system: String,
    machine: String,
    /// Output of `--version` of each installed program.
    installed: Vec<String>,
}

fn named(installed: &[String]) -> String {
    if installed.is_empty() {
        "there is no wirecost".to_owned()
    } else {
        format!("there is {}", installed.join(" and "))
    }
}

/// Output of this program's `--version`.
const OURS: &str = concat!("wirecost ", env!("CARGO_PKG_VERSION"));

/// The same program where it is installed, else a copy that can run there, else an installed one of the same version.
/// `ours` is the hash of the program that can be copied.
pub(super) fn choose(found: &RemoteHost, ours: Option<&str>) -> Result<Choice, NoProgram> {
    let same = |installed: &&Installed| Some(installed.sha256.as_str()) == ours;
    if let Some(installed) = found.programs.iter().find(same) {
        return Ok(Choice::Installed(installed.number));
    }
    let of_version = found
        .programs
        .iter()
        .find(|program| program.version == OURS);
    let runs_there = found.system == "Linux" && ours.is_some();
    match of_version {
        // Without sha256sum a copy cannot be verified either.
        Some(program) if !runs_there || program.sha256 == "-" => {
            Ok(Choice::Installed(program.number))
        }
        _ if runs_there => Ok(Choice::Copy),
        _ => {
            let versions = found.programs.iter().map(|program| &program.version);
            Err(NoProgram {
                system: found.system.clone(),
                machine: found.machine.clone(),
                installed: versions.cloned().collect(),
            })
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
        let none = choose(&found("aarch64", &[]))
            .expect_err("no program")
            .to_string();
        assert!(none.contains("Linux aarch64") && none.contains("there is no wirecost"));
        assert!(
            none.contains(&format!("install {OURS} for aarch64")),
            "{none}"
        );
        let old = choose(&found("aarch64", &[("bb", "wirecost 0.0.1")]))
            .expect_err("older")
            .to_string();
        assert!(old.contains("there is wirecost 0.0.1"), "{old}");
    }
}
