//! The agent's main loop.

use std::io::{Read, Write};
use std::process::exit;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{debug, trace};

use crate::error::Result;
use crate::execute::{Agent, LOAD_IDLE_LIMIT};
use crate::existing::DEAD_MAN;
use crate::frame;
use crate::guards::SettingsGuards;
use crate::protocol::{Refusal, Reply, Request, Stage, VERSION};
use crate::role::AgentRole;

/// Answers requests until the input ends, then ends the process, even in the middle of a request: a lab host's devices
/// and namespaces end with the process. Settings that are still applied are undone first.
///
/// `owner` is the controller, as [`crate::orphan::Owner::argument`] writes it.
///
/// `started` is the result of becoming a host; an error is the reply to the first request, where the controller reads
/// it. With `idle`, the process also ends after that time without a request; loads are ended before. Requests that
/// `role` does not include are refused.
pub fn serve(
    mut input: impl Read + Send + 'static,
    mut output: impl Write,
    started: &Result<()>,
    owner: &str,
    idle: Option<Duration>,
    role: AgentRole,
) -> ! {
    let guards = SettingsGuards::new(owner);
    let (sender, requests) = mpsc::channel::<Request>();
    let ours = guards.clone();
    let reader = thread::Builder::new()
        .name("requests".into())
        .spawn(move || {
            while let Ok(Some(request)) = frame::read(&mut input) {
                if sender.send(request).is_err() {
                    break;
                }
            }
            ours.close();
            exit(0);
        });
    if reader.is_err() {
        exit(1);
    }
    let mut agent = Agent::new(guards.clone(), role);
    let idle = idle.unwrap_or(Duration::MAX);
    loop {
        let loaded = agent.has_loads();
        let changed = agent.has_changes();
        let patience = match (changed, loaded) {
            (true, _) => idle.min(DEAD_MAN),
            (false, true) => idle.min(LOAD_IDLE_LIMIT),
            (false, false) => idle,
        };
        let request = match requests.recv_timeout(patience) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) if changed => {
                debug!("undid settings: no request arrived");
                agent.abandon_changes();
                continue;
            }
            Err(RecvTimeoutError::Timeout) if loaded => {
                debug!("ended its loads: no request arrived");
                agent.abandon_loads();
                continue;
            }
            Err(_) => break,
        };
        let (doing, stage, began) = (request.doing(), request.stage(), Instant::now());
        let reply = match (started, request) {
            // Answered even where `started` is an error: the controller compares the versions and reports the
            // difference.
            (_, Request::Hello { version }) if version != VERSION => Reply::Hello {
                version: VERSION,
                pid: std::process::id(),
            },
            (Err(error), _) => Reply::Failed(Refusal::new(Stage::Build, error)),
            (Ok(()), request) => agent
                .execute(request)
                .unwrap_or_else(|error| Reply::Failed(Refusal::new(stage, &error))),
        };
        let us = began.elapsed().as_micros() as u64;
        if let Reply::Failed(Refusal { message, .. }) = &reply {
            debug!(us, "failed {doing}: {message}");
        } else {
            trace!(us, "done {doing}");
        }
        if frame::write(&mut output, &reply).is_err() {
            break;
        }
    }
    guards.close();
    exit(0)
}
