//! The machine and its kernel: version, CPU model, memory, clock source, sysctls.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{MeterError, ParseError};
use crate::file::read_once;

/// Description of the machine, as the record keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// CPU model: the marketing name on x86; implementer and part numbers where cpuinfo has no name (arm64).
    pub cpu_model: String,
    /// Whether cpuinfo has the `hypervisor` flag. Only x86 has it; `false` elsewhere.
    pub virtual_machine: bool,
    /// `MemTotal` of /proc/meminfo in bytes: memory that the kernel manages, less than is installed.
    pub memory_bytes: u64,
    /// The kernel's clock source (`tsc`, `kvm-clock`); `unknown` where /sys cannot be read.
    pub clock_source: String,
}

/// Sysctls that matter to a network measurement.
pub const NETWORK_SYSCTLS: &[&str] = &[
    "net.bridge.bridge-nf-call-iptables",
    "net.bridge.bridge-nf-call-ip6tables",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_default_mask",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.busy_poll",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv6.conf.all.disable_ipv6",
];

/// Reads the description of this machine.
///
/// # Errors
/// A file under /proc cannot be read or is not in its format.
pub fn environment() -> Result<Machine, MeterError> {
    let cpuinfo = read_once("/proc/cpuinfo")?;
    let meminfo = read_once("/proc/meminfo")?;
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Ok(Machine {
        kernel: read_once("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        cpu_model: cpu_model(&cpuinfo),
        virtual_machine: has_hypervisor_flag(&cpuinfo),
        memory_bytes: memory_bytes(&meminfo).map_err(|cause| MeterError::Format {
            path: "/proc/meminfo".into(),
            cause,
        })?,
        clock_source: read_once(clock)
            .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned()),
    })
}

/// The value of a sysctl by its dotted name (`net.ipv4.tcp_rmem`); a dot within a device's name is written as `/`
/// (`net.ipv4.conf.eth0/100.rp_filter`), as in sysctl(8). Runs of white space become one blank. A sysctl of a network
/// namespace is read in the calling thread's namespace.
///
/// # Errors
/// `name` is not a sysctl's name, or the sysctl does not exist in this namespace or may not be read.
pub fn sysctl(name: &str) -> Result<String, MeterError> {
    let text = read_once(sysctl_path(name)?)?;
    Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// Values of those of `names` that exist and may be read, by dotted name. See [`sysctl`].
pub fn sysctls(names: &[&str]) -> BTreeMap<String, String> {
    let readable = |name: &&str| Some(((*name).to_owned(), sysctl(name).ok()?));
    names.iter().filter_map(readable).collect()
}

fn sysctl_path(name: &str) -> Result<PathBuf, MeterError> {
    let mut path = PathBuf::from("/proc/sys");
    for component in name.split('.') {
        let component = component.replace('/', ".");
        if matches!(component.as_str(), "" | "." | "..") || component.contains('\0') {
            return Err(MeterError::SysctlName(name.to_owned()));
        }
        path.push(component);
    }
    Ok(path)
}

fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| value.trim())
    })
}

fn cpu_model(cpuinfo: &str) -> String {
    let named = ["model name", "Model", "cpu model", "cpu", "uarch"]
        .into_iter()
        .find_map(|key| cpuinfo_value(cpuinfo, key));
    match (
        named,
        cpuinfo_value(cpuinfo, "CPU implementer"),
        cpuinfo_value(cpuinfo, "CPU part"),
    ) {
        (Some(name), ..) => name.to_owned(),
        (None, Some(implementer), Some(part)) => format!("implementer {implementer} part {part}"),
        _ => "unknown".to_owned(),
    }
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    cpuinfo_value(cpuinfo, "flags").is_some_and(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

fn memory_bytes(meminfo: &str) -> Result<u64, ParseError> {
    let (index, value) = meminfo
        .lines()
        .enumerate()
        .find_map(|(index, line)| Some((index, line.strip_prefix("MemTotal:")?)))
        .ok_or_else(|| ParseError::new(1, "a line `MemTotal:`", meminfo))?;
    let kib = value.trim().trim_end_matches("kB").trim_end().parse();
    kib.map(|kib: u64| kib.saturating_mul(1024))
        .map_err(|_| ParseError::new(index + 1, "`MemTotal:` and a size in kB", value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn this_machine_is_described() {
        let machine = environment().expect("machine");
        assert!(!machine.kernel.is_empty() && !machine.kernel.contains('\n'));
        assert!(machine.memory_bytes > 1 << 20);
    }

    #[test]
    fn x86_has_a_model_name_and_a_flag() {
        let text = include_str!("../fixtures/cpuinfo-x86");
        assert_eq!(cpu_model(text), "AMD EPYC");
        assert!(has_hypervisor_flag(text));
    }

    #[test]
    fn arm_is_named_by_implementer_and_part() {
        let text = include_str!("../fixtures/cpuinfo-arm64");
        assert_eq!(cpu_model(text), "implementer 0x41 part 0xd0c");
        assert!(!has_hypervisor_flag(text));
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(
            memory_bytes("MemTotal:       24684092 kB\n"),
            Ok(24_684_092 * 1024)
        );
        assert!(memory_bytes("MemFree: 1 kB").is_err());
    }

    #[test]
    fn a_setting_reads_with_single_blanks() {
        let value = sysctl("net.ipv4.tcp_rmem").expect("tcp_rmem");
        assert_eq!(value.split(' ').count(), 3, "{value}");
        let read = sysctls(&["net.ipv4.tcp_rmem", "net.ipv4.not_there"]);
        assert_eq!(read.into_values().collect::<Vec<_>>(), [value]);
    }

    #[test]
    fn a_dot_within_a_devices_name_is_written_as_a_slash() {
        let path = sysctl_path("net.ipv4.conf.eth0/100.rp_filter").expect("path");
        assert_eq!(
            path,
            PathBuf::from("/proc/sys/net/ipv4/conf/eth0.100/rp_filter")
        );
    }

    #[test]
    fn a_name_cannot_lead_out_of_the_settings() {
        for name in ["", "net..ipv4", "net.//.kcore", "/", "net.\0"] {
            assert!(
                matches!(sysctl(name), Err(MeterError::SysctlName(_))),
                "{name:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(\\PC{0,20}[:\n]){0,9}") {
            let _ = (cpu_model(&text), has_hypervisor_flag(&text), memory_bytes(&text));
        }

        #[test]
        fn every_path_stays_within_the_settings(name in "[a-z./]{0,12}") {
            if let Ok(path) = sysctl_path(&name) {
                prop_assert!(path.starts_with("/proc/sys"));
                prop_assert!(path.components().all(|c| c != std::path::Component::ParentDir));
            }
        }
    }
}
