//! What the whole-program tests share: the program as a child that never outlives its test, waits
//! with an end, and what a machine must allow.

pub(crate) mod namespaces;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use wirecost_model::cell::Cell;
use wirecost_model::record::{RunEnd, RunHead, file};
use wirecost_model::sample::Sample;
use wirecost_skips::measured_again;
pub(crate) use wirecost_skips::{lacks, skip};

/// Longest wait for anything: far beyond what a machine needs whose cores ten others use.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_wirecost"))
}

/// The program with arguments, as if typed without a terminal.
pub(crate) fn wirecost<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(program());
    command.args(arguments);
    command
}

/// Copies a program, for everybody to run. By a child: a file that this process writes, another test's thread passes on
/// to a child of its own until that one's execve(2), and meanwhile to run it is "Text file busy".
pub(crate) fn install(from: &Path, to: &Path) {
    let mut command = Command::new("install");
    assert!(
        succeeds(command.args(["-m", "755"]).args([from, to])),
        "{} installed",
        to.display()
    );
}

/// This program's tests: many that share the machine, or one that has it alone.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Locks that this thread holds.
    static LOCKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// The lock of the machine, shared or exclusive, until this is dropped.
#[derive(Debug)]
pub(crate) struct MachineLock {
    /// `None` where the thread has a lock already: a second read lock would wait for a writer that waits for the first.
    _here: Option<Result<RwLockReadGuard<'static, ()>, RwLockWriteGuard<'static, ()>>>,
    /// Unlocked when it is closed (flock(2)).
    everywhere: Option<File>,
}

impl MachineLock {
    fn new(
        here: Option<Result<RwLockReadGuard<'static, ()>, RwLockWriteGuard<'static, ()>>>,
    ) -> Self {
        LOCKS.set(LOCKS.get() + 1);
        Self {
            _here: here,
            everywhere: None,
        }
    }
}

impl Drop for MachineLock {
    fn drop(&mut self) {
        LOCKS.set(LOCKS.get() - 1);
    }
}

/// Tests that judge what other programs on the same cores change. They run one at a time: no other test of this binary
/// runs a program meanwhile, and none of another checkout that calls this. Other programs they must tolerate.
pub(crate) fn lock_exclusive() -> MachineLock {
    assert_eq!(LOCKS.get(), 0, "a program of this test runs already");
    let here = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    let mut guard = MachineLock::new(Some(Err(here)));
    guard.everywhere = Some(lock_file("alone"));
    guard
}

/// Tests that judge nothing that others on the same cores change: these run in parallel. Every program that a test
/// starts has this by itself; a test that builds or counts something of its own takes it for its whole length.
pub(crate) fn lock_shared() -> MachineLock {
    let first = LOCKS.get() == 0;
    MachineLock::new(first.then(|| Ok(MACHINE.read().unwrap_or_else(PoisonError::into_inner))))
}

/// For a thread of a test that has its lock already.
pub(crate) fn already_locked() -> MachineLock {
    MachineLock::new(None)
}

/// As [`lock_shared`], for tests of what a machine has once: its own devices and sysctls, tunnels by hand, agents
/// without a run. One of them at a time, another checkout's included.
pub(crate) fn lock_machine_state() -> MachineLock {
    let mut guard = lock_shared();
    guard.everywhere = Some(lock_file("machine"));
    guard
}

/// Waits for a lock of this user's that all checkouts share.
pub(crate) fn lock_file(name: &str) -> File {
    let name = format!("wirecost-tests-{}-{name}", nix::unistd::geteuid());
    let path = std::env::temp_dir().join(name);
    let file = File::create(&path).and_then(|file| file.lock().map(|()| file));
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Has what is started from here on begin with SIGINT at its default: a test process that a shell put in the
/// background ignores it, its children inherit that, and `wirecost` leaves ignored what it finds ignored. What has a
/// handler begins with the default after execve(2).
fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").expect("proc");
        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .expect("a mask");
        if ignored & 1 << (Signal::SIGINT as i32 - 1) != 0 {
            signal_hook::flag::register(Signal::SIGINT as i32, Arc::default()).expect("a handler");
        }
    });
}

/// How a program ended and what it had printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Fails the test unless the program ended by itself with this exit code.
    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) {
        // In one line first, for those who see only a part of a long message.
        let said = self.complaints();
        let is = self.status.code();
        assert_eq!(is, Some(code), "code {is:?}: {said:?}\n{self:#?}");
    }

    /// One JSON document, and nothing before or behind it.
    #[track_caller]
    pub(crate) fn document(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Standard error without what a command that takes longer tells of its progress ("  1.5 s  probing").
    pub(crate) fn complaints(&self) -> String {
        let is_progress = |line: &&str| {
            let time = line.trim_start().split_once(" s  ");
            time.is_some_and(|(seconds, _)| seconds.parse::<f64>().is_ok())
        };
        let lines = self.stderr.lines();
        lines.filter(|line| !is_progress(line)).collect()
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(Signal::SIGKILL as i32)
    }
}

