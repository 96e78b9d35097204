//! Reads facts about the machine from /proc, /sys, /etc, /boot and /lib/modules, and counts its load over a window.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::thread::sleep;
use std::time::{Duration, Instant};

use wirecost_meter::{Meter, Scope};
use wirecost_sys::{control_group, memory, process};

use crate::evidence::{Clock, MachineFacts, Window};
use crate::judge;
use crate::kernel_config::KernelConfig;

/// Sysctls that decide what is permitted (Documentation/admin-guide/sysctl).
const SETTINGS: &[&str] = &[
    "kernel.apparmor_restrict_unprivileged_userns",
    "kernel.io_uring_disabled",
    "kernel.unprivileged_userns_clone",
    "net.ipv4.tcp_allowed_congestion_control",
    "user.max_net_namespaces",
    "user.max_user_namespaces",
];

const CPU: &str = "/sys/devices/system/cpu";
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";

pub(crate) fn machine() -> MachineFacts {
    let release = line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into());
    let environment = wirecost_meter::environment().ok();
    let allowed = process::allowed_cpus().unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    MachineFacts {
        distribution: fs::read_to_string("/etc/os-release")
            .ok()
            .and_then(|text| distribution(&text)),
        cpu_model: environment.as_ref().map(|e| e.cpu_model.clone()),
        is_guest: environment.as_ref().map(|e| e.virtual_machine),
        virtualisation: ["vmx", "svm"]
            .into_iter()
            .find(|flag| cpuinfo.split_ascii_whitespace().any(|word| word == *flag))
            .map(str::to_owned),
        online: wirecost_meter::online_cpus().unwrap_or_default(),
        physical: physical(&allowed),
        governors: governors(&allowed),
        allowed,
        clock: clock(),
        cpu_quota: control_group::cpu_quota(),
        memory_available: memory::of_machine(),
        memory_left: control_group::memory_left(),
        descriptors: process::descriptor_limit().ok(),
        btf: Some(btf()),
        settings: wirecost_meter::sysctls(SETTINGS),
        window: None,
        wakeup: None,
        config: KernelConfig::read(&release),
        modules: modules(&release),
        release,
    }
}

/// Waits for `length`, and returns the load of other processes and guests meanwhile; `None` where it cannot be counted.
pub(crate) fn window(length: Duration) -> Option<Window> {
    let pid = std::process::id();
    let scope = Scope {
        cpus: wirecost_meter::online_cpus().ok()?,
        pid,
        host_task: pid,
        guest_tasks: vec![pid],
    };
    let mut meter = Meter::open(scope).ok()?;
    let foreign_before = wirecost_meter::foreign_snapshot(&[pid]);
    let before = meter.snapshot().ok()?;
    sleep(length);
    let usage = wirecost_meter::delta(&before, &meter.snapshot().ok()?);
    let foreign_after = wirecost_meter::foreign_snapshot(&[pid]);
    let stolen: f64 = usage.cores.iter().map(|core| core.steal_s).sum();
    Some(Window {
        seconds: usage.window_s,
        // Counted in ticks, which may have begun before the window.
        steal: (stolen / (usage.window_s * usage.cores.len() as f64)).min(1.0),
        idle_step_s: usage.idle_step_s,
        foreign_cores: match (foreign_before, foreign_after) {
            (Ok(before), Ok(after)) => Some(wirecost_meter::foreign_cores(&before, &after)),
            _ => None,
        },
    })
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// `ID=` of os-release(5).
fn distribution(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("ID="))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// Groups processors by physical core; one whose siblings sysfs does not show is a group of its own.
fn physical(cpus: &[u32]) -> Vec<Vec<u32>> {
    let mut cores: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for &cpu in cpus {
        let siblings = line(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"));
        let key = siblings.unwrap_or_else(|| cpu.to_string());
        cores.entry(key).or_default().push(cpu);
    }
    let mut cores: Vec<_> = cores.into_values().collect();
    cores.sort();
    cores
}

fn governors(cpus: &[u32]) -> Vec<String> {
    let of = |cpu: &u32| line(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"));
    let all: BTreeSet<_> = cpus.iter().filter_map(of).collect();
    all.into_iter().collect()
}

fn clock() -> Clock {
    Clock {
        source: line(&format!("{CLOCK}/current_clocksource")).unwrap_or_default(),
        available: line(&format!("{CLOCK}/available_clocksource"))
            .unwrap_or_default()
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect(),
        reading_ns: reading_ns(),
    }
}

/// Time of one clock reading, nanoseconds: of the fastest of ten batches, so that interruptions do not count.
fn reading_ns() -> f64 {
    const READINGS: u32 = 200;
    let batch = || {
        let began = Instant::now();
        let mut last = began;
        for _ in 0..READINGS {
            last = std::hint::black_box(Instant::now());
        }
        last.duration_since(began).as_nanos() as f64 / f64::from(READINGS)
    };
    (0..10).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Size in bytes of the kernel's BTF, which begins with a magic number (Documentation/bpf/btf.rst), or why it cannot be
/// used.
fn btf() -> Result<u64, String> {
    const PATH: &str = "/sys/kernel/btf/vmlinux";
    const MAGIC: [u8; 2] = 0xeb9f_u16.to_ne_bytes();
    let read = || {
        let mut file = File::open(PATH)?;
        let mut head = [0; 2];
        file.read_exact(&mut head)?;
        Ok::<_, std::io::Error>((head, file.metadata()?.len()))
    };
    match read() {
        Ok((MAGIC, length)) => Ok(length),
        Ok(_) => Err(format!("{PATH} does not begin as BTF does")),
        Err(error) => Err(format!("{PATH}: {error}")),
    }
}

/// Modules that advice may name and /lib/modules has; `None` without its modules.dep.
fn modules(release: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/lib/modules/{release}/modules.dep")).ok()?;
    let wanted: BTreeSet<_> = judge::modules().collect();
    let there = text.lines().filter_map(|line| {
        let file = line.split(':').next()?.rsplit('/').next()?;
        let name = file.split('.').next()?.replace('-', "_");
        wanted.contains(name.as_str()).then_some(name)
    });
    Some(there.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_named_with_or_without_quotes() {
        for text in ["NAME=x\nID=debian\n", "ID=\"debian\"\nID_LIKE=y\n"] {
            assert_eq!(distribution(text).as_deref(), Some("debian"));
        }
        assert_eq!(distribution("NAME=x\nID_LIKE=debian\n"), None);
    }

    #[test]
    fn this_machine_has_cores_a_clock_and_a_window() {
        let machine = machine();
        assert!(!machine.allowed.is_empty());
        let of_cores: usize = machine.physical.iter().map(Vec::len).sum();
        assert_eq!(of_cores, machine.allowed.len());
        assert!(machine.clock.reading_ns > 0.0);
        let window = window(Duration::from_millis(20)).expect("a window");
        assert!(window.seconds >= 0.02 && (0.0..=1.0).contains(&window.steal));
    }
}
