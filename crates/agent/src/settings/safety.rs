//! Sysctls that are refused: those that would change settings outside of the run, or could not be restored.

use std::fs;

use super::SettingsTarget;
use super::error::SysctlError;

/// Checks whether a sysctl may be set to a value.
///
/// # Errors
/// The sysctl may not be set; the message says why.
pub(super) fn check(target: &SettingsTarget, name: &str, value: &str) -> Result<(), SysctlError> {
    match target {
        SettingsTarget::Lab if !namespaces_are_safe() => {
            Err(SysctlError::OldKernel(name.to_owned()))
        }
        SettingsTarget::Existing { .. } if takes_addresses(name, value) => {
            Err(SysctlError::TakesAddresses(name.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Since Linux 5.13 a sysctl that is not per namespace is read-only in other namespaces (net/sysctl_net.c,
/// `ensure_safe_net_sysctl`): whatever can be written there affects that namespace only.
fn namespaces_are_safe() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    is_at_least(&release, (5, 13))
}

fn is_at_least(release: &str, least: (u32, u32)) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= least
}

/// Whether setting a sysctl removes IPv6 addresses, which setting it back does not restore.
fn takes_addresses(name: &str, value: &str) -> bool {
    name.replace('.', "/").ends_with("/disable_ipv6") && value.trim() != "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_keeps_namespaces_apart_is_told_by_its_release() {
        for (release, safe) in [
            ("6.18.44-fc", true),
            ("5.13.0", true),
            ("5.12.9", false),
            ("4.18.0-553.el8", false),
            ("", false),
        ] {
            assert_eq!(is_at_least(release, (5, 13)), safe, "{release}");
        }
    }
}
