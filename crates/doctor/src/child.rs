//! The examiner's end of a probe: starts the process, reads its lines until a deadline, and ends it.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use wirecost_sys::extended_wait::{ExtendedWait, of_group};
use wirecost_sys::socket::poll_readable;

use crate::evidence::ProbeResults;
use crate::probe::{Privilege, ProbeLine};

/// A running probe process. Dropping it kills the process.
pub(crate) struct Probe {
    child: Child,
    output: ChildStdout,
}

impl Probe {
    /// Starts `program` as a probe: `doctor --probe WAY`.
    pub(crate) fn start(program: &Path, way: Privilege) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(["doctor", "--probe", way.word()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // All results are lines on standard output.
            .stderr(Stdio::null())
            // The group identifies what the probe starts. The kernel kills the probe when this process dies.
            .process_group(0)
            .spawn()?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, output })
    }

    /// Reads the probe's lines until it closes its output, or until `within` is over and its processes use no more CPU
    /// time; for six times `within` at most.
    pub(crate) fn collect(mut self, within: Duration) -> ProbeResults {
        let mut text = Vec::new();
        let group = self.child.id();
        let (mut deadline, mut extended) = (Instant::now() + within, None);
        let stopped = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let begins = extended.is_none();
                let extended = extended
                    .get_or_insert_with(|| ExtendedWait::begin(within, move || of_group(group)));
                if !begins && !extended.extend() {
                    break Some("it did not finish in time and was ended".to_owned());
                }
                deadline = extended.until();
                continue;
            }
            match poll_readable(&[self.output.as_fd()], left) {
                Ok(ready) if ready.is_empty() => continue,
                Ok(_) => {}
                Err(error) => break Some(error.to_string()),
            }
            let mut piece = [0; 4096];
            match self.output.read(&mut piece) {
                Ok(0) => break None,
                Ok(length) => text.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error.to_string()),
            }
        };
        let (mut tried, done) = understand(&text);
        if !done {
            tried.cut_short = Some(stopped.unwrap_or_else(|| self.end()));
        }
        tried
    }

    /// How the process ended, in words. Waits up to 2 s for it, since its output is closed already.
    fn end(&mut self) -> String {
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return match status.signal() {
                    Some(signal) => format!("it was ended by signal {signal}"),
                    None => format!("it ended with {status}"),
                };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        "it closed its output".into()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses a probe's output: outcomes, and whether it ends with [`ProbeLine::Done`]. A line that is cut off or cannot be
/// parsed is skipped: its trial has no outcome.
fn understand(text: &[u8]) -> (ProbeResults, bool) {
    let (mut tried, mut done) = (ProbeResults::default(), false);
    for line in text.split(|&byte| byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(ProbeLine::Who(who)) => tried.who = who,
            Ok(ProbeLine::Tried(trial, outcome)) => {
                tried.outcomes.insert(trial, outcome);
            }
            Ok(ProbeLine::Done) => done = true,
            Err(_) => {}
        }
    }
    (tried, done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Outcome, Trial};

    fn shell(script: &str) -> Probe {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let output = child.stdout.take().expect("piped");
        Probe { child, output }
    }

    #[test]
    fn lines_are_kept_and_the_last_one_says_that_it_is_all() {
        let script =
            r#"echo '{"who":"root"}'; echo '{"tried":["veth",{"works":"made"}]}'; echo '"done"'"#;
        let tried = shell(script).collect(Duration::from_secs(30));
        assert_eq!(tried.who, "root");
        assert_eq!(tried.outcomes[&Trial::Veth], Outcome::Works("made".into()));
        assert_eq!(tried.cut_short, None);
    }

    #[test]
    fn a_probe_that_is_killed_leaves_what_it_had_told_and_how_it_ended() {
        let script =
            r#"echo '{"tried":["veth",{"works":"made"}]}'; printf '{"tried":["bri'; kill -9 $$"#;
        let tried = shell(script).collect(Duration::from_secs(30));
        assert_eq!(tried.outcomes.len(), 1);
        assert_eq!(tried.cut_short.as_deref(), Some("it was ended by signal 9"));
    }

    #[test]
    fn a_probe_that_hangs_is_ended() {
        let probe = shell(r#"echo '{"who":"root"}'; exec sleep 60"#);
        let pid = probe.child.id();
        let tried = probe.collect(Duration::from_millis(300));
        assert!(tried.cut_short.expect("cut").contains("not finish in time"));
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
