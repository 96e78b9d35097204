//! Network, mount and user namespaces. Those of a lab are held by processes and nothing else, without a name in
//! /run/netns, so that the kernel drops them with their last holder; named ones are those of ip-netns(8).

use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid, gettid};

/// A network namespace, held open.
#[derive(Debug)]
pub struct Netns {
    file: File,
}

impl Netns {
    /// The calling thread's namespace.
    pub fn current() -> io::Result<Self> {
        Ok(Self {
            file: File::open("/proc/thread-self/ns/net")?,
        })
    }

    /// The namespace of that name, as ip-netns(8) keeps it.
    pub fn named(name: &str) -> io::Result<Self> {
        Ok(Self {
            file: File::open(Path::new(NAMED).join(name))?,
        })
    }

    /// The namespace of a process or thread.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self {
            file: File::open(format!("/proc/{pid}/ns/net"))?,
        })
    }

    /// Inode number of the namespace's file (namespaces(7)): equal for the same namespace of a machine.
    ///
    /// # Errors
    /// Where the kernel does not report it.
    pub fn inode(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.ino())
    }

    /// Moves the calling thread into this namespace until the guard is dropped.
    ///
    /// Sockets made meanwhile stay in this namespace permanently.
    pub fn enter(&self) -> io::Result<NetnsGuard> {
        let home = Self::current()?;
        setns(&self.file, CloneFlags::CLONE_NEWNET)?;
        Ok(NetnsGuard {
            home,
            not_send: PhantomData,
        })
    }

    /// Runs `work` inside this namespace.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let _inside = self.enter()?;
        Ok(work())
    }
}

