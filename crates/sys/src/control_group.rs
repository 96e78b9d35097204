//! Limits of control groups on this process (Linux, Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::path::{Path, PathBuf};

/// Mount point of the version 2 hierarchy, and directory of the mount points of version 1, which are named after their
/// controllers.
const ROOT: &str = "/sys/fs/cgroup";

/// Lines of `memory.stat` of what is dropped when memory is needed.
const RECLAIMED: &[&str] = &["inactive_file", "active_file", "slab_reclaimable"];
/// The same in version 1, with those of groups below.
const RECLAIMED_VERSION_1: &[&str] = &["total_inactive_file", "total_active_file"];

/// Memory left by the process's group and its ancestors, bytes: the least of their limits less usage. Pages of files
/// and reclaimable slabs do not count as used, as in `MemAvailable`: the kernel drops them before it ends a process.
/// `None` without a limit, or where none can be read.
pub fn memory_left() -> Option<u64> {
    memory_left_by(&own(), |path| fs::read_to_string(path).ok())
}

/// Cores whose time the process's group and its ancestors may use: the least of their quotas. `None` without a quota,
/// or where none can be read.
pub fn cpu_quota() -> Option<f64> {
    cpu_quota_of(&own(), |path| fs::read_to_string(path).ok())
}

/// The process's groups.
fn own() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// Directories of a controller for the process's group and its ancestors, and whether they are of version 2. `groups`
/// is `/proc/self/cgroup`.
fn directories(groups: &str, controller: &str) -> Vec<(PathBuf, bool)> {
    let mut directories = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let unified = controllers.is_empty();
        let root = if unified {
            PathBuf::from(ROOT)
        } else {
            Path::new(ROOT).join(controller)
        };
        if !unified && controllers.split(',').all(|one| one != controller) {
            continue;
        }
        let group = root.join(path.trim_start_matches('/'));
        let groups = group.ancestors();
        let groups = groups.take_while(|group| group.starts_with(&root));
        directories.extend(groups.map(|group| (group.to_owned(), unified)));
    }
    directories
}

fn memory_left_by(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    // `max`, where there is no limit, is no number.
    let number = |path: &Path| -> Option<u64> { read(path)?.trim().parse().ok() };
    let left = |(group, unified): (PathBuf, bool)| {
        let (limit, used, reclaimed) = if unified {
            ("memory.max", "memory.current", RECLAIMED)
        } else {
            (
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                RECLAIMED_VERSION_1,
            )
        };
        let (limit, used) = (number(&group.join(limit))?, number(&group.join(used))?);
        let stat = read(&group.join("memory.stat")).unwrap_or_default();
        let files = stat.lines().filter_map(|line| {
            let (name, bytes) = line.split_once(' ')?;
            reclaimed
                .contains(&name)
                .then(|| bytes.parse::<u64>().ok())?
        });
        Some(limit.saturating_sub(used.saturating_sub(files.sum())))
    };
    let groups = directories(groups, "memory").into_iter();
    groups.filter_map(left).min()
}

fn cpu_quota_of(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<f64> {
    let quota = |(group, unified): (PathBuf, bool)| {
        let text = if unified {
            read(&group.join("cpu.max"))?
        } else {
            let [quota, period] =
                ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|file| read(&group.join(file)));
            format!("{} {}", quota?, period?)
        };
        let (quota, period) = text.trim().split_once(char::is_whitespace)?;
        // Without a quota it is `max`, in version 1 -1.
        let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    let groups = directories(groups, "cpu").into_iter();
    groups.filter_map(quota).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(files: &[(&str, &str)]) -> impl Fn(&Path) -> Option<String> {
        let files: BTreeMap<PathBuf, String> = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
            .collect();
        move |path| files.get(path).cloned()
    }

    #[test]
    fn the_tightest_of_a_group_and_those_around_it_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "5000\n"),
            ("/sys/fs/cgroup/a/memory.max", "100000\n"),
            ("/sys/fs/cgroup/a/memory.current", "70000\n"),
            (
                "/sys/fs/cgroup/a/memory.stat",
                "anon 50000\ninactive_file 10000\nactive_file 4000\nslab_reclaimable 1000\n",
            ),
        ];
        assert_eq!(memory_left_by("0::/a/b\n", of(&files)), Some(45_000));
        assert_eq!(memory_left_by("0::/\n", of(&files)), None);
        assert_eq!(memory_left_by("", of(&files)), None);
    }

    #[test]
    fn version_1_has_a_hierarchy_of_its_own() {
        let files = [
            ("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1000\n"),
            ("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1500\n"),
        ];
        let groups = "3:cpu,cpuacct:/c\n2:memory:/c\n";
        assert_eq!(
            memory_left_by(groups, of(&files)),
            Some(0),
            "above its limit nothing is left"
        );
    }

    #[test]
    fn the_least_quota_of_a_group_and_those_around_it_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/c/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ];
        for (groups, quota) in [
            ("0::/a/b\n", Some(1.5)),
            ("0::/c\n", None),
            ("3:cpu,cpuacct:/d\n2:memory:/d\n", Some(0.5)),
            ("3:cpu,cpuacct:/\n", None),
        ] {
            assert_eq!(cpu_quota_of(groups, of(&files)), quota, "{groups}");
        }
    }
}
