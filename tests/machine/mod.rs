//! Machines with kernels of Debian's own, to run the program in: QEMU, by KVM where that boots them, by emulation
//! elsewhere. Whatever ends the test ends them; nothing of them is on the disk but the kernels, which are kept.

pub(crate) mod archive;
#[allow(dead_code, reason = "each test program uses its part")]
pub(crate) mod pair;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use archive::{Archive, find};

/// The packages whose kernels are tried, by the names under which Debian has the newest of each line.
pub(crate) const KERNELS: [&str; 2] = ["linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"];

/// From its start to its first command. Three seconds where nothing else runs.
const BOOT: Duration = Duration::from_mins(1);
/// Boots that the emulator may spoil, less one.
const TRIES: u32 = 4;
/// What KVM gets for it before emulation is taken. Not every hypervisor's KVM boots every kernel.
const BOOT_KVM: Duration = Duration::from_secs(15);
/// The longest life of a machine, seconds: `timeout` ends it even where this process is stopped.
const LIFE_S: u32 = 3600;
/// How much longer than its time a machine that works may take: on a crowded one a constant tells who is slow, and not
/// who hangs.
const LONGER: u32 = 6;
/// How long it is looked at whether it works, and the share of a core that it then uses at least.
const LOOK: Duration = Duration::from_secs(10);
const AT_WORK: f64 = 0.05;
/// Beyond a command's own time: for its output to come over a serial line.
const GRACE: Duration = Duration::from_secs(30);

/// A kernel, unpacked.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// The package.
    pub(crate) package: &'static str,
    /// As `uname -r` says it.
    pub(crate) release: String,
    directory: PathBuf,
}

/// How a command in a machine ended and what it had printed.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Its standard output; fails the test unless it ended with 0.
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        self.expect_code(0).stdout
    }

    /// Fails the test unless it ended with this code.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "standard output:\n{}\nstandard error:\n{}",
            self.stdout, self.stderr
        );
        self
    }
}

/// A running machine. Dropping it ends it.
pub(crate) struct Machine {
    /// `timeout`, whose child dies with it.
    process: Child,
    commands: ChildStdin,
    answers: Receiver<Answer>,
    console: File,
    pub(crate) release: String,
}

enum Answer {
    Ready,
    Done(CommandOutput),
}

/// What a machine is made of beside its kernel and busybox.
pub(crate) struct Contents {
    pub(crate) archive: Archive,
}

/// `target/kernels`, where downloads are kept.
pub(crate) fn downloads_dir() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    target.parent().expect("target").join("kernels")
}

impl Kernel {
    /// Downloads it where it is not there yet; the error is the script's words.
    pub(crate) fn get(package: &'static str) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/debian-kernel");
        let got = Command::new(script)
            .arg(package)
            .arg(downloads_dir())
            .output();
        let got = got.map_err(|error| format!("scripts/debian-kernel: {error}"))?;
        if !got.status.success() {
            return Err(String::from_utf8_lossy(&got.stderr).trim().to_owned());
        }
        let directory = downloads_dir().join(package);
        let release = fs::read_to_string(directory.join("release")).expect("a release");
        Ok(Self {
            package,
            release: release.trim().to_owned(),
            directory,
        })
    }

    /// Whether a module is there for the machine.
    pub(crate) fn has_module(&self, name: &str) -> bool {
        let list = self.directory.join("root/lib/modules");
        let list = list.join(&self.release).join("modules.dep");
        let known = fs::read_to_string(list).unwrap_or_default();
        known.contains(&format!("/{name}.ko:"))
    }

    /// `kvm` or `tcg`: tried once for each kernel of this machine, and remembered.
    fn accelerator(&self) -> String {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        if File::options().write(true).open("/dev/kvm").is_err() {
            return "tcg".to_owned();
        }
        let _one = ONE_AT_A_TIME.lock();
        let host = fs::read_to_string("/proc/sys/kernel/osrelease").expect("proc");
        let note = self.directory.join(format!("accelerator-{}", host.trim()));
        if let Ok(known) = fs::read_to_string(&note) {
            return known;
        }
        let boots = Machine::start(
            self,
            &mut Contents::new(self).archive.finish(),
            &[],
            &[],
            "kvm",
        )
        .answers
        .recv_timeout(BOOT_KVM)
        .is_ok();
        let which = if boots { "kvm" } else { "tcg" };
        fs::write(note, which).expect("room on the disk");
        which.to_owned()
    }
}

