//! `wirecost run`: plan -> run -> result, printed from the record that was just written.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wirecost_model::cell::Experiment;
use wirecost_model::record::Outcome;
use wirecost_run::{DirectoryError, Options, RunError};

use crate::arguments::Run;
use crate::progress::Display;
use crate::{complain, exit, report, screen};

pub(crate) fn run(arguments: &Run) -> ExitCode {
    let (experiment, plan_text) = match load(&arguments.plan) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if is_ignored(signal) {
            continue;
        }
        // A second Ctrl-C ends the program at once; the labs go with it.
        let now = signal_hook::flag::register_conditional_shutdown(signal, 3, interrupt.clone());
        let flag = signal_hook::flag::register(signal, interrupt.clone());
        if let Err(error) = now.and(flag) {
            complain(&error);
            return exit::incomplete();
        }
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            complain(&error);
            return exit::incomplete();
        }
    };
    let options = Options {
        program,
        out: arguments.out.clone(),
        plan_text,
        seed: arguments.seed.map(u64::from),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut display = Display::new(&experiment);
    let finished = wirecost_run::run(&experiment, &options, &interrupt, &mut |step| {
        display.show(step);
    });
    display.end();
    let finished = match finished {
        Ok(finished) => finished,
        Err(error) => {
            complain(&error);
            return match error {
                RunError::Directory(DirectoryError::Exists(_)) => exit::usage(),
                _ => exit::incomplete(),
            };
        }
    };
    let result = match report::read(&finished.directory) {
        Ok(result) => result,
        Err(code) => return code,
    };
    let page = report::write_page(&result, &finished.directory);
    let document = &result.document;
    let printed = report::print(document, page.as_deref(), arguments.json);
    let measured = document.cells.iter().all(|cell| cell.valid > 0);
    let whole = finished.end.outcome == Outcome::Complete && measured;
    if whole { printed } else { exit::incomplete() }
}

/// Whether this process was started with the signal ignored, as nohup(1) does with SIGHUP and a
/// shell with SIGINT for a job in the background: then it stays ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// A plan file, or a built-in plan where no such file exists.
fn load(plan: &Path) -> Result<(Experiment, String), ExitCode> {
    let name = plan.to_string_lossy();
    let text = match (fs::read_to_string(plan), wirecost_plan::builtin(&name)) {
        (Ok(text), _) => text,
        (Err(_), Some(text)) => text.to_owned(),
        (Err(error), None) => {
            let known: Vec<&str> = wirecost_plan::BUILTIN
                .iter()
                .map(|(name, _)| *name)
                .collect();
            screen::say(&format!(
                "wirecost: no plan {name}: {error}; name a plan file, or a built-in plan: {}",
                known.join(", ")
            ));
            return Err(exit::usage());
        }
    };
    match wirecost_plan::load(&name, &text) {
        Ok(experiment) => Ok((experiment, text)),
        Err(errors) => {
            screen::say(&format!("{:?}", miette::Report::new(errors)));
            Err(exit::usage())
        }
    }
}
