//! One QEMU process: starts it, controls it by its monitor, and ends it whatever happens.

use std::io::{self, Read};
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wirecost_model::machine_move::Accelerator;
use wirecost_sys::memory_file::MemoryFile;
use wirecost_sys::process::inherit_and_die_with_thread;
use wirecost_sys::shared_memory::SharedMemory;

use crate::error::QemuError;
use crate::guest::{self, IMAGE_BYTES, Program};
use crate::monitor::{Line, Monitor, PATIENCE, TimedLine};
use crate::version::Version;

/// Checks whether a process that closed its monitor has exited, before it is killed.
const EXIT_CHECKS: u32 = 200;
/// Time between two of these checks.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Bytes that are kept of the end of QEMU's standard error.
const STDERR_BYTES: usize = 2 << 10;
/// CPU model of the guest: the same on every host, as a migration needs it. With `host`, QEMU 7.2 exits where the
/// hypervisor of this host does not let it set the processor's MSRs.
const PROCESSOR: &str = "qemu64";

/// The machine to start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// Bytes of memory, a multiple of 4096.
    pub memory: u64,
    /// How the machine runs: by KVM or by emulation.
    pub accelerator: Accelerator,
    /// What its guest does.
    pub program: Program,
    /// Whether the machine waits for an incoming migration (`-incoming defer`) instead of starting its guest.
    pub incoming: bool,
}

/// A virtual machine. Its QEMU process is killed when the value is dropped, and when the calling process ends.
#[derive(Debug)]
pub struct Machine {
    monitor: Monitor,
    memory: Arc<MemoryFile>,
    spec: Spec,
    version: Version,
    /// Ends the thread below: once dropped, it kills QEMU; upon a message, it first gives QEMU time to exit.
    end: Option<Sender<()>>,
    /// The thread that started the QEMU process and waits for its end.
    process: Option<JoinHandle<io::Result<ExitStatus>>>,
    /// The thread that reads QEMU's standard error to its end, and returns the last of it.
    stderr: Option<JoinHandle<Vec<u8>>>,
    /// What that thread returned.
    said: Vec<u8>,
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
    inherit_and_die_with_thread(&mut command, memory);
    inherit_and_die_with_thread(&mut command, firmware);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Reads to the end, and returns the last [`STDERR_BYTES`] bytes.
fn last_bytes(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut bytes = [0; 512];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        kept.extend_from_slice(&bytes[..read]);
        let surplus = kept.len().saturating_sub(STDERR_BYTES);
        kept.drain(..surplus);
    }
    kept
}

type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl Machine {
    /// Starts a machine with the program `qemu`, in the network namespace and on the processors of the calling thread.
    ///
    /// # Errors
    /// [`QemuError::Start`]: memory, a thread or the process cannot be created. [`QemuError::Died`]: QEMU exits at
    /// once. [`QemuError::Silent`]: no greeting.
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
                // The child has inherited the firmware's descriptor.
                drop((command, firmware));
                if let (Some(input), Some(output), Some(errors)) =
                    (child.stdin.take(), child.stdout.take(), child.stderr.take())
                {
                    let _ = tell.send(Ok((input, output, errors)));
                }
                // Without a sender QEMU is killed. A message says that it closed its monitor: it gets time to exit.
                if ends.recv().is_ok() {
                    for _ in 0..EXIT_CHECKS {
                        if let Some(status) = child.try_wait()? {
                            return Ok(status);
                        }
                        thread::sleep(EXIT_CHECK_INTERVAL);
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
        let stderr = thread::Builder::new()
            .name("qemu-stderr".to_owned())
            .stack_size(128 << 10)
            .spawn(move || last_bytes(errors))
            .map_err(failed("starting a machine's thread"))?;
        let monitor = Monitor::new(input, output).map_err(failed("starting a machine's thread"))?;
        let mut machine = Self {
            monitor,
            memory: Arc::new(memory),
            spec: *spec,
            version: Version::default(),
            end: Some(end),
            process: Some(process),
            stderr: Some(stderr),
            said: Vec::new(),
        };
        machine.greet()?;
        Ok(machine)
    }

    fn greet(&mut self) -> Result<(), QemuError> {
        match self.monitor.next(PATIENCE).map(|timed| timed.line) {
            Some(Line::Event(_, greeting)) => self.version = Version::of(&greeting),
            Some(Line::Ended) => return Err(self.died()),
            _ => {
                return Err(QemuError::Silent {
                    command: "greeting".to_owned(),
                    after: PATIENCE,
                });
            }
        }
        self.execute("qmp_capabilities", &json!({}))?;
        Ok(())
    }

    /// Version of the running QEMU.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The specification that the machine was started with.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The guest's memory.
    pub fn memory(&self) -> &SharedMemory {
        self.memory.memory()
    }

    /// The guest's memory, for threads that read it while another one migrates the machine.
    pub fn memory_file(&self) -> Arc<MemoryFile> {
        Arc::clone(&self.memory)
    }

    /// Sender into the queue that [`Self::next`] reads: other threads put their messages there ([`Line::Other`]).
    pub fn queue(&self) -> Sender<TimedLine> {
        self.monitor.queue()
    }

    /// The next event, or message in the queue; `None`: nothing within this time.
    ///
    /// # Errors
    /// [`QemuError::Died`].
    pub fn next(&mut self, within: Duration) -> Result<Option<TimedLine>, QemuError> {
        match self.monitor.next(within) {
            Some(TimedLine {
                line: Line::Ended, ..
            }) => Err(self.died()),
            timed => Ok(timed),
        }
    }

    /// Executes a command of the monitor, and returns its result.
    ///
    /// # Errors
    /// [`QemuError::Refused`], [`QemuError::Silent`] or [`QemuError::Died`].
    pub fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, QemuError> {
        match self.monitor.execute(command, arguments)? {
            Some(value) => Ok(value),
            None => Err(self.died()),
        }
    }

    /// Waits until the guest runs and its timer ticks.
    ///
    /// # Errors
    /// [`QemuError::NotBooted`] after this time; [`QemuError::Died`].
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

    /// Ends a process that has closed its monitor, and says how it ended.
    fn died(&mut self) -> QemuError {
        if let Some(end) = &self.end {
            let _ = end.send(());
        }
        let ended = self.end();
        // The process has ended: the thread reads what is left, and ends.
        if let Some(thread) = self.stderr.take() {
            self.said = thread.join().unwrap_or_default();
        }
        let stderr = String::from_utf8_lossy(&self.said);
        let lines = stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        QemuError::Died {
            status: ended.map_or_else(|| "no status".to_owned(), |status| status.to_string()),
            stderr: lines.collect::<Vec<_>>().join("; "),
        }
    }

    /// Kills the QEMU process if it still runs, and waits for its end.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_is_written_is_kept_however_much_that_is() {
        assert_eq!(last_bytes(&b"no such device"[..]), b"no such device");
        let much: Vec<u8> = (0..10_000).map(|number| (number % 251) as u8).collect();
        assert_eq!(last_bytes(&much[..]), much[much.len() - STDERR_BYTES..]);
    }
}
