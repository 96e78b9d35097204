//! A file or a block device that a load reads and writes: opened, filled where it is the load's own, verified, closed.
//!
//! A mount whose server is gone blocks every thread that touches it. All of this runs on threads of its own, which the
//! caller waits for until its deadline.

mod contents;
mod in_use;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use wirecost_model::path_access::{PathAccess, PathKind};
use wirecost_sys::block_file::{self, direct_io, is_nfs, set_direct};

use crate::options::Options;
use crate::storage::read_back::ReadBack;
use crate::timeouts::PEER_TIMEOUT;

pub(crate) use contents::write_block;

/// How long emptying the path of a load that failed is waited for.
const ABANDONING: Duration = Duration::from_secs(5);

/// The file or device of a load, shared by all of its jobs.
#[derive(Debug)]
pub(crate) struct OpenPath {
    pub(crate) file: Arc<File>,
    pub(crate) path: String,
    pub(crate) kind: PathKind,
    /// Bytes that the load uses, from the beginning.
    pub(crate) bytes: u64,
    /// Why I/O goes through the page cache; `None`: it does not (`O_DIRECT`).
    buffered: Option<String>,
    /// Why no io_uring is used; unset: one is.
    pub(crate) no_ring: OnceLock<String>,
    /// Whether both ends were zeroed after the load's writes.
    emptied: AtomicBool,
}

impl OpenPath {
    /// How the path is read and written.
    pub(crate) fn access(&self) -> PathAccess {
        PathAccess {
            kind: self.kind,
            bytes: self.bytes,
            buffered: self.buffered.clone(),
            no_ring: self.no_ring.get().cloned(),
        }
    }

    /// Opens the path of a load by a deadline.
    ///
    /// # Errors
    /// The kernel's error, or why the load cannot use the path, in words; `TimedOut`.
    pub(crate) fn open(path: &str, options: &Options, deadline: Instant) -> io::Result<Self> {
        let (path, options) = (path.to_owned(), options.clone());
        let (opened, told) = mpsc::channel();
        // Opening the path must not take long; filling a file may.
        let result = with_deadline(deadline, move || {
            let open = open(&path, &options)?;
            let _ = opened.send(());
            if open.kind == PathKind::OwnFile {
                contents::fill(&open, &options).map_err(|error| in_words("filling it", &error))?;
            }
            Ok(open)
        })?;
        let patience = deadline
            .saturating_duration_since(Instant::now())
            .min(PEER_TIMEOUT);
        match told.recv_timeout(patience) {
            // Opened, or failed: `result` has the error.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => return Err(no_answer("opening it", patience)),
        }
        result.wait("filling it")
    }

    /// Makes what the load wrote durable, and verifies what its jobs read and wrote. Both ends of a file or device that
    /// is not the load's own are zeroed after writes, so that it counts as empty again.
    ///
    /// # Errors
    /// `InvalidData`: the content is not what was written; the kernel's error; `TimedOut`.
    pub(crate) fn close(
        self: &Arc<Self>,
        options: &Options,
        read_backs: Vec<ReadBack>,
        deadline: Instant,
    ) -> io::Result<()> {
        let (open, options) = (Arc::clone(self), options.clone());
        with_deadline(deadline, move || {
            let writes = writes(&options);
            if writes {
                let synced = open.file.sync_data();
                synced.map_err(|error| in_words("making what was written durable", &error))?;
            }
            contents::verify(&open, &options, &read_backs)?;
            if writes && open.kind != PathKind::OwnFile {
                contents::empty(&open).map_err(|error| in_words("emptying it", &error))?;
                open.emptied.store(true, Relaxed);
            }
            Ok(())
        })?
        .wait("verifying it")
    }

    /// Zeroes both ends of a file or device that is not the load's own and that the load wrote to, where
    /// [`Self::close`] did not: after an error, which is what is reported, the next load would find it not empty.
    pub(crate) fn abandon(self: &Arc<Self>) {
        if self.kind == PathKind::OwnFile || self.emptied.load(Relaxed) {
            return;
        }
        let open = Arc::clone(self);
        let emptying = with_deadline(Instant::now() + ABANDONING, move || contents::empty(&open));
        let emptied = emptying.and_then(|emptying| emptying.wait("emptying it"));
        if let Err(error) = emptied {
            tracing::debug!("{}: {error}", self.path);
        }
    }
}

fn writes(options: &Options) -> bool {
    options
        .load
        .storage
        .is_some_and(|storage| storage.pattern.writes())
}

/// Work on a thread of its own, whose result is waited for until a deadline.
struct DeadlineTask<T> {
    result: mpsc::Receiver<io::Result<T>>,
    began: Instant,
    deadline: Instant,
}

fn with_deadline<T: Send + 'static>(
    deadline: Instant,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<DeadlineTask<T>> {
    let (sender, result) = mpsc::channel();
    thread::Builder::new()
        .name("path".to_owned())
        .stack_size(256 << 10)
        .spawn(move || sender.send(work()))?;
    Ok(DeadlineTask {
        result,
        began: Instant::now(),
        deadline,
    })
}

