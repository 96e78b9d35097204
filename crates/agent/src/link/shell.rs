//! An agent behind a shell: the program is found there, or copied, and started, over one stream.
//!
//! What is started at the far end is `sh`, one word that needs no quoting whatever is in between (a login shell that is
//! fish, `docker exec`, `ip netns exec`). It reads the script below from its standard input, which then is the
//! agent's. Controller and script speak in turns, so that nothing is ever read ahead of whom it is for.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tracing::debug;

use super::binaries::{Binaries, Program};
use super::line::{ChildLine, WaitError};
use super::stderr_tail::readable;

/// How long a shell may take to come up and to look around; ssh's own time-out is within it.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a copy may take: 8 MB at 1 Mbit/s.
const COPY: Duration = Duration::from_secs(90);
/// What begins the script's lines among anything that login shells print.
const MARK: &str = "wirecost-line ";
/// More than this before the script's first word is not a shell.
const NOISE_BYTES: usize = 64 << 10;

/// All of it is read before any of it runs, since it stands in braces.
///
/// A copy lies in a directory of its own that only its owner may enter, on the first file system that lets programs
/// run; the agent removes both when it starts. An empty file is a program to every shell (POSIX XCU 2.9.1.1, ENOEXEC).
const SCRIPT: &str = r#"{
umask 077
say() { printf 'wirecost-line %s\n' "$*"; }
sum() { set -- $(sha256sum <"$1" 2>/dev/null); printf %s "${1:--}"; }
have() {
    p=$(command -v "$2" 2>/dev/null) && [ -x "$p" ] || return 0
    say have "$1" "$(sum "$p")" "$("$p" --version 2>/dev/null </dev/null)"
}
sudo=
[ @ROOT@ != 1 ] || [ "$(id -u)" = 0 ] || sudo='sudo -n'
start() {
    if [ -n "$sudo" ] && ! e=$($sudo "$1" --version 2>&1 >/dev/null </dev/null); then
        command -v sudo >/dev/null 2>&1 || e='there is no sudo'
        say failed "what is asked of it needs root, its login is $(id -un 2>/dev/null || id -u), and sudo -n does not help:" \
            "$(printf '%s\n' "$e" | head -n 1): log in as root, or let that user run commands by sudo without a password" \
            "(NOPASSWD in sudoers)"
        exit 1
    fi
    say run
    exec $sudo "$@"
}
say system "$(uname -s)" "$(uname -m)" "$(command -v gzip 2>/dev/null)"
have 1 wirecost
have 2 @PROGRAM@
say choose
read -r what size hash
d=
case $what in
1) start "$(command -v wirecost)" @ARGUMENTS@ ;;
2) start @PROGRAM@ @ARGUMENTS@ ;;
copy | gzip)
    trap '[ -z "$d" ] || rm -rf "$d"' EXIT
    trap 'exit 1' HUP INT TERM PIPE
    for t in "${TMPDIR:-/tmp}" /var/tmp "$HOME" /dev/shm; do
        d=$(mktemp -d "$t/wirecost-agent.XXXXXX" 2>/dev/null) || { d=; continue; }
        if : >"$d/try" && chmod 700 "$d/try" && "$d/try" </dev/null >/dev/null 2>&1; then break; fi
        rm -rf "$d"
        d=
    done
    if [ -z "$d" ]; then
        say failed "no directory of it lets files be written and run (\$TMPDIR, /tmp, /var/tmp, \$HOME, /dev/shm)"
        exit 1
    fi
    rm "$d/try"
    say send
    if [ "$what" = gzip ]; then
        head -c "$size" 2>/dev/null | gzip -dc >"$d/wirecost" 2>/dev/null
    else
        head -c "$size" >"$d/wirecost" 2>/dev/null
    fi
    if [ "$(sum "$d/wirecost")" != "$hash" ]; then
        say failed "what arrived in $d is not what was sent: is the disk full, and is there a sha256sum?"
        exit 1
    fi
    chmod 700 "$d/wirecost"
    start "$d/wirecost" @ARGUMENTS@ --temporary "$d" ;;
esac
}
"#;

/// What the far end told of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct RemoteHost {
    system: String,
    machine: String,
    /// Whether it can unpack gzip(1).
    gunzips: bool,
    programs: Vec<Installed>,
}

/// A program that is there.
#[derive(Debug, PartialEq, Eq)]
struct Installed {
    /// The script's number for it.
    number: u8,
    /// `-` where the host cannot compute it.
    sha256: String,
    /// What it prints as its version.
    version: String,
}

/// Which program is to be the agent.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Installed(u8),
    Copy,
}

/// Why there is no agent.
#[derive(Debug)]
pub(super) enum Failure {
    /// The stream ended, or its time did, or the user did.
    Stopped(WaitError, Duration),
    /// In words.
    Words(String),
}

