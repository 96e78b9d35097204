//! `wirecost clean`.

use std::process::ExitCode;

use serde_json::json;
use wirecost_agent::stray::{self, Cleaned};

use crate::arguments::Clean;
use crate::{complain, exit};

pub(crate) fn clean(arguments: &Clean) -> ExitCode {
    let Cleaned { ended, refused } = match stray::end_all() {
        Ok(cleaned) => cleaned,
        Err(error) => {
            complain(&error);
            return exit::incomplete();
        }
    };
    if arguments.json {
        let refused: Vec<_> = refused
            .iter()
            .map(|(stray, error)| json!({ "agent": stray, "error": error.to_string() }))
            .collect();
        println!("{}", json!({ "ended": ended, "refused": refused }));
    } else {
        for stray in &ended {
            let state = if stray.stopped {
                "stopped agent"
            } else {
                "agent"
            };
            println!(
                "ended {state} {}, left by run {}, with its namespaces and devices",
                stray.pid, stray.controller
            );
        }
        for (stray, error) in &refused {
            println!(
                "could not end agent {}: {error}; try as its user or as root",
                stray.pid
            );
        }
        if ended.is_empty() && refused.is_empty() {
            println!("nothing to clean: no agent has outlived its run");
        }
    }
    if refused.is_empty() {
        exit::FINE
    } else {
        exit::incomplete()
    }
}