impl Contents {
    /// busybox, the kernel's modules and the first process.
    pub(crate) fn new(kernel: &Kernel) -> Self {
        let mut archive = Archive::new();
        archive.copy(&find("busybox"), "/bin/busybox");
        // busybox's own shell takes its own commands before those of the PATH.
        archive.command("dash");
        archive.link("/bin/sh", find("dash").to_str().expect("a plain path"));
        archive.file("/init", 0o755, include_bytes!("init.sh"));
        archive.copy(&kernel.directory.join("root/lib/modules"), "/lib/modules");
        // busybox's ends before a module that another process loads has come up.
        archive.command("modprobe");
        // Written as Debian has them; a user beside root for what needs no privilege.
        let users = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n";
        archive.file("/etc/passwd", 0o644, users);
        archive.file("/etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n");
        archive.file("/etc/shells", 0o644, b"/bin/sh\n");
        Self { archive }
    }
}

impl Machine {
    /// Boots a kernel with what is in an archive and more of QEMU's options, started by the words in front.
    pub(crate) fn boot_with(
        kernel: &Kernel,
        archive: &mut File,
        before: &[&str],
        options: &[&str],
    ) -> Self {
        let accelerator = kernel.accelerator();
        let mut tries = 0;
        loop {
            let mut machine = Self::start(kernel, archive, before, options, &accelerator);
            if machine.ready(BOOT) {
                return machine;
            }
            tries += 1;
            // A kernel may also hang in the emulator before it prints anything.
            let words = machine.last_words();
            let of_the_emulator = machine.was_ended_by_the_emulator() || words.trim().is_empty();
            assert!(of_the_emulator && tries < TRIES, "no boot: {words}");
        }
    }

    /// Processors that QEMU emulates in threads of their own may meet a breakpoint that another has taken away already,
    /// where the kernel changes its own code (arch/x86/kernel/alternative.c, `text_poke_bp`): nothing of what is
    /// tested.
    pub(crate) fn was_ended_by_the_emulator(&self) -> bool {
        self.last_words().contains("Oops: int3") || self.last_words().contains("int3: 0000")
    }

    fn start(
        kernel: &Kernel,
        archive: &mut File,
        before: &[&str],
        options: &[&str],
        accelerator: &str,
    ) -> Self {
        let console = tempfile::tempfile().expect("a file for the console");
        let own = |file: &File| format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        // Both wrappers die with this thread, and QEMU with them.
        let mut command = Command::new(before.first().copied().unwrap_or("setpriv"));
        if let [_, rest @ ..] = before {
            command.args(rest).arg("setpriv");
        }
        command.args(["--pdeathsig", "KILL", "timeout", "--signal=KILL"]);
        command.arg(LIFE_S.to_string());
        command.args(["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"]);
        command.args(match accelerator {
            "kvm" => ["-accel", "kvm", "-cpu", "host"],
            // Page tables of five levels and the guards of user memory cost an emulator much.
            _ => [
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max,la57=off,smap=off,smep=off,pku=off",
            ],
        });
        command.args(["-M", "q35", "-smp", "2", "-m", "2G", "-no-reboot"]);
        command.args(["-nodefaults", "-no-user-config", "-display", "none"]);
        command.arg("-kernel").arg(kernel.directory.join("vmlinuz"));
        command.args(["-initrd", &own(archive)]).args([
            "-append",
            // Expedited RCU: namespaces end at once. No zeroing of what is allocated.
            "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off random.trust_cpu=on rcupdate.rcu_expedited=1 \
             init_on_alloc=0 hardened_usercopy=off audit=0 apparmor=0",
        ]);
        let to = format!("file,id=console,path={}", own(&console));
        command.args(["-chardev", &to, "-serial", "chardev:console"]);
        command.args(["-chardev", "stdio,id=commands,signal=off"]);
        command.args(["-serial", "chardev:commands"]).args(options);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(console.try_clone().expect("descriptor"))
            .spawn()
            .expect("setpriv of util-linux");
        let commands = process.stdin.take().expect("a pipe");
        let mut answered = BufReader::new(process.stdout.take().expect("a pipe"));
        let (tell, answers) = channel();
        std::thread::spawn(move || {
            while let Some(answer) = read_answer(&mut answered) {
                if tell.send(answer).is_err() {
                    break;
                }
            }
        });
        Self {
            process,
            commands,
            answers,
            console,
            release: kernel.release.clone(),
        }
    }

