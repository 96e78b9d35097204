//! One QEMU process: started, asked, ended whatever happens.

use std::io::{self, Read};
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wirecost_model::moved::Accelerator;
use wirecost_sys::memory_file::MemoryFile;
use wirecost_sys::process::tie;
use wirecost_sys::shared_memory::SharedMemory;

use crate::error::QemuError;
use crate::guest::{self, IMAGE_BYTES, Program};
use crate::monitor::{Line, Monitor, Said};
use crate::version::Version;

/// How often, and at which interval, a process that closed its monitor is looked at before it is killed.
const EXIT_LOOKS: u32 = 200;
const EXIT_LOOK: Duration = Duration::from_millis(10);

/// Bytes of its standard error that are kept.
const KEPT: usize = 2 << 10;
/// How long the greeting is waited for.
const GREETING: Duration = Duration::from_secs(10);

/// The processor that a guest sees: the same on every host, as a machine that moves needs. With `host` QEMU 7.2 ends where
/// a hypervisor of this host lets it set no MSR of the processor's own.
const PROCESSOR: &str = "qemu64";

/// What machine is started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// Bytes of memory, a multiple of 4096.
    pub memory: u64,
    /// How it runs.
    pub accelerator: Accelerator,
    /// What its guest does.
    pub program: Program,
    /// Whether it waits for one that comes (`-incoming defer`) instead of starting its guest.
    pub incoming: bool,
}

/// A machine. Its process is killed when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct Machine {
    monitor: Monitor,
    memory: Arc<MemoryFile>,
    spec: Spec,
    version: Version,
    /// The thread that started the process and waits for its end. It kills it when the sender is gone.
    end: Option<Sender<()>>,
    process: Option<JoinHandle<io::Result<ExitStatus>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> QemuError {
    move |source| QemuError::Start { what, source }
}

fn command(qemu: &Path, spec: &Spec, memory: &MemoryFile, firmware: &MemoryFile) -> Command {
    let kib = spec.memory >> 10;
    let accelerator = spec.accelerator.name();
    let mut command = Command::new(qemu);
    command
        .args(["-name", "wirecost", "-no-user-config", "-nodefaults"])
        .args(["-display", "none", "-smp", "1", "-cpu", PROCESSOR])
        .arg("-machine")
        .arg(format!("pc,accel={accelerator},usb=off,memory-backend=ram"))
        .arg("-m")
        .arg(format!("{kib}K"))
        .arg("-object")
        .arg(format!(
            "memory-backend-file,id=ram,size={kib}K,share=on,mem-path={}",
            memory.path().display()
        ))
        .arg("-bios")
        .arg(firmware.path())
        .args(["-chardev", "stdio,id=monitor,signal=off"])
        .args(["-mon", "chardev=monitor,mode=control"]);
    if spec.incoming {
        command.args(["-incoming", "defer"]);
    }
    tie(&mut command, memory);
    tie(&mut command, firmware);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Keeps the end of what is written to standard error.
fn keep_stderr(mut from: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 512];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&bytes[..read]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
}

