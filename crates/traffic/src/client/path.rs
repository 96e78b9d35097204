//! A client of storage at a path: opens the path and starts its jobs, then verifies and closes it.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::Client;
use crate::error::TrafficError;
use crate::flow::{Finished, FinishedFlow, Flow, Outcome};
use crate::storage::path::OpenPath;
use crate::task::path_client;

impl Client {
    /// Opens the path, and starts a thread for each of its jobs.
    pub(super) fn start_jobs(&mut self, path: &str, deadline: Instant) -> Result<(), TrafficError> {
        let shared = &self.engine.shared;
        let failed = |source| TrafficError::Path {
            path: path.to_owned(),
            source,
        };
        let open = OpenPath::open(path, &shared.options, deadline).map_err(failed)?;
        let open = shared.path.get_or_init(|| Arc::new(open));
        let _ = shared.flows.path.set(path.to_owned());
        let jobs = path_client::all(shared, open).map_err(failed)?;
        for (thread, job) in jobs.into_iter().enumerate() {
            shared.flows.set_connected(&shared.flows.all()[thread]);
            self.threads.push(self.engine.spawn(thread, vec![job])?);
        }
        Ok(())
    }

    /// Verifies and closes the path, whose jobs are over.
    pub(super) fn close_path(
        &self,
        open: &Arc<OpenPath>,
        deadline: Instant,
    ) -> Result<Finished, TrafficError> {
        let shared = &self.engine.shared;
        let failed = |source| TrafficError::Path {
            path: open.path.clone(),
            source,
        };
        let states = shared.flows.all();
        let is_over = |flow: &Flow| matches!(flow.outcome.get(), Some(Outcome::Orderly));
        if !states.iter().all(is_over) {
            let words = "I/O that was outstanding was not over when the load was stopped";
            return Err(failed(io::Error::new(io::ErrorKind::TimedOut, words)));
        }
        let read_backs = states.iter().filter_map(|state| state.read_back.get());
        let read_backs = read_backs.cloned().collect();
        open.close(&shared.options, read_backs, deadline)
            .map_err(failed)?;
        let flow = |state: &Flow| FinishedFlow {
            bytes: state.bytes(),
            drained: true,
            counted: 0,
        };
        Ok(Finished {
            bytes: shared.flows.bytes(),
            flows: states.iter().map(flow).collect(),
            strays: 0,
        })
    }

    /// Empties a path that the load wrote to and did not close, as after an error. Its jobs are over.
    pub(super) fn abandon_path(&self) {
        let shared = &self.engine.shared;
        let wrote = |flow: &Flow| flow.tx.bytes.get() > 0;
        if let Some(open) = shared.path.get()
            && shared.flows.all().iter().any(wrote)
        {
            open.abandon();
        }
    }
}
