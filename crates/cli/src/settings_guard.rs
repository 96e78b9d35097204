//! `wirecost settings-guard`: applies a plan's settings in the namespace it was started in, and undoes them.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wirecost_agent::guard::SettingsTarget;

use crate::exit;

/// Started by a run and by its agents; not for people.
#[derive(Debug, Args)]
pub(crate) struct SettingsGuard {
    /// Process id and start time of the controller, for `wirecost clean`
    #[arg(long)]
    pub(crate) owner: String,
    /// The place it runs in, for messages
    #[arg(long)]
    pub(crate) place: String,
    /// It runs outside of any lab
    #[arg(long)]
    pub(crate) machine: bool,
    /// It runs on an existing host, whose device this is
    #[arg(long, conflicts_with = "machine")]
    pub(crate) device: Option<String>,
}

pub(crate) fn settings_guard(arguments: &SettingsGuard) -> ExitCode {
    // Ignore signals: the guard ends when its input closes, after it has undone every setting.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let passed_over = Arc::new(AtomicBool::new(false));
        if let Err(error) = signal_hook::flag::register(signal, passed_over) {
            crate::screen::print_stderr(&format!("wirecost: {error}"));
            return exit::incomplete();
        }
    }
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    let target = match &arguments.device {
        Some(device) => SettingsTarget::Existing {
            device: device.clone(),
        },
        None if arguments.machine => SettingsTarget::Machine,
        None => SettingsTarget::Lab,
    };
    match wirecost_agent::guard::serve(input, output, &arguments.place, target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::screen::print_stderr(&format!("wirecost: {error}"));
            exit::incomplete()
        }
    }
}
