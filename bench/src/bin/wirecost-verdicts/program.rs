//! The `wirecost` program as a child: a plan in, its JSON result out, its record thrown away.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};

use serde_json::Value;

pub(crate) struct Wirecost {
    program: PathBuf,
    /// Of this process's own; goes with it.
    scratch: PathBuf,
}

impl Wirecost {
    /// The program that was named, or the one beside this program.
    pub(crate) fn find(named: Option<PathBuf>) -> Result<Self, String> {
        let program = match named {
            Some(program) => program,
            None => env::current_exe()
                .map_err(|error| format!("looking for this program: {error}"))?
                .with_file_name("wirecost"),
        };
        if !program.is_file() {
            return Err(format!(
                "there is no program {}: build it (`make build`), or name it with --program",
                program.display()
            ));
        }
        let scratch = env::temp_dir().join(format!("wirecost-verdicts-{}", process::id()));
        fs::create_dir(&scratch)
            .map_err(|error| format!("making {}: {error}", scratch.display()))?;
        Ok(Self { program, scratch })
    }

    /// A built-in plan's text.
    pub(crate) fn plan(&self, name: &str) -> Result<String, String> {
        let output = Command::new(&self.program)
            .args(["plans", name])
            .output()
            .map_err(|error| format!("starting {}: {error}", self.program.display()))?;
        if !output.status.success() {
            return Err(format!(
                "`wirecost plans {name}` ended with {}",
                output.status
            ));
        }
        String::from_utf8(output.stdout).map_err(|error| error.to_string())
    }

    /// Runs a plan to its end.
    pub(crate) fn run(&self, plan: &str) -> Result<Value, String> {
        let out = self.scratch.join("run");
        let told = |error: std::io::Error| format!("running {}: {error}", self.program.display());
        let mut child = Command::new(&self.program)
            .args(["run", "-", "--json", "-q", "--out"])
            .arg(&out)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(told)?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(plan.as_bytes()).map_err(told)?;
        }
        let output = child.wait_with_output().map_err(told)?;
        // The next run wants the name.
        let _ = fs::remove_dir_all(&out);
        if !output.status.success() {
            return Err(format!(
                "`wirecost run` ended with {}; the plan was\n{plan}",
                output.status
            ));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("reading its result: {error}"))
    }
}

impl Drop for Wirecost {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}
