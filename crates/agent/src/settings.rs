//! What a process changes in the namespaces that it is in, and how it undoes it: sysctls, commands, and on an existing host
//! features of its device.

pub(crate) mod journal;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use wirecost_model::vary::{Deed, DeviceSetting, Setting};
use wirecost_netbuild::{BuildError, ExistingDevice};
use wirecost_sys::process::PidFd;

use crate::error::{AgentError, Step};
use crate::protocol::LeftSettings;
use journal::{Journal, Left};

/// How long a plan's command may take.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// As much of a command's output as an error tells: its end.
const OUTPUT_BYTES: u64 = 1000;

/// The settings that are applied, in the order in which they were applied.
#[derive(Debug)]
pub(crate) struct AppliedSettings {
    /// What messages call the place: `host a`, `the guest of host b`, `this machine`.
    place: String,
    ground: Ground,
    undo: Vec<Undo>,
    /// On an existing host, from the first change on.
    journal: Option<Journal>,
}

/// Whose settings are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// Those of a lab's namespaces, which end with it.
    Lab,
    /// This machine's, outside of a lab: a sysctl that is missing is missing.
    Machine,
    /// An existing host's: every change is in a journal before it is made.
    Existing {
        /// The device whose features a level may set.
        device: String,
    },
}

/// One step back. It is noted before the step it undoes is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undo {
    /// "the level `x` of `y`".
    of: String,
    what: What,
    /// The device that it is of, where that is not the one with the measured address
    /// ([`wirecost_model::vary::Setting::device_name`]).
    #[serde(default)]
    device: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum What {
    Sysctl { name: String, was: String },
    Features(BTreeMap<String, bool>),
    Device { setting: DeviceSetting, was: String },
    Command(String),
}

impl Undo {
    /// In words.
    fn words(&self) -> String {
        let Self { of, what, device } = self;
        let device = device.as_ref().map(|device| format!(" of {device}"));
        let device = device.unwrap_or_default();
        match what {
            What::Sysctl { name, was } => format!("{of}: {name} = {was}"),
            What::Features(_) if device.is_empty() => format!("{of}: features of the device"),
            What::Features(_) => format!("{of}: features{device}"),
            What::Device { setting, was } => format!("{of}: {}{device} = {was}", setting.key()),
            What::Command(command) => format!("{of}: {}", command.trim()),
        }
    }

    /// Whether what it restores is not there any more: after a restart the kernel has its own again, and a device or a network
    /// namespace may have been removed. Commands are always to be run.
    fn is_gone(&self, left: &Left) -> bool {
        let device = self.device.as_ref().unwrap_or(&left.entry.device);
        match &self.what {
            What::Command(_) => false,
            _ if left.restarted => true,
            What::Sysctl { name, .. } => !path(name).exists(),
            What::Features(_) | What::Device { .. } => !ExistingDevice::exists(device),
        }
    }
}

impl AppliedSettings {
    pub(crate) fn nothing(place: &str, ground: Ground) -> Self {
        Self {
            place: place.to_owned(),
            ground,
            undo: Vec::new(),
            journal: None,
        }
    }

    /// What a journal says is still applied, and the steps of it that are gone, in words.
    fn left(left: &Left) -> (Self, Vec<String>) {
        let steps = left.entry.undo.iter().cloned();
        let (gone, undo): (Vec<Undo>, Vec<Undo>) = steps.partition(|step| step.is_gone(left));
        let applied = Self {
            undo,
            ..Self::nothing(
                &left.entry.place,
                Ground::Existing {
                    device: left.entry.device.clone(),
                },
            )
        };
        (applied, gone.iter().map(Undo::words).collect())
    }

    /// The steps that are to be undone, in words.
    fn words(&self) -> Vec<String> {
        self.undo.iter().map(Undo::words).collect()
    }

    /// Notes a step, and on an existing host writes it down, before it is made.
    fn note(&mut self, of: &str, what: What, device: Option<&str>) -> Result<(), String> {
        self.undo.push(Undo {
            of: of.to_owned(),
            what,
            device: device.map(str::to_owned),
        });
        let written = self.write_journal();
        if written.is_err() {
            self.undo.pop();
        }
        written
    }

    fn forget_last(&mut self) -> Result<(), String> {
        self.undo.pop();
        self.write_journal()
    }

