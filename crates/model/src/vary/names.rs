//! Names in settings that become paths on a host. Plans and agents apply the same rules.

/// Whether a name is that of a sysctl, such as `net.ipv4.tcp_sack` or `net/ipv4/conf/eth0.7/mtu`: at least two parts
/// below /proc/sys, none empty and none that leads elsewhere.
pub fn is_sysctl(name: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '@' | ':');
    let parts: Vec<&str> = name.split(['.', '/']).collect();
    name.chars().all(fits) && parts.len() > 1 && parts.iter().all(|part| !part.is_empty())
}

/// Whether a name can be that of a device feature (`ethtool -k`): at most 31 characters (`ETH_GSTRING_LEN`).
pub fn is_feature(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..32).contains(&name.len()) && name.chars().all(fits)
}

/// Whether the kernel takes a text as a device's name (net/core/dev.c, `dev_valid_name`), behind the file of a network
/// namespace if there is one: `vxlan0`, `/run/netns/blue/vxlan0`, `/proc/1/ns/net/eth0`.
pub fn is_device(text: &str) -> bool {
    let (directory, name) = text.rsplit_once('/').unwrap_or(("", text));
    let named = directory.strip_prefix("/run/netns/");
    let process = directory
        .strip_prefix("/proc/")
        .and_then(|rest| rest.strip_suffix("/ns/net"));
    let is_netns = directory.is_empty() && !text.starts_with('/')
        || named.is_some_and(|name| !matches!(name, "" | "." | "..") && !name.contains('/'))
        || process.is_some_and(|pid| pid.parse::<u32>().is_ok());
    let fits = |c: char| !c.is_whitespace() && !c.is_control() && c != ':';
    is_netns && !matches!(name, "" | "." | "..") && name.len() < 16 && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_proc_sys_is_no_sysctl() {
        for name in [
            "net.ipv4.tcp_sack",
            "net/ipv4/conf/eth0.7/mtu",
            "net.ipv4.conf.eth0/7.mtu",
        ] {
            assert!(is_sysctl(name), "{name}");
        }
        for name in [
            "",
            "net",
            "/etc/passwd",
            "net/../../../etc/passwd",
            "net.//.//.//.etc/passwd",
            "net.ipv4.",
            "net.ipv4.tcp sack",
            "net.ipv4.tcp_sack\0",
        ] {
            assert!(!is_sysctl(name), "{name:?}");
        }
    }

    #[test]
    fn a_device_is_in_no_directory_but_that_of_a_network_namespace() {
        for name in ["eth0", "/run/netns/blue/vxlan0", "/proc/1/ns/net/eth0.7"] {
            assert!(is_device(name), "{name}");
        }
        for name in [
            "",
            "..",
            "../eth0",
            "/etc/eth0",
            "/run/netns/../eth0",
            "/run/netns/a/b/eth0",
            "/proc/self/ns/net/eth0",
            "/proc/1/ns/net/..",
            "a name",
            "sixteen-letters-",
            "eth0\0",
        ] {
            assert!(!is_device(name), "{name:?}");
        }
    }

    #[test]
    fn a_feature_is_a_word_as_long_as_the_kernel_has_them() {
        assert!(is_feature("rx-udp-gro-forwarding") && is_feature(&"x".repeat(31)));
        for name in ["", "rx gro", "../rx", "rx-gro\0"] {
            assert!(!is_feature(name), "{name:?}");
        }
        assert!(!is_feature(&"x".repeat(32)));
    }
}
