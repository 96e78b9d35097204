//! Rules of storage at a target other than Wirecost's own: another NBD server, or a path.

use super::{Fault, Load, unless};

/// Longest path, bytes (`PATH_MAX` of include/uapi/linux/limits.h, without the terminating zero).
const MAX_PATH: usize = 4095;

/// At most one of a server and a path; a load that writes there needs `destructive`.
pub(super) fn external_target(load: &Load) -> Option<Fault> {
    let there = match (&load.server, &load.path) {
        (None, None) => None,
        (Some(server), None) => Some(server.to_string()),
        (None, Some(path)) => Some(path.clone()),
        (Some(_), Some(_)) => {
            return unless(false, "target", || {
                "the target is an NBD server or a path, not both".to_owned()
            });
        }
    };
    let writes = load.storage.map(|storage| storage.pattern.writes());
    match (there, writes) {
        (None, _) => unless(!load.destructive, "destructive", || {
            "destructive is for an NBD server or a path: the built-in target has no content to lose"
                .to_owned()
        }),
        (Some(_), None) => unless(false, "target", || "only storage has a target".to_owned()),
        (Some(there), Some(writes)) => unless(load.destructive || !writes, "pattern", || {
            format!(
                "the load would overwrite the content of {there}: add `destructive` if it may be lost, or choose a \
                 pattern that only reads"
            )
        }),
    }
}

pub(super) fn path(load: &Load) -> Option<Fault> {
    let Some(path) = &load.path else {
        return unless(load.overwrite.is_none(), "overwrite", || {
            "overwrite repeats the path of the target, and the target is not a path".to_owned()
        });
    };
    unless(is_path(path), "target", || {
        format!("{path}: a path begins with a slash, and has at most {MAX_PATH} bytes")
    })
}

/// `overwrite` repeats the path, and needs `destructive`.
pub(super) fn overwrite(load: &Load) -> Option<Fault> {
    let (path, overwrite) = (load.path.as_ref()?, load.overwrite.as_ref()?);
    if path != overwrite {
        return unless(false, "overwrite", || {
            format!(
                "overwrite is {overwrite}, and the target is {path}: write the same path, or leave it out"
            )
        });
    }
    unless(load.destructive, "overwrite", || {
        "overwrite lets a load write: it needs `destructive` as well".to_owned()
    })
}

/// Each job at a path has one thread, which waits for its I/O.
pub(super) fn job_threads(load: &Load) -> Option<Fault> {
    let fits = load.path.is_none() || load.threads.is_none_or(|threads| threads == load.streams);
    unless(fits, "threads", || {
        "each connection to a path is a job with a thread of its own: leave `threads` out"
            .to_owned()
    })
}

/// Whether a text is an absolute path that the kernel accepts.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.len() <= MAX_PATH && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Pattern, Storage, Workload};

    fn said(change: impl FnOnce(&mut Load)) -> Vec<String> {
        let mut load = Load::new(Workload::Storage);
        change(&mut load);
        let faults = load.faults().into_iter();
        faults
            .map(|fault| format!("{}: {}", fault.option, fault.message))
            .collect()
    }

    fn writing(load: &mut Load) {
        load.path = Some("/dev/sdz".to_owned());
        load.storage = Some(Storage {
            pattern: Pattern::RandomWrite,
            size: 0,
            ..Storage::USUAL
        });
    }

    #[test]
    fn a_path_is_read_as_it_is_and_written_only_where_that_is_said() {
        let nothing: Vec<String> = Vec::new();
        let reads = said(|load| {
            load.path = Some("/srv/file".to_owned());
            load.storage = Some(Storage {
                size: 0,
                ..Storage::USUAL
            });
        });
        assert_eq!(reads, nothing);
        let [refused] = &said(writing)[..] else {
            panic!("one fault");
        };
        assert!(
            refused.contains("would overwrite the content of /dev/sdz"),
            "{refused}"
        );
        let allowed = said(|load| {
            writing(load);
            load.destructive = true;
        });
        assert_eq!(allowed, nothing);
    }

    #[test]
    fn a_path_that_is_named_twice_is_the_same_one() {
        let twice = |name: &str, destructive| {
            let mut all = said(|load| {
                writing(load);
                (load.overwrite, load.destructive) = (Some(name.to_owned()), destructive);
            });
            all.pop()
        };
        assert_eq!(twice("/dev/sdz", true), None);
        assert!(twice("/dev/sda", true).is_some_and(|said| said.contains("write the same path")));
        assert!(twice("/dev/sdz", false).is_some_and(|said| said.contains("needs `destructive`")));
        let alone = said(|load| load.overwrite = Some("/dev/sdz".to_owned()));
        assert!(alone[0].contains("the target is not a path"), "{alone:?}");
    }

    #[test]
    fn what_is_no_path_or_has_no_meaning_for_one_is_named() {
        for (path, words) in [
            ("srv/file".to_owned(), "begins with a slash"),
            ("/srv/\0".to_owned(), "begins with a slash"),
            ("/".repeat(4096), "at most 4095 bytes"),
        ] {
            let all = said(|load| load.path = Some(path));
            assert!(all.iter().any(|one| one.contains(words)), "{all:?}");
        }
        let all = said(|load| {
            load.path = Some("/srv/file".to_owned());
            (load.streams, load.threads) = (4, Some(2));
        });
        assert!(all[0].contains("a thread of its own"), "{all:?}");
        let all = said(|load| {
            load.path = Some("/srv/file".to_owned());
            load.server = "nbd://b/disk".parse().ok();
        });
        assert!(all[0].contains("not both"), "{all:?}");
        let all = said(|load| {
            load.path = Some("/srv/file".to_owned());
            if let Some(storage) = &mut load.storage {
                storage.network_share = true;
            }
        });
        assert!(all[0].contains("needs the built-in target"), "{all:?}");
    }
}