    fn write_journal(&mut self) -> Result<(), String> {
        let Ground::Existing { device } = &self.ground else {
            return Ok(());
        };
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => {
                let new = Journal::new(&self.place, device);
                none.insert(new.map_err(|error| format!("making a journal: {error}"))?)
            }
        };
        journal.keep(&self.undo)
    }

    fn is_lab(&self) -> bool {
        self.ground == Ground::Lab
    }

    /// Applies the sysctls and the command of a level.
    ///
    /// # Errors
    /// In words, with place and level. [`AppliedSettings::undo`] undoes what was applied before the error.
    pub(crate) fn apply(&mut self, setting: &Setting) -> Result<(), String> {
        let of = format!("the level `{}` of `{}`", setting.label, setting.factor);
        for (name, value) in &setting.sysctl {
            self.set(&of, name, value)
                .map_err(|error| self.at(&of, &error))?;
        }
        if let Ground::Existing { device } = self.ground.clone() {
            let named = setting.device_name.as_deref();
            let device = (named.unwrap_or(&device), named);
            for features in setting.ethtool.values() {
                self.set_features(&of, device, features)
                    .map_err(|error| self.at(&of, &error))?;
            }
            for (which, value) in &setting.device {
                self.change_device(&of, device, *which, value)
                    .map_err(|error| self.at(&of, &error))?;
            }
        }
        if let Some(Deed { before, after }) = &setting.command {
            self.note(&of, What::Command(after.clone()), None)
                .and_then(|()| self.run(before))
                .map_err(|error| self.at(&of, &error))?;
        }
        Ok(())
    }

    fn set_features(
        &mut self,
        of: &str,
        (device, named): (&str, Option<&str>),
        wanted: &BTreeMap<String, bool>,
    ) -> Result<(), String> {
        let words = |error: BuildError| error.to_string();
        let mut device = ExistingDevice::open(device).map_err(words)?;
        let before = device.changeable(wanted).map_err(words)?;
        self.note(of, What::Features(before), named)?;
        device.set(wanted).map_err(words)
    }

    fn change_device(
        &mut self,
        of: &str,
        (device, named): (&str, Option<&str>),
        setting: DeviceSetting,
        value: &str,
    ) -> Result<(), String> {
        let words = |error: BuildError| error.to_string();
        let mut device = ExistingDevice::open(device).map_err(words)?;
        let was = device.setting(setting).map_err(words)?;
        self.note(of, What::Device { setting, was }, named)?;
        device.change(setting, value).map_err(words)
    }

    fn on_device(
        &self,
        named: Option<&String>,
        restore: impl FnOnce(&mut ExistingDevice) -> Result<(), BuildError>,
    ) -> Result<(), String> {
        let Ground::Existing { device } = &self.ground else {
            return Ok(());
        };
        let device = named.unwrap_or(device);
        let restored = ExistingDevice::open(device).and_then(|mut device| restore(&mut device));
        restored.map_err(|error| error.to_string())
    }

    /// Whether the sysctls of a level are there and may be changed, without changing any.
    pub(crate) fn check(&self, setting: &Setting) -> Result<(), String> {
        let of = format!("the level `{}` of `{}`", setting.label, setting.factor);
        for name in setting.sysctl.keys() {
            let checked = self.read(name).and_then(|_| {
                let opened = OpenOptions::new().write(true).open(path(name));
                opened.map_err(|error| self.refused(name, "", &error))
            });
            checked.map_err(|error| self.at(&of, &error))?;
        }
        Ok(())
    }

    /// Undoes everything, the last first. All of it is tried.
    ///
    /// # Errors
    /// What could not be undone, in words.
    pub(crate) fn undo(&mut self) -> Result<(), String> {
        let (mut failed, mut left) = (Vec::new(), Vec::new());
        while let Some(step) = self.undo.pop() {
            let undone = match &step.what {
                What::Sysctl { name, was } => self.write(name, was),
                What::Features(before) => {
                    self.on_device(step.device.as_ref(), |device| device.restore(before))
                }
                What::Device { setting, was } => {
                    self.on_device(step.device.as_ref(), |device| device.change(*setting, was))
                }
                What::Command(command) => self.run(command),
            };
            if let Err(error) = undone {
                failed.push(self.at(&step.of, &format!("it could not be undone: {error}")));
                left.insert(0, step);
            }
        }
        if let Some(journal) = &mut self.journal {
            failed.extend(journal.keep(&left).err());
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed.join("; "))
        }
    }

    fn at(&self, of: &str, error: &str) -> String {
        format!("{}: {of}: {error}", self.place)
    }

    fn set(&mut self, of: &str, name: &str, value: &str) -> Result<(), String> {
        if self.is_lab() && !namespaces_are_safe() {
            return Err(format!(
                "this kernel is older than Linux 5.13, which does not restrict `{name}` to its network namespace: \
                 run it on a newer one"
            ));
        }
        if matches!(self.ground, Ground::Existing { .. }) && takes_addresses(name, value) {
            return Err(format!(
                "the sysctl `{name}` takes IPv6 addresses off devices, which setting it back does not restore: use a command"
            ));
        }
        let was = self.read(name)?;
        for follows in followers(name) {
            let was = self.read(&follows)?;
            let what = What::Sysctl { name: follows, was };
            self.note(of, what, None)?;
        }
        let name_of = name.to_owned();
        self.note(of, What::Sysctl { name: name_of, was }, None)?;
        let written = self.write(name, value);
        // What was refused outright has not to be undone, and could not be.
        if written.is_err() && self.still_is_as_it_was(name) {
            self.forget_last()?;
        }
        written
    }

    fn still_is_as_it_was(&self, name: &str) -> bool {
        let was = self.undo.last().map(|undo| &undo.what);
        matches!(was, Some(What::Sysctl { was, .. }) if self.read(name).is_ok_and(|now| now == *was))
    }

    fn read(&self, name: &str) -> Result<String, String> {
        match fs::read_to_string(path(name)) {
            Ok(text) => Ok(text.trim_end_matches('\n').to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.missing(name)),
            Err(error) => Err(format!(
                "the sysctl `{name}` cannot be read ({error}), and so could not be undone"
            )),
        }
    }

    /// Writes in one call, as /proc/sys wants it, and reads back.
    fn write(&self, name: &str, value: &str) -> Result<(), String> {
        let written = OpenOptions::new()
            .write(true)
            .open(path(name))
            .and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()));
        written.map_err(|error| self.refused(name, value, &error))?;
        let found = self.read(name)?;
        if is_same(value, &found) {
            return Ok(());
        }
        Err(format!(
            "the sysctl `{name}` was set to `{value}` and reads back as `{found}`: write the value as it reads back"
        ))
    }

    fn missing(&self, name: &str) -> String {
        if !self.is_lab() {
            return format!(
                "this machine has no sysctl `{name}`: look for the name in `sysctl -a`, and whether its module is loaded"
            );
        }
        let on_machine = "where it belongs to the whole machine, write `on: machine` in this level and run as root";
        format!(
            "there is no sysctl `{name}` in its network namespace: check the name; {on_machine}"
        )
    }

    fn refused(&self, name: &str, value: &str, error: &io::Error) -> String {
        match error.kind() {
            ErrorKind::NotFound => self.missing(name),
            ErrorKind::PermissionDenied if !self.is_lab() => {
                format!("changing the sysctl `{name}` of this machine needs root: {error}")
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => format!(
                "the sysctl `{name}` may not be changed in a network namespace, because it is the machine's or needs \
                 more privilege ({error}): write `on: machine` in this level and run as root"
            ),
            ErrorKind::InvalidInput => {
                format!("the kernel does not take `{value}` for the sysctl `{name}` ({error})")
            }
            _ => format!("writing `{value}` to the sysctl `{name}`: {error}"),
        }
    }

    /// Runs one command to its end. What it leaves running in the background is not waited for.
    fn run(&self, command: &str) -> Result<(), String> {
        let told = |how: &str| format!("the command `{}` {how}", command.trim());
        let failed = |error: io::Error| told(&format!("could not be run: {error}"));
        // A file and no pipe: nobody has to empty it, and who keeps it open holds nobody up.
        let output =
            memfd_create(c"output", MFdFlags::MFD_CLOEXEC).map_err(|e| failed(e.into()))?;
        let mut output = fs::File::from(output);
        let to = || output.try_clone().map(Stdio::from).map_err(failed);
        let mut child = Command::new("sh")
            .args(["-c", command])
            .env("WIRECOST_PLACE", &self.place)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(to()?)
            .stderr(to()?)
            .spawn()
            .map_err(failed)?;
        let handle = PidFd::open(child.id()).map_err(failed)?;
        let ended = handle.wait(COMMAND_LIMIT).map_err(failed)?;
        if !ended {
            let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        }
        let status = child.wait().map_err(failed)?;
        if ended && status.success() {
            return Ok(());
        }
        let how = match (ended, status.code(), status.signal()) {
            (false, ..) => format!(
                "was still running after {} s and was killed",
                COMMAND_LIMIT.as_secs()
            ),
            (_, Some(127), _) => "was not found (exit code 127)".to_owned(),
            (_, Some(code), _) => format!("ended with exit code {code}"),
            (_, None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
        };
        match said(&mut output) {
            text if text.is_empty() => Err(told(&format!("{how} and said nothing"))),
            text => Err(told(&format!("{how} and said: {text}"))),
        }
    }
}

/// Undoes what journals on this host say was left changed, in this network namespace.
pub(crate) fn undo_left() -> Result<LeftSettings, AgentError> {
    let mut found = LeftSettings::default();
    for left in journal::left().step("looking for journals")? {
        let left = match left {
            Ok(left) => left,
            Err(error) => {
                found.failed.push(error);
                continue;
            }
        };
        let (mut applied, gone_before) = AppliedSettings::left(&left);
        let steps = applied.words();
        let gone = applied.undo().and_then(|()| {
            let gone = left.forget();
            gone.map_err(|error| format!("removing {}: {error}", left.name()))
        });
        match gone {
            Ok(()) => {
                found.undone.extend(steps);
                found.gone.extend(gone_before);
            }
            Err(error) => found.failed.push(error),
        }
    }
    Ok(found)
}

/// The end of what a command printed, in one line.
fn said(output: &mut fs::File) -> String {
    let mut bytes = Vec::new();
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let from = length.saturating_sub(OUTPUT_BYTES);
    let read = output
        .seek(SeekFrom::Start(from))
        .and_then(|_| output.take(OUTPUT_BYTES).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The file of a sysctl. As sysctl(8) has it: where the first separator is a slash, dots stay dots, so that
/// devices with dots in their names can be told; else the two stand for each other.
fn path(name: &str) -> PathBuf {
    let slashes_first = name
        .find(['.', '/'])
        .is_some_and(|at| name[at..].starts_with('/'));
    let below = if slashes_first {
        name.to_owned()
    } else {
        let swapped = name.chars().map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        });
        swapped.collect()
    };
    PathBuf::from("/proc/sys").join(below)
}

/// The sysctls of single devices that the kernel sets with one of all of them (net/ipv4/devinet.c, `inet_forward_change`;
/// net/ipv6/addrconf.c, `addrconf_forward_change`).
fn followers(name: &str) -> Vec<String> {
    let plain = name.replace('.', "/");
    let version = match plain.as_str() {
        "net/ipv4/ip_forward" | "net/ipv4/conf/all/forwarding" => "ipv4",
        "net/ipv6/conf/all/forwarding" => "ipv6",
        _ => return Vec::new(),
    };
    let below = format!("net/{version}/conf");
    let devices = fs::read_dir(format!("/proc/sys/{below}"));
    let names = devices.into_iter().flatten().flatten();
    let devices = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|device| device != "all")
        .map(|device| format!("{below}/{device}/forwarding"));
    let redirects = (version == "ipv4").then(|| format!("{below}/all/accept_redirects"));
    redirects.into_iter().chain(devices).collect()
}

/// Whether setting it loses what cannot be set back.
fn takes_addresses(name: &str, value: &str) -> bool {
    name.replace('.', "/").ends_with("/disable_ipv6") && value.trim() != "0"
}

/// Whether two spellings are one value: tabs and spaces are as good, and so are `0x10` and `16`.
fn is_same(wanted: &str, found: &str) -> bool {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => word.parse::<i128>().ok(),
    };
    let (mut wanted, mut found) = (wanted.split_whitespace(), found.split_whitespace());
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) => {
                let same = one == other || number(one).is_some_and(|n| number(other) == Some(n));
                if !same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Since Linux 5.13 a sysctl that is not a namespace's own is read-only in one (net/sysctl_net.c,
/// `ensure_safe_net_sysctl`), so that what can be written there concerns nobody else.
fn namespaces_are_safe() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    is_at_least(&release, (5, 13))
}

fn is_at_least(release: &str, least: (u32, u32)) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= least
}

#[cfg(test)]
#[path = "settings/tests.rs"]
mod tests;