/// Brings an agent up behind the shell that the line leads to, where it `needs_root` and the login is another user by `sudo -n`.
/// After this the line is the agent's.
pub(super) fn bring_up(
    line: &mut ChildLine,
    program: &Path,
    binaries: &Binaries,
    arguments: &[String],
    needs_root: bool,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let mut talk = Talk {
        line,
        interrupt,
        noise: String::new(),
    };
    match talk.send(script(program, arguments, needs_root).as_bytes(), PATIENCE) {
        // It has ended already: what it printed says why.
        Ok(()) | Err(Failure::Stopped(WaitError::Closed, _)) => {}
        Err(failure) => return Err(failure),
    }
    let found = talk.look_around()?;
    // Of the same architecture it is this program, to be compared with what is there.
    let path = binaries.of(program, &found.machine);
    let cannot_read = |error| {
        let path = path.as_deref().unwrap_or(program).display();
        Failure::Words(format!("reading {path}, which is to run there: {error}"))
    };
    let ours = path
        .as_deref()
        .map(Program::of)
        .transpose()
        .map_err(cannot_read)?;
    let choice = choose(&found, ours.as_ref().map(|ours| ours.sha256.as_str()));
    let choice = choice.map_err(Failure::Words)?;
    debug!(?found, ?choice, "the far end of a line");
    match (choice, &ours) {
        (Choice::Installed(number), _) => {
            talk.send(format!("{number}\n").as_bytes(), PATIENCE)?;
        }
        (Choice::Copy, ours) => {
            let Some(ours) = ours else {
                unreachable!("what is not there is not copied");
            };
            let packed = ours.gzipped().filter(|_| found.gunzips);
            let (how, bytes) =
                packed.map_or(("copy", ours.bytes.as_slice()), |packed| ("gzip", packed));
            let order = format!("{how} {} {}\n", bytes.len(), ours.sha256);
            talk.send(order.as_bytes(), PATIENCE)?;
            talk.expect("send", PATIENCE)?;
            match talk.send(bytes, COPY) {
                // Nobody takes it any more: what follows says why.
                Ok(()) | Err(Failure::Stopped(WaitError::Closed, _)) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
    talk.expect("run", PATIENCE)
}

fn script(program: &Path, arguments: &[String], needs_root: bool) -> String {
    let quoted: Vec<String> = arguments.iter().map(|word| quote(word)).collect();
    SCRIPT
        .replace("@ROOT@", if needs_root { "1" } else { "0" })
        .replace("@PROGRAM@", &quote(&program.to_string_lossy()))
        .replace("@ARGUMENTS@", &quoted.join(" "))
}

/// A word that a POSIX shell reads as it is.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The same program where there is one, else a copy of what can run there, else one of the same version. `ours`: the hash of
/// what can be copied.
fn choose(found: &RemoteHost, ours: Option<&str>) -> Result<Choice, String> {
    let same = |installed: &&Installed| Some(installed.sha256.as_str()) == ours;
    if let Some(installed) = found.programs.iter().find(same) {
        return Ok(Choice::Installed(installed.number));
    }
    let version = concat!("wirecost ", env!("CARGO_PKG_VERSION"));
    let of_version = found
        .programs
        .iter()
        .find(|program| program.version == version);
    let runs_there = found.system == "Linux" && ours.is_some();
    match of_version {
        // Without sha256sum neither can a copy be checked.
        Some(program) if !runs_there || program.sha256 == "-" => {
            Ok(Choice::Installed(program.number))
        }
        _ if runs_there => Ok(Choice::Copy),
        _ => {
            let (system, machine) = (&found.system, &found.machine);
            let there: Vec<&str> = found
                .programs
                .iter()
                .map(|program| program.version.as_str())
                .collect();
            let there = if there.is_empty() {
                "there is no wirecost".to_owned()
            } else {
                format!("there is {}", there.join(" and "))
            };
            let arch = std::env::consts::ARCH;
            Err(format!(
                "it is {system} {machine}, where this program (Linux {arch}) cannot run, and {there}: install \
                 {version} for {machine} on it, in the PATH of the user, or name one here: --agent-binary \
                 {machine}=PATH"
            ))
        }
    }
}

struct Talk<'a> {
    line: &'a mut ChildLine,
    interrupt: &'a AtomicBool,
    /// What else was printed, for an error.
    noise: String,
}

impl Talk<'_> {
    fn send(&mut self, bytes: &[u8], within: Duration) -> Result<(), Failure> {
        self.line
            .send(bytes, Instant::now() + within, self.interrupt)
            .map_err(|stop| self.stopped(stop, within))
    }

    fn look_around(&mut self) -> Result<RemoteHost, Failure> {
        let mut found = RemoteHost::default();
        loop {
            let said = self.hear(PATIENCE)?;
            let (word, rest) = said.split_once(' ').unwrap_or((&said, ""));
            match word {
                "system" => {
                    let mut words = rest.split(' ').map(readable);
                    let mut next = || words.next().unwrap_or_default();
                    (found.system, found.machine) = (next(), next());
                    found.gunzips = !next().is_empty();
                }
                "have" => {
                    let mut parts = rest.splitn(3, ' ');
                    let mut next = || parts.next().unwrap_or_default();
                    let number = next().parse();
                    let (sha256, version) = (next().to_owned(), readable(next()));
                    found.programs.extend(number.ok().map(|number| Installed {
                        number,
                        sha256,
                        version,
                    }));
                }
                "choose" => return Ok(found),
                _ => return Err(foreign(&said)),
            }
        }
    }

    fn expect(&mut self, word: &str, within: Duration) -> Result<(), Failure> {
        let said = self.hear(within)?;
        match said.strip_prefix("failed ") {
            Some(why) => Err(Failure::Words(readable(why))),
            None if said == word => Ok(()),
            None => Err(foreign(&said)),
        }
    }

    /// The script's next line; what others print before it is kept apart.
    fn hear(&mut self, within: Duration) -> Result<String, Failure> {
        let deadline = Instant::now() + within;
        loop {
            let line = self
                .line
                .receive(deadline, self.interrupt, take_line)
                .map_err(|stop| self.stopped(stop, within))?;
            if let Some(said) = line.strip_prefix(MARK) {
                return Ok(said.to_owned());
            }
            self.noise.push_str(&line);
            self.noise.push('\n');
            if self.noise.len() > NOISE_BYTES {
                return Err(self.not_a_shell());
            }
        }
    }

    fn stopped(&self, stop: WaitError, within: Duration) -> Failure {
        match stop {
            WaitError::Closed if !self.noise.trim().is_empty() => self.not_a_shell(),
            stop => Failure::Stopped(stop, within),
        }
    }

    fn not_a_shell(&self) -> Failure {
        let noise = readable(self.noise.lines().next().unwrap_or_default());
        Failure::Words(format!(
            "it printed `{noise}` where a shell was to run our commands: what leads to the host must start the `sh` that \
             is added to it, and give it standard input and output"
        ))
    }
}

fn foreign(said: &str) -> Failure {
    let said = readable(said);
    Failure::Words(format!(
        "its shell answered `{said}`, which is not the script's"
    ))
}

/// A whole line without its end; one that is not text cannot be the script's.
fn take_line(arrived: &mut Vec<u8>) -> Option<String> {
    let end = match arrived.iter().position(|byte| *byte == b'\n') {
        Some(end) => end,
        // No line of ours is that long.
        None if arrived.len() > NOISE_BYTES => arrived.len() - 1,
        None => return None,
    };
    let line: Vec<u8> = arrived.drain(..=end).collect();
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(machine: &str, programs: &[(&str, &str)]) -> RemoteHost {
        let program = |(number, (sha256, version)): (u8, &(&str, &str))| Installed {
            number,
            sha256: (*sha256).to_owned(),
            version: (*version).to_owned(),
        };
        RemoteHost {
            system: "Linux".to_owned(),
            machine: machine.to_owned(),
            gunzips: true,
            programs: (1..).zip(programs).map(program).collect(),
        }
    }

    const OURS: &str = concat!("wirecost ", env!("CARGO_PKG_VERSION"));

    #[test]
    fn the_same_program_is_used_and_anything_else_is_replaced_by_a_copy() {
        let choose = |found: &RemoteHost| choose(found, Some("aa"));
        let there = found("x86_64", &[("bb", OURS), ("aa", OURS)]);
        assert_eq!(choose(&there), Ok(Choice::Installed(2)));
        assert_eq!(choose(&found("x86_64", &[])), Ok(Choice::Copy));
        assert_eq!(choose(&found("x86_64", &[("bb", OURS)])), Ok(Choice::Copy));
        assert_eq!(
            choose(&found("x86_64", &[("-", OURS)])),
            Ok(Choice::Installed(1))
        );
    }

    #[test]
    fn another_architecture_needs_the_same_version_there() {
        let choose = |found: &RemoteHost| choose(found, None);
        let there = found("aarch64", &[("bb", "wirecost 0.0.1"), ("cc", OURS)]);
        assert_eq!(choose(&there), Ok(Choice::Installed(2)));
        let none = choose(&found("aarch64", &[])).expect_err("no program");
        assert!(none.contains("Linux aarch64") && none.contains("there is no wirecost"));
        assert!(
            none.contains(&format!("install {OURS} for aarch64")),
            "{none}"
        );
        let old = choose(&found("aarch64", &[("bb", "wirecost 0.0.1")])).expect_err("older");
        assert!(old.contains("there is wirecost 0.0.1"), "{old}");
    }

    #[test]
    fn a_word_survives_a_shell() {
        for word in ["plain", "", "it's", "a b\"$(c)`d`\\e*"] {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(word))])
                .output()
                .expect("sh");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }

    #[test]
    fn lines_are_taken_one_by_one_and_the_rest_stays() {
        let mut arrived = b"one\r\ntwo\nthr".to_vec();
        assert_eq!(take_line(&mut arrived).as_deref(), Some("one"));
        assert_eq!(take_line(&mut arrived).as_deref(), Some("two"));
        assert_eq!(take_line(&mut arrived), None);
        assert_eq!(arrived, b"thr");
    }
}
