//! Turns a process into the agent of an existing host. This makes and changes nothing on the host.

use std::fs;
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;

use wirecost_sys::namespace;
use wirecost_sys::process;

use crate::error::{Context, Result};
use crate::role::AgentRole;

/// Turns the calling process, which must have one thread, into the agent of a host that is used as it is: in the named
/// network namespace, or in the current one. The process keeps only the capabilities that its role needs. With `tied`,
/// the kernel kills it when its parent process dies.
///
/// # Errors
/// The message is for the user and says what to do.
pub fn become_agent(netns: Option<&str>, role: AgentRole, tied: bool) -> Result<()> {
    let parent = parent_id();
    if let Some(name) = netns {
        namespace::join_named(name).map_err(|error| words(name, &error))?;
    }
    role.confine().context("giving up capabilities")?;
    if tied {
        process::die_with_parent(parent).context("tying an agent to its controller")?;
    }
    Ok(())
}

/// Upper bound on the names that a message lists.
const LISTED: usize = 5;

/// The names with the longest common prefix with `wanted`, and the number of the others.
fn some(wanted: &str, names: &[String]) -> String {
    let alike = |name: &str| {
        let pairs = name.chars().zip(wanted.chars());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let mut near: Vec<&str> = names.iter().map(String::as_str).collect();
    near.sort_by_key(|name| {
        (
            std::cmp::Reverse(alike(name)),
            name.len().abs_diff(wanted.len()),
        )
    });
    let more = near.len().saturating_sub(LISTED);
    near.truncate(LISTED);
    let verb = if names.len() == 1 { "is" } else { "are" };
    let listed = near.join(", ");
    match more {
        0 => format!("{verb}: {listed}"),
        more => format!("{verb}: {listed} and {more} more, which `ip netns list` shows"),
    }
}

fn words(name: &str, error: &io::Error) -> String {
    let directory = namespace::NAMED;
    match error.kind() {
        io::ErrorKind::NotFound => {
            let there = match namespace::names() {
                names if names.is_empty() => "there is none".to_owned(),
                names => format!("there {}", some(name, &names)),
            };
            format!(
                "no network namespace in {directory} is named {name} ({there}): name another, or make it with \
                 `ip netns add {name}`"
            )
        }
        io::ErrorKind::PermissionDenied => {
            format!(
                "entering network namespace {name} needs CAP_SYS_ADMIN: run wirecost as root ({error})"
            )
        }
        io::ErrorKind::InvalidInput => format!(
            "{directory}/{name} holds no namespace any more: `ip netns del {name}` and make it again"
        ),
        _ => format!("entering network namespace {name}: {error}"),
    }
}

/// Removes `wirecost` in `directory` if that is the file that this process runs, and then the directory if it is empty.
/// The running program does not need the file.
pub fn remove_copy(directory: &Path) {
    let copy = directory.join("wirecost");
    if fs::read_link("/proc/self/exe").is_ok_and(|running| is_same(&running, &copy)) {
        let _ = fs::remove_file(&copy);
        // The kernel refuses to remove a directory that is not empty.
        let _ = fs::remove_dir(directory);
    }
}

/// Whether two paths lead to the same file; the second is not followed where it is a symbolic link.
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(one), fs::symlink_metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_told_apart_from_one_that_may_not_be_entered() {
        let error = |kind| words("red", &io::Error::from(kind));
        assert!(error(io::ErrorKind::NotFound).contains("is named red"));
        assert!(error(io::ErrorKind::PermissionDenied).contains("as root"));
        assert!(error(io::ErrorKind::InvalidInput).contains("ip netns del red"));
    }

    #[test]
    fn of_many_names_those_are_listed_that_may_be_meant() {
        let mut names: Vec<String> = (0..45).map(|number| format!("cni-{number}")).collect();
        names.push("blue1".to_owned());
        assert_eq!(
            some("blue", &names),
            "are: blue1, cni-0, cni-1, cni-2, cni-3 and 41 more, which `ip netns list` shows"
        );
        assert_eq!(some("x", &["a".to_owned()]), "is: a");
        assert_eq!(some("x", &["a".to_owned(), "b".to_owned()]), "are: a, b");
    }

    #[test]
    fn only_the_copy_that_runs_is_removed() {
        let directory = std::env::temp_dir().join(format!("wctest-copy-{}", std::process::id()));
        fs::create_dir(&directory).expect("directory");
        fs::write(directory.join("wirecost"), "somebody else's").expect("file");
        remove_copy(&directory);
        assert!(directory.join("wirecost").exists());
        fs::remove_dir_all(&directory).expect("removed");
    }
}