/// A program on its way. Dropping it ends it, and the agents that it started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    owner: Owner,
    stdout: File,
    stderr: File,
    /// Dropped last.
    _lock: MachineLock,
}

impl Running {
    /// Starts a program whose output goes to files that have no name: no pipe can fill up.
    pub(crate) fn start(command: &mut Command) -> Self {
        heed_interrupts();
        let guard = lock_shared();
        let file = || tempfile::tempfile().expect("a file for the program's output");
        let (stdout, stderr) = (file(), file());
        let to = |file: &File| Stdio::from(file.try_clone().expect("descriptor"));
        let child = command
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(to(&stdout))
            .stderr(to(&stderr))
            .spawn()
            .expect("the program starts");
        let owner = Owner::of(child.id());
        Self {
            child,
            owner,
            stdout,
            stderr,
            _lock: guard,
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Signals it; `false` where it has ended.
    pub(crate) fn signal(&mut self, what: Signal) -> bool {
        self.ended().is_none() && signal(self.child.id(), what)
    }

    /// The living agents that it started, the oldest first.
    pub(crate) fn agents(&self) -> Vec<Agent> {
        agents_of(self.owner)
    }

    /// What it has told on standard error so far.
    pub(crate) fn stderr_so_far(&self) -> String {
        contents(&self.stderr)
    }

    /// Whether both hosts have answered a request so many times, as the log of `--verbose` tells it.
    pub(crate) fn answered(&self, doing: &str, times: usize) -> bool {
        let log = self.stderr_so_far();
        let is_of = |line: &&str| line.contains("wirecost_agent::link") && line.contains(doing);
        log.lines().filter(is_of).count() >= 2 * times
    }

    /// Its end, if it has come.
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        let status = self.child.try_wait().expect("our own child")?;
        Some(Ended {
            status,
            stdout: contents(&self.stdout),
            stderr: contents(&self.stderr),
        })
    }

    /// As [`wait_for`], for what comes while it runs: fails the test at once, with what it printed, where it ended before.
    #[track_caller]
    pub(crate) fn wait_for<T>(&mut self, what: &str, mut ask: impl FnMut(&Self) -> Option<T>) -> T {
        wait_for(what, || {
            let ended = self.ended();
            let answer = ask(self);
            if let (None, Some(ended)) = (&answer, ended) {
                panic!("it ended before {what}: {ended:#?}");
            }
            answer
        })
    }

    /// Waits for its end. What it may have left behind is ended only when this is dropped.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Ended {
        wait_for("the program to end", || self.ended())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        for agent in self.agents() {
            signal(agent.pid, Signal::SIGKILL);
        }
    }
}

fn contents(file: &File) -> String {
    let length = file.metadata().expect("metadata").len();
    let mut bytes = vec![0; usize::try_from(length).expect("a file that fits")];
    file.read_exact_at(&mut bytes, 0).expect("what was printed");
    String::from_utf8(bytes).expect("text")
}

/// Runs a program to its end.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Ended {
    Running::start(command).wait()
}

/// The living settings guards that a controller's run has.
pub(crate) fn settings_guards(owner: &str) -> Vec<u32> {
    fs::read_dir("/proc")
        .expect("proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&str> = text.split('\0').collect();
            words.get(1) == Some(&"settings-guard") && words.contains(&owner)
        })
        .collect()
}

/// Asks again and again until there is an answer; fails the test where none comes.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(
            Instant::now() < deadline,
            "waited {} s for {what}",
            PATIENCE.as_secs()
        );
        sleep(Duration::from_millis(2));
    }
}

/// Signals a process; one that is gone is no error.
pub(crate) fn signal(pid: u32, signal: Signal) -> bool {
    kill(Pid::from_raw(pid.cast_signed()), signal).is_ok()
}

/// An agent as the process list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) pid: u32,
    pub(crate) host: String,
}

/// A controller as its agents name it: process id and start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    start: u64,
}

impl Owner {
    /// A process that exists.
    pub(crate) fn of(pid: u32) -> Self {
        let (_, start) = state_and_start(pid).expect("a process");
        Self { pid, start }
    }

    /// As it stands among an agent's arguments.
    pub(crate) fn argument(self) -> String {
        format!("{}:{}", self.pid, self.start)
    }
}