impl<T> DeadlineTask<T> {
    fn wait(self, doing: &str) -> io::Result<T> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.result.recv_timeout(left) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(no_answer(doing, self.began.elapsed())),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("its thread ended")),
        }
    }
}

fn no_answer(doing: &str, after: Duration) -> io::Error {
    let words = format!(
        "{doing} was not over within {:.0} s: a mount whose server is gone, or too slow a disk",
        after.as_secs_f64()
    );
    io::Error::new(io::ErrorKind::TimedOut, words)
}

/// The kernel's error with what was being done, and advice.
pub(crate) fn in_words(doing: &str, error: &io::Error) -> io::Error {
    let advice = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": make room there, or use a smaller `size`"
        }
        io::ErrorKind::PermissionDenied => ": run as a user that may, or choose another path",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{doing}: {error}{advice}"))
}

fn refused<T>(words: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, words))
}

/// Opens a path, and checks that the load can use it.
fn open(path: &str, options: &Options) -> io::Result<OpenPath> {
    let load = &options.load;
    let asked = load.storage.map_or(0, |storage| storage.size);
    let place = PathBuf::from(path);
    let metadata = fs::metadata(&place).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "nothing is there: name a file, a block device, or a directory where the load makes a file of its own",
        ),
        _ => in_words("looking at it", &error),
    })?;
    let writes = writes(options);
    let kind = metadata.file_type();
    let kind = if kind.is_dir() {
        PathKind::OwnFile
    } else if kind.is_file() {
        PathKind::File
    } else if kind.is_block_device() {
        PathKind::Device
    } else {
        return refused(
            "it is neither a file nor a block device nor a directory: storage reads and writes blocks".to_owned(),
        );
    };
    if writes && kind != PathKind::OwnFile {
        in_use::check(&place, &metadata)?;
    }
    let file = if kind == PathKind::OwnFile {
        if asked == 0 {
            return refused(
                "it is a directory, where the load makes a file of its own: that needs a `size`"
                    .to_owned(),
            );
        }
        block_file::make_unnamed(&place).map_err(|error| in_words("making a file there", &error))?
    } else {
        open_there(&place, writes, kind)?
    };
    let there = if kind == PathKind::OwnFile {
        asked
    } else {
        contents::size(&file).map_err(|error| in_words("reading its size", &error))?
    };
    if asked > there {
        return refused(format!(
            "it has {there} bytes, and the load's `size` is {asked}: too small"
        ));
    }
    let bytes = if asked == 0 { there } else { asked };
    let io = u64::from(load.request);
    if bytes < io {
        return refused(format!(
            "it has {bytes} bytes, too small for one I/O of {io}"
        ));
    }
    if writes && kind != PathKind::OwnFile && load.overwrite.is_none() {
        contents::must_be_empty(path, &file, there)?;
    }
    let buffered = go_direct(&file, load.request)?;
    Ok(OpenPath {
        file: Arc::new(file),
        path: path.to_owned(),
        kind,
        bytes,
        buffered,
        no_ring: OnceLock::new(),
        emptied: AtomicBool::new(false),
    })
}

fn open_there(place: &Path, writes: bool, kind: PathKind) -> io::Result<File> {
    let exclusive = writes && kind == PathKind::Device;
    block_file::open(place, writes, exclusive).map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => io::Error::new(
            error.kind(),
            "it is opened exclusively (a mounted file system, swap, a device above it, another load): it is not written \
             to",
        ),
        _ => in_words(if writes { "opening it to write" } else { "opening it" }, &error),
    })
}

/// Sets `O_DIRECT` where the file system supports it; else returns why I/O goes through the page cache.
///
/// # Errors
/// `InvalidInput`: the load's I/O is not a multiple of the alignment that direct I/O needs.
fn go_direct(file: &File, io: u32) -> io::Result<Option<String>> {
    let alignment = match direct_io(file) {
        Ok(Some(said)) if said.offset == 0 => {
            return Ok(Some(
                "its file system has no direct I/O on it (statx, STATX_DIOALIGN)".to_owned(),
            ));
        }
        Ok(Some(said)) => said.offset,
        // NFS reports no alignment, and accepts any.
        Ok(None) if is_nfs(file).unwrap_or(false) => 1,
        Ok(None) => {
            return Ok(Some(
                "its file system or this kernel does not say whether direct I/O means something on it (statx, \
                 STATX_DIOALIGN, Linux 6.1)"
                    .to_owned(),
            ));
        }
        Err(error) => return Ok(Some(format!("statx: {error}"))),
    };
    if !io.is_multiple_of(alignment) {
        return refused(format!(
            "direct I/O on it needs a multiple of {alignment} bytes, and the load's is of {io}"
        ));
    }
    match set_direct(file, true) {
        Ok(()) => Ok(None),
        Err(error) => Ok(Some(format!("O_DIRECT: {error}"))),
    }
}