type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl Machine {
    /// Starts one with a program. It is in the network namespace and on the processors of the calling thread.
    ///
    /// # Errors
    /// Memory, threads or a process that cannot be had; QEMU that ends at once.
    pub fn start(qemu: &Path, spec: &Spec) -> Result<Self, QemuError> {
        let memory =
            MemoryFile::new(spec.memory as usize).map_err(failed("taking a machine's memory"))?;
        let firmware =
            MemoryFile::new(IMAGE_BYTES).map_err(failed("taking its firmware's memory"))?;
        if !spec.incoming {
            spec.program.fill(memory.memory());
        }
        firmware.memory().store(0, &spec.program.image());
        let mut command = command(qemu, spec, &memory, &firmware);
        let (end, ends) = channel::<()>();
        let (tell, told) = channel::<io::Result<Pipes>>();
        // The kernel kills the process when the thread that started it ends.
        let process = thread::Builder::new()
            .name("qemu".to_owned())
            .stack_size(128 << 10)
            .spawn(move || {
                let mut child = match command.spawn() {
                    Ok(child) => child,
                    Err(error) => {
                        let kind = error.kind();
                        let _ = tell.send(Err(error));
                        return Err(kind.into());
                    }
                };
                // The child has the firmware.
                drop((command, firmware));
                if let (Some(input), Some(output), Some(errors)) =
                    (child.stdin.take(), child.stdout.take(), child.stderr.take())
                {
                    let _ = tell.send(Ok((input, output, errors)));
                }
                // It ends with the sender; what closed its monitor by itself is given the time to exit.
                if ends.recv().is_ok() {
                    for _ in 0..EXIT_LOOKS {
                        if let Some(status) = child.try_wait()? {
                            return Ok(status);
                        }
                        thread::sleep(EXIT_LOOK);
                    }
                }
                let _ = child.kill();
                child.wait()
            })
            .map_err(failed("starting a machine's thread"))?;
        let pipes = told
            .recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        let (input, output, errors) = pipes.map_err(failed("starting QEMU"))?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&stderr);
        thread::Builder::new()
            .name("qemu-stderr".to_owned())
            .stack_size(128 << 10)
            .spawn(move || keep_stderr(errors, &kept))
            .map_err(failed("starting a machine's thread"))?;
        let monitor = Monitor::new(input, output).map_err(failed("starting a machine's thread"))?;
        let mut machine = Self {
            monitor,
            memory: Arc::new(memory),
            spec: *spec,
            version: Version::default(),
            end: Some(end),
            process: Some(process),
            stderr,
        };
        machine.greet()?;
        Ok(machine)
    }

    fn greet(&mut self) -> Result<(), QemuError> {
        match self.monitor.next(GREETING).map(|said| said.line) {
            Some(Line::Event(_, greeting)) => self.version = Version::of(&greeting),
            Some(Line::Ended) => return Err(self.died()),
            _ => {
                return Err(QemuError::Silent {
                    command: "greeting".to_owned(),
                    after: GREETING,
                });
            }
        }
        self.execute("qmp_capabilities", &json!({}))?;
        Ok(())
    }

    /// Which QEMU it is.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What was started.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Its memory, as the guest sees it.
    pub fn memory(&self) -> &SharedMemory {
        self.memory.memory()
    }

    /// The same, for whoever looks at it while another thread moves the machine.
    pub fn memory_file(&self) -> Arc<MemoryFile> {
        Arc::clone(&self.memory)
    }

    /// Where others may put what is waited for here as well ([`Line::Other`]).
    pub fn queue(&self) -> Sender<Said> {
        self.monitor.queue()
    }

    /// The next event, or what was put into the queue; `None`: nothing within that time.
    ///
    /// # Errors
    /// QEMU has ended.
    pub fn next(&mut self, within: Duration) -> Result<Option<Said>, QemuError> {
        match self.monitor.next(within) {
            Some(Said {
                line: Line::Ended, ..
            }) => Err(self.died()),
            said => Ok(said),
        }
    }

    /// Has a command executed, and returns what it did.
    ///
    /// # Errors
    /// QEMU refused it, did not answer, or has ended.
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, QemuError> {
        match self.monitor.execute(command, arguments)? {
            Some(value) => Ok(value),
            None => Err(self.died()),
        }
    }

    /// Waits until the guest runs and its timer ticks.
    ///
    /// # Errors
    /// It does not within the time; QEMU has ended.
    pub fn await_guest(&mut self, within: Duration) -> Result<(), QemuError> {
        let deadline = Instant::now() + within;
        while !guest::is_ready(self.memory()) || guest::ticks(self.memory()) < 3 {
            if Instant::now() >= deadline {
                return Err(QemuError::NotBooted { after: within });
            }
            self.next(Duration::from_millis(2))?;
        }
        Ok(())
    }

    /// How the process ended, which has closed its monitor.
    fn died(&mut self) -> QemuError {
        if let Some(end) = &self.end {
            let _ = end.send(());
        }
        let ended = self.end();
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&kept);
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        QemuError::Died {
            status: ended.map_or_else(|| "no status".to_owned(), |status| status.to_string()),
            said: lines.collect::<Vec<_>>().join("; "),
        }
    }

    /// Kills the process where it runs, and waits for it.
    fn end(&mut self) -> Option<ExitStatus> {
        self.end = None;
        self.process.take()?.join().ok()?.ok()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}
