//! Opening files and block devices for block I/O, and whether they support direct I/O, which bypasses the page cache.

#![expect(unsafe_code, reason = "statx(2) has no wrapper in nix")]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{major, minor};
use nix::sys::statfs::{NFS_SUPER_MAGIC, fstatfs};

/// Direct I/O alignment of a file, as the kernel reports it (`STATX_DIOALIGN`, Linux 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectIo {
    /// Alignment of memory, bytes; 0: the file does not support `O_DIRECT`.
    pub memory: u32,
    /// Alignment of offsets and lengths, bytes; 0: the file does not support `O_DIRECT`.
    pub offset: u32,
}

/// Direct I/O alignment that the kernel reports for a file; `None` where it reports none.
///
/// # Errors
/// Errors of statx(2).
pub fn direct_io(file: &File) -> io::Result<Option<DirectIo>> {
    // SAFETY: plain numbers, of which zero is one.
    let mut status: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, an empty terminated string, and room for one struct statx.
    let failed = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut status,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(
        (status.stx_mask & libc::STATX_DIOALIGN != 0).then_some(DirectIo {
            memory: status.stx_dio_mem_align,
            offset: status.stx_dio_offset_align,
        }),
    )
}

/// Whether a file is on NFS, which takes direct I/O of any alignment and does not report that.
///
/// # Errors
/// Errors of fstatfs(2).
pub fn is_nfs(file: &File) -> io::Result<bool> {
    Ok(fstatfs(file)?.filesystem_type() == NFS_SUPER_MAGIC)
}

/// Makes all I/O on a file bypass the page cache from now on (`on`), or use it.
///
/// # Errors
/// `EINVAL` where the file system does not support `O_DIRECT`.
pub fn set_direct(file: &File, on: bool) -> io::Result<()> {
    let mut flags = OFlag::from_bits_retain(fcntl(file.as_fd(), FcntlArg::F_GETFL)?);
    flags.set(OFlag::O_DIRECT, on);
    fcntl(file.as_fd(), FcntlArg::F_SETFL(flags))?;
    Ok(())
}

/// Opens an existing file or block device. `exclusive`: a block device is opened only where nothing else has it
/// exclusively, such as a mounted file system, swap, or a stacked device (`O_EXCL`, open(2)).
///
/// # Errors
/// Errors of open(2); `EBUSY` where something else has the device exclusively.
pub fn open(path: &Path, writes: bool, exclusive: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(writes);
    if exclusive {
        options.custom_flags(libc::O_EXCL);
    }
    options.open(path)
}

/// Creates a file in a directory without a name there; it is gone with its last descriptor, however the process ends.
/// On a file system without `O_TMPFILE`, such as NFS, the file has a name for a moment.
///
/// # Errors
/// Errors of open(2) and unlink(2).
pub fn make_unnamed(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let unnamed = options
        .clone()
        .custom_flags(libc::O_TMPFILE)
        .open(directory);
    match unnamed {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL)
            ) => {}
        made => return made,
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = since.map_or(0, |since| since.as_nanos());
    let path = directory.join(format!(".wirecost-{}-{time}", process::id()));
    let file = options.create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Major and minor number of a block device.
pub fn device_numbers(metadata: &Metadata) -> (u64, u64) {
    (major(metadata.rdev()), minor(metadata.rdev()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_file_without_a_name_is_nowhere_and_takes_data() {
        let directory = std::env::temp_dir().join(format!("wirecost-unnamed-{}", process::id()));
        fs::create_dir(&directory).expect("a directory");
        let file = make_unnamed(&directory);
        let entries = fs::read_dir(&directory).expect("a list").count();
        fs::remove_dir(&directory).expect("an empty directory");
        let file = file.expect("a file");
        file.write_all_at(b"data", 0).expect("written");
        assert_eq!((entries, file.metadata().expect("metadata").len()), (0, 4));
        assert!(!is_nfs(&file).expect("statfs"));
    }

    #[test]
    fn what_says_nothing_of_direct_io_is_told_from_what_has_none() {
        let status = File::open("/proc/self/status").expect("a file");
        let said = direct_io(&status).expect("statx");
        assert!(said.is_none_or(|said| said.offset == 0), "{said:?}");
        let error = set_direct(&status, true).expect_err("no direct I/O on procfs");
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        let error = open(Path::new("/nowhere/at/all"), false, false).expect_err("not there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
