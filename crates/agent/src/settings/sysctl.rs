//! Sysctls by name: reading and writing.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::SettingsTarget;
use super::error::SysctlError;

pub(super) fn read(target: &SettingsTarget, name: &str) -> Result<String, SysctlError> {
    match fs::read_to_string(path(name)?) {
        Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(target, name)),
        Err(source) => Err(SysctlError::Unreadable {
            name: name.to_owned(),
            source,
        }),
    }
}

/// Writes the value in one call, as /proc/sys requires, and reads it back.
pub(super) fn write(target: &SettingsTarget, name: &str, value: &str) -> Result<(), SysctlError> {
    let path = path(name)?;
    let written = OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()));
    written.map_err(|error| refused(target, name, value, error))?;
    let found = read(target, name)?;
    if is_same(value, &found) {
        return Ok(());
    }
    Err(SysctlError::ReadBack {
        name: name.to_owned(),
        value: value.to_owned(),
        found,
    })
}

/// Checks that a sysctl exists and may be written, without writing.
pub(super) fn check(target: &SettingsTarget, name: &str) -> Result<(), SysctlError> {
    read(target, name)?;
    let opened = OpenOptions::new().write(true).open(path(name)?);
    let opened = opened.map_err(|error| refused(target, name, "", error));
    opened.map(drop)
}

fn missing(target: &SettingsTarget, name: &str) -> SysctlError {
    if target.is_lab() {
        SysctlError::MissingInLab(name.to_owned())
    } else {
        SysctlError::MissingHere(name.to_owned())
    }
}

fn refused(target: &SettingsTarget, name: &str, value: &str, source: io::Error) -> SysctlError {
    let kind = source.kind();
    let (name, value) = (name.to_owned(), value.to_owned());
    match kind {
        ErrorKind::NotFound => missing(target, &name),
        ErrorKind::PermissionDenied if !target.is_lab() => SysctlError::NeedsRoot { name, source },
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            SysctlError::NotOfLab { name, source }
        }
        ErrorKind::InvalidInput => SysctlError::Value {
            name,
            value,
            source,
        },
        _ => SysctlError::NotWritten {
            name,
            value,
            source,
        },
    }
}

/// Path of a sysctl's file. As in sysctl(8): where the first separator is a slash, dots are kept, so that names of
/// devices may contain dots; else dots and slashes are swapped.
///
/// # Errors
/// A name that leads elsewhere than below /proc/sys.
pub(super) fn path(name: &str) -> Result<PathBuf, SysctlError> {
    let slashes_first = name
        .find(['.', '/'])
        .is_some_and(|at| name[at..].starts_with('/'));
    let below = if slashes_first {
        name.to_owned()
    } else {
        let swapped = name.chars().map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        });
        swapped.collect()
    };
    if below.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(SysctlError::NoName(name.to_owned()));
    }
    Ok(Path::new("/proc/sys").join(below))
}

/// The per-device sysctls that the kernel sets along with one for all devices (net/ipv4/devinet.c,
/// `inet_forward_change`; net/ipv6/addrconf.c, `addrconf_forward_change`).
pub(super) fn dependent_sysctls(name: &str) -> Vec<String> {
    let plain = name.replace('.', "/");
    let version = match plain.as_str() {
        "net/ipv4/ip_forward" | "net/ipv4/conf/all/forwarding" => "ipv4",
        "net/ipv6/conf/all/forwarding" => "ipv6",
        _ => return Vec::new(),
    };
    let below = format!("net/{version}/conf");
    let devices = fs::read_dir(format!("/proc/sys/{below}"));
    let names = devices.into_iter().flatten().flatten();
    let devices = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|device| device != "all")
        .map(|device| format!("{below}/{device}/forwarding"));
    let redirects = (version == "ipv4").then(|| format!("{below}/all/accept_redirects"));
    redirects.into_iter().chain(devices).collect()
}

/// Whether two texts are the same value: tabs equal spaces, and `0x10` equals `16`.
fn is_same(wanted: &str, found: &str) -> bool {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse::<i128>().ok(),
    };
    let (mut wanted, mut found) = (wanted.split_whitespace(), found.split_whitespace());
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) => {
                let same = one == other || number(one).is_some_and(|n| number(other) == Some(n));
                if !same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;
    use wirecost_model::vary::is_sysctl;

    use super::*;

    #[test]
    fn names_become_files_as_sysctl_has_it() {
        let cases = [
            ("net.ipv4.tcp_sack", "/proc/sys/net/ipv4/tcp_sack"),
            (
                "net.ipv4.conf.eth0/7.mtu",
                "/proc/sys/net/ipv4/conf/eth0.7/mtu",
            ),
            (
                "net/ipv4/conf/eth0.7/mtu",
                "/proc/sys/net/ipv4/conf/eth0.7/mtu",
            ),
        ];
        for (name, file) in cases {
            assert_eq!(path(name).expect("a name"), PathBuf::from(file));
        }
    }

    #[test]
    fn no_other_file_is_read_or_written() {
        let target = SettingsTarget::Machine;
        for name in [
            "/proc/sys/kernel/hostname",
            "net/../kernel/hostname",
            "net.//.kernel.hostname",
            "net/ipv4//tcp_sack",
            "",
        ] {
            let refused = [
                read(&target, name).map(drop),
                check(&target, name),
                write(&target, name, "1"),
            ];
            for refused in refused {
                let error = refused.expect_err("no name").to_string();
                assert_eq!(error, format!("{name:?} is not the name of a sysctl"));
            }
        }
    }

    proptest! {
        #[test]
        fn no_name_leads_out_of_proc_sys(
            name in prop_oneof![any::<String>(), "([./]|net|eth0|\\.\\.){0,12}"],
        ) {
            let Ok(path) = path(&name) else {
                prop_assert!(!is_sysctl(&name), "{name:?}");
                return Ok(());
            };
            let mut below = path.strip_prefix("/proc/sys").expect("below it").components();
            prop_assert!(below.clone().count() > 0, "{name:?}");
            prop_assert!(below.all(|part| matches!(part, Component::Normal(_))), "{name:?}");
        }
    }

    #[test]
    fn values_are_compared_as_values() {
        assert!(is_same("4096 87380 6291456", "4096\t87380\t6291456"));
        assert!(is_same("0x10", "16"));
        assert!(is_same("cubic", "cubic"));
        assert!(!is_same("1", "10"));
        assert!(!is_same("1 2", "1"));
    }
}