    fn ready(&mut self, within: Duration) -> bool {
        matches!(self.answer(within), Ok(Answer::Ready))
    }

    /// What it says next: within a time, and later while it works.
    fn answer(&mut self, within: Duration) -> Result<Answer, RecvTimeoutError> {
        let end = Instant::now() + within * LONGER;
        let (mut wait, mut before) = (within, self.cpu_seconds());
        loop {
            match self.answers.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => {}
                said => return said,
            }
            let used = self.cpu_seconds();
            if used - before < AT_WORK * wait.as_secs_f64() || Instant::now() > end {
                return Err(RecvTimeoutError::Timeout);
            }
            (wait, before) = (LOOK, used);
        }
    }

    /// Runs a shell script in the machine, which has so many seconds, and more while the machine works.
    #[track_caller]
    pub(crate) fn sh(&mut self, seconds: u32, script: &str) -> CommandOutput {
        let began = Instant::now();
        let line = format!("{} {}\n", seconds * LONGER, base64(script.as_bytes()));
        // The line has no flow control, and the kernel keeps 4096 bytes.
        assert!(line.len() < 4000, "{} bytes of script", line.len());
        let written = self.commands.write_all(line.as_bytes());
        let answer = written.ok().map(|()| {
            let within = Duration::from_secs(seconds.into()) + GRACE;
            self.answer(within)
        });
        match answer {
            Some(Ok(Answer::Done(done))) => done,
            Some(Err(RecvTimeoutError::Timeout)) => panic!(
                "{}: no answer within {:?}: {script}\n{}",
                self.release,
                began.elapsed(),
                self.last_words()
            ),
            _ => panic!(
                "{}: it ended: {script}\n{}",
                self.release,
                self.last_words()
            ),
        }
    }

    /// Seconds of processor time that QEMU has used so far: unlike the clock's they say little of what else this
    /// machine does.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let timeout = self.process.id();
        let child = fs::read_to_string(format!("/proc/{timeout}/task/{timeout}/children"));
        let stat = child.and_then(|pid| fs::read_to_string(format!("/proc/{}/stat", pid.trim())));
        // The 14th and 15th field of proc_pid_stat(5), in ticks of 10 ms, behind the command in brackets.
        let fields = stat
            .ok()
            .and_then(|stat| Some(stat.rsplit_once(')')?.1.to_owned()));
        let ticks = fields
            .iter()
            .flat_map(|fields| fields.split_whitespace().skip(11).take(2));
        ticks
            .filter_map(|ticks| ticks.parse::<f64>().ok())
            .sum::<f64>()
            / 100.0
    }

    /// What the kernel and QEMU said.
    pub(crate) fn last_words(&self) -> String {
        let mut bytes = Vec::new();
        let path = format!("/proc/self/fd/{}", self.console.as_raw_fd());
        File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .expect("our own file");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_answer(from: &mut impl BufRead) -> Option<Answer> {
    loop {
        let mut line = Vec::new();
        if from.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        let Some((_, words)) = line.split_once("@@ ") else {
            continue;
        };
        if words == "ready" {
            return Some(Answer::Ready);
        }
        let numbers: Vec<usize> = words.split(' ').map_while(|w| w.parse().ok()).collect();
        let &[code, stdout, stderr] = numbers.as_slice() else {
            continue;
        };
        let mut text = |length| {
            let mut bytes = vec![0; length];
            from.read_exact(&mut bytes).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        return Some(Answer::Done(CommandOutput {
            code: i32::try_from(code).expect("an exit code"),
            stdout: text(stdout)?,
            stderr: text(stderr)?,
        }));
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() {
                '='
            } else {
                char::from(digit)
            });
        }
    }
    text
}
