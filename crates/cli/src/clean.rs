//! `wirecost clean`.

use std::io;
use std::process::ExitCode;

use serde_json::json;
use wirecost_agent::stray::{self, Cleaned, Stray};

use crate::arguments::Clean;
use crate::{complain, exit, screen};

pub(crate) fn clean(arguments: &Clean) -> ExitCode {
    let Cleaned { ended, refused } = match stray::end_all() {
        Ok(cleaned) => cleaned,
        Err(error) => {
            complain(&error);
            return exit::incomplete();
        }
    };
    let printed = if arguments.json {
        let refused: Vec<_> = refused
            .iter()
            .map(|(stray, error)| json!({ "agent": stray, "error": error.to_string() }))
            .collect();
        screen::print(&json!({ "ended": ended, "refused": refused }).to_string())
    } else {
        screen::print(&lines(&ended, &refused))
    };
    if refused.is_empty() {
        printed
    } else {
        exit::incomplete()
    }
}

fn lines(ended: &[Stray], refused: &[(Stray, io::Error)]) -> String {
    if ended.is_empty() && refused.is_empty() {
        return "nothing to clean: no agent has outlived its run".to_owned();
    }
    let ended = ended.iter().map(|stray| {
        let state = if stray.stopped {
            "stopped agent"
        } else {
            "agent"
        };
        let (pid, run) = (stray.pid, stray.controller);
        format!("ended {state} {pid}, left by run {run}, with its namespaces and devices")
    });
    let refused = refused.iter().map(|(stray, error)| {
        format!(
            "could not end agent {}: {error}; try as its user or as root",
            stray.pid
        )
    });
    ended.chain(refused).collect::<Vec<_>>().join("\n")
}