/// A namespace's file, such as /proc/PID/ns/net or one in /run/netns, opened by the caller.
impl From<File> for Netns {
    fn from(file: File) -> Self {
        Self { file }
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Netns {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Guard: the calling thread is inside a namespace until this is dropped. Not `Send`: each thread has its own
/// namespace.
#[derive(Debug)]
pub struct NetnsGuard {
    home: Netns,
    not_send: PhantomData<*const ()>,
}

impl Drop for NetnsGuard {
    fn drop(&mut self) {
        // A thread left in the wrong namespace would configure the wrong devices: abort instead.
        if setns(&self.home.file, CloneFlags::CLONE_NEWNET).is_err() {
            std::process::abort();
        }
    }
}

/// A new network namespace with a parked thread in it, so that `/proc/PID/task/TID/net` shows it.
#[derive(Debug)]
pub struct HeldNetns {
    netns: Netns,
    tid: u32,
    release: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl HeldNetns {
    /// Creates a namespace owned by the caller's user namespace, and a thread called `name` that is parked in it. Needs
    /// `CAP_SYS_ADMIN` in that user namespace.
    pub fn create(name: &str) -> io::Result<Self> {
        PendingNetns::begin(name)?.finish()
    }

    /// Creates a namespace for each name, all at the same time.
    pub fn create_all(names: &[String]) -> io::Result<Vec<Self>> {
        let pending = names.iter().map(|name| PendingNetns::begin(name));
        let pending: Vec<PendingNetns> = pending.collect::<io::Result<_>>()?;
        pending.into_iter().map(PendingNetns::finish).collect()
    }

    /// The namespace.
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Thread id of the thread parked inside.
    pub fn tid(&self) -> u32 {
        self.tid
    }
}

/// Stack of a parked thread, bytes: it makes no deep calls.
const PARKED_STACK: usize = 64 * 1024;

/// A namespace that its thread is creating.
struct PendingNetns {
    made: mpsc::Receiver<io::Result<(Netns, u32)>>,
    release: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl PendingNetns {
    fn begin(name: &str) -> io::Result<Self> {
        let (report, made) = mpsc::channel();
        let (release, parked) = mpsc::channel::<()>();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(PARKED_STACK)
            .spawn(move || {
                let result = unshare(CloneFlags::CLONE_NEWNET)
                    .map_err(io::Error::from)
                    .and_then(|()| Netns::current());
                let failed = result.is_err();
                let sent = report.send(result.map(|netns| (netns, gettid().as_raw() as u32)));
                if !failed && sent.is_ok() {
                    // Ends when the sender is dropped.
                    let _ = parked.recv();
                }
            })?;
        Ok(Self {
            made,
            release,
            thread,
        })
    }

    fn finish(self) -> io::Result<HeldNetns> {
        let made = self.made.recv();
        let (netns, tid) = made.map_err(|_| io::Error::other("the namespace's thread ended"))??;
        Ok(HeldNetns {
            netns,
            tid,
            release: Some(self.release),
            thread: Some(self.thread),
        })
    }
}

impl Drop for HeldNetns {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// User namespace that a lab host is created in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserNamespace {
    /// The caller's own, where it has the privilege.
    Keep,
    /// A new one, in which the calling user is root.
    New,
    /// That of the process with this id, which belongs to the same user.
    Of(u32),
}

/// Moves the calling process into network and mount namespaces of its own.
///
/// Must be called while the process has one thread: the kernel allows a user namespace to be
/// entered by single-threaded processes only (user_namespaces(7)).
///
/// # Errors
/// `PermissionDenied` where the kernel forbids it; [`forbidding_setting`] names the setting.
pub fn isolate(user: UserNamespace) -> io::Result<()> {
    let own = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    match user {
        UserNamespace::Keep => unshare(own)?,
        UserNamespace::New => {
            let (uid, gid) = (geteuid(), getegid());
            unshare(CloneFlags::CLONE_NEWUSER | own)?;
            // Without this the kernel refuses an unprivileged gid_map (user_namespaces(7)).
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
            fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
        }
        UserNamespace::Of(pid) => {
            let path = format!("/proc/{pid}/ns/user");
            // Joining the namespace one is in already is refused (EINVAL, kernel/user_namespace.c).
            if fs::read_link(&path)? != fs::read_link("/proc/self/ns/user")? {
                setns(File::open(path)?, CloneFlags::CLONE_NEWUSER)?;
            }
            unshare(own)?;
        }
    }
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    Ok(())
}

/// Directory where ip-netns(8) keeps named network namespaces.
pub const NAMED: &str = "/run/netns";

/// Named network namespaces of this machine, sorted; empty where [`NAMED`] does not exist.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(NAMED).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Moves the calling process into a named network namespace. Where mounting is allowed, the process also gets a mount
/// namespace of its own in which /sys shows the devices of the network namespace.
///
/// Must be called while the process has one thread: only the calling thread is moved.
///
/// # Errors
/// `NotFound` where no namespace has the name, `PermissionDenied` without `CAP_SYS_ADMIN`, `InvalidInput` where the
/// file of that name holds no namespace any more.
pub fn join_named(name: &str) -> io::Result<()> {
    let file = File::open(Path::new(NAMED).join(name))?;
    setns(file, CloneFlags::CLONE_NEWNET)?;
    if unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        let (none, private) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
        mount(none, "/", none, private, none)?;
        // A container may forbid the mount; /sys then shows the devices of the namespace that was left.
        let _ = mount_own_sysfs();
    }
    Ok(())
}

/// Creates a named network namespace, as `ip netns add` does: it stays until [`remove_named`].
///
/// # Errors
/// `AlreadyExists` where the name is taken, `PermissionDenied` without `CAP_SYS_ADMIN`.
pub fn create_named(name: &str) -> io::Result<()> {
    fs::create_dir_all(NAMED)?;
    let path = Path::new(NAMED).join(name);
    File::create_new(&path)?;
    let bound = HeldNetns::create(name).and_then(|held| {
        let source = format!("/proc/self/task/{}/ns/net", held.tid());
        let (none, bind) = (None::<&str>, MsFlags::MS_BIND);
        Ok(mount(Some(source.as_str()), &path, none, bind, none)?)
    });
    if bound.is_err() {
        let _ = fs::remove_file(&path);
    }
    bound
}

/// Removes the name of a network namespace; the namespace goes, with its devices, when no process is in it any more. A
/// missing name is no error.
///
/// # Errors
/// Errors of umount2(2) and unlink(2).
pub fn remove_named(name: &str) -> io::Result<()> {
    let path = Path::new(NAMED).join(name);
    match umount2(&path, MntFlags::MNT_DETACH) {
        // Nothing is mounted there.
        Ok(()) | Err(nix::Error::EINVAL | nix::Error::ENOENT) => {}
        Err(error) => return Err(error.into()),
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Mounts a BPF file system on a directory, which is created where it is missing, unless one is mounted there already.
///
/// # Errors
/// Errors of mount(2): `PermissionDenied` outside of the initial user namespace.
pub fn mount_bpffs(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    if is_mounted(directory)? {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    Ok(mount(
        Some("bpf"),
        directory,
        Some("bpf"),
        flags,
        Some("mode=0700"),
    )?)
}

/// Unmounts the BPF file system of a directory, with every pin in it, and removes the directory. A missing directory is
/// no error.
///
/// # Errors
/// Errors of umount2(2) and rmdir(2).
pub fn unmount_bpffs(directory: &Path) -> io::Result<()> {
    match umount2(directory, MntFlags::empty()) {
        Ok(()) | Err(nix::Error::EINVAL | nix::Error::ENOENT) => {}
        Err(error) => return Err(error.into()),
    }
    match fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Whether a directory is a mount point: on another file system than its parent.
fn is_mounted(directory: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let Some(parent) = directory.parent() else {
        return Ok(true);
    };
    Ok(fs::metadata(directory)?.dev() != fs::metadata(parent)?.dev())
}

/// Mounts a sysfs that shows the calling thread's network namespace, over /sys of the private
/// mount namespace. Some containers forbid it; then per-queue settings cannot be read back.
pub fn mount_own_sysfs() -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    match mount(Some("sysfs"), "/sys", Some("sysfs"), flags, None::<&str>) {
        // /sys shows this namespace already: the kernel does not mount the same file system twice in one place.
        Ok(()) | Err(Errno::EBUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Runs `work` where /sys shows the calling thread's network namespace: in a thread with a mount namespace of its own,
/// which ends with it.
///
/// # Errors
/// `PermissionDenied` where mounting is forbidden; `work` is then not run.
pub fn with_own_sysfs<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let inside = || -> io::Result<T> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)?;
        mount_own_sysfs()?;
        Ok(work())
    };
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().spawn_scoped(scope, inside)?;
        let panicked = |_| Err(io::Error::other("its thread panicked"));
        worker.join().unwrap_or_else(panicked)
    })
}

/// Whether a capability, by its number (include/uapi/linux/capability.h), is in the calling thread's effective set, in
/// whichever user namespace the thread is. `false` where /proc cannot be read.
pub fn effective_capability(number: u32) -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> number & 1 == 1)
}

/// The sysctl that forbids user namespaces to unprivileged users, and its fix; `None` where none is found.
pub fn forbidding_setting() -> Option<String> {
    let forbids =
        |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let table = [
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("user/max_user_namespaces", "0", "16384"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    table.into_iter().find_map(|(key, bad, good)| {
        forbids(&format!("/proc/sys/{key}"), bad).then(|| {
            let name = key.replace('/', ".");
            format!("{name} is {bad}: run as root, or `sysctl -w {name}={good}`")
        })
    })
}