/// The living agents that a controller started, the oldest first.
pub(crate) fn agents_of(controller: Owner) -> Vec<Agent> {
    let owner = controller.argument();
    let mut agents: Vec<Agent> = fs::read_dir("/proc")
        .expect("proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<&str> = text.split('\0').collect();
            let after = |name| words.iter().skip_while(|word| **word != name).nth(1);
            (words.get(1) == Some(&"agent") && after("--owner") == Some(&owner.as_str())).then_some(
                Agent {
                    pid,
                    host: (*after("--host")?).to_owned(),
                },
            )
        })
        .collect();
    agents.sort_by_key(|agent| agent.pid);
    agents
}

/// A process's state letter (proc_pid_stat(5)) and start time in ticks; `None` where it is gone.
pub(crate) fn state_and_start(pid: u32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the command's name, which may hold anything, comes field 3.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((
        fields.first()?.chars().next()?,
        fields.get(22 - 3)?.parse().ok()?,
    ))
}

/// A temporary directory of a test, removed with it.
pub(crate) struct TestDir {
    directory: tempfile::TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("temporary directory"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a plan and returns where it is.
    pub(crate) fn plan(&self, text: &str) -> PathBuf {
        let path = self.path().join("plan.yaml");
        fs::write(&path, text).expect("plan");
        path
    }

    /// `wirecost run PLAN --out DIR/NAME`, in this directory.
    pub(crate) fn run_command(&self, plan: &Path, name: &str) -> Command {
        let mut command = wirecost(["run"]);
        command
            .arg(plan)
            .arg("--out")
            .arg(self.path().join(name))
            .current_dir(self.path());
        command
    }
}

/// A run directory, read without the program's own reader.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) head: RunHead,
    pub(crate) samples: Vec<Sample>,
    /// Whether the last line has no end: the write was cut by a kill.
    pub(crate) cut: bool,
    pub(crate) end: Option<RunEnd>,
}

impl Record {
    /// Reads a run directory; `None` where its first file was not written yet.
    #[track_caller]
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let json = |name| match fs::read_to_string(directory.join(name)) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => panic!("{}: {error}", directory.join(name).display()),
        };
        let head = serde_json::from_str(&json(file::RUN)?).expect("a whole run.json");
        let end = json(file::END).map(|text| serde_json::from_str(&text).expect("whole end.json"));
        let text = json(file::SAMPLES).unwrap_or_default();
        let (lines, rest) = text.split_at(text.rfind('\n').map_or(0, |newline| newline + 1));
        let sample = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let samples: Vec<Sample> = lines.lines().map(sample).collect();
        for failed in samples.iter().flat_map(|one| &one.failed_attempts) {
            measured_again(failed.invalid.reason());
        }
        Some(Self {
            head,
            samples,
            cut: !rest.is_empty(),
            end,
        })
    }
}

/// Lines of a record's samples so far.
pub(crate) fn lines_written(directory: &Path) -> usize {
    let text = fs::read_to_string(directory.join(file::SAMPLES)).unwrap_or_default();
    text.matches('\n').count()
}

/// Whether a lab can be built here, as root or in a user namespace; where not, says so.
pub(crate) fn lab_can_be_built() -> bool {
    let tries = |arguments: &[&str]| succeeds(Command::new("unshare").args(arguments).arg("true"));
    let possible = tries(&["--net", "--mount"]) || tries(&["--user", "--net", "--mount"]);
    possible || skip("this user cannot make network namespaces (`unshare --user --net` fails)")
}

/// Whether this is root, with the right to make network namespaces; where not, says so.
pub(crate) fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root()
        && succeeds(Command::new("unshare").args(["--net", "--mount", "true"]));
    root || skip("this needs root (`ip netns add`, another user's processes)")
}

/// Whether a command can be started and ends well.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The cores in a mask as sysfs writes it: hexadecimal words, the highest first.
pub(crate) fn cores_of_mask(mask: &str) -> Vec<u32> {
    let bits = u128::from_str_radix(&mask.replace(',', ""), 16).expect("a mask");
    (0..u128::BITS)
        .filter(|core| bits >> core & 1 == 1)
        .collect()
}

/// Runs a plan with `--json` in a directory of its own, as [`measured_in`] does.
pub(crate) fn measured(plan: &str) -> (Ended, Record, TestDir) {
    let place = TestDir::new();
    let (ended, record) = measured_in(&place, plan);
    (ended, record, place)
}

/// Runs a plan with `--json`, with its record in `out`.
pub(crate) fn measured_in(place: &TestDir, plan: &str) -> (Ended, Record) {
    let file = place.plan(plan);
    let ended = run(place.run_command(&file, "out").arg("--json"));
    let record = Record::read(&place.path().join("out"));
    let record = record.unwrap_or_else(|| panic!("no record: {ended:#?}"));
    (ended, record)
}

/// The cell that a sample is of.
pub(crate) fn cell_of<'a>(record: &'a Record, sample: &Sample) -> &'a Cell {
    &record.head.experiment.cells[sample.cell as usize]
}
