//! Memory that control groups leave to this process (Linux, Documentation/admin-guide/cgroup-v2.rst).

use std::path::{Path, PathBuf};

/// Mount point of the version 2 hierarchy.
const UNIFIED: &str = "/sys/fs/cgroup";
/// Mount point of the version 1 memory controller.
const MEMORY: &str = "/sys/fs/cgroup/memory";

/// Memory left by the process's group and its ancestors, bytes: the least of their limits less usage. Inactive file
/// pages do not count as used: the kernel drops them first. `None` without a limit, or where none can be read.
/// `groups` is `/proc/self/cgroup`.
pub(super) fn left(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let (root, [limit, used, files]) = match controllers {
                "" => (UNIFIED, ["memory.max", "memory.current", "inactive_file"]),
                list if list.split(',').any(|one| one == "memory") => (
                    MEMORY,
                    [
                        "memory.limit_in_bytes",
                        "memory.usage_in_bytes",
                        "total_inactive_file",
                    ],
                ),
                _ => return None,
            };
            let number = |group: &Path, file: &str| -> Option<u64> {
                // `max`, where there is no limit, is no number.
                read(&group.join(file))?.trim().parse().ok()
            };
            let group = PathBuf::from(root).join(path.trim_start_matches('/'));
            let groups = group
                .ancestors()
                .take_while(|group| group.starts_with(root));
            groups
                .filter_map(|group| {
                    let (limit, used) = (number(group, limit)?, number(group, used)?);
                    let stat = read(&group.join("memory.stat")).unwrap_or_default();
                    let files = stat.lines().find_map(|line| {
                        let (name, bytes) = line.split_once(' ')?;
                        (name == files).then(|| bytes.parse::<u64>().ok())?
                    });
                    let used = used.saturating_sub(files.unwrap_or(0));
                    Some(limit.saturating_sub(used))
                })
                .min()
        })
        .min()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let files: BTreeMap<PathBuf, &str> = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), *text))
            .collect();
        left(groups, |path| files.get(path).map(|&text| text.to_owned()))
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
                "anon 50000\ninactive_file 10000\n",
            ),
        ];
        assert_eq!(of("0::/a/b\n", &files), Some(40_000));
        assert_eq!(of("0::/\n", &files), None);
        assert_eq!(of("", &files), None);
    }

    #[test]
    fn version_1_has_a_hierarchy_of_its_own() {
        let files = [
            ("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1000\n"),
            ("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "1500\n"),
        ];
        let groups = "3:cpu,cpuacct:/c\n2:memory:/c\n";
        assert_eq!(
            of(groups, &files),
            Some(0),
            "above its limit nothing is left"
        );
    }
}
