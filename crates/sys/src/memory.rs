//! Memory that this process may still take: a failed allocation ends a program without saying what to do.

use std::fs;

use crate::control_group;

/// Available memory of the machine, bytes (proc_meminfo(5), `MemAvailable`). `None` where it cannot be read.
pub fn of_machine() -> Option<u64> {
    of_machine_by(read)
}

/// Bytes that this process can still allocate: the machine's available memory, what is left of the limit of the address
/// space (getrlimit(2)), or what its control groups leave, whichever is least. `None` where none is known.
pub fn available() -> Option<u64> {
    available_of(read, control_group::memory_left())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn of_machine_by(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    kilobytes(&read("/proc/meminfo")?, "MemAvailable:")
}

fn available_of(read: impl Fn(&str) -> Option<String>, group: Option<u64>) -> Option<u64> {
    let machine = of_machine_by(&read);
    let limit = read("/proc/self/limits").and_then(|text| address_space(&text));
    let taken = read("/proc/self/status").and_then(|text| kilobytes(&text, "VmSize:"));
    let left = limit.map(|limit| limit.saturating_sub(taken.unwrap_or(0)));
    machine.into_iter().chain(left).chain(group).min()
}

/// The value of a line such as `MemAvailable:   22634000 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    number.checked_mul(1024)
}

/// The soft limit of a line such as `Max address space  4194304000  unlimited  bytes`, in bytes; `None` where it is
/// unlimited.
fn address_space(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let memory = "MemTotal:       24683748 kB\nMemAvailable:   22634000 kB\n";
        assert_eq!(kilobytes(memory, "MemAvailable:"), Some(22_634_000 * 1024));
        assert_eq!(kilobytes("MemTotal: 8 kB\n", "MemAvailable:"), None);
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max address space         {soft:<20} unlimited            bytes     \n"
            )
        };
        assert_eq!(address_space(&limits("500000000")), Some(500_000_000));
        assert_eq!(address_space(&limits("unlimited")), None);
    }

    #[test]
    fn the_least_of_machine_address_space_and_control_groups_is_available() {
        let of = |limits: &str, group| {
            let read = |path: &str| {
                let text = match path {
                    "/proc/meminfo" => "MemAvailable:   8000 kB\n",
                    "/proc/self/limits" => limits,
                    _ => "VmSize:\t    1000 kB\n",
                };
                Some(text.to_owned())
            };
            available_of(read, group)
        };
        let limited =
            "Max address space         4096000              unlimited            bytes     \n";
        assert_eq!(of("", None), Some(8000 * 1024));
        assert_eq!(of("", Some(5_000_000)), Some(5_000_000));
        assert_eq!(of(limited, Some(5_000_000)), Some(3000 * 1024));
        assert_eq!(of(limited, Some(0)), Some(0));
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(of_machine().unwrap() > 0);
        assert!(available().unwrap() > 0);
    }
}
