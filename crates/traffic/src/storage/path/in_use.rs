//! Whether a file or block device is in use, so that a load must not write to it.
//!
//! The kernel itself refuses a device in use (`O_EXCL`); this module says what uses it, and covers files as well.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use wirecost_sys::block_file::device_numbers;

/// Where the kernel lists block devices, mounts, swap and loop devices.
struct Sources {
    sys: PathBuf,
    mounts: PathBuf,
    swaps: PathBuf,
}

impl Sources {
    fn of_the_kernel() -> Self {
        Self {
            sys: "/sys".into(),
            mounts: "/proc/self/mountinfo".into(),
            swaps: "/proc/swaps".into(),
        }
    }
}

/// Checks that a file or device is not in use.
///
/// # Errors
/// `ResourceBusy` with what uses it.
pub(super) fn check(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let device = metadata.file_type().is_block_device();
    let numbers = device.then(|| device_numbers(metadata));
    match used_by(&Sources::of_the_kernel(), &path, numbers) {
        None => Ok(()),
        Some(by) => {
            let words = format!("{by}: it is not written to");
            Err(io::Error::new(io::ErrorKind::ResourceBusy, words))
        }
    }
}

fn used_by(sources: &Sources, path: &Path, numbers: Option<(u64, u64)>) -> Option<String> {
    if let Some(numbers) = numbers {
        let directory = sources
            .sys
            .join(format!("dev/block/{}:{}", numbers.0, numbers.1));
        let parts = partitions(&directory);
        let itself = (
            String::new(),
            format!("{}:{}", numbers.0, numbers.1),
            directory,
        );
        for (name, numbers, directory) in std::iter::once(itself).chain(parts) {
            let subject = if name.is_empty() {
                "it".to_owned()
            } else {
                format!("its partition {name}")
            };
            if let Some(point) = mounted(sources, &numbers, path, &name) {
                return Some(format!("{subject} is mounted at {point}"));
            }
            let holders = fs::read_dir(directory.join("holders"))
                .into_iter()
                .flatten();
            let holder = holders.flatten().next();
            if let Some(holder) = holder {
                let holder = holder.file_name().to_string_lossy().into_owned();
                return Some(format!("the device {holder} is made of {subject}"));
            }
        }
    }
    let swaps = fs::read(&sources.swaps).unwrap_or_default();
    let mut swaps = swaps
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(|line| line.split(u8::is_ascii_whitespace).next());
    if swaps.any(|swap| unescaped(swap) == path) {
        return Some("it is used for swap".to_owned());
    }
    let devices = fs::read_dir(sources.sys.join("block"))
        .into_iter()
        .flatten();
    for device in devices.flatten() {
        let backing = fs::read(device.path().join("loop/backing_file")).unwrap_or_default();
        let backing = backing.strip_suffix(b"\n").unwrap_or(&backing);
        if Path::new(OsStr::from_bytes(backing)) == path {
            let name = device.file_name().to_string_lossy().into_owned();
            return Some(format!("the loop device {name} is made of it"));
        }
    }
    None
}

/// Name, numbers and directory of each partition.
fn partitions(device: &Path) -> Vec<(String, String, PathBuf)> {
    let entries = fs::read_dir(device).into_iter().flatten().flatten();
    let parts = entries.filter_map(|entry| {
        let directory = entry.path();
        fs::metadata(directory.join("partition")).ok()?;
        let numbers = fs::read_to_string(directory.join("dev")).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Some((name, numbers.trim().to_owned(), directory))
    });
    parts.collect()
}

/// Mount point of a device (proc(5), mountinfo: the third field is the device, the fifth the mount point; type and
/// source follow the dash).
fn mounted(sources: &Sources, numbers: &str, path: &Path, partition: &str) -> Option<String> {
    let mounts = fs::read(&sources.mounts).ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(2);
        let (device, point) = (front.next()?, front.nth(1)?);
        // Btrfs reports device numbers of its own: the source is compared, too.
        let source = back.split(' ').nth(1)?;
        let named = partition.is_empty() && unescaped(source.as_bytes()) == path;
        (device == numbers || named).then(|| unescaped(point.as_bytes()).display().to_string())
    })
}

/// A path as the kernel writes it into a table: a backslash and three octal digits stand for a byte that would end its
/// field or line (`mangle_path`, fs/seq_file.c).
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        if let [
            b'\\',
            high @ b'0'..=b'3',
            middle @ b'0'..=b'7',
            low @ b'0'..=b'7',
            after @ ..,
        ] = rest
        {
            bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with a disk 8:16 that has the partition 8:17, a loop device and swap.
    fn sources(name: &str) -> Sources {
        let root =
            std::env::temp_dir().join(format!("wirecost-in-use-{}-{name}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        };
        write("sys/dev/block/8:16/sdb1/partition", "1\n");
        write("sys/dev/block/8:16/sdb1/dev", "8:17\n");
        write("sys/dev/block/8:32/holders/dm-0", "");
        write("sys/block/loop3/loop/backing_file", "/srv/image\n");
        write(
            "mounts",
            "25 1 8:17 / /data rw - ext4 /dev/sdb1 rw\n26 1 0:31 / /pool rw - btrfs /dev/sdd rw\n\
             27 1 0:32 / /my\\040pool rw - btrfs /dev/disk\\134\\040e rw\n",
        );
        write(
            "swaps",
            "Filename Type Size Used Priority\n/srv/swap file 1 0 -2\n/srv/more\\040swap file 1 0 -3\n",
        );
        Sources {
            sys: root.join("sys"),
            mounts: root.join("mounts"),
            swaps: root.join("swaps"),
        }
    }

    #[test]
    fn whoever_uses_it_is_named() {
        let sources = sources("named");
        let by = |path: &str, numbers| used_by(&sources, Path::new(path), numbers);
        let found = [
            by("/dev/sdb", Some((8, 16))),
            by("/dev/sdb1", Some((8, 17))),
            by("/dev/sdc", Some((8, 32))),
            by("/dev/sdd", Some((8, 48))),
            by("/srv/image", None),
            by("/srv/swap", None),
            by("/srv/other", None),
            by("/dev/sde", Some((8, 64))),
            by("/dev/disk\\ e", Some((8, 80))),
            by("/srv/more swap", None),
        ];
        let root = sources.mounts.parent().expect("a directory");
        fs::remove_dir_all(root).expect("removed");
        let words = found.map(Option::unwrap_or_default);
        assert_eq!(
            words,
            [
                "its partition sdb1 is mounted at /data",
                "it is mounted at /data",
                "the device dm-0 is made of it",
                "it is mounted at /pool",
                "the loop device loop3 is made of it",
                "it is used for swap",
                "",
                "",
                "it is mounted at /my pool",
                "it is used for swap",
            ]
        );
    }
}
